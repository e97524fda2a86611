"""A run that is stopped and goes on leaves what an unbroken one leaves."""

import json

import pytest

from fedloom import methods
from fedloom.errors import RunDirectoryError
from fedloom.server.run import run
from tests.unit.server import small
from tests.unit.server.small import DROPPING, NORMED, StopAfter, broken, events, left

VARIANTS = {
    "fednova": "fednova(prox_mu=0.1)",
    "scaffold": "scaffold(correction='gradient')",
}
CASES = {
    **{name: {"method": VARIANTS.get(name, name)} for name in methods.names()},
    "scaffold after the step": {"method": "scaffold"},
    "lanes": {"method": "scaffold", "executor": "mapped", "lanes": 2, "local_epochs": 3},
    "own statistics and dropout": {"model": DROPPING, "bn": "local"},
    "recalibration": {"model": NORMED, "bn": "server_recalibrate"},
    "noise and schedule": {
        "noise": 0.5,
        "noise_refresh": "each_access",
        "test_noise": "both",
        "schedule": "cosine",
    },
    "turns, steps and validation": {
        "sampler": "round_robin",
        "local_epochs": None,
        "local_steps": 3,
        "validation": 0.2,
    },
}


@pytest.mark.parametrize("case", CASES)
def test_stopping_after_every_round_gives_the_bits_of_an_unbroken_run(make, tmp_path, case):
    """Three of six clients take part, so every kind of memory lives through rounds of absence."""
    asked = make(**{"cohort": 3, "rounds": 4, "executor": "loop", **CASES[case]})
    run(asked, tmp_path / "unbroken")
    stopped = tmp_path / "stopped"
    for round in range(1, asked.rounds):
        broken(asked, stopped, at=round, resume=round > 1)
        assert not (stopped / "result.json").exists()
    run(asked, stopped, resume=True)
    assert left(stopped) == left(tmp_path / "unbroken")


def test_a_run_with_rare_checkpoints_does_the_rounds_after_the_last_one_again(make, tmp_path):
    asked = make(method="scaffold", cohort=3, rounds=7, checkpoint_every=3, eval_every=2)
    run(asked, tmp_path / "unbroken")
    stopped = tmp_path / "stopped"
    broken(asked, stopped, at=5)
    watched = StopAfter(99)
    run(asked, stopped, resume=True, progress=watched)
    starts = [json.loads(line) for line in (stopped / "events.jsonl").read_text().splitlines()]
    assert [s["resumed_from"] for s in starts if s["event"] == "start"] == [None, 3]
    assert left(stopped) == left(tmp_path / "unbroken")


@pytest.mark.parametrize("method", ["fedavg", "scaffold", "local"])
def test_raising_the_rounds_gives_the_longer_runs_model(make, tmp_path, method):
    asked = make(method=method, cohort=3, rounds=4)
    run(asked, tmp_path / "long")
    run(asked.replace(rounds=2), tmp_path / "raised")
    run(asked, tmp_path / "raised", resume=True)
    long, raised = left(tmp_path / "long"), left(tmp_path / "raised")
    assert long[0] == raised[0]
    assert long[2] == raised[2]
    kinds = ("round", "eval")
    assert [e for e in long[1] if e["event"] in kinds] == [
        e for e in raised[1] if e["event"] in kinds
    ]


def test_raising_the_rounds_is_refused_where_earlier_rates_depend_on_them(make, folder):
    asked = make(rounds=2, schedule="cosine")
    run(asked, folder)
    with pytest.raises(RunDirectoryError, match="rounds"):
        run(asked.replace(rounds=4), folder, resume=True)


@pytest.mark.parametrize(
    "change",
    [
        {"lr": 0.01},
        {"seed": 1},
        {"clients": 5},
        {"method": "fedprox"},
        {"model": "linear"},
        {"partition": "iid"},
        {"rounds": 2},
        {"momentum": 0.0},
        {"eval_every": 2},
    ],
    ids=lambda change: next(iter(change)),
)
def test_another_experiment_is_refused_and_nothing_changes(make, tmp_path, change):
    asked, folder = make(rounds=3), tmp_path / "run"
    broken(asked, folder, at=2)
    before = (folder / "events.jsonl").read_bytes(), (folder / "config.json").read_bytes()
    with pytest.raises(RunDirectoryError, match=next(iter(change))):
        run(asked.replace(**change), folder, resume=True)
    assert before == ((folder / "events.jsonl").read_bytes(), (folder / "config.json").read_bytes())


def test_changed_data_under_the_same_name_are_refused(make, tmp_path):
    path = tmp_path / "mine.npz"
    asked = make(data=small.table(path))
    broken(asked, tmp_path / "run", at=2)
    small.table(path, **small.arrays(seed=1))
    with pytest.raises(RunDirectoryError, match="data_digest"):
        run(asked, tmp_path / "run", resume=True)


def test_more_lanes_and_other_checkpoints_are_allowed_and_recorded(make, folder):
    asked = make(rounds=3)
    broken(asked, folder, at=1)
    result = run(asked.replace(checkpoint_every=2, lanes=3), folder, resume=True)
    assert result.status == "finished"
    lines = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    changes = [line["changes"] for line in lines if line["event"] == "start"][-1]
    assert changes == {
        "checkpoint_every": {"from": 1, "to": 2},
        "lanes": {"from": 16, "to": 3},
    }


def test_a_damaged_newest_checkpoint_is_named_and_the_one_before_it_used(make, tmp_path):
    asked = make(method="scaffold", cohort=3)
    run(asked, tmp_path / "unbroken")
    folder = tmp_path / "stopped"
    broken(asked, folder, at=3)
    newest = sorted((folder / "checkpoints").iterdir())[-1]
    newest.write_bytes(newest.read_bytes()[: newest.stat().st_size // 2])
    run(asked, folder, resume=True)
    assert left(folder)[:2] == left(tmp_path / "unbroken")[:2]
    lines = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    start = [line for line in lines if line["event"] == "start"][-1]
    assert start["resumed_from"] == 2
    assert any(newest.name in note and "before it is used" in note for note in start["notes"])


def test_without_checkpoints_an_unfinished_run_never_starts_again_in_silence(make, folder):
    asked = make()
    broken(asked, folder, at=2)
    for path in (folder / "checkpoints").iterdir():
        path.unlink()
    with pytest.raises(RunDirectoryError, match="checkpoint"):
        run(asked, folder, resume=True)


def test_a_checkpoint_that_lacks_the_methods_state_is_refused(make, tmp_path):
    plain, controlled = tmp_path / "plain", tmp_path / "controlled"
    broken(make(method="fedavg"), plain, at=2)
    broken(make(method="scaffold"), controlled, at=2)
    for folder in (plain, controlled):
        assert [p.name for p in sorted((folder / "checkpoints").glob("round-*"))][-1] == (
            "round-000002.safetensors"
        )
    for path in (controlled / "checkpoints").glob("*.safetensors"):
        path.write_bytes((plain / "checkpoints" / path.name).read_bytes())
    with pytest.raises(RunDirectoryError, match="control"):
        run(make(method="scaffold"), controlled, resume=True)


def test_a_finished_run_is_given_back_as_it_is(make, folder):
    asked = make(rounds=2)
    first = run(asked, folder)
    before = (folder / "events.jsonl").read_bytes()
    again = run(asked, folder, resume=True)
    assert again.result == first.result
    assert (folder / "events.jsonl").read_bytes() == before
    assert len(events(folder, "round")) == 2


def test_interruption_is_recorded(make, folder):
    broken(make(), folder, at=2)
    end = json.loads((folder / "events.jsonl").read_text().splitlines()[-1])
    assert (end["event"], end["status"], end["round"]) == ("end", "interrupted", 2)

import os
import resource
from pathlib import Path
from typing import Any

import pytest
import torch

from fedloom.errors import ConfigError, DivergedError, RunDirectoryError
from fedloom.record import RunDir, jsonio

CONFIG: dict[str, Any] = {"data": "fcube", "method": "fedavg", "rounds": 3, "seed": 0, "threads": 1}


def play(run: RunDir, first: int, last: int) -> None:
    for r in range(first, last + 1):
        run.event("round", round=r, train_loss=1 / r)
        run.event("eval", round=r, accuracy=torch.tensor(r / 10))


def finished(path: Path) -> Path:
    with RunDir.create(path, config=CONFIG) as run:
        run.start()
        play(run, 1, 3)
        run.finish({"status": "finished"})
    return path


def unfinished(path: Path, rounds: int = 2) -> Path:
    run = RunDir.create(path, config=CONFIG)
    run.start()
    play(run, 1, rounds)
    run.close()
    return path


def test_a_run_leaves_strict_files_and_no_lock(tmp_path: Path) -> None:
    path = finished(tmp_path / "erg ebnisse" / "ü (1)")
    assert jsonio.read(path / "config.json") == CONFIG
    assert jsonio.read(path / "result.json") == {"status": "finished"}
    kinds = [jsonio.loads(line)["event"] for line in (path / "events.jsonl").open("rb")]
    assert kinds == ["start", *["round", "eval"] * 3, "end"]
    assert sorted(p.name for p in path.iterdir()) == [
        "config.json",
        "events.jsonl",
        "lock",
        "result.json",
    ]
    assert (path / "lock").read_bytes() == b""


def test_a_finished_run_is_not_overwritten_unless_told(tmp_path: Path) -> None:
    path = finished(tmp_path / "a")
    before = {p: p.read_bytes() for p in path.iterdir()}
    with pytest.raises(RunDirectoryError, match=r"holds a finished run; delete it \(overwrite\)"):
        RunDir.create(path, config=CONFIG)
    assert {p: p.read_bytes() for p in path.iterdir()} == before


def test_an_unfinished_run_wants_resume_or_overwrite(tmp_path: Path) -> None:
    path = unfinished(tmp_path / "a")
    with pytest.raises(RunDirectoryError, match=r"unfinished run; go on with it \(resume\)"):
        RunDir.create(path, config=CONFIG)


def test_resume_and_overwrite_exclude_each_other(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="exclude"):
        RunDir.create(tmp_path / "a", config=CONFIG, resume=True, overwrite=True)


@pytest.mark.parametrize("flags", [{}, {"resume": True}, {"overwrite": True}])
@pytest.mark.parametrize("name", ["thesis.docx", "config.json", "compare.json", "events.jsonl"])
def test_a_folder_of_something_else_is_left_alone(
    tmp_path: Path, name: str, flags: dict[str, Any]
) -> None:
    (tmp_path / name).write_text("{}")
    with pytest.raises(RunDirectoryError, match=name):
        RunDir.create(tmp_path, config=CONFIG, **flags)
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    with pytest.raises(RunDirectoryError, match="is a file"):
        RunDir.create(tmp_path / "a", config=CONFIG)
    with pytest.raises(RunDirectoryError, match="can't make the folder"):
        RunDir.create(tmp_path / "a" / "b", config=CONFIG)


def test_overwrite_deletes_the_run_alone_and_says_so(tmp_path: Path) -> None:
    path = finished(tmp_path / "a")
    (path / "checkpoints").mkdir()
    (path / "checkpoints" / "round-000001.safetensors").write_bytes(b"x")
    (path / "my notes.txt").write_text("keep")
    run = RunDir.create(path, config=CONFIG | {"seed": 1}, overwrite=True)
    run.close()
    assert "an earlier run was deleted (result.json, events.jsonl, checkpoints)" in run.notes
    assert jsonio.read(path / "config.json")["seed"] == 1
    assert sorted(p.name for p in path.iterdir()) == [
        "config.json",
        "events.jsonl",
        "lock",
        "my notes.txt",
    ]
    assert not run.resumed


def test_a_resumed_run_has_the_events_of_an_unbroken_one(tmp_path: Path) -> None:
    whole, path = finished(tmp_path / "whole"), unfinished(tmp_path / "broken", rounds=2)
    with (path / "events.jsonl").open("ab") as handle:
        handle.write(b'{"event": "round", "rou')
    with RunDir.create(path, config=CONFIG, resume=True) as run:
        assert run.resumed
        assert run.truncate_after(1) == 2
        assert run.round == 1
        run.start(resumed_from=1)
        play(run, 2, 3)
        run.finish({"status": "finished"})
    assert any("was cut off" in note for note in run.notes)
    assert any("2 lines of events.jsonl of rounds after 1" in note for note in run.notes)

    def metrics(folder: Path) -> list[dict[str, Any]]:
        lines = (folder / "events.jsonl").read_bytes().splitlines()
        return [event for event in map(jsonio.loads, lines) if event["event"] != "start"]

    assert metrics(path) == metrics(whole)


def test_beginning_again_keeps_the_starts_alone(tmp_path: Path) -> None:
    with RunDir.create(unfinished(tmp_path / "a"), config=CONFIG, resume=True) as run:
        run.event("eval", round=0)
        assert run.truncate_after(-1) == 5
        assert [event["event"] for event in run.events().events] == ["start"]
        assert run.round == 0


def test_a_hole_in_the_events_is_noted(tmp_path: Path) -> None:
    run = RunDir.create(unfinished(tmp_path / "a"), config=CONFIG, resume=True)
    run.truncate_after(4)
    run.close()
    assert any("lacks 2 rounds before the resume: 3, 4" in note for note in run.notes)


def test_resume_with_another_experiment_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    path = unfinished(tmp_path / "a")
    before = {p: p.read_bytes() for p in path.iterdir()}
    with pytest.raises(RunDirectoryError, match="seed: 0 there, 1 now"):
        RunDir.create(path, config=CONFIG | {"seed": 1}, resume=True)
    assert {p: p.read_bytes() for p in path.iterdir()} == before


def test_allowed_changes_are_stored_and_recorded(tmp_path: Path) -> None:
    path = unfinished(tmp_path / "a")
    with RunDir.create(path, config=CONFIG | {"rounds": 5, "threads": 2}, resume=True) as run:
        run.start(resumed_from=2)
        assert run.changes == {"rounds": (3, 5), "threads": (1, 2)}
        assert run.events().events[-1]["changes"] == {
            "rounds": {"from": 3, "to": 5},
            "threads": {"from": 1, "to": 2},
        }
    assert jsonio.read(path / "config.json")["rounds"] == 5
    RunDir.create(path, config=CONFIG | {"rounds": 5, "threads": 2}, resume=True).close()


def test_a_complete_run_is_given_back_and_goes_on_when_rounds_are_raised(tmp_path: Path) -> None:
    path = finished(tmp_path / "a")
    with RunDir.create(path, config=CONFIG | {"threads": 4}, resume=True) as run:
        assert run.result == {"status": "finished"}
    assert jsonio.read(path / "config.json") == CONFIG
    with RunDir.create(path, config=CONFIG | {"rounds": 4}, resume=True) as run:
        assert run.result is None
        assert not (path / "result.json").exists()
        run.truncate_after(3)
        assert "end" not in [event["event"] for event in run.events().events]


def test_resume_of_nothing_begins_and_says_so(tmp_path: Path) -> None:
    run = RunDir.create(tmp_path / "a", config=CONFIG, resume=True)
    run.close()
    assert not run.resumed
    assert "held no run to resume" in run.notes[0]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (KeyboardInterrupt(), "interrupted"),
        (SystemExit(143), "interrupted"),
        (DivergedError("loss is nan"), "diverged"),
        (ValueError("x"), "failed"),
    ],
)
def test_how_a_run_was_stopped_is_recorded_and_it_can_go_on(
    tmp_path: Path, error: BaseException, status: str
) -> None:
    def stopped() -> None:
        with RunDir.create(tmp_path / "a", config=CONFIG) as run:
            run.event("round", round=2)
            raise error

    with pytest.raises(type(error)):
        stopped()
    with RunDir.create(tmp_path / "a", config=CONFIG, resume=True) as run:
        assert run.events().events[-1] == {"event": "end", "status": status, "round": 2}


def test_only_a_complete_run_gets_a_result(tmp_path: Path) -> None:
    with RunDir.create(tmp_path / "a", config=CONFIG) as run:
        with pytest.raises(ValueError, match="interrupted"):
            run.finish({"status": "interrupted"})
        with pytest.raises(RunDirectoryError, match="refused"):
            run.write_json("../x.json", {})


def test_a_full_disk_while_ending_shows_the_first_error(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def stopped() -> None:
        with RunDir.create(tmp_path / "a", config=CONFIG):
            resource.setrlimit(resource.RLIMIT_FSIZE, (1, hard))
            raise KeyError("first")

    try:
        with pytest.raises(KeyError, match="first"):
            stopped()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_descriptors_do_not_pile_up(tmp_path: Path) -> None:
    def opened() -> int:
        return len(os.listdir("/dev/fd"))

    before = opened()
    for i in range(5):
        finished(tmp_path / str(i))
        run = RunDir.create(unfinished(tmp_path / f"u{i}"), config=CONFIG, resume=True)
        run.truncate_after(1)
        run.close()
        with pytest.raises(RunDirectoryError):
            RunDir.create(tmp_path / str(i), config=CONFIG)
    assert opened() == before

"""Several methods under identical conditions."""

import json
import re

import numpy as np
import pytest

from fedloom.errors import ConfigError, FedloomError, RunDirectoryError
from fedloom.server.compare import compare
from tests.unit.server.small import arrays, events, left, table


def cell(folder, name):
    return json.loads((folder / name / "config.json").read_text())


def test_every_method_and_reference_runs_once_a_trial(make, folder):
    found = compare(make(rounds=1), ["fedavg", "scaffold"], folder, trials=2)
    names = {"fedavg", "scaffold", "centralised", "local"}
    assert set(found.runs) == {f"{name}/trial-{t}" for name in names for t in (0, 1)}
    record = json.loads((folder / "compare.json").read_text())
    assert set(record["runs"]) == set(found.runs)
    assert record["failures"] == {}
    for trial in (0, 1):
        seeds = {cell(folder, f"{name}/trial-{trial}")["seed"] for name in names}
        assert seeds == {trial}
        digests = {
            found.runs[f"{name}/trial-{trial}"].result["partition_digest"]
            for name in ("fedavg", "scaffold", "local")
        }
        assert len(digests) == 1
        initial = {
            json.dumps(events(folder / f"{name}/trial-{trial}", "eval")[0]) for name in names
        }
        assert len(initial) == 1
    roles = {name: found.runs[f"{name}/trial-0"].result["role"] for name in names}
    assert roles == {
        "fedavg": "method",
        "scaffold": "method",
        "centralised": "centralised",
        "local": "local",
    }


def test_the_centralised_reference_holds_all_rows_at_one_client(make, folder):
    found = compare(
        make(rounds=1, noise=0.5, cohort=2, sampler="by_size"), ["fedavg"], folder, trials=1
    )
    assert set(found.runs) == {"fedavg/trial-0", "centralised/trial-0", "local/trial-0"}
    (line,) = events(folder / "centralised/trial-0", "round")
    assert (line["cohort"], line["examples"]) == ([0], 2 * 150)
    settings = cell(folder, "centralised/trial-0")
    assert (settings["method"], settings["clients"], settings["noise"]) == ("fedavg", 1, 0.0)


@pytest.fixture
def mirrored(tmp_path):
    """The same training rows twice, with other test labels the second time."""
    other = arrays()["y_test"][::-1].copy()
    return table(tmp_path / "a.npz"), table(tmp_path / "b.npz", y_test=(other + 1) % 3)


def test_a_grid_is_chosen_on_validation_rows_whatever_the_test_rows_say(make, tmp_path, mirrored):
    grid = {"mu": [0.0, 100.0]}
    found = [
        compare(
            make(data=data, rounds=2),
            ["fedavg", "fedprox"],
            tmp_path / str(i),
            trials=1,
            grid=grid,
            reference=False,
        )
        for i, data in enumerate(mirrored)
    ]
    for number, each in enumerate(found):
        (tuned,) = each.tuning
        scores = {c["mu"]: c["validation_accuracy"] for c in tuned["candidates"]}
        assert scores[tuned["chosen"]["mu"]] == max(scores.values())
        held = cell(tmp_path / str(number), "tuning/fedprox/0")
        final = cell(tmp_path / str(number), "fedprox/trial-0")
        assert (held["validation"], final["validation"]) == (0.1, 0.0)
        assert final["method"] == f"fedprox(mu={tuned['chosen']['mu']})"
    first, second = (each.tuning[0] for each in found)
    assert first["candidates"] == second["candidates"]
    accuracies = [each.runs["fedprox/trial-0"].accuracy for each in found]
    assert accuracies[0] != accuracies[1]


def test_a_run_that_fails_is_listed_and_the_others_go_on(make, folder):
    blocked = folder / "fedprox" / "trial-0"
    blocked.mkdir(parents=True)
    (blocked / "mine.txt").write_text("not a run")
    found = compare(
        make(rounds=0), ["fedavg", "fedprox", "fednova"], folder, trials=1, reference=False
    )
    assert set(found.runs) == {"fedavg/trial-0", "fednova/trial-0"}
    assert list(found.failures) == ["fedprox/trial-0"]
    record = json.loads((folder / "compare.json").read_text())
    assert "mine.txt" in record["failures"]["fedprox/trial-0"]
    assert (blocked / "mine.txt").read_text() == "not a run"


def test_a_diverged_run_is_a_result_and_no_failure(make, folder):
    found = compare(
        make(rounds=3, lr=1e3), ["fedavg", "scaffold"], folder, trials=1, reference=False
    )
    assert [r.status for r in found.runs.values()] == ["diverged"] * 2
    assert found.failures == {}


def test_if_everything_fails_the_first_reason_is_raised(make, folder):
    (folder / "fedavg" / "trial-0").mkdir(parents=True)
    (folder / "fedavg" / "trial-0" / "x").write_text("")
    with pytest.raises(FedloomError, match="holds no run"):
        compare(make(rounds=0), ["fedavg"], folder, trials=1, reference=False)


ODD = [
    "fedprox(mu=0.1)",
    "fedprox(mu=0.01)",
    "fednova(normaliser='steps')",
    "fednova(normaliser='momentum')",
    "fedloom.methods.fedavg:FedAvg",
]


def test_folder_names_are_plain_different_and_inside(make, folder):
    found = compare(make(rounds=0), ODD, folder, trials=1, reference=False)
    slugs = [name.partition("/")[0] for name in found.runs]
    assert len(set(slugs)) == len(ODD)
    for name in found.runs:
        assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.=_-]*/trial-0", name), name
        assert (folder / name).resolve().is_relative_to(folder.resolve())
    assert {r.result["method"] for r in found.runs.values()} == set(ODD)


@pytest.mark.slow
def test_two_processes_give_the_bits_of_one(make, tmp_path):
    asked, names = make(rounds=2, cohort=3), ["fedavg", "scaffold"]
    for jobs in (1, 2):
        compare(asked, names, tmp_path / str(jobs), trials=1, reference=False, jobs=jobs)
    for name in names:
        one, two = (left(tmp_path / str(jobs) / name / "trial-0") for jobs in (1, 2))
        assert one == two


def test_a_comparison_goes_on_where_it_was_stopped_and_is_not_mixed_with_another(make, folder):
    asked = make(rounds=1)
    compare(asked, ["fedavg"], folder, trials=1, reference=False)
    with pytest.raises(RunDirectoryError, match="holds a comparison"):
        compare(asked, ["fedavg"], folder, trials=1, reference=False)
    before = (folder / "fedavg/trial-0/events.jsonl").read_bytes()
    more = compare(asked, ["fedavg", "fednova"], folder, trials=1, reference=False, resume=True)
    assert len(more.runs) == 2
    assert (folder / "fedavg/trial-0/events.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    ("methods", "options", "message"),
    [
        ([], {}, "methods is empty"),
        (["fedavg"], {"trials": 0}, "trials=0"),
        (["fedavg"], {"grid": {"mu": [0.1]}}, "no method"),
        (["fedprox"], {"grid": {"mu": ["x"]}}, "type float"),
        (["fedavgg"], {}, "did you mean 'fedavg'"),
    ],
)
def test_what_cannot_be_compared_is_refused_before_any_work(
    make, folder, methods, options, message
):
    with pytest.raises(ConfigError, match=message):
        compare(make(), methods, folder, **options)
    assert not folder.exists()


def test_trials_differ_and_a_fixed_partition_stays(make, folder):
    found = compare(make(rounds=1, partition_seed=9), ["fedavg"], folder, trials=2, reference=False)
    one, two = (found.runs[f"fedavg/trial-{t}"] for t in (0, 1))
    assert one.result["partition_digest"] == two.result["partition_digest"]
    assert any(not np.array_equal(one.model[n], two.model[n]) for n in one.model)

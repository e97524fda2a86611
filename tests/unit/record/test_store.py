from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from fedloom.errors import RunDirectoryError
from fedloom.record import RunDir, jsonio, store

CONFIG: dict[str, Any] = {"data": "fcube", "method": "fedavg", "rounds": 2}


def make(path: Path, status: str | None = "finished", rounds: int = 2) -> Path:
    run = RunDir.create(path, config=CONFIG)
    run.start(notes=["one class has no test row"])
    for r in range(1, rounds + 1):
        run.event(
            "round",
            round=r,
            lr=0.1,
            cohort=[0, 1, 2],
            train_loss=1 / r,
            bytes_up=2**40 + r,
            refused=[{"client": 1, "reason": "not finite"}],
        )
        run.event(
            "eval",
            round=r,
            split="test",
            accuracy=float("nan") if status == "diverged" else r / 10,
            loss=float("inf") if status == "diverged" else 1.0,
            per_class_accuracy=[r / 10, None],
            diverged=status == "diverged",
        )
        run.event("personal", round=r, accuracy_mean=0.5, per_client=[0.5, None])
    if status in ("finished", "diverged"):
        run.finish({"status": status})
    elif status is not None:
        run.end(status)  # type: ignore[arg-type]
    run.close()
    return path


def comparison(path: Path, *names: str) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    jsonio.write(path / "compare.json", {"runs": list(names)})
    return path


def names(*paths: Path) -> list[str]:
    return [record.name for record in store.find(paths)]


def test_runs_comparisons_and_patterns_are_found_once_and_in_order(tmp_path: Path) -> None:
    b, a = make(tmp_path / "b"), make(tmp_path / "a")
    out = comparison(tmp_path / "out", "fedavg/trial-0", "fedprox/trial-0")
    make(out / "fedavg" / "trial-0")
    make(out / "fedprox" / "trial-0")
    (tmp_path / "note.txt").write_text("")
    assert names(b, a, b) == ["b", "a"]
    assert names(out) == ["fedavg/trial-0", "fedprox/trial-0"]
    assert names(tmp_path / "*") == ["a", "b", "fedavg/trial-0", "fedprox/trial-0"]
    assert store.find(str(a))[0].config == CONFIG


def test_runs_of_the_same_name_get_longer_names(tmp_path: Path) -> None:
    for first in ("x", "y"):
        make(comparison(tmp_path / first, "fedavg/trial-0") / "fedavg" / "trial-0")
    c = make(tmp_path / "c")
    assert names(tmp_path / "x", tmp_path / "y", c) == [
        "x/fedavg/trial-0",
        "y/fedavg/trial-0",
        "c",
    ]


def test_a_name_with_brackets_is_a_folder_first(tmp_path: Path) -> None:
    assert names(make(tmp_path / "run[1]")) == ["run[1]"]


@pytest.mark.parametrize("name", ["none", "none*", "folder", "file"])
def test_what_is_no_run_is_refused_with_its_name(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    with pytest.raises(RunDirectoryError, match=name):
        store.find(tmp_path / name)


def test_a_comparison_cannot_point_outside(tmp_path: Path) -> None:
    make(tmp_path / "a")
    with pytest.raises(RunDirectoryError, match="refused"):
        store.find(comparison(tmp_path / "out", "../a"))
    jsonio.write(tmp_path / "out" / "compare.json", {"runs": "a"})
    with pytest.raises(RunDirectoryError, match=r"compare\.json is damaged"):
        store.find(tmp_path / "out")


@pytest.mark.parametrize("status", ["finished", "diverged", "interrupted", "failed"])
def test_a_run_tells_how_it_ended(tmp_path: Path, status: str) -> None:
    record = store.find(make(tmp_path / "a", status))[0]
    assert record.status == status
    assert record.complete == (status in ("finished", "diverged"))
    assert record.notes == ("one class has no test row",)
    assert record.problems() == ()


def test_a_killed_a_running_and_a_missing_run_are_told_apart(tmp_path: Path) -> None:
    assert store.find(make(tmp_path / "a", None))[0].status == "unfinished"
    with RunDir.create(tmp_path / "b", config=CONFIG) as run:
        assert store.find(run.path)[0].status == "running"
    missing = store.find(comparison(tmp_path / "out", "fedavg"))[0]
    assert missing.status == "missing"
    assert missing.problems() == ()
    assert store.rounds(missing).empty


def test_tables_hold_every_run_and_mark_its_status(tmp_path: Path) -> None:
    for name, status in (("a", "finished"), ("b", "diverged"), ("c", None)):
        make(tmp_path / name, status)
    records = store.find(tmp_path / "*")
    rounds = store.rounds(*records)
    assert rounds["run"].tolist() == ["a", "a", "b", "b", "c", "c"]
    assert rounds["status"].unique().tolist() == ["finished", "diverged", "unfinished"]
    assert rounds["round"].tolist() == [1, 2] * 3
    assert rounds["bytes_up"].tolist() == [2**40 + 1, 2**40 + 2] * 3
    assert rounds["cohort_size"].tolist() == [3] * 6
    assert rounds["num_refused"].tolist() == [1] * 6
    scores = store.evaluations(*records)
    assert scores[scores["run"] == "a"]["accuracy"].tolist() == [0.1, 0.2]
    assert scores[scores["run"] == "b"]["accuracy"].isna().all()
    assert scores[scores["run"] == "b"]["diverged"].all()
    assert store.personal(*records)["accuracy_mean"].tolist() == [0.5] * 6


def test_classes_that_were_not_tested_are_missing_numbers(tmp_path: Path) -> None:
    table = store.per_class(*store.find(make(tmp_path / "a", rounds=1)))
    assert table["class"].tolist() == [0, 1]
    assert table["accuracy"].isna().tolist() == [False, True]
    assert table["accuracy"].dtype == "float64"


def test_a_table_of_nothing_but_missing_scores_is_still_of_numbers(tmp_path: Path) -> None:
    scores = store.evaluations(*store.find(make(tmp_path / "a", "diverged")))
    assert scores["accuracy"].dtype == "float64"
    assert pd.isna(scores["loss"].mean())


def test_no_rounds_give_an_empty_table_with_its_columns(tmp_path: Path) -> None:
    record = store.find(make(tmp_path / "a", rounds=0))[0]
    assert store.rounds(record).columns.tolist() == ["run", "status", "round"]
    assert store.evaluations(record).columns.tolist() == ["run", "status", "round", "split"]


@pytest.mark.parametrize("name", ["config.json", "result.json", "events.jsonl", "card.json"])
def test_a_damaged_file_is_named(tmp_path: Path, name: str) -> None:
    path = make(tmp_path / "a")
    (path / name).write_text('{"a": \n')
    record = store.find(path)[0]
    assert [name in problem for problem in record.problems()] == [True]
    assert record.status_or_damaged() == ("damaged" if name == "result.json" else "finished")


def test_a_run_without_its_configuration_is_named(tmp_path: Path) -> None:
    path = make(tmp_path / "a")
    (path / "config.json").unlink()
    for asked in (path, tmp_path / "*"):
        with pytest.raises(RunDirectoryError, match=r"without config\.json"):
            store.find(asked)


def test_a_cut_line_is_noted(tmp_path: Path) -> None:
    path = make(tmp_path / "a", None)
    with (path / "events.jsonl").open("ab") as handle:
        handle.write(b'{"event"')
    assert any("cut off" in note for note in store.find(path)[0].notes)

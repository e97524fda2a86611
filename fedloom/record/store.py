"""Reading runs back: find them, read what each one recorded, and join that into tidy tables."""

import glob
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from fedloom.errors import RunDirectoryError
from fedloom.record import events, jsonio, lock, names, rundir

COMPARISON = "compare.json"


@dataclass(frozen=True)
class RunRecord:
    """One run directory, read when asked; a damaged file raises RunDirectoryError with its path."""

    path: Path
    name: str
    """Short, and different for every record that one `find` gives."""

    @cached_property
    def config(self) -> dict[str, Any]:
        """The resolved configuration."""
        return jsonio.read_object(self.path / rundir.CONFIG)

    @cached_property
    def environment(self) -> dict[str, Any] | None:
        """What it ran on, None when that was not recorded."""
        return self._optional("environment.json")

    @cached_property
    def card(self) -> dict[str, Any] | None:
        """The partition card, None when there is none."""
        return self._optional("card.json")

    @cached_property
    def result(self) -> dict[str, Any] | None:
        """The summary, None for a run that is not complete."""
        return self._optional(rundir.RESULT)

    @cached_property
    def log(self) -> events.Log:
        """The events, and how many cut lines were dropped."""
        return events.read(self.path / rundir.EVENTS)

    @cached_property
    def status(self) -> str:
        """`finished`, `diverged`, `interrupted`, `failed`, `running`, `missing`, or `unfinished`.

        `missing` is a run that a comparison names and that was never begun; `unfinished` one that
        was killed.
        """
        if not rundir.is_run(self.path):
            return "missing"
        if self.result is not None:
            return str(self.result.get("status"))
        if lock.holder(self.path) is not None:
            return "running"
        last = self.log.events[-1] if self.log.events else {}
        stopped = last.get("event") == "end" and last.get("status") not in rundir.COMPLETE
        return str(last["status"]) if stopped else "unfinished"

    @property
    def complete(self) -> bool:
        """Whether the run came to its end; a diverged run did."""
        return self.status in rundir.COMPLETE

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """All notes of all starts of this run, and of reading it."""
        found = [n for e in self.log.events if e["event"] == "start" for n in e.get("notes", [])]
        if self.log.dropped:
            found.append(f"the last line of {self.path / rundir.EVENTS} is cut off and is left out")
        return tuple(found)

    def problems(self) -> tuple[str, ...]:
        """A sentence for each damaged file; nothing for a sound run, whatever its status."""
        if self.status_or_damaged() == "missing":
            return ()
        found = []
        for part in ("config", "environment", "card", "result", "log"):
            try:
                getattr(self, part)
            except RunDirectoryError as error:
                found.append(str(error))
        return tuple(found)

    def status_or_damaged(self) -> str:
        """`status`, or `damaged` when a file that it depends on can't be read."""
        try:
            return self.status
        except RunDirectoryError:
            return "damaged"

    def _optional(self, name: str) -> dict[str, Any] | None:
        path = self.path / name
        return jsonio.read_object(path) if path.exists() else None


def find(paths: str | Path | Iterable[str | Path]) -> list[RunRecord]:
    """The runs at `paths`: run directories, comparisons, or patterns such as `runs/*`.

    In the order given, each once. A pattern picks the runs and comparisons among what it matches.
    Raises RunDirectoryError for a path that is neither, for a pattern that picks nothing, and for a
    run without its configuration.
    """
    given = [paths] if isinstance(paths, str | Path) else list(paths)
    found: dict[Path, int] = {}
    for item in given:
        for path, depth in _expand(Path(item)):
            found.setdefault(path.resolve(), depth)
    return [RunRecord(path, name) for path, name in _names(found).items()]


def _expand(path: Path) -> list[tuple[Path, int]]:
    if path.exists() or not glob.has_magic(str(path)):
        return _runs_at(path)
    matched = [Path(name) for name in sorted(glob.glob(str(path), recursive=True))]
    runs = [run for item in matched if _is_ours(item) for run in _runs_at(item)]
    if not runs:
        raise RunDirectoryError(
            f"no run matches {path} ({len(matched)} paths do); check the pattern"
        )
    return runs


def _is_ours(path: Path) -> bool:
    signs = (COMPARISON, rundir.EVENTS, rundir.RESULT)
    return rundir.is_run(path) or any((path / sign).is_file() for sign in signs)


def _runs_at(path: Path) -> list[tuple[Path, int]]:
    if (path / COMPARISON).is_file():
        listed = jsonio.read_object(path / COMPARISON).get("runs")
        if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
            raise RunDirectoryError(
                f"{path / COMPARISON} is damaged: expected 'runs', a list of folder names"
            )
        return [(names.inside(path, name), len(Path(name).parts)) for name in listed]
    if rundir.is_run(path):
        return [(path, 1)]
    if not path.exists():
        raise RunDirectoryError(f"{path} does not exist; expected a run or a comparison")
    if path.is_dir() and _is_ours(path):
        raise RunDirectoryError(f"{path} is damaged: it holds a run without {rundir.CONFIG}")
    raise RunDirectoryError(
        f"{path} is neither a run (no {rundir.CONFIG} with {rundir.EVENTS}) nor a comparison "
        f"(no {COMPARISON}); for a folder of runs write {path}/*"
    )


def _names(depths: dict[Path, int]) -> dict[Path, str]:
    """For each path its last parts, at least as many as asked for, and enough to differ."""

    def tail(path: Path) -> str:
        return "/".join(path.parts[-depths[path] :])

    while True:
        tails = [tail(path) for path in depths]
        alike = [path for path in depths if tails.count(tail(path)) > 1]
        if not alike:
            return {path: tail(path) for path in depths}
        depths = depths | {path: depths[path] + 1 for path in alike}


def rounds(*records: RunRecord) -> pd.DataFrame:
    """One row a run and round: `run`, `status`, `round`, what the round measured, and two counts.

    `cohort_size` and `num_refused` stand for the lists `cohort` and `refused`; other lists stay in
    `RunRecord.log`.
    """
    rows = [
        {
            **_scalars(record, event),
            "cohort_size": len(event.get("cohort") or ()),
            "num_refused": len(event.get("refused") or ()),
        }
        for record in records
        for event in record.log.events
        if event["event"] == "round"
    ]
    return _table(rows)


def evaluations(*records: RunRecord) -> pd.DataFrame:
    """One row a run, round and split: `run`, `status`, `round`, `split`, then the scores."""
    return _table(_rows(records, "eval"), "split")


def personal(*records: RunRecord) -> pd.DataFrame:
    """One row a run and round: how the clients' own models score."""
    return _table(_rows(records, "personal"))


def per_class(*records: RunRecord) -> pd.DataFrame:
    """One row a run, round, split and class.

    `class` is the class's position; `accuracy` is missing where no test row has that class.
    """
    rows = [
        {
            **_marks(record, event),
            "split": event.get("split"),
            "class": position,
            "accuracy": accuracy,
        }
        for record in records
        for event in record.log.events
        if event["event"] == "eval"
        for position, accuracy in enumerate(event.get("per_class_accuracy") or ())
    ]
    return _table(rows, "split", "class", "accuracy")


def _rows(records: Iterable[RunRecord], kind: str) -> list[dict[str, Any]]:
    return [
        _scalars(record, event)
        for record in records
        for event in record.log.events
        if event["event"] == kind
    ]


def _marks(record: RunRecord, event: events.Event) -> dict[str, Any]:
    return {"run": record.name, "status": record.status, "round": event.get("round")}


def _scalars(record: RunRecord, event: events.Event) -> dict[str, Any]:
    values = {
        key: value
        for key, value in event.items()
        if key != "event" and not isinstance(value, list | dict)
    }
    return _marks(record, event) | values


def _table(rows: list[dict[str, Any]], *columns: str) -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=None if rows else ["run", "status", "round", *columns])
    for name in table.columns:
        if table[name].isna().all() and name not in ("run", "status", "split"):
            table[name] = table[name].astype(
                "float64"
            )  # measured nowhere: a number that is missing
    return table

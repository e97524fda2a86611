"""Run directories as the report reads them: plain files in, one `Run` each.

Where a round was written twice, because a run was resumed, the later line counts.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from fedloom.errors import RunDirectoryError
from fedloom.record import store

Json = dict[str, Any]


@dataclass(frozen=True)
class Curve:
    """One quantity of one run against its own rounds; `nan` where it was measured, not finite."""

    rounds: tuple[int, ...]
    values: tuple[float, ...]


@dataclass(frozen=True)
class Run:
    """What one run directory says."""

    path: Path
    name: str
    state: str
    config: Json
    result: Json
    events: tuple[Json, ...]
    card: Json = field(default_factory=dict)
    environment: Json = field(default_factory=dict)
    compare: Path | None = None
    notes: tuple[str, ...] = ()

    @property
    def method(self) -> str:
        """The method's specification, `name(key=value)`."""
        return str(self.result.get("method") or self.config.get("method") or "unknown")

    @property
    def label(self) -> str:
        """The name of its row in a table."""
        return str(self.result.get("label") or self.method)

    @property
    def role(self) -> str:
        """`method`, or a reference: `centralised` or `local`."""
        return str(self.result.get("role") or "method")

    @property
    def seed(self) -> int:
        """The seed of everything but, where it has its own, the partition."""
        return int(self.config.get("seed") or 0)

    @property
    def status(self) -> str:
        """`finished`, `diverged`, or why there is no whole result."""
        return "diverged" if self.result.get("diverged") else self.state

    @property
    def constant(self) -> str | None:
        """The class that nearly every test row is given, if there is one.

        Clients that train alone leave the global model untrained, which says nothing about them.
        """
        if self.role == "local":
            return None
        value = self.result.get("constant_prediction")
        return None if value is None else str(value)

    @property
    def excluded(self) -> str | None:
        """Why this run is in no average; None for a run that counts."""
        if self.status != "finished":
            return self.status
        if self.constant is not None:
            return "constant prediction"
        return "no accuracy" if self.final("accuracy") is None else None

    @property
    def split(self) -> str:
        """The part of the data that the reported numbers are measured on."""
        return str(self.result.get("reported_split") or "test")

    def final(self, key: str) -> float | None:
        """A metric of the final round; for local models only accuracy, as the mean over clients."""
        if self.role == "local" and self.personal:
            last = self.personal[-1].get("accuracy_mean")
            return number(last) if key == "accuracy" else None
        return number((self.result.get("final") or {}).get(key))

    def total(self, key: str) -> float | None:
        """A summed cost of the run, as the result says."""
        return number(self.result.get(key))

    @cached_property
    def rounds(self) -> tuple[Json, ...]:
        """The training rounds in order, each once."""
        return _latest(event for event in self.events if event["event"] == "round")

    @cached_property
    def personal(self) -> tuple[Json, ...]:
        """Measurements of each client's own model, in order."""
        return _latest(event for event in self.events if event["event"] == "personal")

    @cached_property
    def evals(self) -> tuple[Json, ...]:
        """Measurements on the reported split, in order."""
        return _latest(
            event
            for event in self.events
            if event["event"] == "eval" and event.get("split", "test") == self.split
        )

    @property
    def per_class(self) -> list[float | None]:
        """Accuracy of each class at the last evaluation; empty where it was not measured."""
        if self.role == "local" or not self.evals:
            return []
        return [number(value) for value in self.evals[-1].get("per_class_accuracy") or ()]

    def curve(self, key: str) -> Curve:
        """A metric against the rounds at which it was measured."""
        source, name = self.evals, key
        if key == "train_loss":
            source = self.rounds
        elif self.role == "local" and self.personal:
            source = self.personal
            name = "accuracy_mean" if key == "accuracy" else ""
        kept = [event for event in source if name in event]
        values = [number(event[name]) for event in kept]
        return Curve(
            tuple(int(event["round"]) for event in kept),
            tuple(math.nan if value is None else value for value in values),
        )

    def spent(self, key: str) -> Mapping[int, float]:
        """Running total by round of `bytes` (up and down, unicast) or `seconds`; 0 at round 0."""
        parts = {"bytes": ("bytes_up", "bytes_down"), "seconds": ("seconds", "server_seconds")}
        total, totals = 0.0, {0: 0.0}
        for event in self.rounds:
            total += sum(number(event.get(part)) or 0.0 for part in parts[key])
            totals[int(event["round"])] = total
        return totals


class Gathered(NamedTuple):
    """Runs, and sentences on what was left out."""

    runs: tuple[Run, ...]
    notes: tuple[str, ...]


def number(value: object) -> float | None:
    """A finite number, or None.

    >>> number(0.5), number(None), number(float("nan"))
    (0.5, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def gather(paths: str | Path | Iterable[str | Path]) -> Gathered:
    """Every run at these paths, each once, in order; see `fedloom.record.store.find`.

    A run that a comparison names and that was never begun, or whose configuration is damaged, is
    left out and said so. Raises RunDirectoryError where no run is left.
    """
    runs: list[Run] = []
    notes: list[str] = []
    for record in store.find(paths):
        if record.status_or_damaged() == "missing":
            notes.append(f"{record.name} was never begun: left out")
        elif config := _part(record, "config", {}):
            runs.append(_run(record, config))
        else:
            notes += [f"{record.name} is left out: {problem}" for problem in record.problems()]
    if not runs:
        raise RunDirectoryError(f"there is no run to show: {'; '.join(notes)}")
    return Gathered(tuple(_adopt(run, runs) for run in runs), tuple(notes))


def _run(record: store.RunRecord, config: Json) -> Run:
    problems = record.problems()
    log = _part(record, "log", None)
    return Run(
        path=record.path,
        name=record.name,
        state="damaged" if problems else record.status,
        config=config,
        result=_part(record, "result", {}),
        events=() if log is None else tuple(log.events),
        card=_part(record, "card", {}),
        environment=_part(record, "environment", {}),
        compare=_comparison(record.path),
        notes=(*problems, *(() if log is None else record.notes)),
    )


def _part(record: store.RunRecord, name: str, default: Any) -> Any:
    """A part of a record; the default where it is absent, or damaged, which `problems` tells."""
    try:
        value = getattr(record, name)
    except RunDirectoryError:
        return default
    return default if value is None else value


def _comparison(path: Path) -> Path | None:
    parents = path.resolve().parents[:3]
    return next((parent for parent in parents if (parent / store.COMPARISON).is_file()), None)


def _adopt(run: Run, runs: Iterable[Run]) -> Run:
    """A run without a result learns from its neighbours in a comparison which row it belongs to."""
    if run.result or run.compare is None:
        return run
    near = [one.result for one in runs if one.result and one.path.parent == run.path.parent]
    known = near[0] if near else {}
    folder = run.path.resolve().relative_to(run.compare).parts[0]
    role = folder if folder in ("centralised", "local") else "method"
    name = run.method if role == "method" else folder
    row = {"label": known.get("label") or name, "role": known.get("role") or role}
    return replace(run, result=row)


def _latest(lines: Iterable[Json]) -> tuple[Json, ...]:
    by_round = {int(line["round"]): line for line in lines}
    return tuple(by_round[key] for key in sorted(by_round))

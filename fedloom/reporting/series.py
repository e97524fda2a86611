"""What a chart shows, before it is drawn: lines, bands, stray trials, the range of an axis."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from fedloom.reporting.gather import Run
from fedloom.reporting.stats import Band, band
from fedloom.reporting.summary import Comparison

METRICS = {
    "accuracy": (100.0, "accuracy on the {split} set (%)"),
    "balanced_accuracy": (100.0, "balanced accuracy on the {split} set (%)"),
    "loss": (1.0, "loss on the {split} set (nats)"),
    "train_loss": (1.0, "training loss, mean over the cohort (nats)"),
}
"""What can be drawn -> its factor and the label of its axis."""


@dataclass(frozen=True)
class Stray:
    """A trial that is in no mean: its own points, and where it broke off if it diverged."""

    x: tuple[float, ...]
    y: tuple[float, ...]
    reason: str

    @property
    def end(self) -> tuple[float, float] | None:
        """The last finite point."""
        points = [(x, y) for x, y in zip(self.x, self.y, strict=True) if math.isfinite(y)]
        return points[-1] if points else None


@dataclass(frozen=True)
class Line:
    """One row of the comparison as a chart shows it; `place` picks its colour and dash."""

    name: str
    place: int
    reference: bool
    band: Band
    strays: tuple[Stray, ...]

    @property
    def empty(self) -> bool:
        """Whether there is nothing to draw."""
        return not any(map(math.isfinite, self.band.mean)) and all(
            stray.end is None for stray in self.strays
        )

    @property
    def lone(self) -> bool:
        """Whether the mean is drawn as single points, without any stroke."""
        stretches = gaps(self.band.x, self.band.mean)
        return bool(stretches) and all(len(stretch) == 1 for stretch in stretches)


@dataclass(frozen=True)
class Limits:
    """The range of an axis, and what lies below it."""

    low: float
    high: float
    below: tuple[str, ...] = ()

    @property
    def note(self) -> str:
        """A sentence on what the range hides; empty if nothing."""
        return f"Below the axis: {', '.join(self.below)}." if self.below else ""


def lines(comparison: Comparison, key: str, against: str = "rounds") -> tuple[Line, ...]:
    """Every row with a metric, in the unit of its label, against `rounds`, `bytes` or `seconds`.

    References appear only against rounds: they send nothing, and their seconds mean another thing.
    """
    rows = comparison.rows + (comparison.references if against == "rounds" else ())
    return tuple(
        Line(
            row.full,
            place,
            row.role != "method",
            _times(row.band(key, against), METRICS[key][0]),
            tuple(_stray(run, key, against) for run in row.runs if run.excluded),
        )
        for place, row in enumerate(rows)
    )


def _times(one: Band, factor: float) -> Band:
    mean, low, high = (
        tuple(factor * value for value in part) for part in (one.mean, one.low, one.high)
    )
    return replace(one, mean=mean, low=low, high=high)


def _stray(run: Run, key: str, against: str) -> Stray:
    places = None if against == "rounds" else [run.spent(against)]
    own = _times(band([run.curve(key)], places), METRICS[key][0])
    return Stray(own.x, own.mean, run.excluded or "")


def gaps(x: Sequence[float], y: Sequence[float]) -> list[list[tuple[float, float]]]:
    """Points in unbroken stretches; a value that is not finite ends one.

    >>> gaps([1, 2, 3], [0.1, float("nan"), 0.3])
    [[(1, 0.1)], [(3, 0.3)]]
    """
    stretches: list[list[tuple[float, float]]] = [[]]
    for point in zip(x, y, strict=True):
        if math.isfinite(point[1]):
            stretches[-1].append(point)
        elif stretches[-1]:
            stretches.append([])
    return [stretch for stretch in stretches if stretch]


def limits(shown: Sequence[Line], *, zoom: bool = True) -> Limits:
    """The range of the values, with a margin.

    With `zoom`, the steep start and low references are cut off below where that makes the rest at
    least 2.5 times as tall, so that the ends of the curves can be told apart; `note` says so.
    """
    points = [point for line in shown for point in _points(line)]
    if not points:
        return Limits(0.0, 1.0)
    low, high = min(y for _, y in points), max(y for _, y in points)
    main = [point for line in shown if not line.reference for point in _points(line)] or points
    start = 0.2 * max(x for x, _ in main)
    late = min(y for x, y in main if x >= start)
    below: list[str] = []
    if zoom and high > late and (high - low) > 2.5 * (high - late):
        low = late
        below += ["early rounds"] * (min(y for _, y in main) < late)
        below += [line.name for line in shown if line.reference and _top(line) < late]
    margin = 0.06 * (high - low) or max(0.02, 0.02 * abs(high))
    return Limits(low - margin, high + margin, tuple(below))


def _points(line: Line) -> list[tuple[float, float]]:
    parts = [(line.band.x, line.band.low), (line.band.x, line.band.high)]
    parts += [(stray.x, stray.y) for stray in line.strays]
    return [(x, y) for xs, ys in parts for x, y in zip(xs, ys, strict=True) if math.isfinite(y)]


def _top(line: Line) -> float:
    return max((y for _, y in _points(line)), default=math.inf)

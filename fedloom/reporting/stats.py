"""What repeated trials allow one to say: means, sample deviations, paired intervals, targets.

Every deviation here is the sample form (n - 1 in the denominator). Nothing is smoothed.
"""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from fedloom.reporting.gather import Curve

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Spread:
    """Mean and sample standard deviation; None where they are not defined."""

    mean: float | None
    std: float | None
    n: int


@dataclass(frozen=True)
class Difference:
    """Mean of paired differences with its 95 % t interval; no interval for a single pair."""

    mean: float
    low: float | None
    high: float | None
    n: int

    @property
    def contains_zero(self) -> bool | None:
        """Whether the interval holds zero; None without an interval."""
        if self.low is None or self.high is None:
            return None
        return self.low <= 1e-12 and self.high >= -1e-12


@dataclass(frozen=True)
class Reach:
    """When the target was first met: values of the trials that met it, out of `trials`."""

    values: tuple[float, ...]
    trials: int


@dataclass(frozen=True)
class Stability:
    """How calm the end of a curve is, in the curve's own unit."""

    std_last_10: float | None
    largest_drop: float | None


def spread(values: Iterable[float | None]) -> Spread:
    """Mean and sample deviation of the values that are there.

    >>> spread([0.8, 0.9])
    Spread(mean=0.8500000000000001, std=0.07071067811865474, n=2)

    A single value has a mean and no deviation; missing values count in nothing.
    """
    kept = np.array([value for value in values if value is not None], dtype=float)  # [n]
    if not len(kept):
        return Spread(None, None, 0)
    std = float(kept.std(ddof=1)) if len(kept) > 1 else None
    return Spread(float(kept.mean()), std, len(kept))


def paired(
    values: Mapping[Hashable, float], baseline: Mapping[Hashable, float]
) -> Difference | None:
    """`values - baseline` over the trials both have; None when they share none.

    Student's t with n - 1 degrees of freedom. Intervals are not widened for the number of methods.
    """
    shared = [trial for trial in values if trial in baseline]
    if not shared:
        return None
    gaps = np.array([values[trial] - baseline[trial] for trial in shared])  # [n]
    mean = float(gaps.mean())
    if len(gaps) < 2:
        return Difference(mean, None, None, 1)
    width = float(stdtrit(len(gaps) - 1, (1 + CONFIDENCE) / 2)) * float(gaps.std(ddof=1))
    width /= math.sqrt(len(gaps))
    return Difference(mean, mean - width, mean + width, len(gaps))


def first_round(curve: Curve, target: float) -> int | None:
    """The first measured round whose value is at least `target`; None if there is none.

    >>> first_round(Curve((5, 10, 15), (0.2, 0.7, 0.6)), 0.6)
    10
    """
    pairs = zip(curve.rounds, curve.values, strict=True)
    return next((place for place, value in pairs if value >= target), None)


def last_mean(curve: Curve, count: int = 5) -> float | None:
    """Mean of the last `count` measured values; None without any, or if one is not finite."""
    tail = curve.values[-count:]
    if not tail or not all(math.isfinite(value) for value in tail):
        return None
    return float(np.mean(tail))


def stability(curve: Curve) -> Stability:
    """Deviation of the last ten values, None with fewer, and largest drop between neighbours."""
    kept = np.array([value for value in curve.values if math.isfinite(value)])
    if len(kept) < 2:
        return Stability(None, None)
    drop = max(0.0, float(-np.diff(kept).min()))
    return Stability(float(kept[-10:].std(ddof=1)) if len(kept) >= 10 else None, drop)


@dataclass(frozen=True)
class Band:
    """Mean, least and greatest value over trials, at the rounds (or costs) that all have."""

    x: tuple[float, ...]
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    n: int


def band(curves: Sequence[Curve], places: Sequence[Mapping[int, float]] | None = None) -> Band:
    """Join trials at the rounds that every one of them measured; `nan` where one is not finite.

    `places` gives, for each trial, what to put on the x axis in place of a round; it is averaged.
    """
    shared = [
        place
        for place in (curves[0].rounds if curves else ())
        if all(place in curve.rounds for curve in curves)
        and all(place in where for where in places or ())
    ]
    if not shared:
        return Band((), (), (), (), len(curves))
    lookup = [dict(zip(curve.rounds, curve.values, strict=True)) for curve in curves]
    table = np.array([[one[place] for place in shared] for one in lookup])  # [n, rounds]
    x = [float(np.mean([where[at] for where in places])) if places else float(at) for at in shared]
    mean, low, high = (
        tuple(map(float, part)) for part in (table.mean(0), table.min(0), table.max(0))
    )
    return Band(tuple(x), mean, low, high, len(curves))

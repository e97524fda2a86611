"""Learning rates by global round: every client of a round trains with the same one."""

import math
from collections.abc import Callable, Sequence

from fedloom.errors import ConfigError, nearest
from fedloom.spec import Spec, parse

Schedule = Callable[[int, int], float]
"""(round from 1, rounds in all) -> factor on the initial rate."""


def constant() -> Schedule:
    """The same rate in every round."""
    return lambda round, rounds: 1.0


def multistep(milestones: Sequence[float] = (0.5, 0.75), gamma: float = 0.1) -> Schedule:
    """Times gamma after each milestone, given as rounds or as fractions of all rounds below 1."""
    marks = list(milestones)
    if not marks or any(mark <= 0 for mark in marks):
        raise ConfigError(f"multistep: milestones={marks} should be positive rounds or fractions")
    _check_factor("multistep", "gamma", gamma)

    def factor(round: int, rounds: int) -> float:
        passed = sum(round > (mark * rounds if mark < 1 else mark) for mark in marks)
        return gamma**passed

    return factor


def step(every: int, gamma: float = 0.5) -> Schedule:
    """Times gamma after every `every` rounds."""
    if int(every) != every or every < 1:
        raise ConfigError(f"step: every={every} should be a whole number of rounds, at least 1")
    _check_factor("step", "gamma", gamma)
    return lambda round, rounds: gamma ** ((round - 1) // int(every))


def cosine(final: float = 0.0) -> Schedule:
    """From 1 in the first round down half a cosine towards `final` after the last."""
    _check_factor("cosine", "final", final, zero=True)
    return lambda round, rounds: (
        final + (1 - final) * (1 + math.cos(math.pi * (round - 1) / rounds)) / 2
    )


def _check_factor(schedule: str, option: str, value: float, zero: bool = False) -> None:
    if not (0 < value < math.inf or (zero and value == 0)):
        least = "of at least 0" if zero else "above 0"
        raise ConfigError(f"{schedule}: {option}={value} should be a number {least}")


_SCHEDULES: dict[str, Callable[..., Schedule]] = {
    schedule.__name__: schedule for schedule in (constant, multistep, step, cosine)
}


def names() -> dict[str, str]:
    """Every schedule -> the first line of its docstring."""
    return {name: (f.__doc__ or "").splitlines()[0] for name, f in _SCHEDULES.items()}


def make(spec: str | Spec) -> Schedule:
    """A schedule from `name(option=value, ...)`.

    >>> halved = make("step(every=2, gamma=0.5)")
    >>> [0.1 * halved(round, 6) for round in range(1, 6)]
    [0.1, 0.1, 0.05, 0.05, 0.025]
    """
    read = parse(spec, "schedule")
    if read.name not in _SCHEDULES:
        raise ConfigError(f"unknown schedule {read.name!r}; {nearest(read.name, _SCHEDULES)}")
    try:
        return _SCHEDULES[read.name](**read.options)
    except ConfigError:
        raise
    except (TypeError, ValueError) as error:
        raise ConfigError(f"schedule {str(read)!r}: {error}") from None

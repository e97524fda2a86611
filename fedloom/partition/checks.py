"""Checks of one value each; a message names the parameter, the value and the rule."""

import math
from collections.abc import Sequence
from numbers import Integral, Real

from fedloom.errors import PartitionError, nearest


def whole(name: str, value: object, low: int, high: int | None = None) -> int:
    """A whole number in low..high as int; booleans and floats are refused."""
    limit = f"of at least {low}" if high is None else f"from {low} to {high}"
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise PartitionError(f"{name} must be a whole number {limit}, not {value!r}")
    number = int(value)
    if number < low or (high is not None and number > high):
        raise PartitionError(f"{name} must be a whole number {limit}, not {number}")
    return number


def positive(name: str, value: object) -> float:
    """A finite number above zero as float."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise PartitionError(f"{name} must be a number above 0, not {value!r}")
    number = float(value)
    if not math.isfinite(number) or number <= 0:
        raise PartitionError(f"{name} must be a finite number above 0, not {value!r}")
    return number


def concentration(name: str, value: object) -> float | tuple[float, ...]:
    """A Dirichlet concentration: one number above zero, or one for each client."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        if not value:
            raise PartitionError(f"{name} is an empty list; give one number, or one a client")
        return tuple(positive(f"{name}[{i}]", item) for i, item in enumerate(value))
    return positive(name, value)


def flag(name: str, value: object) -> None:
    """True or false, nothing else."""
    if not isinstance(value, bool):
        raise PartitionError(f"{name} must be true or false, not {value!r}")


def choice(name: str, value: object, known: Sequence[str]) -> None:
    """One of the known words."""
    if value not in known:
        raise PartitionError(f"{name}={value!r} is not known; {nearest(str(value), known)}")

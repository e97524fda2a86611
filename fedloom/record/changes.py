"""How a configuration differs from a run's first one, and which differences a resume allows."""

from collections.abc import Collection
from typing import Any

from fedloom.errors import RunDirectoryError

MAY_CHANGE = frozenset(
    {
        "rounds",
        "threads",
        "executor",
        "lanes",
        "compiled",
        "workers",
        "memory_budget",
        "checkpoint_every",
        "eval_batch",
        "deviations",  # follows from the other fields, each of which is compared
    }
)
"""Fields that leave the experiment what it is. `rounds` may only be raised."""

ABSENT = "(absent)"

Changes = dict[str, tuple[Any, Any]]
"""Dotted field name -> (value stored with the run, value given now)."""


def differences(stored: dict[str, Any], given: dict[str, Any], prefix: str = "") -> Changes:
    """Every field whose value differs, in the order of `stored`, then of `given`.

    >>> differences({"lr": 0.1, "seed": 0}, {"lr": 0.2, "seed": 0})
    {'lr': (0.1, 0.2)}
    """
    result: Changes = {}
    for key in [*stored, *(key for key in given if key not in stored)]:
        old, new = stored.get(key, ABSENT), given.get(key, ABSENT)
        if isinstance(old, dict) and isinstance(new, dict):
            result |= differences(old, new, f"{prefix}{key}.")
        elif old != new or isinstance(old, bool) != isinstance(new, bool):
            result[f"{prefix}{key}"] = (old, new)
    return result


def check(
    stored: dict[str, Any], given: dict[str, Any], may_change: Collection[str], where: str
) -> Changes:
    """The differences, all allowed. Raises RunDirectoryError that lists those that are not."""
    found = differences(stored, given)
    refused = {name: pair for name, pair in found.items() if not _allowed(name, pair, may_change)}
    if refused:
        listed = "; ".join(
            f"{name}: {old!r} there, {new!r} now"
            + (" (may only be raised)" if name == "rounds" and "rounds" in may_change else "")
            for name, (old, new) in refused.items()
        )
        raise RunDirectoryError(
            f"can't resume {where}: it was made with another configuration ({listed}); "
            "give the stored values, or write to another folder"
        )
    return found


def _allowed(name: str, pair: tuple[Any, Any], may_change: Collection[str]) -> bool:
    field = name.split(".")[0]
    if field == "rounds" and field in may_change:
        old, new = pair
        return isinstance(old, int) and isinstance(new, int) and new > old
    return field in may_change

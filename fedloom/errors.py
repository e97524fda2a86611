"""Errors that a person is meant to read: each says what was expected, what came, and what to do.

The command line prints the message without a traceback and ends with the class's `exit_code`.
"""

import difflib
from collections.abc import Iterable


class FedloomError(Exception):
    """Base of every error this library raises on purpose."""

    exit_code = 1


class ConfigError(FedloomError, ValueError):
    """A setting, option or name that can't be used."""

    exit_code = 2


class DataError(FedloomError, ValueError):
    """A data file or data set that can't be used as it is."""

    exit_code = 3


class PartitionError(FedloomError, ValueError):
    """A split that can't be made, or that doesn't belong to this data."""

    exit_code = 3


class DivergedError(FedloomError, ArithmeticError):
    """Training produced a loss or weight that is not finite."""

    exit_code = 4


class RunDirectoryError(FedloomError, RuntimeError):
    """A run directory that is in use, finished, damaged, or belongs to another configuration."""

    exit_code = 5


def nearest(name: str, choices: Iterable[str]) -> str:
    """Give a sentence that offers the choice most like `name`, then lists them all.

    >>> nearest("fedporx", ["fedavg", "fedprox"])
    "did you mean 'fedprox'? Known: fedavg, fedprox"
    """
    known = sorted(choices)
    close = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.5)
    return (f"did you mean {close[0]!r}? " if close else "") + "Known: " + ", ".join(known)

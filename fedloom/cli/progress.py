"""Progress of runs on a terminal: a bar with the time left, plain lines elsewhere, or nothing."""

import sys
import time
from collections.abc import Mapping
from typing import Any, Protocol

from fedloom.cli.guard import line

QUIET_SECONDS = 15.0
"""Plain lines come no more often than this, first and last round aside."""

SHOWN = {"accuracy": "accuracy {:.2%}", "train_loss": "loss {:.4g}", "loss": "loss {:.4g}"}


class Reporter(Protocol):
    """What a run tells while it goes on; one run after another may use the same reporter."""

    def start(self, total_rounds: int, label: str) -> None:
        """A run of so many rounds begins."""

    def advance(self, round: int, info: Mapping[str, Any]) -> None:
        """A round is done; `info` may hold accuracy, train_loss or loss."""

    def close(self) -> None:
        """The run is over."""


def reporter(quiet: bool) -> Reporter:
    """A bar on a terminal, lines where there is none, nothing when asked to be quiet."""
    if quiet:
        return Silent()
    from fedloom.cli.bar import Bar, Console

    console = Console(stderr=True)
    return Bar(console) if console.is_terminal else Lines()


def describe(info: Mapping[str, Any]) -> str:
    """The figures worth showing, in words.

    >>> describe({"accuracy": 0.9123, "train_loss": 0.25})
    'accuracy 91.23%  loss 0.25'
    """
    known = [key for key in SHOWN if isinstance(info.get(key), int | float)]
    if "train_loss" in known and "loss" in known:
        known.remove("loss")
    return "  ".join(SHOWN[key].format(info[key]) for key in known)


class Silent:
    """Says nothing."""

    def start(self, total_rounds: int, label: str) -> None:
        """Nothing."""

    def advance(self, round: int, info: Mapping[str, Any]) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


class Lines:
    """A plain line now and then, for log files and pipes."""

    def __init__(self, every: float = QUIET_SECONDS):
        self._every = every
        self._label = ""
        self._total = 0
        self._began = self._last = time.monotonic()
        self._first_round: int | None = None

    def start(self, total_rounds: int, label: str) -> None:
        """Say that a run begins."""
        self._label, self._total, self._first_round = label, total_rounds, None
        self._began = self._last = time.monotonic()
        self._say(f"{label}: {total_rounds} rounds")

    def advance(self, round: int, info: Mapping[str, Any]) -> None:
        """Say how far the run is and how long it may still take, if it is time to."""
        now = time.monotonic()
        if self._first_round is None:
            self._first_round = round
        done = round - self._first_round + 1
        if round < self._total and now - self._last < self._every:
            return
        self._last = now
        left = (now - self._began) / done * (self._total - round)
        tail = f", about {duration(left)} left" if round < self._total else ""
        self._say(f"{self._label}: round {round}/{self._total}  {describe(info)}{tail}")

    def close(self) -> None:
        """Nothing: the last round had its line."""

    def _say(self, text: str) -> None:
        line(text.rstrip(), sys.stderr)


def duration(seconds: float) -> str:
    """Seconds in words.

    >>> duration(4.2), duration(200), duration(9000)
    ('4 s', '3 min 20 s', '2 h 30 min')
    """
    whole = round(seconds)
    hours, minutes = whole // 3600, whole % 3600 // 60
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {whole % 60} s" if minutes else f"{whole} s"

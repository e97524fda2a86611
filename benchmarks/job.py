"""What a system is asked to do, and what it answers."""

import itertools
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from benchmarks.work import Work


@dataclass(frozen=True)
class Job:
    """One workload for one system in one process (and those that it starts)."""

    system: str
    work: Work
    rounds: int
    """The warm-up round included."""
    processes: int
    """How many may train clients at once."""
    seed: int
    """Of the order of rows; initial weights and data don't follow it."""
    folder: str
    """An empty folder for files of the system's own."""
    options: dict[str, str] = field(default_factory=dict)
    """Settings for FedLoom alone."""

    def to_json(self) -> str:
        """The inverse of `from_json`."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Job":
        """A job as the starter wrote it."""
        values: dict[str, Any] = json.loads(text)
        work = values.pop("work")
        return cls(work=Work(**{**work, "shape": tuple(work["shape"])}), **values)

    @property
    def path(self) -> Path:
        """The job's folder."""
        return Path(self.folder)


@dataclass(frozen=True)
class Outcome:
    """What a system did."""

    seconds: list[float]
    """Of every round, the warm-up round first: from what is sent to the new global model."""
    weights: list[Tensor]
    """The final global model, in the order of `network(work).parameters()`."""
    processes: int = 1
    """That trained clients at once."""


def laps(stamps: list[float]) -> list[float]:
    """Seconds between time stamps that follow each other.

    >>> laps([1.0, 3.0, 6.0])
    [2.0, 3.0]
    """
    return [after - before for before, after in itertools.pairwise(stamps)]

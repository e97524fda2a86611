"""A row of a comparison: one method in one setting, with all its trials.

Runs that diverged, that give one class to every test row, or that did not finish are counted and
named in their row, and are in no mean.
"""

from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property

from fedloom.reporting import stats
from fedloom.reporting.gather import Run


@dataclass(frozen=True)
class Row:
    """One method (or reference) in one setting: its trials and what they say together."""

    name: str
    options: str
    role: str
    runs: tuple[Run, ...]

    @property
    def full(self) -> str:
        """Name and options in one line."""
        return f"{self.name} ({self.options})" if self.options else self.name

    @cached_property
    def usable(self) -> dict[Hashable, Run]:
        """The runs that count, by trial: seed, partition seed, and a counter for repeats."""
        seen: Counter[Hashable] = Counter()
        trials: dict[Hashable, Run] = {}
        for run in self.runs:
            key = (run.seed, run.config.get("partition_seed"))
            if run.excluded is None:
                trials[(*key, seen[key])] = run
            seen[key] += 1
        return trials

    @property
    def excluded(self) -> Counter[str]:
        """How many runs are left out, by reason."""
        return Counter(run.excluded for run in self.runs if run.excluded is not None)

    @property
    def complete(self) -> bool:
        """Whether every trial counts."""
        return len(self.usable) == len(self.runs)

    @property
    def count(self) -> str:
        """`3`, or `2 of 3`."""
        n, total = len(self.usable), len(self.runs)
        return str(n) if n == total else f"{n} of {total}"

    def spread(self, value: Callable[[Run], float | None]) -> stats.Spread:
        """Mean and sample deviation of a number over the runs that count."""
        return stats.spread(value(run) for run in self.usable.values())

    def final(self, key: str) -> stats.Spread:
        """A metric of the final round over the runs that count."""
        return self.spread(lambda run: run.final(key))

    def cost(self, *keys: str) -> stats.Spread:
        """A total of the run, or the sum of several, over the runs that count.

        References have no message to count.
        """
        if self.role != "method" and any("bytes" in key for key in keys):
            return stats.spread(())

        def total(run: Run) -> float | None:
            parts = [part for part in map(run.total, keys) if part is not None]
            return sum(parts) if len(parts) == len(keys) else None

        return self.spread(total)

    @property
    def bytes(self) -> stats.Spread:
        """Bytes up and down of a whole run, one copy for every client it was sent to."""
        return self.cost("bytes_up", "bytes_down")

    def band(self, key: str, against: str = "rounds") -> stats.Band:
        """A metric over the runs that count, against `rounds`, `bytes` or `seconds`."""
        runs = list(self.usable.values())
        places = None if against == "rounds" else [run.spent(against) for run in runs]
        return stats.band([run.curve(key) for run in runs], places)

    def reach(self, target: float, key: str) -> stats.Reach:
        """`rounds`, `bytes` or `seconds` until the target accuracy is first measured."""
        values = []
        for run in self.usable.values():
            place = stats.first_round(run.curve("accuracy"), target)
            if place is not None:
                cost = float(place) if key == "rounds" else run.spent(key).get(place)
                values += [] if cost is None else [cost]
        return stats.Reach(tuple(values), len(self.usable))

    def difference(self, other: "Row") -> stats.Difference | None:
        """Final accuracy minus the other row's, paired by trial."""
        mine, theirs = (
            {trial: run.final("accuracy") or 0.0 for trial, run in row.usable.items()}
            for row in (self, other)
        )
        return stats.paired(mine, theirs)

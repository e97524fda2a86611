"""What every strategy is: a frozen dataclass whose fields are its options."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from fedloom.errors import PartitionError
from fedloom.partition import apportion, checks
from fedloom.partition.problem import Draw, Problem, deal


@dataclass(frozen=True)
class Strategy:
    """A way to divide rows among clients. A subclass lives in a file that bears its name."""

    def split(self, problem: Problem) -> Draw:
        """Give each row to one client."""
        raise NotImplementedError

    def split_legacy(self, problem: Problem) -> Draw:
        """The split that NIID-Bench's code makes from one seed; few strategies have it."""
        raise PartitionError(
            f"{problem.strategy} has no niid_legacy split; use rng='default', or one of iid, "
            "label_count, label_dirichlet, quantity_dirichlet, by_group, fcube_octants"
        )

    @classmethod
    def match(cls, facts: dict[str, np.ndarray], counts: np.ndarray, test: Problem) -> Draw:
        """Divide test rows as the training rows were: here in proportion to `counts` [N, C]."""
        return match_by_counts(counts, test)

    def params(self) -> dict[str, Any]:
        """The options as plain data that JSON can hold."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}

    def remarks(self, problem: Problem, counts: np.ndarray) -> tuple[str, ...]:
        """What a reader of the finished split should know, `counts` being int64 [N, C]."""
        return ()

    @property
    def allows_empty(self) -> bool:
        """Whether clients without a row were asked for."""
        return False


@dataclass(frozen=True)
class Retrying(Strategy):
    """A strategy that draws again until every client holds `min_size` rows."""

    min_size: int = 10
    max_tries: int = 1_000
    on_small: str = "retry"

    def __post_init__(self) -> None:
        checks.whole("min_size", self.min_size, 0)
        checks.whole("max_tries", self.max_tries, 1)
        checks.choice("on_small", self.on_small, self._small_rules())

    @staticmethod
    def _small_rules() -> tuple[str, ...]:
        return ("retry", "allow", "error")

    @property
    def allows_empty(self) -> bool:
        """Whether clients without a row were asked for."""
        return self.on_small == "allow"

    @property
    def limit(self) -> int:
        """How many draws are made at most."""
        return self.max_tries if self.on_small == "retry" else 1

    def refuse_impossible(self, problem: Problem) -> None:
        """Raise before any draw when the rows can't give every client `min_size`."""
        needed = self.min_size * problem.num_clients
        if self.on_small != "allow" and needed > problem.num_rows:
            raise PartitionError(
                f"{problem.strategy}: {problem.num_clients} clients with at least min_size="
                f"{self.min_size} rows need {needed} rows, but there are {problem.num_rows}; lower "
                "min_size, use fewer clients, or allow small clients with on_small=allow"
            )

    def retry(
        self, problem: Problem, attempt: Callable[[int], np.ndarray]
    ) -> tuple[np.ndarray, int]:
        """The first table of counts [N, ...] in which nobody is small, and the tries it took."""
        self.refuse_impossible(problem)
        best = -1
        for tries in range(1, self.limit + 1):
            table = attempt(tries)
            smallest = int(table.reshape(problem.num_clients, -1).sum(1).min())
            if smallest >= self.min_size or self.on_small == "allow":
                return table, tries
            best = max(best, smallest)
        raise self.exhausted(problem, best)

    def exhausted(self, problem: Problem, best: int) -> PartitionError:
        """The error for a split whose minimum was never reached."""
        options = ", ".join(f"{key}={value}" for key, value in self.params().items())
        return PartitionError(
            f"{problem.strategy}({options}): in {self.limit} draws of {problem.num_rows} rows for "
            f"{problem.num_clients} clients the smallest client never had more than {best} rows, "
            f"but min_size is {self.min_size}; raise alpha, lower min_size, use fewer clients, or "
            "keep small clients with on_small=allow"
        )


def match_by_counts(counts: np.ndarray, test: Problem) -> Draw:
    """Give client i the share counts[i, c] / counts[:, c] of the test rows of each class c."""
    table = np.zeros_like(counts)
    for c in np.flatnonzero((counts.sum(0) > 0) & (test.class_counts > 0)).tolist():
        table[:, c] = apportion.by_weights(counts[:, c], int(test.class_counts[c]))
    return Draw(*deal(test, table, test.shuffled))


def lengths_match(name: str, alpha: float | tuple[float, ...], num_clients: int) -> None:
    """Refuse a list of concentrations that isn't one a client."""
    if isinstance(alpha, tuple) and len(alpha) != num_clients:
        raise PartitionError(
            f"{name} lists {len(alpha)} values for {num_clients} clients; give one number, or one "
            "for each client"
        )


def legacy_state(problem: Problem) -> np.random.RandomState:
    """NIID-Bench's NumPy generator, private and seeded as its command line seeds the global one."""
    checks.whole("seed (with rng='niid_legacy')", problem.seed, 0, 2**32 - 1)
    return np.random.RandomState(problem.seed)

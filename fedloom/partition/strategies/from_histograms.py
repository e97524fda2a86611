"""Label counts of real users, carried over to another data set."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedloom.errors import PartitionError
from fedloom.partition import apportion
from fedloom.partition.problem import Draw, Problem, deal
from fedloom.partition.strategy import Retrying


@dataclass(frozen=True, eq=False)
class FromHistograms(Retrying):
    """Each client takes the label histogram of a random real user.

    `counts` is a table [users, C] of non-negative numbers, or the path of one as .npy or .csv; the
    users are drawn without replacement, and each class is shared out in proportion to the chosen
    users' counts. Users are drawn again while some class is held by nobody or a client is small.
    Source: the `transfer-from-femnist` and `transfer-from-criteo` partitions of NIID-Bench's code.
    """

    counts: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "counts", _table(self.counts))

    def split(self, problem: Problem) -> Draw:
        """Choose users and apportion every class."""
        users, columns = self.counts.shape
        if columns != problem.num_classes or users < problem.num_clients:
            raise PartitionError(
                f"from_histograms: a table of {users} users x {columns} classes does not serve "
                f"{problem.num_clients} clients and {problem.num_classes} classes; it needs a row "
                "for each client and a column for each class"
            )
        if len(unheld := np.flatnonzero(self.counts.sum(0) == 0)):
            name = problem.classes[int(unheld[0])]
            raise PartitionError(f"from_histograms: no user in the table has class {name!r}")
        for tries in range(1, self.max_tries + 1):
            chosen = problem.stream("groups", tries).permutation(users)[: problem.num_clients]
            table = self._apportioned(problem, self.counts[chosen])
            if (table.sum(0) == 0).any():
                continue  # a class that none of these users has is never lost
            if self.on_small == "allow" or int(table.sum(1).min()) >= self.min_size:
                facts = {"users": chosen}
                return Draw(*deal(problem, table, problem.shuffled), tries, facts=facts)
            if self.on_small == "error":
                break
        raise PartitionError(
            f"from_histograms: in {tries} draws of {problem.num_clients} users some class was held "
            f"by nobody or some client had fewer than min_size={self.min_size} rows; lower "
            "min_size, use more clients, or keep small clients with on_small=allow"
        )

    def _apportioned(self, problem: Problem, chosen: np.ndarray) -> np.ndarray:
        table = np.zeros(chosen.shape, np.int64)
        totals = chosen.sum(0)
        for c in np.flatnonzero(totals).tolist():
            count = int(problem.class_counts[c])
            table[:, c] = apportion.largest_remainder(chosen[:, c] / totals[c], count)
        return table

    def params(self) -> dict[str, Any]:
        """The options, with the table's shape and fingerprint in place of the table."""
        raw = np.ascontiguousarray(self.counts, "<f8").tobytes()
        shape = " x ".join(map(str, self.counts.shape))
        fingerprint = f"{shape} table, sha256 {hashlib.sha256(raw).hexdigest()}"
        return {
            "min_size": self.min_size,
            "max_tries": self.max_tries,
            "on_small": self.on_small,
            "counts": fingerprint,
        }


def _table(given: Any) -> np.ndarray:
    """The table as float64 [users, C], checked."""
    if given is None:
        raise PartitionError(
            "from_histograms needs counts=[[...], ...], a row for each user and a column for each "
            "class, or the path of a .npy or .csv file that holds such a table"
        )
    try:
        table = np.asarray(_read(Path(given)) if isinstance(given, str) else given, np.float64)
    except (OSError, TypeError, ValueError) as error:
        raise PartitionError(f"from_histograms: counts can't be read as a table: {error}") from None
    if table.ndim != 2 or not table.size:
        raise PartitionError(f"from_histograms: counts must be a table, not of shape {table.shape}")
    if not np.isfinite(table).all() or (table < 0).any():
        raise PartitionError("from_histograms: counts must be finite and not negative")
    return table


def _read(path: Path) -> np.ndarray:
    if path.suffix == ".npy":
        return np.asarray(np.load(path, allow_pickle=False))
    return np.loadtxt(path, delimiter=",", ndmin=2)

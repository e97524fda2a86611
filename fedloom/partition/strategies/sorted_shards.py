"""Shards of the rows sorted by label."""

from dataclasses import dataclass

import numpy as np

from fedloom.errors import PartitionError
from fedloom.partition import apportion, checks
from fedloom.partition.problem import NO_ROWS, Draw, Problem, offsets_of, ranges, stable_order
from fedloom.partition.strategy import Strategy


@dataclass(frozen=True)
class SortedShards(Strategy):
    """Rows sorted by label, cut into equal shards, of which each client gets `shards` at random.

    A shard may straddle two classes, so a client sees at most 2 * shards labels, not exactly
    `shards`. Sizes differ by at most one a shard; `drop_remainder` makes them equal and leaves out
    the last rows of the sorted list, which are counted.
    Source: McMahan et al., AISTATS 2017, arXiv:1602.05629.
    """

    shards: int = 2
    drop_remainder: bool = False

    def __post_init__(self) -> None:
        checks.whole("shards", self.shards, 1)
        checks.flag("drop_remainder", self.drop_remainder)

    def split(self, problem: Problem) -> Draw:
        """Permute, sort by label, cut, and deal the shards."""
        total = self.shards * problem.num_clients
        if total > problem.num_rows:
            raise PartitionError(
                f"sorted_shards: {problem.num_clients} clients with {self.shards} shards need "
                f"{total} rows at least, but there are {problem.num_rows}; lower shards or clients"
            )
        rows = _sorted(problem)
        used = len(rows) - len(rows) % total if self.drop_remainder else len(rows)
        blocks = problem.stream("assign").permutation(total)
        order, offsets = _gather(rows[:used], blocks, problem.num_clients)
        return Draw(order, offsets, dropped=np.sort(rows[used:]), facts={"blocks": blocks})

    @classmethod
    def match(cls, facts: dict[str, np.ndarray], counts: np.ndarray, test: Problem) -> Draw:
        """The same shards of the sorted test rows."""
        return Draw(*_gather(_sorted(test), facts["blocks"], len(counts)))


def _sorted(problem: Problem) -> np.ndarray:
    """Rows by class, in random order within one; rows without a class are left out."""
    rows = problem.stream("shuffle/all").permutation(problem.num_rows)
    rows = rows[problem.y[rows] >= 0]
    return rows[stable_order(problem.y[rows], problem.num_classes)]


def _gather(
    rows: np.ndarray, blocks: np.ndarray, num_clients: int
) -> tuple[np.ndarray, np.ndarray]:
    """(order, offsets) when client i gets the i-th equal part of the list of blocks."""
    sizes = apportion.even(len(rows), len(blocks))
    starts = offsets_of(sizes)[:-1]
    order = rows[ranges(starts[blocks], sizes[blocks])] if len(rows) else NO_ROWS
    return order, offsets_of(sizes[blocks].reshape(num_clients, -1).sum(1))

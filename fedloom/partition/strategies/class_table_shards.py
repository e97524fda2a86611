"""Shards of single classes, dealt by a table of labels."""

from dataclasses import dataclass

import numpy as np

from fedloom.errors import PartitionError
from fedloom.partition import apportion, checks
from fedloom.partition.problem import Draw, Problem, offsets_of, ranges
from fedloom.partition.strategy import Strategy


@dataclass(frozen=True)
class ClassTableShards(Strategy):
    """Every class cut into equally many shards; each client gets `shards` of them at random.

    A shard holds one class and a client may get the same class twice, so it sees at most `shards`
    labels. Test rows are divided by the same table of labels. Needs shards * clients to be a
    multiple of the number of classes.
    Source: Oh et al., FedBABU, ICLR 2022, arXiv:2106.06042, and its code.
    """

    shards: int = 2

    def __post_init__(self) -> None:
        checks.whole("shards", self.shards, 1)

    def split(self, problem: Problem) -> Draw:
        """Shuffle the multiset of labels into a table [N, shards], then deal the shards."""
        total, num_classes = self.shards * problem.num_clients, problem.num_classes
        if total % num_classes:
            raise PartitionError(
                f"class_table_shards: shards * clients = {self.shards} * {problem.num_clients} "
                f"must be a multiple of the {num_classes} classes; change shards or clients"
            )
        repeats = total // num_classes
        short = np.flatnonzero(problem.class_counts < repeats)
        if len(short):
            name = problem.classes[short[0]]
            raise PartitionError(
                f"class_table_shards: class {name!r} has {problem.class_counts[short[0]]} rows for "
                f"{repeats} shards; lower shards or clients"
            )
        deck = np.repeat(np.arange(num_classes), repeats)
        table = problem.stream("classes").permutation(deck).reshape(-1, self.shards)
        return Draw(*_deal(problem, table), facts={"table": table})

    @classmethod
    def match(cls, facts: dict[str, np.ndarray], counts: np.ndarray, test: Problem) -> Draw:
        """Shards of the test rows under the same table of labels."""
        return Draw(*_deal(test, facts["table"]))


def _deal(problem: Problem, table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(order, offsets) when each entry of `table` takes a random unused shard of its label."""
    labels = table.ravel()
    starts = np.zeros(len(labels), np.int64)
    sizes = np.zeros(len(labels), np.int64)
    first = offsets_of(problem.class_counts)
    for c in range(problem.num_classes):
        slots = np.flatnonzero(labels == c)
        lengths = apportion.even(int(problem.class_counts[c]), len(slots))
        shards = problem.stream(f"shuffle/{c}").permutation(len(slots))
        starts[slots] = (first[c] + offsets_of(lengths)[:-1])[shards]
        sizes[slots] = lengths[shards]
    order = problem.by_class[ranges(starts, sizes)]
    return order, offsets_of(sizes.reshape(table.shape).sum(1))

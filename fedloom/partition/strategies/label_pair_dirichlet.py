"""Label and quantity skew: two classes a client, two clients a class."""

from dataclasses import dataclass

import numpy as np

from fedloom.errors import PartitionError
from fedloom.partition import apportion, checks
from fedloom.partition.dirichlet import log_gammas, softmax
from fedloom.partition.problem import Draw, Problem, deal
from fedloom.partition.strategy import Retrying


@dataclass(frozen=True)
class LabelPairDirichlet(Retrying):
    """Client i holds class i and one more, each class being split between two by a Dirichlet draw.

    Needs as many clients as classes, two at least. The second classes are a uniformly random
    permutation that leaves none in its place; the original may loop for ever here.
    Source: the `mixed` partition of NIID-Bench's code; not in the paper.
    """

    alpha: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "alpha", checks.positive("alpha", self.alpha))

    def split(self, problem: Problem) -> Draw:
        """A derangement of the classes, then one draw a class."""
        num_classes = problem.num_classes
        if problem.num_clients != num_classes or num_classes < 2:
            raise PartitionError(
                "label_pair_dirichlet needs as many clients as classes, and two at least: "
                f"{problem.num_clients} clients, {num_classes} classes"
            )
        other = _derangement(problem.stream("classes"), num_classes)
        pairs = np.stack([np.arange(num_classes), np.argsort(other)], axis=1)  # [C, 2] holders
        table, tries = self.retry(problem, lambda attempt: self._table(problem, pairs, attempt))
        return Draw(*deal(problem, table, problem.shuffled), tries)

    def _table(self, problem: Problem, pairs: np.ndarray, attempt: int) -> np.ndarray:
        rng = problem.stream(f"proportions/{attempt}")
        shares = softmax(log_gammas(rng, self.alpha, pairs.shape))
        table = np.zeros((len(pairs), len(pairs)), np.int64)
        for c, holders in enumerate(pairs):
            count = int(problem.class_counts[c])
            table[holders, c] = apportion.largest_remainder(shares[c], count)
        return table


def _derangement(rng: np.random.RandomState, size: int) -> np.ndarray:
    """A permutation without fixed points; about one try in e succeeds, so this soon ends."""
    while True:
        moved = rng.permutation(size)
        if not (moved == np.arange(size)).any():
            return moved

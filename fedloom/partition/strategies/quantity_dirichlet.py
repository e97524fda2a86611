"""Quantity skew: the clients' sizes are one Dirichlet draw."""

from dataclasses import dataclass

import numpy as np

from fedloom.partition import apportion, checks
from fedloom.partition.dirichlet import log_gammas, softmax
from fedloom.partition.problem import Draw, Problem, offsets_of
from fedloom.partition.strategy import Retrying, legacy_state, lengths_match

BLOCK = 2**14  # numbers drawn at once: enough to be fast, few enough to waste little


@dataclass(frozen=True)
class QuantityDirichlet(Retrying):
    """Random rows in sizes that one Dirichlet draw sets; small alpha is skewed.

    Draws with a client under `min_size` are drawn again, which truncates the law; `on_small=floor`
    gives every client `min_size` rows first and shares out the rest.
    Source: Li et al., Federated Learning on Non-IID Data Silos, ICDE 2022, arXiv:2102.02079.
    """

    max_tries: int = 1_000_000
    alpha: float | tuple[float, ...] = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "alpha", checks.concentration("alpha", self.alpha))

    @staticmethod
    def _small_rules() -> tuple[str, ...]:
        return ("retry", "floor", "allow", "error")

    def split(self, problem: Problem) -> Draw:
        """Permute the rows, draw sizes, cut."""
        counts, tries = self.sizes(problem)
        rows = problem.stream("assign").permutation(problem.num_rows)
        return Draw(rows, offsets_of(counts), tries)

    def sizes(self, problem: Problem) -> tuple[np.ndarray, int]:
        """Sizes int64 [N] that keep `min_size`, and the draws it took."""
        lengths_match("alpha", self.alpha, problem.num_clients)
        self.refuse_impossible(problem)
        n, best = problem.num_rows, -1
        for first in range(0, self.limit, self._rows(problem)):
            shares = self._block(problem, first)[: self.limit - first]
            if self.on_small == "floor":
                rest = n - self.min_size * problem.num_clients
                return self.min_size + apportion.largest_remainder(shares[0], rest), 1
            # A count stays within one of its exact share, so only these draws can be large enough.
            near = np.flatnonzero(shares.min(1) * n > self.min_size - 1.5)
            for j in [0] if self.on_small == "allow" else near.tolist():
                counts = apportion.largest_remainder(shares[j], n)
                if counts.min() >= self.min_size or self.on_small == "allow":
                    return counts, first + j + 1
            best = max(best, int(shares.min(1).max() * n))
        raise self.exhausted(problem, best)

    def _rows(self, problem: Problem) -> int:
        """Draws a block."""
        return max(1, BLOCK // problem.num_clients)

    def _block(self, problem: Problem, first: int) -> np.ndarray:
        """Proportions [draws, N], of which the first is draw number `first`."""
        rows = self._rows(problem)
        rng = problem.stream(f"proportions/{first // rows}")
        logs = log_gammas(rng, np.asarray(self.alpha), (rows, problem.num_clients))
        return softmax(logs)

    def split_legacy(self, problem: Problem) -> Draw:
        """One permutation, then Dirichlet draws until the smallest share times n is `min_size`.

        For rcv1 and covtype the original first permutes the whole file to set test rows aside.
        """
        lengths_match("alpha", self.alpha, problem.num_clients)
        if self.on_small == "floor":
            return super().split_legacy(problem)
        self.refuse_impossible(problem)
        rng, n, best, tries = legacy_state(problem), problem.num_rows, -1, 0
        rows = rng.permutation(n)
        alpha = np.broadcast_to(self.alpha, problem.num_clients)
        while tries < self.limit:
            for shares in rng.dirichlet(alpha, min(self._rows(problem), self.limit - tries)):
                tries += 1
                shares = shares / shares.sum()
                if shares.min() * n >= self.min_size or self.on_small == "allow":
                    return Draw(rows, offsets_of(apportion.floor_cumsum(shares, n)), tries)
                best = max(best, int(shares.min() * n))
        raise self.exhausted(problem, best)

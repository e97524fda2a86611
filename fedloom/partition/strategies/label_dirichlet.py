"""Label skew: every class is shared out by its own Dirichlet draw."""

from dataclasses import dataclass

import numpy as np

from fedloom.errors import PartitionError
from fedloom.partition import apportion, checks
from fedloom.partition.dirichlet import log_gammas, softmax
from fedloom.partition.problem import Draw, Problem, deal, stable_order
from fedloom.partition.strategy import Retrying, legacy_state, lengths_match


@dataclass(frozen=True)
class LabelDirichlet(Retrying):
    """Each class shared out by a Dirichlet draw over the clients; small alpha is skewed.

    With `balance` a client that holds a fair share n / N gets nothing of the classes that follow:
    the code behind the published numbers does so, the papers' text does not. `lda_variant=capped`
    is `balance=true` and `lda_variant=pure` is `balance=false`. Classes come in ascending order,
    or with `class_order=random` in an order of each try's own. `alpha` is one number, or one for
    each client.
    Source: Yurochkin et al., ICML 2019, arXiv:1905.12022, as in Li et al., ICDE 2022,
    arXiv:2102.02079.
    """

    alpha: float | tuple[float, ...] = 0.5
    balance: bool = True
    class_order: str = "ascending"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "alpha", checks.concentration("alpha", self.alpha))
        checks.flag("balance", self.balance)
        checks.choice("class_order", self.class_order, ("ascending", "random"))

    def split(self, problem: Problem) -> Draw:
        """Draw tables of counts until nobody is small, deal the rows, shuffle every client's."""
        lengths_match("alpha", self.alpha, problem.num_clients)
        table, tries = self.retry(problem, lambda attempt: self._table(problem, attempt))
        order, offsets = deal(problem, table, lambda c: problem.shuffled(c, tries))
        owner = np.repeat(np.arange(problem.num_clients), np.diff(offsets))
        mixed = problem.stream("assign").permutation(len(order))
        kept = stable_order(owner[mixed], problem.num_clients)
        return Draw(order[mixed[kept]], offsets, tries)

    def _table(self, problem: Problem, attempt: int) -> np.ndarray:
        n, num_clients, num_classes = problem.num_rows, problem.num_clients, problem.num_classes
        rng = problem.stream(f"proportions/{attempt}")
        logs = log_gammas(rng, np.asarray(self.alpha), (num_classes, num_clients))
        table = np.zeros((num_classes, num_clients), np.int64)
        sizes = np.zeros(num_clients, np.int64)
        order = np.arange(num_classes)
        if self.class_order == "random":
            order = problem.stream("classes", attempt).permutation(num_classes)
        for c in order.tolist():
            if self.balance:
                logs[c, sizes * num_clients >= n] = -np.inf
            table[c] = apportion.largest_remainder(softmax(logs[c]), int(problem.class_counts[c]))
            sizes += table[c]
        return table.T

    def split_legacy(self, problem: Problem) -> Draw:
        """Shuffle and draw class by class in each try; in the end shuffle each client's rows."""
        if self.class_order != "ascending":
            raise PartitionError("niid_legacy keeps class_order=ascending; leave it out")
        lengths_match("alpha", self.alpha, problem.num_clients)
        rng = legacy_state(problem)
        shuffled: dict[int, np.ndarray] = {}
        table, tries = self.retry(problem, lambda _: self._legacy_table(problem, rng, shuffled))
        order, offsets = deal(problem, table, shuffled.__getitem__)
        for begin, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
            rng.shuffle(order[begin:end])
        return Draw(order, offsets, tries)

    def _legacy_table(
        self, problem: Problem, rng: np.random.RandomState, shuffled: dict[int, np.ndarray]
    ) -> np.ndarray:
        table = np.zeros((problem.num_clients, problem.num_classes), np.int64)
        for c in range(problem.num_classes):
            shuffled[c] = rng.permutation(problem.rows_of(c))
            shares = rng.dirichlet(np.broadcast_to(self.alpha, problem.num_clients))
            if self.balance:
                shares = shares * (table.sum(1) < problem.num_rows / problem.num_clients)
            if not shares.sum() > 0:
                raise PartitionError(
                    f"niid_legacy: at alpha={self.alpha} class {problem.classes[c]!r} has no "
                    "share left for an open client (0 / 0 in the original); use rng='default'"
                )
            table[:, c] = apportion.floor_cumsum(shares / shares.sum(), len(shuffled[c]))
        return table

    def remarks(self, problem: Problem, counts: np.ndarray) -> tuple[str, ...]:
        """Missing classes or an active balance rule where alpha asks for near-equal shares."""
        found = []
        lowest = float(np.min(self.alpha))
        lacking = int((counts == 0).any(1).sum())
        if lowest >= 10 and lacking:
            found.append(f"{lacking} clients lack some class although alpha is {lowest:g}")
        if self.balance and lowest >= 100:
            found.append(
                f"balance=true at alpha={lowest:g} closes clients on noise alone; "
                "balance=false gives the plain Dirichlet law"
            )
        return tuple(found)

"""Label skew: every client has exactly k labels."""

import random
from dataclasses import dataclass

import numpy as np

from fedloom.errors import PartitionError
from fedloom.partition import apportion, checks, hands
from fedloom.partition.problem import Draw, Problem, deal
from fedloom.partition.strategy import Strategy, legacy_state

UNHELD = ("error", "drop", "repair")


@dataclass(frozen=True)
class LabelCount(Strategy):
    """Exactly `k` labels for each client; a class is shared equally among the clients that hold it.

    `assign` says who holds what: `first_fixed` (client i has label i mod C and k - 1 random ones,
    so with clients >= classes every class is held), `random`, `cyclic` (labels i .. i + k - 1) or
    `balanced` (each class is held equally often to within one). With fewer clients than classes
    some class may be held by nobody: `on_unheld` then refuses, leaves its rows out (`drop`), or
    replaces a label of some client (`repair`). Client ids carry label information under
    `first_fixed` and `cyclic`.
    Source: Li et al., Federated Learning on Non-IID Data Silos, ICDE 2022, arXiv:2102.02079.
    """

    k: int = 2
    assign: str = "first_fixed"
    on_unheld: str = "error"

    def __post_init__(self) -> None:
        checks.whole("k", self.k, 1)
        checks.choice("assign", self.assign, tuple(hands.RULES))
        checks.choice("on_unheld", self.on_unheld, UNHELD)

    def split(self, problem: Problem) -> Draw:
        """Choose labels, then cut each class into equal blocks for its holders."""
        self._refuse_impossible(problem)
        rng = problem.stream("classes")
        held = hands.RULES[self.assign](rng, problem.num_clients, problem.num_classes, self.k)
        changed = 0
        if self.on_unheld == "repair":
            changed = hands.repair(problem.stream("assign"), held, self.assign == "first_fixed")
        draw = self._share(
            problem, held, {c: problem.shuffled(c) for c in np.flatnonzero(held.any(0)).tolist()}
        )
        notes = (f"label_count: {changed} labels were replaced, so that each class is held",)
        return Draw(draw.order, draw.offsets, 1, draw.dropped, notes if changed else ())

    def split_legacy(self, problem: Problem) -> Draw:
        """Labels from Python's generator, drawn again on repetition; rows from NumPy's."""
        self._refuse_impossible(problem)
        if self.assign != "first_fixed" or self.on_unheld == "repair":
            raise PartitionError("niid_legacy has assign=first_fixed and no on_unheld=repair")
        rows = legacy_state(problem)
        held = hands.legacy(random.Random(problem.seed), problem, self.k)
        shuffled = {c: rows.permutation(problem.rows_of(c)) for c in range(problem.num_classes)}
        return self._share(problem, held, shuffled)

    def _refuse_impossible(self, problem: Problem) -> None:
        checks.whole("k (labels a client)", self.k, 1, problem.num_classes)
        if problem.num_clients * self.k < problem.num_classes:
            most = problem.num_clients * self.k
            raise PartitionError(
                f"label_count: {problem.num_clients} clients with k={self.k} labels each can hold "
                f"at most {most} of the {problem.num_classes} classes, so at least "
                f"{problem.num_classes - most} would be lost; raise k or use more clients"
            )

    def _share(self, problem: Problem, held: np.ndarray, rows: dict[int, np.ndarray]) -> Draw:
        """Cut each class for its holders, given bool [N, C]."""
        holders = held.sum(0)
        unheld = np.flatnonzero(holders == 0)
        if len(unheld) and self.on_unheld == "error":
            names = ", ".join(str(problem.classes[c]) for c in unheld)
            raise PartitionError(
                f"label_count(k={self.k}): no client holds the classes {names} "
                f"({int(problem.class_counts[unheld].sum())} rows); use more clients or a larger "
                "k, or on_unheld=repair, or on_unheld=drop to leave these rows out"
            )
        table = np.zeros(held.shape, np.int64)
        for c in np.flatnonzero(holders).tolist():
            count, parts = int(problem.class_counts[c]), int(holders[c])
            if count < parts:
                raise PartitionError(
                    f"label_count: class {problem.classes[c]!r} has {count} rows for {parts} "
                    "clients that hold it; use fewer clients or a smaller k"
                )
            table[held[:, c], c] = apportion.even(count, parts)
        dropped = np.flatnonzero(np.isin(problem.y, unheld))
        return Draw(*deal(problem, table, rows.__getitem__), dropped=dropped)

"""What a strategy is given, what it gives back, and the arithmetic of who holds which rows."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

NO_ROWS = np.empty(0, np.int64)


def stream(seed: int, strategy: str, stage: str, counter: int = 0) -> np.random.RandomState:
    """The generator of one stage; stages do not move one another."""
    name = f"fedpart|v1|{seed}|{strategy}|{stage}|{counter}"
    return np.random.RandomState(np.frombuffer(hashlib.sha256(name.encode()).digest(), dtype="<u4"))


@dataclass(frozen=True)
class Problem:
    """A labelled data set to be divided."""

    y: np.ndarray
    """int64 [n] positions in `classes`; -1 marks a class that is not among them."""
    classes: tuple[int | str, ...]
    num_clients: int
    seed: int
    strategy: str
    """The strategy's name, which names its streams too."""
    groups: np.ndarray | None = None
    """int64 [n] positions in `group_ids`."""
    group_ids: np.ndarray | None = None
    x: np.ndarray | None = None
    """Coordinates, float64 [n, d], for the strategy that looks at them."""

    @property
    def num_rows(self) -> int:
        """Rows to divide."""
        return len(self.y)

    @property
    def num_classes(self) -> int:
        """Distinct labels."""
        return len(self.classes)

    @cached_property
    def class_counts(self) -> np.ndarray:
        """int64 [C] rows of each class."""
        return np.bincount(self.y[self.y >= 0], minlength=self.num_classes)

    @cached_property
    def by_class(self) -> np.ndarray:
        """Rows sorted by class, those without one left out."""
        order = stable_order(self.y + 1, self.num_classes + 1)
        return order[self.num_rows - int(self.class_counts.sum()) :]

    def rows_of(self, position: int) -> np.ndarray:
        """Rows of one class in the data's order; a view."""
        end = int(self.class_counts[: position + 1].sum())
        return self.by_class[end - int(self.class_counts[position]) : end]

    def stream(self, stage: str, counter: int = 0) -> np.random.RandomState:
        """The generator of one stage of this strategy."""
        return stream(self.seed, self.strategy, stage, counter)

    def shuffled(self, position: int, attempt: int = 0) -> np.ndarray:
        """Rows of one class in random order, afresh for every attempt."""
        return self.stream(f"shuffle/{position}", attempt).permutation(self.rows_of(position))


@dataclass(frozen=True)
class Draw:
    """A strategy's answer: rows of client 0, then of client 1, and so on."""

    order: np.ndarray
    offsets: np.ndarray
    tries: int = 1
    dropped: np.ndarray = field(default_factory=lambda: NO_ROWS)
    warnings: tuple[str, ...] = ()
    facts: dict[str, np.ndarray] = field(default_factory=dict)
    """What a matching division of test rows needs to know."""


def offsets_of(sizes: np.ndarray) -> np.ndarray:
    """int64 [N + 1] where each client's rows begin and end."""
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])


def collect(
    rows: np.ndarray | None, owner: np.ndarray, num_clients: int
) -> tuple[np.ndarray, np.ndarray]:
    """(order, offsets) when rows[j], or j itself, goes to client owner[j], in their order."""
    order, sizes = stable_order(owner, num_clients), np.bincount(owner, minlength=num_clients)
    return order if rows is None else rows[order], offsets_of(sizes)


def stable_order(keys: np.ndarray, bound: int) -> np.ndarray:
    """Stable argsort of integers in 0 .. bound - 1, with bound at most 2^32.

    NumPy sorts 16-bit integers by radix, several times faster than wider ones; so the low halves
    are sorted first, then the high ones.
    """
    order = np.argsort(keys.astype(np.uint16), kind="stable")
    if bound <= 2**16:
        return order
    high = (keys >> 16).astype(np.uint16)[order]
    return order[np.argsort(high, kind="stable")]


def deal(
    problem: Problem, table: np.ndarray, rows_of: Callable[[int], np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """(order, offsets) when client i gets the next table[i, c] of rows_of(c), for each class c.

    A class whose column is all zero is left out; any other column must add up to its rows.
    """
    given = table.sum(0)
    parts = [rows_of(c) for c in np.flatnonzero(given).tolist()]
    assert [len(part) for part in parts] == given[given > 0].tolist()
    clients = np.tile(np.arange(len(table)), table.shape[1])
    return collect(
        np.concatenate([NO_ROWS, *parts]), np.repeat(clients, table.T.ravel()), len(table)
    )


def ranges(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """starts[0] .. starts[0] + lengths[0] - 1, then the next range, and so on."""
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(int(lengths.sum()))

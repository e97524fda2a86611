"""Who holds which rows: one array of row numbers and where each client's part begins."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import numpy as np

from fedloom.errors import PartitionError
from fedloom.partition.labels import fingerprint
from fedloom.partition.problem import NO_ROWS, offsets_of

FORMAT_VERSION = 1
BLOCK = 2**20


@dataclass(frozen=True, eq=False, repr=False)
class Partition:
    """A finished, checked division of rows among clients, with everything that made it."""

    order: np.ndarray
    """int64 [assigned] rows of client 0, then of client 1, and so on; read-only."""
    offsets: np.ndarray
    """int64 [N + 1] where each client's part of `order` begins and ends; read-only."""
    positions: np.ndarray
    """int64 [n] label of each row as its position in `classes` (-1: none of them); read-only."""
    classes: tuple[int | str, ...]
    """The sorted distinct labels."""
    strategy: str
    params: dict[str, Any]
    """All options after defaults, as plain data."""
    seed: int
    rng: str = "default"
    tries: int = 1
    """Draws until one was accepted."""
    dropped: np.ndarray = field(default_factory=lambda: NO_ROWS)
    """int64 rows that no client holds, ascending; read-only."""
    warnings: tuple[str, ...] = ()
    facts: dict[str, np.ndarray] = field(default_factory=dict)
    """What dividing test rows in the same way needs: label tables, owners of groups."""
    inputs_sha256: str = ""
    """Fingerprint of group ids or coordinates that the strategy looked at; empty when it didn't."""
    overlapping: bool = False
    """Whether a row may belong to several clients, as in resampled test sets."""
    format_version: int = FORMAT_VERSION

    def __post_init__(self) -> None:
        for name in ("order", "offsets", "positions", "dropped"):
            view = np.ascontiguousarray(getattr(self, name), np.int64).view()
            view.flags.writeable = False
            object.__setattr__(self, name, view)
        verify_rows(self.order, self.offsets, self.dropped, self.num_rows, self.overlapping)

    @property
    def num_rows(self) -> int:
        """Rows of the data set, dropped ones among them."""
        return len(self.positions)

    @property
    def num_clients(self) -> int:
        """Clients, empty ones among them."""
        return len(self.offsets) - 1

    @property
    def num_classes(self) -> int:
        """Distinct labels."""
        return len(self.classes)

    @cached_property
    def sizes(self) -> np.ndarray:
        """int64 [N] rows each client holds."""
        return np.diff(self.offsets)

    def rows(self, client: int) -> np.ndarray:
        """Row numbers of one client, int64, a read-only view."""
        if not 0 <= client < self.num_clients:
            raise IndexError(f"client {client} of {self.num_clients}")
        return self.order[self.offsets[client] : self.offsets[client + 1]]

    @property
    def indices(self) -> "Rows":
        """The rows of every client, as a sequence of read-only views."""
        return Rows(self.order, self.offsets)

    @cached_property
    def count_matrix(self) -> np.ndarray:
        """int64 [N, C] rows of each class at each client."""
        width = self.num_classes
        counts = np.empty((self.num_clients, width), np.int64)
        for first, last in blocks(self.offsets):
            owner = np.repeat(np.arange(last - first), self.sizes[first:last])
            rows = self.order[self.offsets[first] : self.offsets[last]]
            cells = np.bincount(
                owner * width + self.positions[rows], minlength=(last - first) * width
            )
            counts[first:last] = cells.reshape(-1, width)
        return counts

    @cached_property
    def class_counts(self) -> np.ndarray:
        """int64 [C] rows of each class in the whole data set."""
        return np.bincount(self.positions[self.positions >= 0], minlength=self.num_classes)

    @cached_property
    def labels_sha256(self) -> str:
        """Fingerprint of the labels: SHA-256 of `positions` as little-endian int64."""
        return fingerprint(self.positions)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of N, then every size, then every client's rows, all as little-endian int64."""
        digest = hashlib.sha256(np.array([self.num_clients], "<i8").data)
        digest.update(self.sizes.astype("<i8", copy=False).data)
        digest.update(self.order.astype("<i8", copy=False).data)
        return digest.hexdigest()

    @property
    def settings(self) -> dict[str, Any]:
        """Everything that determines the split: two splits with equal settings are the same."""
        return {
            "format_version": self.format_version,
            "strategy": self.strategy,
            "params": self.params,
            "num_clients": self.num_clients,
            "seed": self.seed,
            "rng": self.rng,
            "labels_sha256": self.labels_sha256,
            "inputs_sha256": self.inputs_sha256,
        }

    @property
    def key(self) -> str:
        """SHA-256 of `settings`, for naming a stored split."""
        return hashlib.sha256(json.dumps(self.settings, sort_keys=True).encode()).hexdigest()

    def save(self, path: str | Path) -> None:
        """Write `path`.json and `path`.npz; either suffix may be given."""
        from fedloom.partition.store import save

        save(self, path)

    @staticmethod
    def load(path: str | Path, labels: Any) -> "Partition":
        """Read what `save` wrote, and check it against itself and against these labels.

        Raises PartitionError for a file that was changed or that was made for other data.
        """
        from fedloom.partition.store import load

        return load(path, labels)

    def __repr__(self) -> str:
        options = ", ".join(f"{key}={value!r}" for key, value in self.params.items())
        return (
            f"Partition({self.strategy}({options}), {self.num_rows} rows, {self.num_clients} "
            f"clients, seed {self.seed}, digest {self.digest[:12]})"
        )


class Rows(Sequence[np.ndarray]):
    """Every client's rows as a sequence of views, formed on demand.

    Those of client i are `order[offsets[i] : offsets[i + 1]]`.

    >>> rows = Rows.of([np.array([4, 1]), np.array([0])])
    >>> rows[1].tolist(), rows.sizes.tolist()
    ([0], [2, 1])
    """

    def __init__(self, order: np.ndarray, offsets: np.ndarray) -> None:
        self.order = order
        """int64, rows of client 0, then of client 1, and so on."""
        self.offsets = offsets
        """int64 [N + 1]."""

    @classmethod
    def of(cls, parts: Sequence[np.ndarray]) -> "Rows":
        """One sequence of the rows of each client."""
        sizes = np.fromiter(map(len, parts), np.int64, len(parts))
        return cls(np.concatenate([NO_ROWS, *parts]), offsets_of(sizes))

    @cached_property
    def sizes(self) -> np.ndarray:
        """int64 [N] rows of each client."""
        return np.diff(self.offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, client: int) -> np.ndarray: ...
    @overload
    def __getitem__(self, client: slice) -> list[np.ndarray]: ...
    def __getitem__(self, client: int | slice) -> np.ndarray | list[np.ndarray]:
        if isinstance(client, slice):
            return [self[i] for i in range(*client.indices(len(self)))]
        if not -len(self) <= client < len(self):
            raise IndexError(f"client {client} of {len(self)}")
        place = client % len(self)
        return self.order[self.offsets[place] : self.offsets[place + 1]]

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self[client] for client in range(len(self)))


def blocks(offsets: np.ndarray) -> Iterator[tuple[int, int]]:
    """Clients first .. last - 1, and on, in blocks of about a million rows and clients at most."""
    first, count = 0, len(offsets) - 1
    while first < count:
        fits = int(np.searchsorted(offsets, offsets[first] + BLOCK, "right")) - 1
        last = min(max(fits, first + 1), first + BLOCK, count)
        yield first, last
        first = last


def verify_rows(
    order: np.ndarray, offsets: np.ndarray, dropped: np.ndarray, num_rows: int, overlapping: bool
) -> None:
    """Raise PartitionError unless every row has exactly one place: a client's, or `dropped`."""
    if offsets[0] != 0 or offsets[-1] != len(order) or (np.diff(offsets) < 0).any():
        raise PartitionError(
            "the partition's offsets don't fit its rows; it was damaged or changed"
        )
    for name, rows in (("order", order), ("dropped", dropped)):
        if len(rows) and (rows.min() < 0 or rows.max() >= num_rows):
            odd = int(rows.min()) if rows.min() < 0 else int(rows.max())
            raise PartitionError(
                f"the partition's {name} names row {odd}, outside 0 to {num_rows - 1}; it was "
                "changed, or made for other data"
            )
    if not overlapping and len(order) + len(dropped) == num_rows:
        seen = np.zeros(num_rows, bool)
        seen[order] = seen[dropped] = True
        if seen.all():
            return
    held = np.bincount(order, minlength=num_rows)
    if overlapping:
        held = np.minimum(held, 1)
    places = held + np.bincount(dropped, minlength=num_rows)
    if (wrong := np.flatnonzero(places != 1)).size:
        raise PartitionError(
            f"row {wrong[0]} has {places[wrong[0]]} places in the partition instead of one "
            f"({len(wrong)} such rows); it was damaged or changed"
        )

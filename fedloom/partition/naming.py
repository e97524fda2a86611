"""Which names the clients of a partition bear, where their rows come with names."""

from collections.abc import Sequence
from typing import overload

import numpy as np

from fedloom.errors import PartitionError
from fedloom.partition.partition import Partition


def client_names(partition: Partition, groups: Sequence[str] = ()) -> Sequence[str] | None:
    """Each client's group, if every client of a `by_group` partition is exactly one; else None.

    Names are looked up when asked for.

    `groups` are the names that the ids are positions in, as in `Dataset.groups`; without them the
    ids are the names. Raises PartitionError for an id that has no place in `groups`.

    >>> from fedloom.partition import make
    >>> names = client_names(make("by_group", [0, 1, 0], None, seed=0, groups=["b", "a", "a"]))
    >>> sorted(names)
    ['a', 'b']
    """
    ids, owner = (partition.facts.get(key) for key in ("ids", "owner"))
    if partition.strategy != "by_group" or ids is None or owner is None:
        return None
    if not (np.bincount(owner, minlength=partition.num_clients) == 1).all():
        return None
    group = np.argsort(owner)  # [N]: the one group of client 0, 1, ...
    if not groups:
        return Picked(ids, group)
    held = ids[group]
    if ids.dtype.kind not in "iu" or held.min() < 0 or held.max() >= len(groups):
        raise PartitionError(
            f"the partition's group ids are not positions in the {len(groups)} group names; "
            "give the names of the data it was made for"
        )
    return Picked(groups, held)


def labels_of(partition: Partition, names: Sequence[str] | None) -> list[str]:
    """What to call each client: its name, checked, or its number."""
    if names is None:
        return [str(client) for client in range(partition.num_clients)]
    check_names(partition, names)
    return [str(name) for name in names]


def check_names(partition: Partition, names: Sequence[str]) -> None:
    """Raise PartitionError unless there is one name for each client."""
    if len(names) != partition.num_clients:
        raise PartitionError(
            f"{len(names)} client names for {partition.num_clients} clients; give one for each"
        )


class Picked(Sequence[str]):
    """The items at some places of a sequence, looked up when asked for."""

    def __init__(self, items: Sequence[object] | np.ndarray, places: np.ndarray) -> None:
        self._items, self._places = items, places

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> list[str]: ...
    def __getitem__(self, at: int | slice) -> str | list[str]:
        if isinstance(at, slice):
            return [str(self._items[place]) for place in self._places[at].tolist()]
        return str(self._items[int(self._places[at])])

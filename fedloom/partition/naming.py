"""Which names the clients of a partition bear, where their rows come with names."""

from collections.abc import Sequence

import numpy as np

from fedloom.errors import PartitionError
from fedloom.partition.partition import Partition


def client_names(partition: Partition, groups: Sequence[str] = ()) -> tuple[str, ...] | None:
    """Each client's group, if every client of a `by_group` partition is exactly one; else None.

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
    held = ids[np.argsort(owner)].tolist()  # [N]: the one group of client 0, 1, ...
    if not groups:
        return tuple(map(str, held))
    if ids.dtype.kind not in "iu" or min(held) < 0 or max(held) >= len(groups):
        raise PartitionError(
            f"the partition's group ids are not positions in the {len(groups)} group names; "
            "give the names of the data it was made for"
        )
    return tuple(str(groups[place]) for place in held)


def labels_of(partition: Partition, names: Sequence[str] | None) -> list[str]:
    """What to call each client: its name, checked, or its number."""
    if names is None:
        return [str(client) for client in range(partition.num_clients)]
    if len(names) != partition.num_clients:
        raise PartitionError(
            f"{len(names)} client names for {partition.num_clients} clients; give one for each"
        )
    return [str(name) for name in names]

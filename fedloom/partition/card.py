"""The partition card: what was asked for, what came out, and what to mind."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fedloom.errors import PartitionError
from fedloom.partition.make import few
from fedloom.partition.measure import Skew, measure
from fedloom.partition.naming import labels_of
from fedloom.partition.partition import Partition

LISTED_CLIENTS = 1_000
LISTED_CELLS = 20_000


def card(
    partition: Partition,
    class_names: Sequence[str] | None = None,
    client_names: Sequence[str] | None = None,
    *,
    batch_size: int | None = None,
) -> dict[str, Any]:
    """Plain data for JSON: settings, fingerprints, sizes, measured skew and warnings.

    Per-client lists are there up to 1,000 clients and the count matrix up to 20,000 cells, else
    None; the quantiles are always there. `class_names` default to the labels themselves;
    `client_names` (see `naming.client_names`) stand with the clients, None without them. With
    `batch_size`, clients that can't fill one batch are warned of.
    """
    names = names_of(partition, class_names)
    called = None if client_names is None else labels_of(partition, client_names)
    skew = measure(partition)
    listed = partition.num_clients <= LISTED_CLIENTS
    lost = np.bincount(partition.positions[partition.dropped] + 1, minlength=len(names) + 1)[1:]
    return {
        **partition.settings,
        "digest": partition.digest,
        "tries": partition.tries,
        "num_rows": partition.num_rows,
        "num_assigned": int(partition.sizes.sum()),
        "num_dropped": len(partition.dropped),
        "dropped_by_class": {names[c]: int(lost[c]) for c in np.flatnonzero(lost)},
        "classes": names,
        "class_counts": partition.class_counts.tolist(),
        "sizes": _spread(skew.sizes),
        "classes_per_client": _spread(skew.classes_per_client),
        "skew": _numbers(skew),
        "clients": _clients(skew, called) if listed else None,
        "count_matrix": (
            partition.count_matrix.tolist() if partition.count_matrix.size <= LISTED_CELLS else None
        ),
        "warnings": [*partition.warnings, *_batches(partition, batch_size, called)],
    }


def names_of(partition: Partition, class_names: Sequence[str] | None) -> list[str]:
    """A name for each class, checked."""
    if class_names is None:
        return [str(name) for name in partition.classes]
    if len(class_names) != partition.num_classes:
        raise PartitionError(
            f"{len(class_names)} class names for {partition.num_classes} classes; give one for each"
        )
    return [str(name) for name in class_names]


def _numbers(skew: Skew) -> dict[str, float | int]:
    return {
        "tv": skew.tv,
        "tv_weighted": skew.tv_weighted,
        "size_imbalance": skew.size_imbalance,
        "entropy": skew.entropy,
        "entropy_global": skew.entropy_global,
        "num_empty": skew.num_empty,
    }


def _clients(skew: Skew, names: list[str] | None) -> list[dict[str, str | float | int | None]]:
    return [
        {
            "name": names[i] if names else None,
            "size": int(skew.sizes[i]),
            "classes": int(skew.classes_per_client[i]),
            "tv": float(skew.tv_per_client[i]) if skew.sizes[i] else None,
            "entropy": float(skew.entropy_per_client[i]) if skew.sizes[i] else None,
        }
        for i in range(len(skew.sizes))
    ]


def _spread(values: np.ndarray) -> dict[str, float]:
    low, quarter, median, upper, high = np.percentile(values, [0, 25, 50, 75, 100])
    return {
        "min": float(low),
        "quarter": float(quarter),
        "median": float(median),
        "three_quarters": float(upper),
        "max": float(high),
        "mean": float(values.mean()),
        "std": float(values.std()),
    }


def _batches(partition: Partition, batch_size: int | None, names: list[str] | None) -> list[str]:
    if batch_size is None:
        return []
    small = np.flatnonzero((partition.sizes < batch_size) & (partition.sizes > 0))
    if not len(small):
        return []
    ids = few([names[i] for i in small] if names else small.tolist())
    many = f"{len(small)} clients hold" if len(small) > 1 else "1 client holds"
    return [f"{many} fewer rows than one batch of {batch_size}: {ids}"]

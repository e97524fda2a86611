"""The partition card: what was asked for, what came out, and what to mind."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from fedloom.errors import PartitionError
from fedloom.partition.make import few
from fedloom.partition.measure import Skew, measure
from fedloom.partition.naming import Picked, check_names
from fedloom.partition.partition import Partition

LISTED_CLIENTS = 1_000
LISTED_CELLS = 20_000
SAMPLED_CLIENTS = 20
PERCENTS = (1, 5, 10, 25, 50, 75, 90, 95, 99)


def card(
    partition: Partition,
    class_names: Sequence[str] | None = None,
    client_names: Sequence[str] | None = None,
    *,
    batch_size: int | None = None,
) -> dict[str, Any]:
    """Plain data for JSON: settings, fingerprints, sizes, measured skew and warnings.

    All clients are listed up to 1,000, and the count matrix up to 20,000 cells. Beyond that these
    are None, `shortened` says so in a sentence each, and in place of the clients there are
    percentiles of their sizes (`size_percentiles`) and an even sample (`client_sample`).
    `class_names` default to the labels themselves; `client_names` (see `naming.client_names`) stand
    with the clients, None without them. With `batch_size`, clients that can't fill one batch are
    warned of.
    """
    names = names_of(partition, class_names)
    if client_names is not None:
        check_names(partition, client_names)
    skew = measure(partition)
    listed = partition.num_clients <= LISTED_CLIENTS
    everybody = np.arange(partition.num_clients)
    cells = skew.counts.size <= LISTED_CELLS
    sample = everybody if listed else _evenly(partition.num_clients)
    described = _clients(skew, client_names, sample)
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
        "clients": described if listed else None,
        "count_matrix": skew.counts.tolist() if cells else None,
        **({} if listed else {"size_percentiles": _percentiles(skew.sizes)}),
        **({} if listed else {"client_sample": described}),
        "shortened": [*_shortened(partition, listed, cells)],
        "warnings": [*partition.warnings, *_batches(partition, batch_size, client_names)],
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


def _clients(
    skew: Skew, names: Sequence[str] | None, which: np.ndarray
) -> list[dict[str, str | float | int | None]]:
    return [
        {
            "client": i,
            "name": None if names is None else str(names[i]),
            "size": int(skew.sizes[i]),
            "classes": int(skew.classes_per_client[i]),
            "tv": float(skew.tv_per_client[i]) if skew.sizes[i] else None,
            "entropy": float(skew.entropy_per_client[i]) if skew.sizes[i] else None,
        }
        for i in which.tolist()
    ]


def _evenly(count: int) -> np.ndarray:
    """Clients from the first to the last, evenly spaced."""
    return np.linspace(0, count - 1, SAMPLED_CLIENTS).round().astype(np.int64)


def _percentiles(values: np.ndarray) -> dict[str, float]:
    found = np.percentile(values, PERCENTS)
    return {str(percent): float(value) for percent, value in zip(PERCENTS, found, strict=True)}


def _shortened(partition: Partition, listed: bool, cells: bool) -> Iterator[str]:
    clients, classes = partition.num_clients, partition.num_classes
    if not listed:
        yield (
            f"clients: of {clients:,} clients, {SAMPLED_CLIENTS} evenly spaced ones are described "
            "(client_sample); the partition's files hold all"
        )
    if not cells:
        yield (
            f"count_matrix: {clients:,} clients x {classes:,} classes are left out; the "
            "partition's files and the labels give them"
        )


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


def _batches(
    partition: Partition, batch_size: int | None, names: Sequence[str] | None
) -> list[str]:
    if batch_size is None:
        return []
    small = np.flatnonzero((partition.sizes < batch_size) & (partition.sizes > 0))
    if not len(small):
        return []
    ids = few(small.tolist() if names is None else Picked(names, small))
    many = f"{len(small)} clients hold" if len(small) > 1 else "1 client holds"
    return [f"{many} fewer rows than one batch of {batch_size}: {ids}"]

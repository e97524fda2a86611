"""Test rows divided as the training rows were."""

from typing import Any

import numpy as np

from fedloom.errors import PartitionError
from fedloom.partition import checks
from fedloom.partition.labels import align, encode
from fedloom.partition.make import few
from fedloom.partition.partition import Partition
from fedloom.partition.problem import Draw, Problem, collect, stream
from fedloom.partition.registry import find


def match_test(
    partition: Partition,
    test_labels: Any,
    *,
    groups: Any = None,
    x: Any = None,
    seed: int | None = None,
) -> Partition:
    """Each client's share of the test rows: disjoint, and all rows used.

    Client i gets the share count_matrix[i, c] / n_c of the test rows of class c. `by_group` follows
    the groups (pass `groups`), `fcube_octants` the points (pass `x`), and shards reuse their table.
    Test rows that belong nowhere, being of a class or group without training rows, are in
    `dropped`, and a client without a test row is named in `warnings`: it has no score, not 0.
    `seed` is the partition's own when None.
    """
    test = _pose(partition, test_labels, groups, x, seed, "match_test")
    draw = find(partition.strategy).match(partition.facts, partition.count_matrix, test)
    return _finish(partition, test, draw, overlapping=False)


def resampled(partition: Partition, test_labels: Any, *, seed: int | None = None) -> Partition:
    """A test set for each client that shares rows with the others'.

    Client i draws min(count_matrix[i, c], test rows of c) test rows of each class c: without
    replacement itself, but a row may go to several clients, which is counted in `warnings`.
    Source: the local test sets of FedNTD's code, arXiv:2106.03097.
    """
    test = _pose(partition, test_labels, None, None, seed, "resampled")
    table = np.minimum(partition.count_matrix, test.class_counts)
    parts, owners = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for client in np.flatnonzero(table.any(1)).tolist():
        rng = stream(test.seed, test.strategy, "assign", client)
        for c in np.flatnonzero(table[client]).tolist():
            parts.append(rng.permutation(test.rows_of(c))[: table[client, c]])
        owners.append(np.full(table[client].sum(), client))
    owner = np.concatenate(owners)
    order, offsets = collect(np.concatenate(parts), owner, partition.num_clients)
    shared = int((np.bincount(order, minlength=test.num_rows) > 1).sum())
    note = f"{shared} of {test.num_rows} test rows belong to more than one client"
    return _finish(partition, test, Draw(order, offsets, warnings=(note,)), overlapping=True)


def _pose(
    partition: Partition, labels: Any, groups: Any, x: Any, seed: int | None, name: str
) -> Problem:
    if partition.strategy in ("match_test", "resampled"):
        raise PartitionError("this is a division of test rows; pass the partition of training rows")
    y = align(labels, partition.classes, "test labels")
    ids = names = None
    if groups is not None:
        ids, names = encode(groups, "test groups")
        if len(ids) != len(y):
            raise PartitionError(f"test groups have {len(ids)} entries for {len(y)} test labels")
    chosen = partition.seed if seed is None else checks.whole("seed", seed, 0)
    points = None if x is None else np.asarray(x, np.float64)
    return Problem(y, partition.classes, partition.num_clients, chosen, name, ids, names, points)


def _finish(partition: Partition, test: Problem, draw: Draw, *, overlapping: bool) -> Partition:
    order, offsets = _with_class(draw, test)
    left = np.setdiff1d(np.arange(test.num_rows), order)
    found = list(draw.warnings)
    if len(left):
        found.append(f"{len(left)} of {test.num_rows} test rows belong to no client")
    if len(empty := np.flatnonzero(np.diff(offsets) == 0)):
        found.append(f"{len(empty)} clients have no test row: {few(empty.tolist())}")
    return Partition(
        order=order,
        offsets=offsets,
        positions=test.y,
        classes=partition.classes,
        strategy=test.strategy,
        params={"of": partition.strategy, "digest": partition.digest},
        seed=test.seed,
        dropped=left,
        warnings=tuple(found),
        overlapping=overlapping,
    )


def _with_class(draw: Draw, test: Problem) -> tuple[np.ndarray, np.ndarray]:
    """(order, offsets) of a draw without rows of classes that the training rows lack."""
    num_clients = len(draw.offsets) - 1
    owner = np.repeat(np.arange(num_clients), np.diff(draw.offsets))
    keep = test.y[draw.order] >= 0
    return collect(draw.order[keep], owner[keep], num_clients)

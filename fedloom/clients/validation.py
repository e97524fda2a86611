"""Rows that a client keeps back from training, to choose settings on."""

import numpy as np

from fedloom.partition import Rows
from fedloom.rng import stream


def hold_out(
    rows: Rows, labels: np.ndarray, share: float, seed: int
) -> tuple[Rows, np.ndarray, list[str]]:
    """(training rows of each client, held-out rows of all together, notes).

    Within a client each class gives round(share * its rows) rows, so a class with a single row
    stays in training, and every client keeps at least one training row. Without a share the rows
    come back as they are. What a client gives depends on the seed, its number and its own rows; its
    shuffle is the one thing done client by client, some 20 microseconds each.
    """
    if share == 0:
        return rows, np.empty(0, np.int64), []
    sizes, starts = rows.sizes, rows.offsets[:-1]
    owner = np.repeat(np.arange(len(rows)), sizes)
    order = rows.order[_shuffles(sizes, seed) + starts[owner]]
    width = int(labels.max(initial=0)) + 1
    cell = owner * width + labels[order]  # a client's rows of one class
    by_class = np.argsort(cell, kind="stable")
    order, cell = order[by_class], cell[by_class]
    first = np.flatnonzero(np.diff(cell, prepend=-1))
    counts = np.diff(first, append=len(cell))
    give = (share * counts + 0.5).astype(np.int64)
    taken = np.arange(len(cell)) - np.repeat(first, counts) < np.repeat(give, counts)
    given = np.bincount(owner, taken, len(rows)).astype(np.int64)
    robbed = np.flatnonzero((given == sizes) & (sizes > 0))
    taken[starts[robbed]] = False
    given[robbed] -= 1
    kept, whose = order[~taken], owner[~taken]
    kept = kept[np.lexsort((kept, whose))]
    notes = [f"{int(given.sum())} rows are held out of training for validation."]
    if without := int(((given == 0) & (sizes > 0)).sum()):
        notes.append(f"{without} clients are too small to hold out a validation row.")
    offsets = np.concatenate([[0], np.cumsum(sizes - given)])
    return Rows(kept, offsets), np.sort(order[taken]), notes


def _shuffles(sizes: np.ndarray, seed: int) -> np.ndarray:
    """A permutation of 0 .. size - 1 for each client, one after the other."""
    return np.concatenate(
        [
            stream(seed, "validation", client).permutation(size)
            for client, size in enumerate(sizes.tolist())
        ]
    )

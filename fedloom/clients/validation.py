"""Rows that a client keeps back from training, to choose settings on."""

from collections.abc import Sequence

import numpy as np

from fedloom.rng import stream


def hold_out(
    rows: Sequence[np.ndarray], labels: np.ndarray, share: float, seed: int
) -> tuple[list[np.ndarray], np.ndarray, list[str]]:
    """(training rows of each client, held-out rows of all together, notes).

    Within a client each class gives round(share * its rows) rows, so a class with a single row
    stays in training, and every client keeps at least one training row.
    """
    if share == 0:
        return list(rows), np.empty(0, np.int64), []
    kept, held, without = [], [], []
    for client, own in enumerate(rows):
        draw = stream(seed, "validation", client)
        order = own[draw.permutation(len(own))]
        order = order[np.argsort(labels[order], kind="stable")]
        _, starts, counts = np.unique(labels[order], return_index=True, return_counts=True)
        taken = np.zeros(len(own), bool)
        for first, count in zip(starts, counts, strict=True):
            taken[first : first + int(share * count + 0.5)] = True
        if taken.all() and len(own):
            taken[0] = False
        if not taken.any() and len(own):
            without.append(client)
        kept.append(np.sort(order[~taken]))
        held.append(order[taken])
    notes = [f"{sum(map(len, held))} rows are held out of training for validation."]
    if without:
        notes.append(f"{len(without)} clients are too small to hold out a validation row.")
    return kept, np.sort(np.concatenate(held)), notes

"""Proportions -> whole counts that add up exactly."""

import numpy as np

BITS = 40  # proportions are rounded to 2^-40, so that the last bit of a draw moves no row


def largest_remainder(proportions: np.ndarray, total: int) -> np.ndarray:
    """Counts int64 [N] with |count - p * total| < 1; a client with p = 0 gets nothing.

    >>> largest_remainder(np.array([0.5, 0.25, 0.25]), 5).tolist()
    [3, 1, 1]
    """
    return by_weights(np.rint(proportions * 2.0**BITS).astype(np.int64), total)


def by_weights(weights: np.ndarray, total: int) -> np.ndarray:
    """Counts int64 [N] in proportion to non-negative integer weights, their sum being above zero.

    Floor of each exact share, then one more to the largest remainders, ties to the lower position.
    """
    whole = int(weights.sum())
    assert whole > 0
    if total * int(weights.max()) >= 2**63:
        weights = weights.astype(object)  # Python integers: slower, and never overflow
    product = weights * total
    counts = (product // whole).astype(np.int64)
    if missing := total - int(counts.sum()):
        left = (product % whole).astype(np.int64)
        counts[np.argsort(-left, kind="stable")[:missing]] += 1
    return counts


def floor_cumsum(proportions: np.ndarray, total: int) -> np.ndarray:
    """Counts int64 [N] cut at floor(total * cumulated proportions), as NIID-Bench's code does.

    A last client with p = 0 may still get one row, when the cumulated sum rounds to 0.999...
    """
    ends = (np.cumsum(proportions) * total).astype(np.int64)
    ends[-1] = total
    return np.diff(ends, prepend=0)


def even(total: int, parts: int) -> np.ndarray:
    """Sizes int64 [parts] that differ by at most one, the larger first."""
    base, extra = divmod(total, parts)
    return base + (np.arange(parts, dtype=np.int64) < extra)

"""Tables of whole numbers with given row and column sums."""

import numpy as np

FLOOR = 1e-9  # smallest share a cell starts from, so that a table with any margins can be reached
ROUNDS = 2_000


def fit(shares: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Scale rows and columns of `shares` [N, C] in turn until the sums are `rows` and `columns`.

    Gives float64 [N, C] with row sums as asked and no column sum above what was asked, but for
    rounding; where the sums can't be reached in `ROUNDS` rounds, the rest is left to `round_table`.
    """
    table = np.maximum(shares, FLOOR) * rows[:, None]
    for _ in range(ROUNDS):
        table *= columns / np.maximum(table.sum(0), 1e-300)
        error = np.abs(table.sum(1) - rows).sum()
        table *= (rows / np.maximum(table.sum(1), 1e-300))[:, None]
        if error < 0.25:
            break
    return table * np.minimum(1.0, columns / np.maximum(table.sum(0), 1e-300))


def round_table(table: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """int64 [N, C] near `table`, with exactly these row and column sums.

    When the sums of `table` are these, every cell is rounded down or up: first by the largest
    fractions, then along alternating paths. What is left of a table with other sums is spread in
    proportion to what the rows and columns lack.
    """
    counts = np.floor(table).astype(np.int64)
    fraction = table - counts
    lack_rows, lack_columns = rows - counts.sum(1), columns - counts.sum(0)
    up = _greedy(fraction, lack_rows, lack_columns)
    for row in np.flatnonzero(lack_rows).tolist():
        while lack_rows[row] and _augment(row, fraction > 0, up, lack_columns):
            lack_rows[row] -= 1
    counts += up
    if total := int(lack_rows.sum()):
        counts += round_table(np.outer(lack_rows, lack_columns) / total, lack_rows, lack_columns)
    return counts


def _greedy(fraction: np.ndarray, lack_rows: np.ndarray, lack_columns: np.ndarray) -> np.ndarray:
    """Cells to round up, the largest fractions first; lowers the two counts by what it gives."""
    up = np.zeros(fraction.shape, bool)
    order = np.argsort(-fraction, axis=None, kind="stable")
    order = order[: np.count_nonzero(fraction)]
    for row, column in zip(*np.unravel_index(order, fraction.shape), strict=True):
        if lack_rows[row] > 0 and lack_columns[column] > 0:
            up[row, column] = True
            lack_rows[row] -= 1
            lack_columns[column] -= 1
    return up


def _augment(row: int, allowed: np.ndarray, up: np.ndarray, lack_columns: np.ndarray) -> bool:
    """Round one more cell of `row` up, moving others along a path; whether there was one."""
    origin: dict[int, tuple[int, int]] = {}  # column -> (row it was reached from, column before)
    queue = [(row, -1)]
    for at, before in queue:
        for column in np.flatnonzero(allowed[at] & ~up[at]).tolist():
            if column in origin:
                continue
            origin[column] = (at, before)
            if lack_columns[column] > 0:
                lack_columns[column] -= 1
                _flip(column, origin, up)
                return True
            queue += [(other, column) for other in np.flatnonzero(up[:, column]).tolist()]
    return False


def _flip(column: int, origin: dict[int, tuple[int, int]], up: np.ndarray) -> None:
    while column >= 0:
        row, before = origin[column]
        up[row, column] = True
        if before >= 0:
            up[row, before] = False
        column = before

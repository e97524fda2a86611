"""Which rows are held out for the test, and how alike the two parts are."""

import numpy as np
from scipy.sparse import issparse

from fedloom.data.dataset import Features
from fedloom.errors import DataError
from fedloom.rng import stream

MARKED = 1 << 22  # bytes of rows looked at together


def stratified(labels: np.ndarray, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the training and of the test part, int64, ascending and disjoint.

    Every class gives `share` of its rows, rounded so that the whole comes nearest to `share`; a
    class always keeps a row to train on. Raises DataError when no row can be spared.

    >>> [len(part) for part in stratified(np.arange(100) % 2, share=0.25, seed=0)]
    [75, 25]
    """
    counts = np.bincount(labels)  # [C]
    exact = share * counts
    take = np.minimum(np.floor(exact), np.maximum(counts - 1, 0)).astype(np.int64)  # [C]
    short = round(share * len(labels)) - int(take.sum())
    for place in np.argsort(-(exact - take), kind="stable")[: max(short, 0)]:
        take[place] += take[place] + 1 < counts[place]
    if take.sum() == 0:
        raise DataError(
            f"no row can be held out: {share} of {len(labels)} rows in {len(counts)} classes; "
            "raise test_share or give a test file"
        )
    shuffled = stream(seed, "data", "holdout").permutation(len(labels))
    by_class = shuffled[np.argsort(labels[shuffled], kind="stable")]
    starts = np.cumsum(counts) - counts
    rank = np.arange(len(labels)) - np.repeat(starts, counts)
    held = rank < np.repeat(take, counts)
    return np.sort(by_class[~held]), np.sort(by_class[held])


def random(rows: int, num_train: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A plain random cut: `num_train` rows and the others, ascending."""
    shuffled = stream(seed, "data", "holdout").permutation(rows)
    return np.sort(shuffled[:num_train]), np.sort(shuffled[num_train:])


def _keys(x: Features) -> list[bytes]:
    if not issparse(x):
        return [row.tobytes() for row in x]
    pairs = zip(x.indptr[:-1], x.indptr[1:], strict=True)
    return [x.indices[a:b].tobytes() + x.data[a:b].tobytes() for a, b in pairs]


def repeated(x_train: Features, x_test: Features) -> int:
    """Test rows whose features equal those of some training row, to the bit."""
    test = _keys(x_test)
    wanted = set(test)
    if issparse(x_train):
        seen = wanted.intersection(_keys(x_train))
    else:
        marks = np.sort(_marks(x_test))
        candidates = []
        step = max(1, MARKED // max(1, x_train[:1].nbytes))
        for start in range(0, len(x_train), step):
            block = x_train[start : start + step]
            found = _marks(block)
            place = np.searchsorted(marks, found).clip(max=len(marks) - 1)
            candidates.append(start + np.flatnonzero(marks[place] == found))
        seen = wanted.intersection(_keys(x_train[np.concatenate(candidates)]))
    return sum(key in seen for key in test)


def _marks(x: np.ndarray) -> np.ndarray:
    """uint64 [n], the same for equal rows and seldom for others: a random sum of their bytes."""
    flat = np.ascontiguousarray(x).reshape(len(x), -1)
    words = flat.view(np.uint32 if flat.strides[0] % 4 == 0 else np.uint8)
    return words @ stream(0, "marks").randint(2**62, size=words.shape[1]).astype(np.uint64)


def remarks(
    x_train: Features,
    x_test: Features,
    y_train: np.ndarray,
    y_test: np.ndarray,
    classes: tuple[str, ...],
) -> tuple[str, ...]:
    """Sentences on rows that both parts share and on classes that one of them lacks."""
    notes = []
    if same := repeated(x_train, x_test):
        notes.append(f"{same} of {x_test.shape[0]} test rows have the features of a training row")
    for part, labels in (("training", y_train), ("test", y_test)):
        counts = np.bincount(labels, minlength=len(classes))
        if absent := [classes[c] for c in np.flatnonzero(counts == 0)]:
            notes.append(f"no {part} rows of class {some(absent)}")
    return tuple(notes)


def some(names: list[str] | tuple[str, ...], most: int = 8) -> str:
    """The first few names, quoted, and how many more there are."""
    shown = ", ".join(map(repr, names[:most]))
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def client_remarks(
    train: np.ndarray | None, test: np.ndarray | None, groups: tuple[str, ...]
) -> tuple[str, ...]:
    """Sentences on clients that only one part knows."""
    if train is None or test is None:
        return ()
    in_train = np.isin(np.arange(len(groups)), train)
    in_test = np.isin(np.arange(len(groups)), test)
    notes = []
    if only := [groups[i] for i in np.flatnonzero(in_test & ~in_train)]:
        notes.append(f"{len(only)} clients are seen only in the test rows: {some(only)}")
    if only := [groups[i] for i in np.flatnonzero(in_train & ~in_test)]:
        notes.append(f"{len(only)} clients have no test rows: {some(only)}")
    return tuple(notes)

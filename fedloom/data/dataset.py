"""A data set in memory: features, labels, classes, and what was done to make them."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy.sparse import csr_matrix, issparse

from fedloom.errors import DataError

Features: TypeAlias = Any
"""`numpy.ndarray` or `scipy.sparse.csr_matrix`, [n, ...]; their types share no common base."""

_BLOCK = 1 << 22


@dataclass(frozen=True, eq=False)
class Dataset:
    """Examples and labels for training and for the test, checked once and read-only from then on.

    Images are uint8 (0 to 255) or float32 [n, channels, height, width]; tables are float32 [n, d],
    dense or CSR. Labels are int64 [n], positions in `classes`. `groups_train` and `groups_test` are
    int64 [n], positions in `groups`: the natural clients (writers, a client column), in one table
    for both parts. No array is copied unless its type has to change.

    Raises DataError where the parts don't fit together.
    """

    name: str
    x_train: Features
    y_train: np.ndarray
    x_test: Features
    y_test: np.ndarray
    classes: tuple[str, ...]
    kind: Literal["image", "table"]
    groups_train: np.ndarray | None = None
    groups_test: np.ndarray | None = None
    groups: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    test_rule: str = "official test part"
    notes: tuple[str, ...] = ()
    source: str = ""

    def __post_init__(self) -> None:
        for part in ("train", "test"):
            x = _features(getattr(self, f"x_{part}"), f"{self.name}: x_{part}")
            rows = x.shape[0]
            y = _positions(getattr(self, f"y_{part}"), rows, len(self.classes), self.name, "labels")
            object.__setattr__(self, f"x_{part}", x)
            object.__setattr__(self, f"y_{part}", y)
            ids = getattr(self, f"groups_{part}")
            if ids is not None:
                ids = _positions(ids, rows, len(self.groups), self.name, "client ids")
                object.__setattr__(self, f"groups_{part}", ids)
        self._check()

    def _check(self) -> None:
        for what, names in (("classes", self.classes), ("groups", self.groups)):
            if len(set(names)) != len(names):
                raise DataError(f"{self.name}: {what} must differ from each other")
        if self.num_train == 0 or self.num_test == 0:
            raise DataError(
                f"{self.name}: {self.num_train} training and {self.num_test} test rows; "
                "both parts need at least one"
            )
        train, test = self.x_train, self.x_test
        if train.shape[1:] != test.shape[1:] or train.dtype != test.dtype:
            raise DataError(
                f"{self.name}: training rows are {train.dtype} {train.shape[1:]}, "
                f"test rows {test.dtype} {test.shape[1:]}; they must be alike"
            )
        expected = 4 if self.kind == "image" else 2
        if train.ndim != expected:
            raise DataError(
                f"{self.name}: an {self.kind} set needs {expected} axes, got {train.ndim}"
            )
        if self.features and len(self.features) != train.shape[1]:
            raise DataError(
                f"{self.name}: {len(self.features)} names for {train.shape[1]} features"
            )

    @property
    def num_train(self) -> int:
        """Training rows."""
        return int(self.x_train.shape[0])

    @property
    def num_test(self) -> int:
        """Test rows."""
        return int(self.x_test.shape[0])

    @property
    def num_classes(self) -> int:
        """Classes, those without rows included."""
        return len(self.classes)

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of one example: (channels, height, width) or (d,)."""
        return tuple(int(size) for size in self.x_train.shape[1:])

    @property
    def is_sparse(self) -> bool:
        """Whether the features are CSR matrices."""
        return bool(issparse(self.x_train))

    @cached_property
    def digest(self) -> str:
        """Hexadecimal sha256 over arrays, labels, class names and client ids."""
        state = hashlib.sha256(repr((self.kind, self.classes, self.groups)).encode())
        for part in ("train", "test"):
            x, y = getattr(self, f"x_{part}"), getattr(self, f"y_{part}")
            ids = getattr(self, f"groups_{part}")
            pieces = [x.data, x.indices, x.indptr] if self.is_sparse else [x]
            for array in (*pieces, y, *(() if ids is None else (ids,))):
                state.update(repr((part, array.dtype.str, array.shape)).encode())
                state.update(array.data)
        return state.hexdigest()


def _features(x: Any, what: str) -> Features:
    if issparse(x):
        sparse = csr_matrix(x, dtype=np.float32)
        sparse.sort_indices()
        require_finite(sparse.data, what)
        for array in (sparse.data, sparse.indices, sparse.indptr):
            array.flags.writeable = False
        return sparse
    dense = np.asarray(x)
    if dense.dtype != np.uint8:
        if dense.dtype.kind not in "fiub":
            raise DataError(f"{what}: numbers expected, got {dense.dtype}")
        dense = dense.astype(np.float32, copy=False)
        require_finite(dense, what)
    elif dense.ndim == 2:
        dense = dense.astype(np.float32)
    return _frozen(dense)


def require_finite(x: np.ndarray, what: str) -> None:
    """Raise DataError that counts NaN and infinite values; looks at a block of rows at a time."""
    width = int(np.prod(x.shape[1:], dtype=np.int64))
    step = max(1, _BLOCK // max(1, width))
    bad, first = 0, None
    for start in range(0, len(x), step):
        wrong = ~np.isfinite(x[start : start + step])
        if count := int(wrong.sum()):
            bad += count
            first = (
                (np.argwhere(wrong)[0] + [start, *[0] * (x.ndim - 1)]) if first is None else first
            )
    if first is not None:
        where = ", ".join(str(int(i) + 1) for i in first)
        raise DataError(
            f"{what}: {bad} NaN or infinite values, the first at position {where} (counted from "
            "1); clean them before loading"
        )


def _positions(values: Any, rows: int, size: int, name: str, what: str) -> np.ndarray:
    array = np.asarray(values)
    if array.shape != (rows,) or array.dtype.kind not in "iub":
        raise DataError(
            f"{name}: {what} must be whole numbers [{rows}], got {array.dtype} {array.shape}"
        )
    array = array.astype(np.int64, copy=False)
    if rows and not (int(array.min()) >= 0 and int(array.max()) < size):
        raise DataError(
            f"{name}: {what} run from {array.min()} to {array.max()}, expected 0 to {size - 1}"
        )
    return _frozen(array)


def _frozen(array: np.ndarray) -> np.ndarray:
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view

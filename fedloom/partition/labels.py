"""Labels and group ids of any usual type -> positions among their sorted distinct values."""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from fedloom.errors import PartitionError


def encode(values: Any, what: str = "labels") -> tuple[np.ndarray, np.ndarray]:
    """Positions int64 [n] in the sorted distinct values, and those values, int64 or text.

    Takes lists, arrays, tensors and columns [n, 1] of integers, booleans, text or integral floats.
    The result never shares memory with the input. Raises PartitionError for anything else.

    >>> encode(["b", "a", "b"])[0].tolist()
    [1, 0, 1]
    """
    array = _flat(values, what)
    if array.dtype.kind == "U":
        distinct, place = np.unique(array, return_inverse=True)
        return place.astype(np.int64).reshape(-1), distinct
    low, high = int(array.min()), int(array.max())
    if high - low > 4 * len(array) + 1_000_000:
        distinct, place = np.unique(array, return_inverse=True)
        return place.astype(np.int64).reshape(-1), distinct
    # Counting is several times faster than sorting, and labels are small integers.
    shifted = array - low if low else array
    present = np.bincount(shifted, minlength=high - low + 1) > 0
    place = np.cumsum(present, dtype=np.int64) - 1
    return place[shifted], np.flatnonzero(present).astype(np.int64) + low


def align(values: Any, classes: Sequence[int | str], what: str = "labels") -> np.ndarray:
    """Positions int64 [n] of the values in `classes`, compared as text; -1 for strangers."""
    place, distinct = encode(values, what)
    known = {str(name): position for position, name in enumerate(classes)}
    return np.array([known.get(str(name), -1) for name in distinct.tolist()], np.int64)[place]


def fingerprint(positions: np.ndarray) -> str:
    """SHA-256 of positions as little-endian int64."""
    return hashlib.sha256(np.ascontiguousarray(positions, dtype="<i8").data).hexdigest()


def _flat(values: Any, what: str) -> np.ndarray:
    """One dimension of int64 or text, not empty."""
    if hasattr(values, "detach"):  # a tensor, wherever it lies
        values = values.detach().cpu().numpy()
    try:
        array = np.asarray(values)
    except ValueError:
        raise PartitionError(
            f"{what} must be one flat list; its rows have unlike lengths"
        ) from None
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise PartitionError(f"{what} must have one dimension, not the shape {array.shape}")
    if not len(array):
        raise PartitionError(f"{what} are empty; there must be at least one row")
    return _plain(array, what)


def _plain(array: np.ndarray, what: str) -> np.ndarray:
    if array.dtype.kind == "O":
        array = _from_objects(array, what)
    if array.dtype.kind == "f":
        return _from_floats(array, what)
    if array.dtype.kind == "U":
        return array
    if array.dtype.kind not in "biu":
        raise PartitionError(f"{what} must be integers or text, not {array.dtype}")
    if array.dtype.kind == "u" and int(array.max()) > np.iinfo(np.int64).max:
        raise PartitionError(f"{what} hold {array.max()}, which is beyond 64-bit integers")
    return array.astype(np.int64, copy=False)


def _from_objects(array: np.ndarray, what: str) -> np.ndarray:
    kinds = {type(value) for value in array.tolist()}
    if all(issubclass(kind, str) for kind in kinds):
        return array.astype(str)
    if all(issubclass(kind, int | float | np.integer | np.floating) for kind in kinds):
        return np.array(array.tolist())
    names = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise PartitionError(f"{what} must be all integers or all text, but they are: {names}")


def _from_floats(array: np.ndarray, what: str) -> np.ndarray:
    if bad := int(np.isnan(array).sum()):
        row = int(np.flatnonzero(np.isnan(array))[0])
        raise PartitionError(f"{what} are missing (NaN) in {bad} rows, first in row {row}")
    odd = ~np.isfinite(array) | (array != np.floor(array)) | (np.abs(array) >= 2.0**63)
    if odd.any():
        row = int(np.flatnonzero(odd)[0])
        raise PartitionError(f"{what} must be whole numbers, but row {row} holds {array[row]}")
    return array.astype(np.int64)

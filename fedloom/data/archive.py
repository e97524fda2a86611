"""NPZ files: plain arrays only, damage named, CSR matrices in their three parts."""

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix

from fedloom.errors import DataError, nearest


class Archive:
    """The arrays of one NPZ file, read when asked for; never unpickles."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with _translated(path):
            loaded = np.load(path, allow_pickle=False)
        if not isinstance(loaded, np.lib.npyio.NpzFile):
            raise DataError(f"{path}: expected an NPZ archive (numpy.savez), got a single array")
        self._file = loaded
        self.names: tuple[str, ...] = tuple(loaded.files)

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self.names:
            raise DataError(f"{self.path}: no array {name!r}; {nearest(name, self.names)}")
        with _translated(self.path, name):
            return np.asarray(self._file[name])

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


@contextmanager
def _translated(path: Path, name: str = "") -> Iterator[None]:
    where = f"{path}: array {name!r}" if name else str(path)
    try:
        yield
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except (zipfile.BadZipFile, EOFError, zlib.error, OSError, NotImplementedError) as error:
        raise DataError(f"{where}: damaged or incomplete ({error})") from None
    except ValueError as error:
        if "pickle" in str(error).lower():
            raise DataError(
                f"{where}: object arrays are not accepted; store numbers or fixed-width text"
            ) from None
        raise DataError(f"{where}: damaged or incomplete ({error})") from None


def has_features(archive: Archive, part: str) -> bool:
    """Whether the archive holds features for "", "_train" or "_test", dense or sparse."""
    return f"x{part}" in archive or f"indptr{part}" in archive


def features(archive: Archive, part: str, width: int | None = None) -> np.ndarray | csr_matrix:
    """Array `x` + part, or the CSR matrix of `data`, `indices` and `indptr` + part.

    `width` is the number of columns of a CSR matrix; without it the array `num_features` says it.
    """
    if f"x{part}" in archive:
        return archive[f"x{part}"]
    data, indices = archive[f"data{part}"], archive[f"indices{part}"]
    indptr = archive[f"indptr{part}"]
    if width is None:
        width = int(archive["num_features"])
    sound = (
        indptr.ndim == indices.ndim == data.ndim == 1
        and indptr.dtype.kind in "iu"
        and indices.dtype.kind in "iu"
        and len(indptr) > 0
        and int(indptr[0]) == 0
        and bool((np.diff(indptr.astype(np.int64)) >= 0).all())
        and int(indptr[-1]) == len(indices) == len(data)
        and (len(indices) == 0 or (int(indices.min()) >= 0 and int(indices.max()) < width))
    )
    if not sound:
        raise DataError(
            f"{archive.path}: data{part}, indices{part} and indptr{part} are not a CSR matrix of "
            f"{width:,} columns"
        )
    matrix = csr_matrix((data.astype(np.float32), indices, indptr), shape=(len(indptr) - 1, width))
    matrix.sum_duplicates()
    return matrix

"""Objects to bytes and back between processes of one program: tensors whole, data sets by file.

Only for pipes to processes that this one started; nothing that is stored is ever read this way.
"""

import io
import pickle
import tempfile
import weakref
from pathlib import Path
from shutil import rmtree
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedloom.clients.examples import Examples


class Shelf:
    """A temporary folder with one copy of each data set, mapped into memory by all who read it."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="fedloom-"))
        self._files: dict[int, str] = {}
        self._kept: list[np.ndarray] = []
        self._end = weakref.finalize(self, rmtree, self.path, True)

    def put(self, array: np.ndarray) -> str:
        """The path of a file with this array's values, written once."""
        if id(array) not in self._files:
            path = self.path / f"{len(self._files)}.npy"
            np.save(path, array, allow_pickle=False)
            self._files[id(array)] = str(path)
            self._kept.append(array)
        return self._files[id(array)]

    def clear(self) -> None:
        """Remove the folder."""
        self._end()


def dumps(value: Any, shelf: Shelf | None = None) -> bytes:
    """The bytes of a value; its data sets go to the shelf."""
    buffer = io.BytesIO()
    _Pickler(buffer, shelf).dump(value)
    return buffer.getvalue()


def loads(data: bytes) -> Any:
    """The inverse of `dumps`."""
    return pickle.loads(data)


class _Pickler(pickle.Pickler):
    def __init__(self, buffer: io.BytesIO, shelf: Shelf | None) -> None:
        super().__init__(buffer, protocol=pickle.HIGHEST_PROTOCOL)
        self._shelf = shelf

    def reducer_override(self, value: Any) -> Any:
        """Tensors as plain arrays, examples as mapped files, all else as usual."""
        if type(value) is Tensor:
            return _tensor, _parts(value)
        if isinstance(value, Examples) and self._shelf is not None:
            return _examples, (self._stored(value.x), self._shelf.put(value.y.numpy()))
        return NotImplemented

    def _stored(self, x: Any) -> Any:
        assert self._shelf is not None
        if isinstance(x, Tensor):
            return self._shelf.put(x.numpy())
        return (*(self._shelf.put(part) for part in (x.data, x.indices, x.indptr)), x.shape)


def _parts(value: Tensor) -> tuple[np.ndarray, torch.dtype, tuple[int, ...], tuple[int, ...]]:
    """(bytes in memory order, dtype, shape, strides): kernels may round by layout, so it's kept."""
    value = value.detach()
    strides = value.stride()
    order = sorted(range(value.dim()), key=lambda axis: -strides[axis])
    dense = value.permute(order)
    if not dense.is_contiguous():
        value = dense = value.contiguous()
    flat = dense.reshape(-1).view(torch.uint8).numpy()
    return flat, value.dtype, tuple(value.shape), tuple(value.stride())


def _tensor(
    flat: np.ndarray, dtype: torch.dtype, shape: tuple[int, ...], strides: tuple[int, ...]
) -> Tensor:
    return torch.from_numpy(flat).view(dtype).as_strided(shape, strides)


def _examples(x: Any, y: str) -> Examples:
    if isinstance(x, str):
        return Examples(np.load(x, mmap_mode="r"), np.load(y, mmap_mode="r"))
    import scipy.sparse

    *paths, shape = x
    data, indices, indptr = (np.load(path, mmap_mode="r") for path in paths)
    return Examples(
        scipy.sparse.csr_matrix((data, indices, indptr), shape, copy=False),
        np.load(y, mmap_mode="r"),
    )

"""Named tensors and their description in one safetensors file, with a hash over all of it.

Nothing here unpickles, so no file can run code.
"""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from fedloom import files
from fedloom.errors import RunDirectoryError
from fedloom.types import Params

HEADER_LIMIT = 100_000_000
"""Bytes; the longest header that readers of the format accept."""

RESERVED = "__metadata__"
OURS = "fedloom "

DTYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}


class Content(NamedTuple):
    """What a file holds."""

    tensors: Params
    info: dict[str, str]
    """The description stored beside the tensors; without the hash, where the file is ours."""


def write(path: Path, tensors: Params, info: dict[str, str]) -> None:
    """Write the file whole or not at all; tensors may share memory and lie on any device.

    `info["kind"]` begins with "fedloom ".

    Raises RunDirectoryError when there is no room, TypeError for a tensor that can't be stored.
    """
    table = _table(tensors)
    digest = hashlib.sha256(_sealed(table, info))
    for data in _data(tensors):
        digest.update(data)
    header = _json({RESERVED: info | {"sha256": digest.hexdigest()}, **table})
    header += b" " * (-len(header) % 8)
    if len(header) > HEADER_LIMIT:
        raise RunDirectoryError(
            f"can't write {path}: {len(tensors)} tensors need a header of {len(header)} bytes, "
            f"more than the {HEADER_LIMIT} of the format; keep fewer, larger tensors"
        )
    size = 8 + len(header) + sum(leaf.numel() * leaf.element_size() for leaf in tensors.values())
    files.write_atomic(path, _parts(header, tensors), size)


def read(path: Path) -> Content:
    """Read a file and check its hash. Raises RunDirectoryError that says what is wrong with it."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise RunDirectoryError(f"can't read {path}: {error.strerror}") from None
    if is_pickle(data):
        raise RunDirectoryError(
            f"{path} is refused: it is a pickle, as torch.save makes, and opening one can run any "
            "code; give a .safetensors file"
        )
    try:
        tensors = safetensors.torch.load(data)
        length = int.from_bytes(data[:8], "little")
        table = json.loads(data[8 : 8 + length])
    except (SafetensorError, ValueError, KeyError, RecursionError) as error:
        raise RunDirectoryError(
            f"{path} is damaged: expected a whole safetensors file, but {error}"
        ) from None
    info = table.pop(RESERVED, {})
    if info.get("kind", "").startswith(OURS):
        expected = info.pop("sha256", None)
        digest = hashlib.sha256(_sealed(table, info))
        digest.update(memoryview(data)[8 + length :])
        if digest.hexdigest() != expected:
            raise RunDirectoryError(f"{path} is damaged: its content doesn't match its sha256")
    return Content({name: tensors[name] for name in table}, info)


def is_pickle(data: bytes) -> bool:
    """Whether these bytes begin as a pickle or as the archive that torch.save makes."""
    if data[8:9] == b"{":  # the ninth byte of safetensors, whose first eight can be any number
        return False
    return data[:4] == b"PK\x03\x04" or (data[:1] == b"\x80" and data[1:2] in b"\x02\x03\x04\x05")


def _table(tensors: Params) -> dict[str, Any]:
    table: dict[str, Any] = {}
    at = 0
    for name, leaf in tensors.items():
        if name == RESERVED:
            raise TypeError(f"a tensor can't be named {RESERVED!r}; the file format uses that name")
        if not isinstance(leaf, Tensor) or leaf.layout != torch.strided or leaf.dtype not in DTYPES:
            kind = (
                f"{leaf.layout} {leaf.dtype}" if isinstance(leaf, Tensor) else type(leaf).__name__
            )
            raise TypeError(f"{name!r} is {kind}; expected a dense tensor of real numbers or bools")
        end = at + leaf.numel() * leaf.element_size()
        shape = list(leaf.shape)
        table[name] = {"dtype": DTYPES[leaf.dtype], "shape": shape, "data_offsets": [at, end]}
        at = end
    return table


def _sealed(table: dict[str, Any], info: dict[str, str]) -> bytes:
    return _json([info, [[name, entry] for name, entry in table.items()]])


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8")


def _parts(header: bytes, tensors: Params) -> Iterator[files.Buffer]:
    yield len(header).to_bytes(8, "little")
    yield header
    yield from _data(tensors)


def _data(tensors: Params) -> Iterator[memoryview]:
    for leaf in tensors.values():
        if leaf.numel():
            flat = leaf.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
            yield flat.numpy().data

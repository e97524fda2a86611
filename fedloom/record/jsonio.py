"""JSON that every strict reader accepts: UTF-8, no NaN or Infinity, written whole or not at all."""

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date
from enum import Enum
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import torch

from fedloom import files
from fedloom.errors import RunDirectoryError
from fedloom.spec import Spec


def plain(value: Any, where: str = "value") -> Any:
    """The same value in JSON's own types.

    A number that is not finite becomes None; NumPy and torch scalars keep full precision; arrays
    become lists, paths and specifications text, dataclasses objects. `where` names the value in
    errors.

    >>> plain({"loss": float("nan"), "n": np.int64(3), "w": torch.tensor([0.5])})
    {'loss': None, 'n': 3, 'w': [0.5]}

    Raises TypeError for anything else, and for sets, whose order is no part of a result.
    """
    if isinstance(value, Enum):
        return plain(value.value, where)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, list | tuple):
        return [plain(item, f"{where}[{i}]") for i, item in enumerate(value)]
    return _convert(value, where)


def _convert(value: Any, where: str) -> Any:
    if isinstance(value, Spec | PurePath):
        return plain(str(value), where)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, torch.Tensor):
        return plain(value.detach().cpu().tolist(), where)
    if isinstance(value, np.generic | np.ndarray) and value.dtype.kind in "biufU":
        return plain(value.tolist(), where)
    return _object(value, where)


def _object(value: Any, where: str) -> dict[str, Any]:
    if is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if not isinstance(value, Mapping):
        raise TypeError(f"{where} is a {type(value).__name__}, which JSON can't hold")
    result: dict[str, Any] = {}
    for key, item in value.items():
        if isinstance(key, bool) or not isinstance(key, str | int | np.integer):
            raise TypeError(
                f"{where} has the key {key!r}; JSON takes text, or whole numbers as text"
            )
        name = plain(str(key))
        if name in result:
            raise TypeError(f"{where} has two keys that read {name!r}")
        result[name] = plain(item, f"{where}.{name}")
    return result


def dumps(value: Any, *, indent: int | None = None) -> str:
    """`value` as strict JSON text, non-ASCII characters as they are."""
    return json.dumps(plain(value), ensure_ascii=False, allow_nan=False, indent=indent)


def loads(text: str | bytes, where: str = "JSON text") -> Any:
    """Read strict JSON; `where` names the source in errors.

    Raises RunDirectoryError for NaN, Infinity, a key given twice, or text that is cut or not UTF-8.
    """
    try:
        decoded = text.decode("utf-8") if isinstance(text, bytes) else text
        return json.loads(
            decoded, parse_constant=_refuse, parse_float=_finite, object_pairs_hook=_once
        )
    except (ValueError, RecursionError) as error:
        raise RunDirectoryError(
            f"{where} is damaged: expected strict JSON in UTF-8, but {error}"
        ) from None


def _refuse(word: str) -> None:
    raise ValueError(f"it holds {word}")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is out of range")
    return number


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        names = [key for key, _ in pairs]
        twice = next(key for key in names if names.count(key) > 1)
        raise ValueError(f"the key {twice!r} is given twice")
    return result


def write(path: Path, value: Any) -> None:
    """Put `value` at `path` as indented strict JSON, whole or not at all."""
    data = (dumps(value, indent=2) + "\n").encode("utf-8")
    files.write_atomic(path, [data], len(data))


def read(path: Path) -> Any:
    """Read a strict JSON file. Raises RunDirectoryError that names a missing or damaged file."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise RunDirectoryError(f"can't read {path}: {error.strerror}") from None
    return loads(data, str(path))


def read_object(path: Path) -> dict[str, Any]:
    """Read a strict JSON file that holds an object, `{...}`."""
    value = read(path)
    if not isinstance(value, dict):
        raise RunDirectoryError(
            f"{path} is damaged: expected a JSON object, got {type(value).__name__}"
        )
    return value

"""Configuration files: TOML, or JSON. Formats that can build objects are refused, not read."""

import json
import tomllib
from pathlib import Path
from typing import Any

from fedloom.errors import ConfigError

REFUSED = {
    ".yaml": "YAML reads 1e-3 as text and can carry tags that build objects",
    ".yml": "YAML reads 1e-3 as text and can carry tags that build objects",
    ".json5": "JSON5 has no strict reader",
    ".pkl": "a pickle can run code when it is read",
    ".pickle": "a pickle can run code when it is read",
    ".pt": "a torch file can hold a pickle, which can run code when it is read",
    ".pth": "a torch file can hold a pickle, which can run code when it is read",
    ".py": "a Python file is a program; call fedloom.run from it",
}


def read(path: str | Path) -> dict[str, Any]:
    """The keys and values of a .toml or .json file.

    Raises ConfigError, naming the file, for anything else.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in (".toml", ".json"):
        reason = REFUSED.get(suffix, f"files ending in {suffix!r} are not known")
        raise ConfigError(f"{path}: {reason}; write the configuration as TOML (NAME.toml)")
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{path}: can't be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: expected UTF-8 text, found other bytes") from None
    return json_object(text, str(path)) if suffix == ".json" else _toml(text, str(path))


def json_object(text: str, where: str) -> dict[str, Any]:
    """A JSON object, strictly: no NaN, no key twice."""
    try:
        value = json.loads(text, parse_constant=_refuse, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{where}: not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise ConfigError(f"{where}: expected one JSON object with settings, found something else")
    return value


def _toml(text: str, where: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text.replace("\r\n", "\n"))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{where}: not valid TOML: {error}") from None


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is not a JSON value")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        names = [key for key, _ in pairs]
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(f"key given twice: {', '.join(twice)}")
    return result

"""Reading one value of the configuration, whichever way it was written: text, number or table."""

import math
import os
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, get_origin

from fedloom.config_keys import SPECS, base_type, choices
from fedloom.errors import ConfigError
from fedloom.spec import Spec, parse

TRUE = ("true", "yes", "on", "1")
FALSE = ("false", "no", "off", "0")


def read(name: str, value: Any, annotation: Any) -> Any:
    """The value of setting `name` as the type it is stored as.

    Raises ValueError when it can't be read that way; ranges are checked elsewhere.
    """
    base = base_type(annotation)
    optional = base is not annotation
    if value is None and optional:
        return None
    if optional and base is not str and isinstance(value, str) and value.lower() == "none":
        return None
    if name in SPECS:
        return spec_text(value, name)
    if choices(annotation):
        return _word(value, choices(annotation))
    readers = {int: whole, float: number, bool: truth, str: text}
    return readers.get(get_origin(base) or base, text)(value)


def whole(value: Any) -> int:
    """A whole number: 3, 3.0, "3" and "3e2", but never true, 3.5 or "three"."""
    if isinstance(value, bool):
        raise ValueError("true and false are not numbers")
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, str) and value.strip().lstrip("+-").isdecimal():
        return int(value)
    as_float = number(value)
    if not as_float.is_integer():
        raise ValueError("not a whole number")
    return int(as_float)


def number(value: Any) -> float:
    """A finite number: 0.001, 1, "1e-3", but never true, nan or "fast"."""
    if isinstance(value, bool) or not isinstance(value, Real | str):
        raise ValueError("not a number")
    if isinstance(value, str) and "_" in value:
        raise ValueError("not a number")
    try:
        result = float(value)
    except OverflowError:
        raise ValueError("too large") from None
    if not math.isfinite(result):
        raise ValueError("not finite")
    return result


def truth(value: Any) -> bool:
    """True or False from a boolean or from one of the usual words; anything else is refused."""
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word in TRUE:
        return True
    if word in FALSE:
        return False
    raise ValueError("neither true nor false")


def text(value: Any) -> str:
    """Text; a path and a whole number (a column's position) count as text."""
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, Integral) and not isinstance(value, bool):
        value = str(int(value))
    if not isinstance(value, str) or not value:
        raise ValueError("not text, or empty")
    return value


def spec_text(value: Any, what: str) -> str:
    """The one way to write a specification: text, `Spec` or a table with a `name` -> text.

    >>> spec_text({"name": "FedProx", "mu": 1e-3}, "method")
    'fedprox(mu=0.001)'
    """
    if isinstance(value, Mapping):
        options = dict(value)
        name = options.pop("name", None)
        if not isinstance(name, str):
            raise ValueError(f'the table [{what}] needs name = "..."')
        value = Spec(_with_case(name, what).name, options)
    if not isinstance(value, str | Spec):
        raise ValueError("not text")
    try:
        written = str(_with_case(value, what))
        parse(written, what)
    except ConfigError as error:
        raise ValueError(str(error)) from None
    except (TypeError, MemoryError, RecursionError):
        raise ValueError(f"can't read {what} {value!r}") from None
    return written


def _with_case(value: str | Spec, what: str) -> Spec:
    """The specification read; the dotted path of a class keeps its capital letters."""
    path = value.name if isinstance(value, Spec) else value.partition("(")[0].strip()
    read = parse(value, what)
    return Spec(path, read.options) if "." in path or ":" in path else read


def _word(value: Any, words: tuple[str, ...]) -> str:
    plain = str(value).strip().lower().replace("-", "_")
    if plain not in words:
        raise ValueError("not one of the choices")
    return plain

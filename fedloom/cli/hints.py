"""Advice in messages, which names Python's keywords, also as flags of the command line."""

import re

from fedloom.config import RunConfig

_ADVICE = re.compile(r"\b(?:set|or|use|with|also) (\w+)=(?:'([^']+)'|(\w+))")
_MODE = re.compile(r"\((resume|overwrite)\)")


def with_flags(message: str) -> str:
    """The message with the flags that do what it advises.

    >>> with_flags("delete it (overwrite), or set separator=tab")
    'delete it (--overwrite), or set separator=tab (--separator tab)'
    """
    message = _MODE.sub(r"(--\1)", message)
    flags = [
        f"--{key.replace('_', '-')} {_quoted(quoted or plain)}"
        for key, quoted, plain in _ADVICE.findall(message)
        if key in RunConfig.model_fields
    ]
    return f"{message} ({', '.join(dict.fromkeys(flags))})" if flags else message


def _quoted(value: str) -> str:
    """The value as a shell takes it."""
    return value if re.fullmatch(r"[\w.:/-]+", value) else f'"{value}"'

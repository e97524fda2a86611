"""What a person may say about a data file, checked before anything is read."""

import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from fedloom.errors import ConfigError, nearest


@dataclass(frozen=True)
class Options:
    """How to read a data set of one's own.

    label: label column of a table, or name of the label array of an NPZ file.
    client: column (array) of client ids; None when there is none.
    test: second file (folder) that holds the test rows.
    test_share: share of the rows held out, stratified by class, where no test part is given.
    missing: what to do with blank, NA, NaN and infinite cells. "drop" leaves out their rows,
        "impute" fills in the training mean (most frequent value of a category).
    separator, decimal: column separator (one character or "tab") and decimal mark of text files.
    seed: seed of every random choice made here: held-out rows, generated sets.
    scale: "standard" gives numeric columns mean 0 and standard deviation 1 over the training rows;
        constant columns become 0.
    categorical: "onehot" turns every text column into one column per value seen in training.
    ignore: columns that are left out.
    size: height and width that all pictures are resized to; one number for a square.
    bad_files: "skip" leaves out unreadable pictures and empty classes of an image folder.

    Raises ConfigError for a value outside its range.
    """

    label: str | None = None
    client: str | None = None
    test: str | os.PathLike[str] | None = None
    test_share: float = 0.2
    missing: Literal["refuse", "drop", "impute"] = "refuse"
    separator: str | None = None
    decimal: str = "."
    seed: int = 0
    scale: Literal["none", "standard"] = "none"
    categorical: Literal["refuse", "onehot"] = "refuse"
    ignore: tuple[str, ...] = ()
    size: int | tuple[int, int] | None = None
    bad_files: Literal["refuse", "skip"] = "refuse"

    def __post_init__(self) -> None:
        choices = {
            "missing": ("refuse", "drop", "impute"),
            "scale": ("none", "standard"),
            "categorical": ("refuse", "onehot"),
            "bad_files": ("refuse", "skip"),
            "decimal": (".", ","),
        }
        for key, allowed in choices.items():
            value = getattr(self, key)
            if value not in allowed:
                raise ConfigError(f"{key}={value!r}: {nearest(str(value), allowed)}")
        if not 0 < self.test_share < 1:
            raise ConfigError(f"test_share={self.test_share}: expected more than 0 and less than 1")
        ignore = (self.ignore,) if isinstance(self.ignore, str) else tuple(self.ignore)
        object.__setattr__(self, "ignore", ignore)
        object.__setattr__(self, "separator", _separator(self.separator, self.decimal))
        object.__setattr__(self, "size", _size(self.size))
        if self.test is not None and self.test_share != Options.test_share:
            raise ConfigError("test and test_share exclude each other; give one of them")

    @property
    def test_path(self) -> Path | None:
        """The test file as a path."""
        return None if self.test is None else Path(self.test)

    def given(self, *allowed: str) -> tuple[str, ...]:
        """Names of options that differ from their defaults and aren't among `allowed`."""
        return tuple(
            item.name
            for item in fields(self)
            if item.name not in allowed and getattr(self, item.name) != item.default
        )

    def only(self, what: str, *allowed: str) -> None:
        """Raise ConfigError when an option was set that has no meaning for `what`."""
        if extra := self.given(*allowed):
            raise ConfigError(
                f"{what}: {', '.join(extra)} can't be used here; "
                f"options that can: {', '.join(allowed) or 'none'}"
            )


def options(settings: dict[str, Any]) -> Options:
    """Keyword settings -> Options; an unknown key is refused with the nearest one."""
    known = [item.name for item in fields(Options)]
    for key in settings:
        if key not in known:
            raise ConfigError(f"unknown data option {key!r}; {nearest(key, known)}")
    return Options(**settings)


def _separator(value: str | None, decimal: str) -> str | None:
    if value is None:
        return None
    value = {"tab": "\t", "\\t": "\t"}.get(value, value)
    if len(value) != 1 or value in '\r\n"':
        raise ConfigError(f"separator={value!r}: expected one character, or 'tab'")
    if value == decimal:
        raise ConfigError(f"separator and decimal are both {value!r}; they must differ")
    return value


def _size(value: Any) -> tuple[int, int] | None:
    if value is None:
        return None
    pair = (value, value) if isinstance(value, int) else tuple(value)
    if len(pair) != 2 or not all(isinstance(side, int) and side > 0 for side in pair):
        raise ConfigError(f"size={value!r}: expected one whole number or (height, width)")
    return pair[0], pair[1]

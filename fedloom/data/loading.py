"""One door to every data set: embedded, by name, or a file or folder of one's own."""

import difflib
import os
from pathlib import Path
from typing import Any

from fedloom.data import arrays, images, named, table, tables
from fedloom.data.catalog import SETS as NAMED
from fedloom.data.dataset import Dataset
from fedloom.data.generated import SETS as GENERATED
from fedloom.data.options import Options, options
from fedloom.errors import ConfigError, DataError, nearest
from fedloom.spec import Spec, parse

READERS = {
    "csv": table.load,
    "tsv": table.load,
    "parquet": table.load,
    "npz": arrays.load,
    "folder": images.load,
}


def load(
    name_or_path: str | os.PathLike[str],
    *,
    data_dir: str | os.PathLike[str] | None = None,
    **settings: Any,
) -> Dataset:
    """Data set by name or path, checked, with everything that was done to it in `notes`.

    A name may carry options, as in `fcube(sign=-1)`. A path (CSV, TSV, Parquet, NPZ, image folder)
    is looked up from the working directory, then in `data_dir`, whose default is the environment
    variable FEDLOOM_DATA. `settings` are the fields of `Options`: label, client, test, test_share,
    missing, separator, decimal, seed, scale, categorical, ignore, size, bad_files.

    >>> data = load("fcube")
    >>> data.num_train, data.num_test, data.classes
    (4000, 1000, ('0', '1'))

    Raises DataError for data that can't be used, ConfigError for a setting that can't.
    """
    chosen = options(settings)
    folder = data_folder(data_dir)
    spec = named_spec(name_or_path)
    if spec is None:
        path = locate(name_or_path, folder)
        return READERS[tables.form(path)](path, chosen)
    chosen.only(f"data set {spec.name!r}", "seed")
    seed = {"seed": chosen.seed, **spec.options}
    if spec.name in NAMED:
        if extra := [key for key in spec.options if key != "seed"]:
            raise ConfigError(f"data set {spec.name!r} has no option {extra[0]!r}; Known: seed")
        return named.load(spec.name, folder, **seed)
    try:
        return GENERATED[spec.name](**seed)
    except TypeError:
        raise ConfigError(f"data set {spec}: unknown or unfit option") from None


def names() -> dict[str, str]:
    """Every data set known by name -> one line on what it is and where it comes from."""
    embedded = {name: _first_line(make) for name, make in GENERATED.items()}
    return embedded | {
        name: f"{known.source}; {_rows(known.rows)}" for name, known in NAMED.items()
    }


def _first_line(make: Any) -> str:
    return str(make.__doc__).splitlines()[0].rstrip(".") + "; embedded, needs no file"


def _rows(rows: tuple[int, int]) -> str:
    train, test = rows
    return f"{train:,} / {test:,} rows" if test else f"{train:,} rows, cut 75 / 25"


def data_folder(data_dir: str | os.PathLike[str] | None) -> Path | None:
    """`data_dir`, else FEDLOOM_DATA, else None. Raises DataError when it isn't a folder."""
    chosen = data_dir if data_dir is not None else os.environ.get("FEDLOOM_DATA") or None
    if chosen is None:
        return None
    folder = Path(chosen).expanduser()
    if not folder.is_dir():
        where = "data_dir" if data_dir is not None else "FEDLOOM_DATA"
        raise DataError(f"{folder}: no such folder (from {where})")
    return folder


def named_spec(name_or_path: str | os.PathLike[str]) -> Spec | None:
    """The name and options of a known data set, or None when it must be a path."""
    if not isinstance(name_or_path, str):
        return None
    text = name_or_path
    base = text.split("(", 1)[0].strip().lower().replace("-", "_")
    return parse(text, "data set") if base in NAMED or base in GENERATED else None


def locate(name_or_path: str | os.PathLike[str], folder: Path | None) -> Path:
    """An existing path, from the working directory or the data folder."""
    path = Path(name_or_path).expanduser()
    tried = [path] if folder is None or path.is_absolute() else [path, folder / path]
    for place in tried:
        if place.exists():
            return place
    text = os.fspath(name_or_path)
    if not any(mark in text for mark in "/\\."):
        known = nearest(text, names())
        raise ConfigError(f"unknown data set {text!r}; {known}. A file needs its path with ending")
    siblings = [item.name for item in path.parent.iterdir()] if path.parent.is_dir() else []
    close = difflib.get_close_matches(path.name, siblings, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise DataError(f"{' or '.join(map(str, tried))}: no such file or folder{hint}")


__all__ = ["Options", "data_folder", "load", "locate", "named_spec", "names"]

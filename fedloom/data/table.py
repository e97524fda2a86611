"""One's own table -> Dataset: label, clients, features, missing cells, held-out rows, scaling."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fedloom.data import columns, holdout, labels, prepare, tables
from fedloom.data.columns import Column
from fedloom.data.dataset import Dataset
from fedloom.data.options import Options
from fedloom.data.tables import RawTable
from fedloom.errors import DataError, nearest

ALLOWED = (
    "label", "client", "test", "test_share", "missing", "separator", "decimal", "seed",
    "scale", "categorical", "ignore",
)  # fmt: skip

LABEL_NAMES = ("label", "class", "target", "y")


@dataclass(frozen=True)
class Rows:
    """All rows of the training file, then of the test file; -1 is a missing label or id."""

    files: tuple[RawTable, ...]
    columns: tuple[Column, ...]
    y: np.ndarray
    classes: tuple[str, ...]
    ids: np.ndarray | None
    groups: tuple[str, ...]
    notes: tuple[str, ...]

    def where(self, row: int) -> str:
        """Words for a row of the joined files."""
        first = self.files[0]
        if row < first.num_rows:
            return first.where(row)
        return f"{self.files[1].where(row - first.num_rows)} of {self.files[1].path.name}"


def load(path: Path, options: Options) -> Dataset:
    """Read, check, split and scale a table. Raises DataError that names file, column and row."""
    options.only(str(path), *ALLOWED)
    rows = read(path, options)
    return prepare.dataset(rows, options)


def read(path: Path, options: Options) -> Rows:
    """Files -> coded columns, labels and client ids, nothing dropped yet."""
    files = [tables.read(path, options)]
    if options.test_path is not None:
        files.append(tables.read(options.test_path, options))
    label, notes = label_column(files[0], options)
    plan = _plan(files, label, options)
    joined = {name: _joined(files, name) for name in plan}
    names = [name for name in plan if name != options.client and name != label]
    shown = Rows(tuple(files), (), np.empty(0), (), None, (), ())
    read_columns = tuple(columns.read(joined[name], name, options.decimal) for name in names)
    y, classes, label_notes = _code(joined[label], f"{path}: label {label!r}", shown.where, True)
    ids: np.ndarray | None = None
    groups: tuple[str, ...] = ()
    id_notes: tuple[str, ...] = ()
    if options.client is not None:
        cells = joined[options.client]
        ids, groups, id_notes = _code(
            cells, f"{path}: client {options.client!r}", shown.where, False
        )
    told = [note for file in files for note in file.notes]
    told += [*notes, *_column_notes(files, label, options), *label_notes, *id_notes]
    return replace(
        shown, columns=read_columns, y=y, classes=classes, ids=ids, groups=groups, notes=tuple(told)
    )


def label_column(file: RawTable, options: Options) -> tuple[str, tuple[str, ...]]:
    """The label column, named or the only one that is called label, class, target or y."""
    label = options.label
    notes: tuple[str, ...] = ()
    if label is None:
        usual = [name for name in file.columns if name.lower() in LABEL_NAMES]
        if len(usual) != 1:
            raise DataError(
                f"{file.path}: which column is the label? Name it with label=...; "
                f"columns: {holdout.some(file.columns, 20)}"
            )
        label, notes = usual[0], (f"column {usual[0]!r} is taken as the label",)
    wanted = (
        ("label", label),
        ("client", options.client),
        *(("ignore", n) for n in options.ignore),
    )
    for what, name in wanted:
        if name is not None and name not in file.columns:
            raise DataError(
                f"{file.path}: no column {name!r} ({what}); {nearest(name, file.columns)}"
            )
    if label == options.client or {label, options.client} & set(options.ignore):
        raise DataError(f"{file.path}: label, client and ignore must name different columns")
    return label, notes


def _plan(files: Sequence[RawTable], label: str, options: Options) -> list[str]:
    kept = [name for name in files[0].columns if name not in options.ignore]
    if options.client is not None and options.client not in files[0].columns:
        raise DataError(
            f"{files[0].path}: no column {options.client!r} (client); "
            f"{nearest(options.client, files[0].columns)}"
        )
    if not [name for name in kept if name not in (label, options.client)]:
        raise DataError(f"{files[0].path}: no feature columns beside label and client")
    if len(files) == 2:
        absent = [n for n in kept if n not in files[1].columns and n != options.client]
        if absent:
            raise DataError(
                f"{files[1].path}: the test file lacks {holdout.some(absent)}, which "
                f"{files[0].path.name} has; columns are matched by name"
            )
    return kept


def _column_notes(files: Sequence[RawTable], label: str, options: Options) -> list[str]:
    notes = [f"columns left out as told: {holdout.some(options.ignore)}"] if options.ignore else []
    if len(files) == 2:
        first, second = files
        if extra := [n for n in second.columns if n not in first.columns]:
            notes.append(
                f"{second.path.name}: columns not in training, not used: {holdout.some(extra)}"
            )
        order = [n for n in second.columns if n in first.columns]
        if order != [n for n in first.columns if n in second.columns]:
            notes.append(f"{second.path.name}: columns stand in another order; matched by name")
        if options.client and options.client not in second.columns:
            notes.append(
                f"{second.path.name}: no column {options.client!r}; test rows belong to no client"
            )
    return notes


def _joined(files: Sequence[RawTable], name: str) -> pa.ChunkedArray:
    parts = [columns.plain_type(f.table.column(name)) for f in files if name in f.columns]
    if len({part.type for part in parts}) > 1:
        numeric = all(
            pa.types.is_integer(part.type) or pa.types.is_floating(part.type) for part in parts
        )
        parts = [part.cast(pa.float64() if numeric else pa.string()) for part in parts]
    return pa.chunked_array([chunk for part in parts for chunk in part.chunks], parts[0].type)


def _code(
    cells: pa.ChunkedArray, what: str, where: Callable[[int], str], is_label: bool
) -> tuple[np.ndarray, tuple[str, ...], tuple[str, ...]]:
    try:
        filled = columns.texts(cells, columns.MISSING_LABEL)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise DataError(f"{what}: type {cells.type} can't be a label or an id") from None
    values, inverse = columns.distinct(filled)
    if not values:
        raise DataError(f"{what}: every cell is blank")
    present = np.flatnonzero(inverse >= 0)
    codes = np.full(len(inverse), -1, dtype=np.int64)
    codes[present], names, notes = labels.code(
        values, inverse[present], what, lambda row: where(int(present[row])), is_label
    )
    return codes, names, notes


def missing_rows(cells: pa.ChunkedArray) -> int:
    """How many cells say that nothing is there."""
    return int(pc.sum(pc.is_null(columns.texts(cells))).as_py() or 0)

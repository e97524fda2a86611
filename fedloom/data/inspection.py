"""What was understood of a data set, for a person to look at before a run."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from fedloom.data import columns, loading, prepare, table, tables
from fedloom.data.dataset import Dataset
from fedloom.data.options import Options, options

if TYPE_CHECKING:
    from rich.console import RenderableType

MOST_SHOWN = 40


@dataclass(frozen=True)
class ColumnInfo:
    """One column of a table file."""

    name: str
    kind: str
    role: str
    missing: int
    sample: str


@dataclass(frozen=True)
class Inspection:
    """Rows, columns, classes and clients as a run would see them; rich can print it as it is.

    `classes` are (name, training rows, test rows), `clients` likewise. Without a label column there
    are columns only, and `data` is None.
    """

    source: str
    form: str
    num_train: int
    num_test: int
    shape: tuple[int, ...]
    columns: tuple[ColumnInfo, ...]
    classes: tuple[tuple[str, int, int], ...]
    clients: tuple[tuple[str, int, int], ...]
    test_rule: str
    notes: tuple[str, ...]
    data: Dataset | None

    def __rich_console__(self, console: Any, rule: Any) -> "Iterator[RenderableType]":
        yield from self.renderables()

    def renderables(self) -> "list[RenderableType]":
        """Tables and lines for rich, in reading order."""
        from rich.markup import escape

        shown: list[RenderableType] = [f"[bold]{escape(self.source)}[/bold] ({escape(self.form)})"]
        if self.data is not None:
            size = f" of {' x '.join(map(str, self.shape))}"
            if len(self.shape) == 1:
                size = f", {_count(self.shape[0], 'input columns')}"
            tests = _count(self.num_test, "test rows")
            shown.append(f"{self.num_train:,} training and {tests}{size}")
            shown.append(f"test part: {escape(self.test_rule)}")
        else:
            shown.append(_count(self.num_train, "rows"))
        cells = [(c.name, c.kind, c.role, f"{c.missing:,}", c.sample) for c in self.columns]
        if cells:
            shown += _grid("columns", ("column", "type", "use", "missing", "sample"), cells)
        for title, counts in (("classes", self.classes), ("clients", self.clients)):
            if counts:
                lines = [(name, f"{train:,}", f"{test:,}") for name, train, test in counts]
                shown += _grid(title, (title, "training", "test"), lines)
        if self.clients:
            shown.append(_summary(self.clients))
        return shown + [f"note: {escape(note)}" for note in self.notes]


def _count(number: int, plural: str) -> str:
    """`1 client`, `3 clients`."""
    one = plural.removesuffix("es") if plural == "classes" else plural.removesuffix("s")
    return f"{number:,} {one if number == 1 else plural}"


def _grid(
    title: str, header: tuple[str, ...], lines: Sequence[tuple[str, ...]]
) -> "list[RenderableType]":
    from rich.markup import escape
    from rich.table import Table

    more = f", the first {MOST_SHOWN} shown" if len(lines) > MOST_SHOWN else ""
    grid = Table()
    for place, name in enumerate(header):
        number = name in ("training", "test", "missing")
        grid.add_column(name, justify="right" if number and place else "left", overflow="fold")
    for line in lines[:MOST_SHOWN]:
        grid.add_row(*map(escape, line))
    return [f"{_count(len(lines), title)}{more}", grid]


def _summary(clients: tuple[tuple[str, int, int], ...]) -> str:
    sizes = np.array([train for _, train, _ in clients])
    return (
        f"training rows per client: {sizes.min():,} to {sizes.max():,}, "
        f"median {np.median(sizes):,.0f}; {_count(int((sizes == 0).sum()), 'clients')} without any"
    )


def inspect(
    name_or_path: str | os.PathLike[str],
    *,
    data_dir: str | os.PathLike[str] | None = None,
    **settings: Any,
) -> Inspection:
    """What `load` would make of the same arguments.

    A table without a label column is described by its columns alone. Raises what `load` raises.
    """
    chosen = options(settings)
    if loading.named_spec(name_or_path) is not None:
        return _of(
            loading.load(name_or_path, data_dir=data_dir, **settings), "data set by name", ()
        )
    path = loading.locate(name_or_path, loading.data_folder(data_dir))
    form = tables.form(path)
    if form not in ("csv", "tsv", "parquet"):
        kind = {"npz": "NPZ file", "folder": "image folder"}[form]
        return _of(loading.READERS[form](path, chosen), kind, ())
    chosen.only(str(path), *table.ALLOWED)
    kind = "Parquet file" if form == "parquet" else f"{form.upper()} file"
    if chosen.label is None and not _usual_label(raw := tables.read(path, chosen)):
        told = _infos(raw, None, chosen, None)
        notes = (*raw.notes, "no label column named; set label to see classes and a test part")
        return Inspection(
            str(path), kind, raw.num_rows, 0, (len(told),), told, (), (), "", notes, None
        )
    rows = table.read(path, chosen)
    label, _ = table.label_column(rows.files[0], chosen)
    read = {column.name: column for column in rows.columns}
    data = prepare.dataset(rows, chosen)
    return _of(data, kind, _infos(rows.files[0], label, chosen, read))


def _usual_label(raw: tables.RawTable) -> bool:
    return sum(name.lower() in table.LABEL_NAMES for name in raw.columns) == 1


def _infos(
    raw: tables.RawTable, label: str | None, chosen: Options, read: dict[str, columns.Column] | None
) -> tuple[ColumnInfo, ...]:
    roles: dict[str | None, str] = {chosen.client: "client", label: "label"}
    roles.update(dict.fromkeys(chosen.ignore, "left out"))
    found = []
    for name in raw.columns:
        role = roles.get(name, "feature" if label is not None else "")
        cells = columns.plain_type(raw.table.column(name))
        column = (read or {}).get(name) or columns.read(cells, name, chosen.decimal)
        missing = int(
            (column.missing < raw.num_rows).sum() + (column.infinite < raw.num_rows).sum()
        )
        sample = column.sample or _first(cells)
        found.append(ColumnInfo(name, column.kind, role, missing, sample[:30]))
    return tuple(found)


def _first(cells: pa.ChunkedArray) -> str:
    filled = cells.drop_null()
    return str(filled[0].as_py()) if len(filled) else ""


def _of(data: Dataset, form: str, infos: tuple[ColumnInfo, ...]) -> Inspection:
    classes = _counts(data.classes, data.y_train, data.y_test)
    clients = _counts(data.groups, data.groups_train, data.groups_test)
    return Inspection(
        data.source, form, data.num_train, data.num_test, data.input_shape, infos, classes,
        clients, data.test_rule, data.notes, data,
    )  # fmt: skip


def _counts(
    names: tuple[str, ...], train: np.ndarray | None, test: np.ndarray | None
) -> tuple[tuple[str, int, int], ...]:
    none = np.zeros(len(names), dtype=np.int64)
    parts = [
        none if part is None else np.bincount(part, minlength=len(names)) for part in (train, test)
    ]
    return tuple((name, int(a), int(b)) for name, a, b in zip(names, *parts, strict=True))

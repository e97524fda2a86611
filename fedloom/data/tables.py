"""A table file of any accepted format -> named columns, and words for its rows."""

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from fedloom.data import text_table
from fedloom.data.options import Options
from fedloom.errors import DataError

FORMATS = (
    "CSV (.csv), TSV (.tsv), both also gzipped (.gz), Parquet (.parquet, .pq), NPZ (.npz) "
    "and folders with one sub-folder of pictures per class"
)


@dataclass(frozen=True)
class RawTable:
    """Columns as they stand in a file; text files give text only."""

    path: Path
    table: pa.Table
    notes: tuple[str, ...]
    lined: bool

    @property
    def columns(self) -> tuple[str, ...]:
        """Column names in file order."""
        return tuple(self.table.column_names)

    @property
    def num_rows(self) -> int:
        """Rows, header aside."""
        return int(self.table.num_rows)

    def where(self, row: int) -> str:
        """In words, the place of a row counted from 0."""
        return f"row {row + 1} (line {row + 2})" if self.lined else f"row {row + 1}"


def form(path: Path) -> str:
    """Format of a path by its name: csv, tsv, parquet, npz or folder.

    Raises DataError for a path that isn't there or a format that isn't accepted.
    """
    if path.is_dir():
        return "folder"
    if not path.exists():
        raise DataError(f"{path}: no such file or folder")
    suffixes = [suffix.lower() for suffix in path.suffixes]
    last = suffixes[-2:-1] if suffixes[-1:] == [".gz"] else suffixes[-1:]
    known = {".csv": "csv", ".tsv": "tsv", ".parquet": "parquet", ".pq": "parquet", ".npz": "npz"}
    found = known.get(last[0]) if last else None
    if found is None or (suffixes[-1] == ".gz" and found not in ("csv", "tsv")):
        jsonl = last and last[0] in (".json", ".jsonl", ".ndjson")
        what = "JSON lines are not read, as their fields and types may change" if jsonl else (
            f"{suffixes[-1] if suffixes else 'a name without ending'} is not an accepted format"
        )  # fmt: skip
        raise DataError(f"{path}: {what}. Accepted: {FORMATS}")
    return found


def read(path: Path, options: Options) -> RawTable:
    """Columns of a CSV, TSV or Parquet file. Raises DataError for a damaged one."""
    kind = form(path)
    if kind in ("csv", "tsv"):
        return RawTable(path, *text_table.read(path, options))
    if kind != "parquet":
        raise DataError(f"{path}: a table file expected (CSV, TSV or Parquet), got {kind}")
    try:
        table = pa.parquet.read_table(path, partitioning=None)
    except (pa.ArrowException, OSError) as error:
        text = str(error).splitlines()[0]
        raise DataError(f"{path}: damaged or incomplete Parquet file ({text})") from None
    names = table.column_names
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise DataError(f"{path}: column names occur more than once: {', '.join(twice)}")
    if table.num_rows == 0:
        raise DataError(f"{path}: no rows")
    dropped = [name for name in names if name.startswith("__index_level_")]
    notes = tuple(f"{path.name}: stored row index {name!r} left out" for name in dropped)
    return RawTable(path, table.drop_columns(dropped), notes, lined=False)

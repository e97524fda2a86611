"""CSV and TSV files, plain or gzipped -> columns of text, each fault with its line."""

import csv
import gzip
import io
import re
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv

from fedloom.data.options import Options
from fedloom.errors import DataError

SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}


def read(path: Path, options: Options) -> tuple[pa.Table, tuple[str, ...], bool]:
    """Table whose columns are all text, notes, and whether row r (from 0) stands in line r + 2."""
    data = _bytes(path)
    blanks = len(re.findall(rb"(?:^|\n)[ \t\r]*(?=\n)", data.strip(b"\r\n") + b"\n"))
    data = data.lstrip(b"\r\n")
    header, separator = _header(path, data, options)
    notes = []
    if not data.endswith((b"\n", b"\r")):
        notes.append(f"{path.name}: the last line has no line end; was the file cut there?")
    table, bad = _parse(path, data, header, separator)
    lined = not blanks and table.num_rows + len(bad) + 1 == len(data.splitlines())
    if bad:
        _refuse_rows(path, bad, separator, lined)
    if table.num_rows == 0:
        raise DataError(f"{path}: a header but no rows")
    if blanks:
        notes.append(f"{path.name}: {blanks} blank lines left out")
    return table, tuple(notes), lined


def _bytes(path: Path) -> bytes:
    try:
        data = path.read_bytes()
        if path.suffix.lower() == ".gz":
            data = gzip.decompress(data)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path}: damaged or incomplete gzip file ({error})") from None
    except OSError as error:
        raise DataError(f"{path}: can't be read ({error.strerror or error})") from None
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError(f"{path}: UTF-16 text; save it as UTF-8")
    data = data.removeprefix(b"\xef\xbb\xbf")
    if not data.strip():
        raise DataError(f"{path}: the file is empty")
    if b"\0" in data[:4096]:
        raise DataError(f"{path}: binary content, not text; damaged, or another format?")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(f"{path}: line {line} is not UTF-8 text; save the file as UTF-8") from None
    return data


def _header(path: Path, data: bytes, options: Options) -> tuple[list[str], str]:
    first = re.split(rb"\r\n|\n|\r", data, maxsplit=1)[0].decode("utf-8")
    bare = re.sub(r'"[^"]*"', "", first)
    suffixes = [suffix.lower() for suffix in path.suffixes]
    separator = options.separator or ("\t" if ".tsv" in suffixes else ",")
    other = max(SEPARATORS, key=lambda mark: (bare.count(mark), mark == separator))
    if options.separator is None and other != separator and bare.count(other):
        hint = "; for decimal commas also decimal=','" if other == ";" else ""
        found = "one column found, separator?" if separator not in bare else "which separator?"
        raise DataError(
            f"{path}: {found} The first line has {bare.count(other)} {SEPARATORS[other]} marks: "
            f"set separator={'tab' if other == chr(9) else other!r}{hint}"
        )
    names = [name.strip() for name in next(csv.reader(io.StringIO(first), delimiter=separator))]
    if len(names) == 1:
        raise DataError(
            f"{path}: one column found, separator? The first line reads {first[:80]!r}; "
            "set separator to the mark between columns"
        )
    _check_names(path, names)
    return names, separator


def _check_names(path: Path, names: list[str]) -> None:
    if all(re.fullmatch(r"[+-]?[\d.,]+(?:[eE][+-]?\d+)?", name) for name in names if name):
        raise DataError(
            f"{path}: the first line holds numbers ({', '.join(names[:5])}), expected column "
            "names; add a header line"
        )
    if unnamed := [i + 1 for i, name in enumerate(names) if not name]:
        raise DataError(
            f"{path}: column {unnamed[0]} has no name (a row index?); name it, or remove it"
        )
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise DataError(f"{path}: column names occur more than once: {', '.join(twice)}")


def _parse(
    path: Path, data: bytes, header: list[str], separator: str
) -> tuple[pa.Table, list[Any]]:
    bad: list[Any] = []

    def keep(row: Any) -> str:
        bad.append(row)
        return "skip"

    try:
        table = pa.csv.read_csv(
            pa.BufferReader(data),
            read_options=pa.csv.ReadOptions(column_names=header, skip_rows=1, use_threads=False),
            parse_options=pa.csv.ParseOptions(
                delimiter=separator, newlines_in_values=b'"' in data, invalid_row_handler=keep
            ),
            convert_options=pa.csv.ConvertOptions(
                column_types={name: pa.string() for name in header}, strings_can_be_null=False
            ),
        )
    except pa.ArrowInvalid as error:
        if "Empty CSV" in str(error):
            raise DataError(f"{path}: a header but no rows") from None
        raise DataError(f"{path}: damaged or incomplete ({error})") from None
    return table, bad


def _refuse_rows(path: Path, bad: list[Any], separator: str, lined: bool) -> None:
    unit = "line" if lined else "non-blank line"
    lines = [f"{unit} {row.number} has {row.actual_columns}" for row in bad[:5]]
    more = f" and {len(bad) - 5} more" if len(bad) > 5 else ""
    raise DataError(
        f"{path}: {bad[0].expected_columns} fields expected in every line, but "
        f"{', '.join(lines)}{more}; damaged or incomplete, or a "
        f"{SEPARATORS.get(separator, separator)} inside a value that needs quotes"
    )

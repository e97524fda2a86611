"""One column of a table -> float32 numbers, NaN where missing, or codes of text values."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fedloom.data.labels import NUMBER

MISSING = ("", "na", "n/a", "nan", "null", "none", "?")
MISSING_LABEL = tuple(token for token in MISSING if token != "none")

MOST_ODD = 5
_INFINITE = r"^[+-]?inf(inity)?$"


@dataclass(frozen=True)
class Column:
    """A feature column: `values` float32 [n], NaN where missing or infinite.

    `levels` are the distinct texts of a text column, whose values are then positions in them;
    numbers have none. `missing` and `infinite` are row numbers, `odd` the rows that aren't numbers.
    """

    name: str
    values: np.ndarray
    levels: tuple[str, ...]
    missing: np.ndarray
    infinite: np.ndarray
    odd: np.ndarray
    sample: str
    kind: str
    rounded: int = 0

    @property
    def mostly_numbers(self) -> bool:
        """Whether a text column holds numbers but for at most a fifth of its filled cells."""
        filled = len(self.values) - len(self.missing)
        return self.kind == "text" and 0 < MOST_ODD * len(self.odd) <= filled


def plain_type(array: pa.ChunkedArray) -> pa.ChunkedArray:
    """Dictionaries, large and binary text -> text; anything else as it stands."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        return plain_type(
            pa.chunked_array([c.dictionary_decode() for c in array.chunks], kind.value_type)
        )
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return array.cast(pa.string())
    return array


def texts(array: pa.ChunkedArray, missing: tuple[str, ...] = MISSING) -> pa.ChunkedArray:
    """Any column -> trimmed text, null where a cell says that nothing is there."""
    array = plain_type(array)
    if not pa.types.is_string(array.type):
        array = array.cast(pa.string())
    cells = pc.utf8_trim_whitespace(array)
    blank = pc.is_in(pc.utf8_lower(cells), value_set=pa.array(missing))
    return pc.if_else(blank, pa.scalar(None, pa.string()), cells)


def read(array: pa.ChunkedArray, name: str, decimal: str) -> Column:
    """Column -> numbers where every filled cell is one, else codes of its text values."""
    array = plain_type(array)
    kind = array.type
    if pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        label = "boolean" if pa.types.is_boolean(kind) else "number"
        return _numbers(name, array.cast(pa.float64(), safe=False), label, "")
    if pa.types.is_decimal(kind):
        return _numbers(name, array.cast(pa.float64()), "number", "")
    if not pa.types.is_string(kind):
        return _other(name, array, str(kind))
    cells = texts(array)
    number = NUMBER if decimal == "." else NUMBER.replace(r"\.", ",")
    infinite = pc.match_substring_regex(pc.utf8_lower(cells), _INFINITE)
    good = pc.or_(pc.match_substring_regex(cells, number), infinite)
    odd = np.flatnonzero(~_bools(pc.fill_null(good, True)))
    if odd.size:
        return _coded(name, cells, odd)
    if decimal == ",":
        cells = pc.replace_substring(cells, ",", ".")
    return _numbers(name, pc.utf8_ltrim(cells, "+").cast(pa.float64()), "number", _sample(cells))


def _bools(array: pa.ChunkedArray) -> np.ndarray:
    return np.asarray(array.to_numpy(), dtype=bool)


def _sample(cells: pa.ChunkedArray) -> str:
    filled = cells.drop_null()
    return str(filled[0].as_py()) if len(filled) else ""


def _numbers(name: str, array: pa.ChunkedArray, kind: str, sample: str) -> Column:
    wide = np.array(array.to_numpy(), dtype=np.float64) + 0.0  # [n]; -0.0 becomes 0.0
    with np.errstate(over="ignore"):
        values = wide.astype(np.float32)
    infinite = np.flatnonzero(np.isinf(values))
    missing = np.flatnonzero(np.isnan(values))
    whole = (np.abs(wide) > 2**24) & (np.floor(wide) == wide) & np.isfinite(values)
    rounded = int((values[whole].astype(np.float64) != wide[whole]).sum())
    values[infinite] = np.nan
    sample = sample or _sample(array)
    none = np.empty(0, dtype=np.int64)
    return Column(name, values, (), missing, infinite, none, sample, kind, rounded)


def _coded(name: str, cells: pa.ChunkedArray, odd: np.ndarray) -> Column:
    levels, codes = distinct(cells)
    values = codes.astype(np.float32)
    values[codes < 0] = np.nan
    none = np.empty(0, dtype=np.int64)
    sample = str(cells[int(odd[0])].as_py())
    return Column(name, values, levels, np.flatnonzero(codes < 0), none, odd, sample, "text")


def _other(name: str, array: pa.ChunkedArray, kind: str) -> Column:
    try:
        cells = texts(array)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        sample = str(array.drop_null()[0].as_py())[:40] if len(array.drop_null()) else ""
        rows = np.arange(len(array))
        none = np.empty(0, dtype=np.int64)
        return Column(name, np.zeros(len(array), np.float32), (), none, none, rows, sample, kind)
    filled = np.flatnonzero(_bools(pc.is_valid(cells)))
    if not filled.size:
        return _numbers(name, pa.chunked_array([pa.nulls(len(cells), pa.float64())]), kind, "")
    column = _coded(name, cells, filled)
    return Column(**{**column.__dict__, "kind": kind})


def distinct(cells: pa.ChunkedArray) -> tuple[tuple[str, ...], np.ndarray]:
    """Text cells -> sorted distinct texts and each row's place among them, -1 where null."""
    encoded = pc.dictionary_encode(cells.combine_chunks())
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    found = encoded.dictionary.to_pylist()
    order = np.argsort(np.array(found, dtype=object), kind="stable") if found else np.empty(0, int)
    place = np.empty(len(found) + 1, dtype=np.int64)
    place[order] = np.arange(len(found))
    place[-1] = -1
    codes = np.asarray(pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False))
    return tuple(found[i] for i in order), place[codes]

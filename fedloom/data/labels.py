"""Labels and client ids as written -> positions in one sorted table of texts."""

import re
from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np

from fedloom.errors import DataError

NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"

_WHOLE = re.compile(r"^([+-]?\d+)(?:\.0*)?$")
_NUMBER = re.compile(NUMBER)


def plain(text: str) -> str:
    """A whole number in its shortest form, any other text as it stands.

    >>> [plain(text) for text in ("1.0", "01", "1.5", "fig")]
    ['1', '1', '1.5', 'fig']
    """
    if match := _WHOLE.match(text):
        return str(int(match[1]))
    if _NUMBER.match(text) and float(text).is_integer() and abs(float(text)) < 2**53:
        return str(int(float(text)))
    return text


def table(values: Sequence[str]) -> tuple[tuple[str, ...], np.ndarray, tuple[str, ...]]:
    """Distinct texts -> sorted names, the position of each text, and what was merged.

    Whole numbers sort by value, anything else by code point, so that the order of rows is inert.

    >>> table(["10", "2.0", "2"])
    (('2', '10'), array([1, 0, 0]), ("'2', '2.0' count as one, '2'",))
    """
    spellings = defaultdict(list)
    for value in values:
        spellings[plain(value)].append(value)
    whole = all(_WHOLE.match(name) for name in spellings)
    names = sorted(spellings, key=int) if whole else sorted(spellings)
    place = {name: position for position, name in enumerate(names)}
    codes = np.array([place[plain(value)] for value in values], dtype=np.int64)
    merged = tuple(
        f"{', '.join(map(repr, sorted(texts)))} count as one, {name!r}"
        for name, texts in sorted(spellings.items())
        if len(texts) > 1
    )
    return tuple(names), codes, merged


def fractions(values: Sequence[str]) -> list[int]:
    """Positions of values that aren't whole, where every value is a number: no class labels."""
    if not all(_NUMBER.match(value) for value in values):
        return []
    return [
        i for i, value in enumerate(values) if plain(value) == value and not _WHOLE.match(value)
    ]


def code(
    values: Sequence[str], inverse: np.ndarray, what: str, row: Callable[[int], str], is_label: bool
) -> tuple[np.ndarray, tuple[str, ...], tuple[str, ...]]:
    """Distinct texts and each row's place among them -> positions int64 [n], names, notes.

    `row` turns a row number into words for a message. Raises DataError for labels that aren't
    whole.
    """
    if is_label and (wrong := fractions(values)):
        rows = np.flatnonzero(np.isin(inverse, wrong))
        first = int(rows[0])
        raise DataError(
            f"{what}: {len(rows)} labels are not whole numbers, the first is "
            f"{values[int(inverse[first])]!r} in {row(first)}; a class label is a whole number "
            "or a text"
        )
    names, codes, merged = table(values)
    notes = tuple(f"{what}: {line}" for line in merged)
    lower = defaultdict(list)
    for name in names:
        lower[name.casefold()].append(name)
    alike = [texts for texts in lower.values() if len(texts) > 1]
    if alike:
        some = "; ".join(", ".join(map(repr, texts)) for texts in alike[:5])
        notes += (f"{what}: values that differ only in upper and lower case stay apart: {some}",)
    return codes[inverse], names, notes


def code_array(
    values: np.ndarray, what: str, is_label: bool
) -> tuple[np.ndarray, tuple[str, ...], tuple[str, ...]]:
    """An array of labels or ids, [n], [n, 1] or one-hot [n, C] -> positions, names, notes."""
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim == 2 and is_label:
        return one_hot(values, what)
    if values.ndim != 1:
        raise DataError(f"{what}: expected one value a row, [n], got shape {values.shape}")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        rows = np.flatnonzero(~np.isfinite(values))
        raise DataError(
            f"{what}: {len(rows)} values are NaN or infinite, the first in row {rows[0] + 1}"
        )
    if values.dtype.kind not in "fiubUS":
        raise DataError(f"{what}: expected numbers or text, got {values.dtype}")
    if values.dtype.kind in "iu":
        codes, distinct = whole_numbers(values)
        return codes, tuple(map(str, distinct.tolist())), ()
    unique, inverse = np.unique(values, return_inverse=True)
    texts = [item.decode() if isinstance(item, bytes) else str(item).strip() for item in unique]
    if "" in texts:
        rows = np.flatnonzero(inverse == texts.index(""))
        raise DataError(f"{what}: {len(rows)} values are blank, the first in row {rows[0] + 1}")
    return code(texts, inverse.reshape(-1), what, lambda row: f"row {row + 1}", is_label)


def whole_numbers(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Integers [n] -> positions int64 [n] among the sorted distinct ones, and those.

    Counts where the range allows it, which takes a fraction of the time and memory of sorting.
    """
    low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    if high - low > 4 * len(values) + 1_000_000:
        distinct, codes = np.unique(values, return_inverse=True)
        return codes.reshape(-1), distinct
    wide = values if values.dtype == np.uint64 else values.astype(np.int64, copy=False)
    shifted = (wide - low if low else wide).astype(np.int64, copy=False)
    present = np.bincount(shifted, minlength=high - low + 1) > 0
    codes = (np.cumsum(present, dtype=np.int64) - 1)[shifted]
    return codes, np.flatnonzero(present).astype(wide.dtype) + wide.dtype.type(low)


def one_hot(values: np.ndarray, what: str) -> tuple[np.ndarray, tuple[str, ...], tuple[str, ...]]:
    """Rows with a single 1 -> class numbers; anything else is refused with its rows."""
    clean = ((values == 0) | (values == 1)).all(axis=1) & (values == 1).sum(axis=1).__eq__(1)
    if not clean.all():
        rows = ", ".join(str(row + 1) for row in np.flatnonzero(~clean)[:10])
        raise DataError(
            f"{what}: {int((~clean).sum())} rows are not one-hot (a single 1, else 0): row {rows}"
        )
    names = tuple(map(str, range(values.shape[1])))
    note = f"{what}: one-hot rows are read as class numbers 0 to {len(names) - 1}"
    return values.argmax(axis=1).astype(np.int64), names, (note,)

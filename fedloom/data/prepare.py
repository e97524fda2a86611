"""Coded rows -> Dataset: faults refused together, gaps treated, parts split, columns scaled."""

from typing import TYPE_CHECKING

import numpy as np

from fedloom.data import holdout
from fedloom.data.columns import Column
from fedloom.data.dataset import Dataset
from fedloom.data.options import Options
from fedloom.errors import DataError

if TYPE_CHECKING:
    from fedloom.data.table import Rows

MOST_LEVELS = 256


def dataset(rows: "Rows", options: Options) -> Dataset:
    """Finish a table: the order is check, drop, split, impute, one-hot, scale."""
    notes = [*rows.notes, *_rounded(rows.columns)]
    path = rows.files[0].path
    _refuse_text(rows, options)
    kept = _keep(rows, options, notes)
    matrix = np.empty((len(kept), len(rows.columns)), dtype=np.float32)
    for place, column in enumerate(rows.columns):
        matrix[:, place] = column.values[kept]
    y = rows.y[kept]
    ids = None if rows.ids is None or len(rows.ids) < len(rows.y) else rows.ids[kept]
    num_first = int((kept < rows.files[0].num_rows).sum())
    train, test, rule = _split(rows, y, num_first, options)
    classes, y, notes_classes = _classes(rows, y, train, test)
    notes += notes_classes
    if options.missing == "impute":
        notes += _impute(matrix, rows.columns, train, str(path))
    x_train, x_test = matrix[train], matrix[test]
    x_train, x_test, features, more = _one_hot(x_train, x_test, rows.columns)
    notes += [*more, *_scale(x_train, x_test, features, rows.columns, options)]
    notes += holdout.remarks(x_train, x_test, y[train], y[test], classes)
    groups_train, groups_test = _groups(rows, kept, ids, train, test)
    notes += holdout.client_remarks(groups_train, groups_test, rows.groups)
    return Dataset(
        name=path.name.split(".")[0],
        x_train=x_train,
        y_train=y[train],
        x_test=x_test,
        y_test=y[test],
        classes=classes,
        kind="table",
        groups_train=groups_train,
        groups_test=groups_test,
        groups=rows.groups,
        features=features,
        test_rule=rule,
        notes=tuple(notes),
        source=str(path),
    )


def _rounded(columns: tuple[Column, ...]) -> list[str]:
    return [
        f"column {c.name!r}: {c.rounded} whole numbers above 16,777,216 are rounded to float32"
        for c in columns
        if c.rounded
    ]


def _refuse_text(rows: "Rows", options: Options) -> None:
    odd = [column for column in rows.columns if column.odd.size]
    if options.categorical == "onehot":
        odd = [column for column in odd if column.mostly_numbers]
        if not odd:
            _refuse_wide(rows)
    if not odd:
        return
    told = ", ".join(_odd_cells(rows, column) for column in odd)
    count = "1 column is" if len(odd) == 1 else f"{len(odd)} columns are"
    comma = any(
        c.sample.replace(",", "", 1).lstrip("+-").isdigit() and "," in c.sample for c in odd
    )
    hint = " Decimal commas need decimal=','." if comma and options.decimal == "." else ""
    advice = (
        "Clean them, leave them out with ignore, or make one column per value with "
        "categorical='onehot'"
    )
    if all(column.mostly_numbers for column in odd):
        advice = (
            "Correct the cells, or blank them and set missing='drop' or missing='impute', or leave "
            "the columns out with ignore; codes of categories must be written as text"
        )
    raise DataError(f"{rows.files[0].path}: {count} not numeric: {told}.{hint} {advice}")


def _odd_cells(rows: "Rows", column: Column) -> str:
    total, bad = len(rows.y), column.odd.size
    place = f"{column.sample!r} in {rows.where(int(column.odd[0]))}"
    if not column.mostly_numbers:
        return f"{column.name!r} ({bad} of {total} cells, such as {place})"
    if bad == 1:
        return f"{column.name!r} (1 of {total} cells is not a number: {place})"
    return f"{column.name!r} ({bad} of {total} cells are not numbers, such as {place})"


def _refuse_wide(rows: "Rows") -> None:
    for column in rows.columns:
        if column.odd.size and not 0 < len(column.levels) <= MOST_LEVELS:
            raise DataError(
                f"{rows.files[0].path}: column {column.name!r} ({column.kind}, such as "
                f"{column.sample!r}) has {len(column.levels)} values; one-hot takes 1 to "
                f"{MOST_LEVELS}. Leave it out with ignore"
            )


def _keep(rows: "Rows", options: Options, notes: list[str]) -> np.ndarray:
    total = len(rows.y)
    faults: list[str] = []
    lost = np.zeros(total, dtype=bool)
    for column in rows.columns:
        for what, bad in (("missing", column.missing), ("infinite", column.infinite)):
            if bad.size:
                lost[bad] = True
                faults.append(_fault(rows, f"column {column.name!r}", bad, what))
    no_label = np.flatnonzero(rows.y < 0)
    blank = [_fault(rows, "label", no_label, "missing")] if no_label.size else []
    if rows.ids is not None and (rows.ids < 0).any():
        no_id = np.flatnonzero(rows.ids < 0)
        blank.append(_fault(rows, "client", no_id, "missing"))
        lost[no_id] = True
    lost[no_label] = True
    path = rows.files[0].path
    if options.missing == "refuse" and (faults or blank):
        raise DataError(
            f"{path}: cells without a finite value: {'; '.join(faults + blank)}. Fill them in, or "
            "set missing='drop' or missing='impute'"
        )
    if options.missing == "impute" and blank:
        raise DataError(
            f"{path}: {'; '.join(blank)}; labels and client ids can't be imputed, "
            "use missing='drop'"
        )
    if options.missing != "drop":
        return np.arange(total)
    if lost.any():
        told = "; ".join(faults + blank)
        notes.append(f"{int(lost.sum())} of {total} rows dropped for missing cells: {told}")
    if lost.all():
        raise DataError(f"{path}: no row is left after dropping rows with missing cells")
    return np.flatnonzero(~lost)


def _fault(rows: "Rows", name: str, bad: np.ndarray, what: str) -> str:
    return f"{name}: {bad.size} {what}, first in {rows.where(int(bad[0]))}"


def _split(
    rows: "Rows", y: np.ndarray, num_first: int, options: Options
) -> tuple[np.ndarray, np.ndarray, str]:
    if len(rows.files) == 2:
        test_file = rows.files[1].path
        return np.arange(num_first), np.arange(num_first, len(y)), f"file {test_file.name}"
    train, test = holdout.stratified(y, options.test_share, options.seed)
    share = f"{100 * options.test_share:g} % of the rows"
    return train, test, f"{share}, stratified, seed {options.seed}"


def _classes(
    rows: "Rows", y: np.ndarray, train: np.ndarray, test: np.ndarray
) -> tuple[tuple[str, ...], np.ndarray, list[str]]:
    path = rows.files[-1].path
    seen = np.unique(y[train])
    if unseen := [rows.classes[c] for c in np.setdiff1d(y[test], seen)]:
        raise DataError(
            f"{path}: classes {holdout.some(unseen)} have test rows but no training rows; "
            "add training rows or take these test rows out"
        )
    if len(seen) < 2:
        raise DataError(
            f"{rows.files[0].path}: the label has one class, {rows.classes[int(seen[0])]!r}; "
            "at least two are needed"
        )
    place = np.full(len(rows.classes), -1, dtype=np.int64)
    place[seen] = np.arange(len(seen))
    gone = [rows.classes[c] for c in np.setdiff1d(np.arange(len(rows.classes)), seen)]
    notes = [f"classes without rows after dropping, left out: {holdout.some(gone)}"] if gone else []
    counts = np.bincount(y[train], minlength=len(rows.classes))
    if len(rows.classes) > 50 and int(np.median(counts[seen])) <= 1:
        notes.append("most classes have a single row; is this column really the label?")
    return tuple(rows.classes[c] for c in seen), place[y], notes


def _impute(
    matrix: np.ndarray, columns: tuple[Column, ...], train: np.ndarray, path: str
) -> list[str]:
    notes = []
    for place, column in enumerate(columns):
        holes = np.isnan(matrix[:, place])
        if not holes.any():
            continue
        known = matrix[train, place]
        known = known[~np.isnan(known)]
        if not known.size:
            raise DataError(f"{path}: column {column.name!r} has no training value; use ignore")
        if column.levels:
            fill = float(np.bincount(known.astype(np.int64)).argmax())
            words = f"the most frequent training value {column.levels[int(fill)]!r}"
        else:
            fill = float(known.mean(dtype=np.float64))
            words = f"the training mean {fill:.6g}"
        matrix[holes, place] = fill
        notes.append(f"column {column.name!r}: {int(holes.sum())} cells imputed with {words}")
    return notes


def _one_hot(
    x_train: np.ndarray, x_test: np.ndarray, columns: tuple[Column, ...]
) -> tuple[np.ndarray, np.ndarray, tuple[str, ...], list[str]]:
    if not any(column.levels for column in columns):
        return x_train, x_test, tuple(column.name for column in columns), []
    names: list[str] = []
    blocks: list[list[np.ndarray]] = [[], []]
    notes = []
    for place, column in enumerate(columns):
        if not column.levels:
            names.append(column.name)
            for block, x in zip(blocks, (x_train, x_test), strict=True):
                block.append(x[:, place : place + 1])
            continue
        seen = np.unique(x_train[:, place])
        names += [f"{column.name}={column.levels[int(code)]}" for code in seen]
        for block, x in zip(blocks, (x_train, x_test), strict=True):
            block.append((x[:, place : place + 1] == seen).astype(np.float32))
        notes.append(f"column {column.name!r}: one column for each of {len(seen)} values")
        if unseen := int((~np.isin(x_test[:, place], seen)).sum()):
            notes.append(
                f"column {column.name!r}: {unseen} test rows have a value unseen in training"
            )
    train, test = (np.concatenate(block, axis=1) for block in blocks)
    return train, test, tuple(names), notes


def _scale(
    x_train: np.ndarray,
    x_test: np.ndarray,
    features: tuple[str, ...],
    columns: tuple[Column, ...],
    options: Options,
) -> list[str]:
    numeric = {column.name for column in columns if not column.levels}
    constant = [bool(x.min() == x.max()) for x in x_train.T]
    names = [name for name, same in zip(features, constant, strict=True) if same]
    notes = [f"constant in training: {holdout.some(names)}"] if names else []
    if options.scale == "none":
        return notes
    for place, name in enumerate(features):
        if name not in numeric:
            continue
        mean = x_train[:, place].mean(dtype=np.float64)
        std = 1.0 if constant[place] else x_train[:, place].std(dtype=np.float64)
        for x in (x_train, x_test):
            x[:, place] = 0 if constant[place] else (x[:, place] - mean) / std
    told = f"{len(numeric)} numeric columns have mean 0 and standard deviation 1 over training rows"
    return [*notes, told + ("; constant ones are 0" if names else "")]


def _groups(
    rows: "Rows", kept: np.ndarray, ids: np.ndarray | None, train: np.ndarray, test: np.ndarray
) -> tuple[np.ndarray | None, np.ndarray | None]:
    if rows.ids is None:
        return None, None
    if ids is None:  # the test file has no client column
        return rows.ids[kept[train]], None
    return ids[train], ids[test]

"""A data set by name: from NAME.npz in a folder, else from the library that serves it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fedloom.data import archive as npz
from fedloom.data import fetch, holdout, labels
from fedloom.data.archive import Archive
from fedloom.data.arrays import images_first
from fedloom.data.catalog import SETS, Known
from fedloom.data.dataset import Dataset, Features
from fedloom.errors import DataError


def load(name: str, folder: Path | None, seed: int) -> Dataset:
    """Dataset of the benchmark, checked against the known numbers of rows and classes.

    `folder` is where NAME.npz may lie; None means nowhere. Raises DataError that says which file
    with which arrays to put where when there is neither a file nor a network.
    """
    known = SETS[name]
    path = None if folder is None else folder / f"{name}.npz"
    if path is not None and path.exists():
        archive = Archive(path)
        try:
            arrays, source = _local(archive, known), str(path)
        finally:
            archive.close()
    else:
        where = (
            f"put {name}.npz into {folder}"
            if folder is not None
            else f"put {name}.npz into a folder that --data-dir or FEDLOOM_DATA names"
        )
        missing = f"{where}, with the arrays {known.arrays}"
        arrays, source = fetch.fetch(name, missing)
    return build(name, known, arrays, source, seed)


def _local(archive: Archive, known: Known) -> dict[str, Any]:
    parts = ("",) if known.share is not None else ("_train", "_test")
    wanted = {}
    for part in parts:
        try:
            wanted[f"x{part}"] = npz.features(archive, part, known.shape[0])
            wanted[f"y{part}"] = archive[f"y{part}"]
        except DataError as error:
            if "no array" not in str(error):
                raise
            raise DataError(f"{error}. Expected {known.arrays}") from None
        if known.writers and f"writer{part}" in archive:
            wanted[f"writer{part}"] = archive[f"writer{part}"]
    return wanted


def build(name: str, known: Known, arrays: Mapping[str, Any], source: str, seed: int) -> Dataset:
    """Arrays as stored or fetched -> checked Dataset."""
    xs, ys, notes = _checked(name, known, arrays, source)
    rule = "official test part"
    if known.share is not None:
        num_train = int(known.share * len(ys[0]))
        train, test = holdout.random(len(ys[0]), num_train, seed)
        xs, ys = [xs[0][train], xs[0][test]], [ys[0][train], ys[0][test]]
        rule = f"{len(test):,} random rows (25 %), seed {seed}"
    if name == "covtype":
        _unit_range(xs[0], xs[1])
    ids, groups = _writers(name, arrays, ys)
    if ids is not None:
        notes += _writer_notes(ids, groups)
    notes += holdout.remarks(xs[0], xs[1], ys[0], ys[1], known.classes)
    return Dataset(
        name=name,
        x_train=xs[0],
        y_train=ys[0],
        x_test=xs[1],
        y_test=ys[1],
        classes=known.classes,
        kind="image" if len(known.shape) == 3 else "table",
        groups_train=ids[0] if ids else None,
        groups_test=ids[1] if ids else None,
        groups=groups,
        features=tuple(f"x{i + 1}" for i in range(known.shape[0])) if len(known.shape) == 1 else (),
        test_rule=arrays.get("test_rule", rule),
        notes=tuple(notes),
        source=source,
    )


def _checked(
    name: str, known: Known, arrays: Mapping[str, Any], source: str
) -> tuple[list[Features], list[np.ndarray], list[str]]:
    notes = [*known.notes, *arrays.get("notes", ())]
    xs, ys = [], []
    for place, part in enumerate(("",) if known.share is not None else ("_train", "_test")):
        x, remarks = images_first(arrays[f"x{part}"], f"{name}: x{part}")
        y = np.asarray(arrays[f"y{part}"]).reshape(-1)
        _check_rows(name, known, x, y, place, source, arrays.get("rows"))
        y = (known.labels(y) if known.labels else y).astype(np.int64)
        _check_classes(name, known, y, place, source)
        xs.append(x)
        ys.append(y)
        notes += remarks
    return xs, ys, notes


def _check_rows(
    name: str,
    known: Known,
    x: Any,
    y: np.ndarray,
    place: int,
    source: str,
    rows: tuple[int, int] | None,
) -> None:
    part = "rows" if known.share is not None else ("training rows", "test rows")[place]
    expected = (rows or known.rows)[place]
    if x.shape[0] != expected or len(y) != expected or x.shape[1:] != known.shape:
        raise DataError(
            f"{source}: {name} has {expected:,} {part} of shape {known.shape}; this copy has "
            f"{x.shape[0]:,} of shape {x.shape[1:]} with {len(y):,} labels. It is incomplete or "
            "another set; make the copy again, or read it as a file of your own by its path"
        )


def _check_classes(name: str, known: Known, y: np.ndarray, place: int, source: str) -> None:
    expected = (known.counts_train, known.counts_test)[place]
    if y.min() < 0 or y.max() >= len(known.classes):
        raise DataError(
            f"{source}: {name} has labels 0 to {len(known.classes) - 1}, got {y.min()} to {y.max()}"
        )
    counts = tuple(np.bincount(y, minlength=len(known.classes)).tolist())
    if expected and counts != expected:
        raise DataError(
            f"{source}: rows per class of {name} should be {expected}, got {counts}; "
            "the copy is damaged or another set"
        )


def _unit_range(train: np.ndarray, test: np.ndarray) -> None:
    low, high = train.min(axis=0), train.max(axis=0)
    width = np.where(high > low, high - low, 1)
    for part in (train, test):
        part -= low
        part /= width


def _writers(
    name: str, arrays: Mapping[str, Any], ys: list[np.ndarray]
) -> tuple[list[np.ndarray] | None, tuple[str, ...]]:
    if "writer_train" not in arrays or "writer_test" not in arrays:
        return None, ()
    found = [np.asarray(arrays[f"writer_{part}"]) for part in ("train", "test")]
    if [ids.shape for ids in found] != [y.shape for y in ys]:
        raise DataError(
            f"{name}: writer_train and writer_test need one id a row, {[len(y) for y in ys]}, got "
            f"{[ids.shape for ids in found]}; counts per writer have to be repeated first"
        )
    codes, groups, _ = labels.code_array(np.concatenate(found), f"{name}: writers", is_label=False)
    return np.split(codes, [len(found[0])]), groups


def _writer_notes(ids: list[np.ndarray], groups: tuple[str, ...]) -> list[str]:
    if not np.intersect1d(ids[0], ids[1]).size:
        train, test = (len(np.unique(part)) for part in ids)
        return [f"{train} writers in training and {test} in the test part, none in both"]
    return list(holdout.client_remarks(ids[0], ids[1], groups))

"""One's own NPZ file -> Dataset."""

from pathlib import Path

import numpy as np
from scipy.sparse import issparse

from fedloom.data import archive as npz
from fedloom.data import holdout, labels
from fedloom.data.archive import Archive
from fedloom.data.dataset import Dataset, Features
from fedloom.data.options import Options
from fedloom.errors import DataError

ALLOWED = ("label", "client", "test", "test_share", "seed")


def load(path: Path, options: Options) -> Dataset:
    """Arrays `x`, `y` (and clients), or `x_train`, `y_train`, `x_test`, `y_test`, of an NPZ file.

    Sparse tables hold `data`, `indices`, `indptr` (each with `_train` and `_test`) and
    `num_features` in place of `x`. `label` and `client` name other arrays than `y`. Images are
    [n, height, width], [n, height, width, channels] or [n, channels, height, width].
    """
    options.only(str(path), *ALLOWED)
    archives = [Archive(path)]
    if options.test_path is not None:
        archives.append(Archive(options.test_path))
    try:
        return _build(archives, options)
    finally:
        for archive in archives:
            archive.close()


def _build(archives: list[Archive], options: Options) -> Dataset:
    parts = _parts(archives)
    read = [
        images_first(npz.features(archive, part), f"{archive.path}: x{part}")
        for archive, part in parts
    ]
    xs, notes = [x for x, _ in read], [note for _, remarks in read for note in remarks]
    y, classes, label_notes = _coded(parts, options.label or "y", xs, is_label=True)
    ids: list[np.ndarray] | None = None
    groups: tuple[str, ...] = ()
    if options.client:
        ids, groups, more = _coded(parts, options.client, xs, is_label=False)
        label_notes += more
    notes += [*label_notes, *_unused(archives, parts, options)]
    if len(parts) == 1:
        train, test = holdout.stratified(y[0], options.test_share, options.seed)
        xs, y = [xs[0][train], xs[0][test]], [y[0][train], y[0][test]]
        ids = None if ids is None else [ids[0][train], ids[0][test]]
    _check_classes(parts[-1][0].path, y, classes)
    is_image = xs[0].ndim == 4
    notes += holdout.remarks(xs[0], xs[1], y[0], y[1], classes)
    if ids is not None:
        notes += holdout.client_remarks(ids[0], ids[1], groups)
    return Dataset(
        name=archives[0].path.stem,
        x_train=xs[0],
        y_train=y[0],
        x_test=xs[1],
        y_test=y[1],
        classes=classes,
        kind="image" if is_image else "table",
        groups_train=ids[0] if ids else None,
        groups_test=ids[1] if ids else None,
        groups=groups,
        features=() if is_image else tuple(f"x{i + 1}" for i in range(xs[0].shape[1])),
        test_rule=_rule(archives, options, len(parts)),
        notes=tuple(notes),
        source=str(archives[0].path),
    )


def _parts(archives: list[Archive]) -> list[tuple[Archive, str]]:
    first = archives[0]
    if len(archives) == 2:
        found = []
        for archive, part in zip(archives, ("_train", "_test"), strict=True):
            suffix = next((s for s in ("", part) if npz.has_features(archive, s)), None)
            if suffix is None:
                raise DataError(
                    f"{archive.path}: no array 'x'; it holds {', '.join(archive.names)}"
                )
            found.append((archive, suffix))
        return found
    if npz.has_features(first, "_train"):
        if npz.has_features(first, "_test"):
            return [(first, "_train"), (first, "_test")]
        raise DataError(f"{first.path}: x_train without x_test; call it x, or add the test part")
    if npz.has_features(first, ""):
        return [(first, "")]
    raise DataError(
        f"{first.path}: expected arrays x and y, or x_train, y_train, x_test and y_test; "
        f"it holds {', '.join(first.names) or 'nothing'}"
    )


def _coded(
    parts: list[tuple[Archive, str]], name: str, xs: list[Features], is_label: bool
) -> tuple[list[np.ndarray], tuple[str, ...], tuple[str, ...]]:
    found = []
    for (archive, part), x in zip(parts, xs, strict=True):
        array = archive[name if name in archive else f"{name}{part}"]
        if array.shape[:1] != (x.shape[0],):
            raise DataError(
                f"{archive.path}: {name}{part} has shape {array.shape}, but there are "
                f"{x.shape[0]:,} rows of features"
            )
        found.append(array)
    same = {array.shape[1:] for array in found}
    if len(same) > 1:
        raise DataError(f"{parts[0][0].path}: {name} has rows of unlike shapes: {sorted(same)}")
    what = f"{parts[0][0].path}: {name}"
    if len(found) == 2 and found[0].dtype.kind in "US" and found[1].dtype.kind not in "US":
        raise DataError(f"{what}: text in one part and numbers in the other")
    codes, names, notes = labels.code_array(np.concatenate(found), what, is_label)
    cuts = np.cumsum([len(array) for array in found])[:-1]
    return np.split(codes, cuts), names, notes


def _check_classes(path: Path, y: list[np.ndarray], classes: tuple[str, ...]) -> None:
    if absent := [classes[c] for c in np.setdiff1d(y[1], y[0])]:
        raise DataError(f"{path}: test labels that training never shows: {holdout.some(absent)}")
    if len(np.unique(y[0])) < 2:
        raise DataError(f"{path}: training shows one class; at least two are needed")


def _unused(
    archives: list[Archive], parts: list[tuple[Archive, str]], options: Options
) -> list[str]:
    used = {"num_features"}
    for _, part in parts:
        for name in ("x", "data", "indices", "indptr", options.label or "y", options.client or ""):
            used |= {name, f"{name}{part}"}
    notes = []
    for archive in archives:
        if rest := [name for name in archive.names if name not in used]:
            notes.append(f"{archive.path.name}: arrays not used: {holdout.some(rest)}")
    return notes


def _rule(archives: list[Archive], options: Options, num_parts: int) -> str:
    if len(archives) == 2:
        return f"file {archives[1].path.name}"
    if num_parts == 2:
        return f"test arrays of {archives[0].path.name}"
    return f"{100 * options.test_share:g} % of the rows, stratified, seed {options.seed}"


def images_first(x: Features, what: str) -> tuple[Features, tuple[str, ...]]:
    """Image arrays -> [n, channels, height, width], uint8 where whole numbers 0 to 255 allow it.

    Tables, dense or sparse, pass through.
    """
    if issparse(x):
        return x, ()
    if x.dtype.kind not in "fiub" or x.ndim not in (2, 3, 4):
        raise DataError(
            f"{what}: expected numbers, [n, d] or images with 3 or 4 axes, got {x.dtype} {x.shape}"
        )
    if x.ndim == 2:
        return x.astype(np.float32, copy=False), ()
    if x.ndim == 3:
        x = x[:, None]
    elif x.shape[3] in (1, 3, 4) or x.shape[1] not in (1, 3, 4):
        x = x.transpose(0, 3, 1, 2)
    return _pixels(x, what)


def _pixels(x: np.ndarray, what: str) -> tuple[np.ndarray, tuple[str, ...]]:
    low, high = (float(x.min()), float(x.max())) if x.size else (0.0, 0.0)
    if x.dtype == np.uint8:
        return x, ()
    if x.dtype.kind == "f":
        note = f"{what}: values lie outside 0 to 1 and are kept as they are"
        return x.astype(np.float32, copy=False), () if low >= 0 and high <= 1 else (note,)
    if not (low >= 0 and high <= 255):
        raise DataError(f"{what}: whole-number images must lie in 0 to 255, got {low} to {high}")
    return x.astype(np.uint8), (f"{what}: {x.dtype} images are stored as uint8",)

"""An image folder -> Dataset of uint8 pictures with one channel count and one size."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedloom.data import holdout
from fedloom.data.dataset import Dataset
from fedloom.data.folder import Listing, listings
from fedloom.data.options import Options
from fedloom.errors import DataError

ALLOWED = ("test", "test_share", "seed", "size", "bad_files")

_GREY = ("1", "L", "I", "I;16", "I;16B", "I;16L", "I;16N")


@dataclass(frozen=True)
class _Rule:
    grey: bool
    height: int
    width: int


def load(path: Path, options: Options) -> Dataset:
    """Read every picture of an image folder.

    Channels: 1 when every picture is grey, else 3 (RGB). Transparent pixels lie on white, 16-bit
    grey keeps its upper 8 bits, only the first frame of an animation counts. Size: all pictures
    must agree, unless `size` resizes them (bilinear, without keeping the proportions).

    Raises DataError that lists unreadable files, empty classes and unlike sizes.
    """
    options.only(f"{path} (image folder)", *ALLOWED)
    parts, test_rule = listings(path, options)
    image = _pillow()
    heads = [_heads(image, part) for part in parts]
    bad = [line for head in heads for line in head[1]]
    rule = _rule(path, [shape for head in heads for shape in head[0].values()], bad, options)
    xs, ys = [], []
    notes = [note for part in parts for note in part.notes]
    counts: Counter[str] = Counter()
    for part, (good, _) in zip(parts, heads, strict=True):
        x, y, broken = _decode(image, part, good, rule, counts)
        bad += broken
        xs.append(x)
        ys.append(y)
    if bad and options.bad_files == "refuse":
        raise DataError(
            f"{path}: {len(bad)} pictures can't be read: {'; '.join(bad[:10])}; "
            "repair or remove them, or set bad_files='skip'"
        )
    notes += [f"{len(bad)} unreadable pictures left out: {holdout.some(bad)}"] if bad else []
    notes += [f"{count} pictures {what}" for what, count in sorted(counts.items())]
    return _finish(path, parts[0].classes, xs, ys, notes, test_rule, options)


def _finish(
    path: Path,
    classes: tuple[str, ...],
    xs: list[np.ndarray],
    ys: list[np.ndarray],
    notes: list[str],
    test_rule: str,
    options: Options,
) -> Dataset:
    if len(np.unique(ys[0])) < max(2, len(classes)):
        absent = [classes[c] for c in np.setdiff1d(np.arange(len(classes)), ys[0])]
        raise DataError(
            f"{path}: two classes with readable training pictures are needed; "
            f"classes: {holdout.some(classes)}; without one: {holdout.some(absent) or 'none'}"
        )
    if len(xs) == 1:
        train, test = holdout.stratified(ys[0], options.test_share, options.seed)
        xs, ys = [xs[0][train], xs[0][test]], [ys[0][train], ys[0][test]]
    notes += holdout.remarks(xs[0], xs[1], ys[0], ys[1], classes)
    return Dataset(
        name=path.name,
        x_train=xs[0],
        y_train=ys[0],
        x_test=xs[1],
        y_test=ys[1],
        classes=classes,
        kind="image",
        test_rule=test_rule,
        notes=tuple(notes),
        source=str(path),
    )


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise DataError("image folders need Pillow: pip install 'fedloom[images]'") from None
    return Image


def _faults(image: Any) -> tuple[type[Exception], ...]:
    return OSError, SyntaxError, ValueError, EOFError, image.DecompressionBombError


def _heads(image: Any, part: Listing) -> tuple[dict[int, tuple[str, int, int]], list[str]]:
    """Mode, height and width of each readable picture, and the others with their fault."""
    good, bad = {}, []
    for place, file in enumerate(part.files):
        try:
            with image.open(file) as picture:
                good[place] = (_mode(picture), picture.height, picture.width)
        except _faults(image) as error:
            bad.append(f"{_short(part, file)} ({_reason(error)})")
    return good, bad


def _mode(picture: Any) -> str:
    mode = str(picture.mode)
    if mode == "LA":
        return "L"
    if mode == "F":
        raise ValueError("32-bit float picture; store 8 or 16 bits")
    return mode


def _reason(error: Exception) -> str:
    text = str(error).split("'")[0].strip() or type(error).__name__
    return "not a picture" if text.startswith("cannot identify") else text


def _short(part: Listing, file: Path) -> str:
    return str(file.relative_to(part.root.parent))


def _rule(
    path: Path, shapes: list[tuple[str, int, int]], bad: list[str], options: Options
) -> _Rule:
    if not shapes:
        raise DataError(f"{path}: no picture can be read: {'; '.join(bad[:10])}")
    grey = all(mode in _GREY for mode, _, _ in shapes)
    if options.size is not None:
        height, width = options.size  # type: ignore[misc]
        return _Rule(grey, height, width)
    sizes = Counter((height, width) for _, height, width in shapes)
    if len(sizes) > 1:
        told = ", ".join(f"{h}x{w} ({count})" for (h, w), count in sizes.most_common(5))
        raise DataError(
            f"{path}: pictures of {len(sizes)} sizes (height x width): {told}; "
            "set size to resize all of them"
        )
    return _Rule(grey, *next(iter(sizes)))


def _decode(
    image: Any,
    part: Listing,
    good: dict[int, tuple[str, int, int]],
    rule: _Rule,
    counts: "Counter[str]",
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    channels = 1 if rule.grey else 3
    x = np.empty((len(good), channels, rule.height, rule.width), dtype=np.uint8)
    y = np.empty(len(good), dtype=np.int64)
    filled, bad = 0, []
    for place in good:
        file = part.files[place]
        try:
            with image.open(file) as picture:
                x[filled], changes = _pixels(image, picture, rule)
        except _faults(image) as error:
            bad.append(f"{_short(part, file)} ({_reason(error)})")
            continue
        counts.update(changes)
        y[filled] = part.labels[place]
        filled += 1
    return x[:filled], y[:filled], bad


def _pixels(image: Any, picture: Any, rule: _Rule) -> tuple[np.ndarray, list[str]]:
    changes = []
    if getattr(picture, "n_frames", 1) > 1:
        changes.append("have several frames, of which the first is kept")
    picture.load()
    if picture.mode.startswith("I"):
        wide = np.asarray(picture).astype(np.int64)
        if wide.max(initial=0) > 255 or picture.mode != "I":
            wide = np.clip(wide, 0, 65535) >> 8
        picture = image.fromarray(wide.astype(np.uint8))
        changes.append("of 16 bits reduced to 8")
    if "A" in picture.getbands() or "transparency" in picture.info:
        layer = picture.convert("RGBA")
        picture = image.alpha_composite(image.new("RGBA", layer.size, "white"), layer)
        changes.append("with transparency laid on white")
    mode = "L" if rule.grey else "RGB"
    if picture.mode != mode:
        if picture.mode in ("P", "CMYK", "L", "1"):
            changes.append(f"of mode {picture.mode} turned into {mode}")
        picture = picture.convert(mode)
    if picture.size != (rule.width, rule.height):
        picture = picture.resize((rule.width, rule.height), image.Resampling.BILINEAR)
        changes.append(f"resized to {rule.height}x{rule.width}")
    pixels = np.asarray(picture, dtype=np.uint8)
    return (pixels[None] if rule.grey else pixels.transpose(2, 0, 1)), changes

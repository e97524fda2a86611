"""What lies in an image folder: classes, pictures, and what is there beside them."""

from dataclasses import dataclass
from pathlib import Path

from fedloom.data.holdout import some
from fedloom.data.options import Options
from fedloom.errors import DataError

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
SYSTEM = ("thumbs.db", "desktop.ini", "__macosx", "ehthumbs.db", "@eadir")


@dataclass(frozen=True)
class Listing:
    """Pictures of one part, sorted by class and file name."""

    root: Path
    classes: tuple[str, ...]
    files: tuple[Path, ...]
    labels: tuple[int, ...]
    notes: tuple[str, ...]


def listings(path: Path, options: Options) -> tuple[list[Listing], str]:
    """One or two parts of an image folder and the rule for the test part.

    `path` holds class folders, or `train` and `test` folders that hold them. Class numbers come
    from the training part alone, by name. Hidden and system files are passed over.
    """
    inner = {item.name: item for item in _visible(path) if item.is_dir()}
    roots, rule = [path], ""
    notes: list[str] = []
    if options.test_path is not None:
        roots.append(options.test_path)
        rule = f"folder {options.test_path.name}"
    elif "train" in inner:
        if "test" in inner:
            roots, rule = [inner["train"], inner["test"]], f"folder {path.name}/test"
        else:
            roots = [inner["train"]]
        if rest := sorted(set(inner) - {"train", "test"}):
            notes.append(f"{path.name}: sub-folders beside train and test, not used: {some(rest)}")
    if len(roots) == 1:
        rule = f"{100 * options.test_share:g} % of the rows, stratified, seed {options.seed}"
    for root in roots:
        if not root.is_dir():
            raise DataError(f"{root}: no such folder")
    first = _list(roots[0], (), options)
    found = [Listing(first.root, first.classes, first.files, first.labels, (*notes, *first.notes))]
    found += [_list(root, first.classes, options) for root in roots[1:]]
    return found, rule


def _visible(folder: Path) -> list[Path]:
    return sorted(
        (
            item
            for item in folder.iterdir()
            if not item.name.startswith((".", "~$")) and item.name.lower() not in SYSTEM
        ),
        key=lambda item: item.name,
    )


def _list(root: Path, classes: tuple[str, ...], options: Options) -> Listing:
    items = _visible(root)
    stray = [item.name for item in items if item.is_file() and item.suffix.lower() in SUFFIXES]
    if stray:
        raise DataError(
            f"{root}: {len(stray)} pictures outside class folders: {some(stray)}; "
            "each belongs into a sub-folder named after its class"
        )
    folders = {item.name: item for item in items if item.is_dir()}
    pictures: dict[str, list[Path]] = {}
    other: list[str] = []
    for name, folder in folders.items():
        inside = _visible(folder)
        pictures[name] = [i for i in inside if i.is_file() and i.suffix.lower() in SUFFIXES]
        other += [f"{name}/{item.name}" for item in inside if item not in pictures[name]]
    notes = [f"{root.name}: {len(other)} items that are no pictures, not used: {some(other)}"]
    notes = notes if other else []
    if not any(pictures.values()):
        raise DataError(
            f"{root}: no pictures; expected one sub-folder per class with files that end in "
            f"{', '.join(SUFFIXES)}"
        )
    empty = [name for name, files in pictures.items() if not files]
    if empty and not classes:
        if options.bad_files == "refuse":
            raise DataError(
                f"{root}: class folders without pictures: {some(empty)}; fill or remove them, "
                "or set bad_files='skip'"
            )
        notes.append(f"{root.name}: empty class folders left out: {some(empty)}")
    if classes and (unseen := [n for n in pictures if pictures[n] and n not in classes]):
        raise DataError(f"{root}: classes that the training part lacks: {some(unseen)}")
    names = classes or tuple(name for name in sorted(pictures) if pictures[name])
    pairs = [(file, code) for code, name in enumerate(names) for file in pictures.get(name, [])]
    return Listing(
        root, names, tuple(f for f, _ in pairs), tuple(c for _, c in pairs), tuple(notes)
    )

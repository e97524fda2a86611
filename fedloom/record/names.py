"""Names for files and folders that stay inside their folder and stay different from each other."""

import hashlib
import re
from pathlib import Path, PurePosixPath, PureWindowsPath

from fedloom.errors import RunDirectoryError

LONGEST = 60  # letters: with the hash, at most 249 bytes in UTF-8


def inside(folder: Path, name: str) -> Path:
    """`folder / name`, for a relative name that doesn't lead out of `folder`, nor through a link.

    >>> inside(Path("runs"), "fedavg/trial-0").as_posix()
    'runs/fedavg/trial-0'

    Raises RunDirectoryError for anything else.
    """
    parts = PurePosixPath(name.replace("\\", "/")).parts
    outside = PurePosixPath(name).is_absolute() or PureWindowsPath(name).anchor or ".." in parts
    if not parts or outside or any(ord(letter) < 32 for letter in name):
        raise RunDirectoryError(
            f"the name {name!r} is refused: expected a relative name without '..', inside {folder}"
        )
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()):
        raise RunDirectoryError(f"the name {name!r} is refused: a link leads it out of {folder}")
    return path


def file_name(text: str) -> str:
    """A file name made from any text: letters, digits, `.`, `_`, `=` and `-`.

    Text that had to change gets eight digits of its hash, so that two texts never share a name.

    >>> file_name("fedavg"), file_name("../../x")
    ('fedavg', 'x-9cdf6a50')
    """
    safe = re.sub(r"[^\w.=-]+", "_", text)[:LONGEST].strip("._-")
    if safe == text and not _reserved(safe):
        return safe
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{safe or 'name'}-{digest}"


def _reserved(name: str) -> bool:
    stem = name.split(".")[0].upper()
    device = re.fullmatch(r"CON|PRN|AUX|NUL|COM\d|LPT\d", stem)
    return bool(not name or device or re.search(r"-[0-9a-f]{8}$", name))

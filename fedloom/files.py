"""Files that are whole or absent: written under another name, flushed, then renamed."""

import errno
import os
import secrets
import shutil
from collections.abc import Iterable
from pathlib import Path

from fedloom.errors import RunDirectoryError

Buffer = bytes | bytearray | memoryview

PREFIX, SUFFIX = ".fedloom-", ".part"


def write_atomic(path: Path, parts: Iterable[Buffer], size: int) -> None:
    """Put `parts`, `size` bytes in all, at `path`; a reader sees the old file or the new one.

    Raises RunDirectoryError when the disk is full or the file can't be written; the old one stays.
    """
    temporary = path.with_name(f"{PREFIX}{secrets.token_hex(8)}{SUFFIX}")
    try:
        with open(temporary, "xb") as handle:
            for part in parts:
                handle.write(part)
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(temporary, path)
        sync_folder(path.parent)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise write_error(path, size, error) from error
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def sync_folder(folder: Path) -> None:
    """Make the renames done in `folder` survive a power cut, where the system can open folders."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_leftovers(folder: Path) -> int:
    """Delete the temporary files that killed writers left in `folder`; gives how many.

    Only for a folder that no other process writes to.
    """
    left = list(folder.glob(f"{PREFIX}*{SUFFIX}"))
    for path in left:
        path.unlink(missing_ok=True)
    return len(left)


def is_leftover(path: Path) -> bool:
    """Whether this is the temporary file of a write that was never completed."""
    return path.name.startswith(PREFIX) and path.name.endswith(SUFFIX)


def write_error(path: Path, size: int, error: OSError) -> RunDirectoryError:
    """The error to raise when `size` bytes could not be written to `path`."""
    kept = "what was there before is unchanged"
    if error.errno == errno.EFBIG:
        return RunDirectoryError(
            f"can't write {path}: it needs {size} bytes and the limit on file size is lower; "
            f"raise the limit (ulimit -f), then resume; {kept}"
        )
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return RunDirectoryError(
            f"can't write {path}: it needs {size} bytes and the disk or quota is full"
            f"{_free(path)}; free some space, then resume; {kept}"
        )
    return RunDirectoryError(f"can't write {path} ({size} bytes): {error.strerror}; {kept}")


def _free(path: Path) -> str:
    try:
        return f" ({shutil.disk_usage(path.parent).free} bytes are free)"
    except OSError:
        return ""

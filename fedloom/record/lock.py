"""One writer a folder: a lock that the system drops when its process dies, however it dies."""

import functools
import os
import socket
import time
import weakref
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from fedloom.errors import RunDirectoryError
from fedloom.record import jsonio

try:
    import fcntl
except ImportError:  # Windows: the package imports, but nothing can be locked
    fcntl = None  # type: ignore[assignment]

NAME = "lock"

_held: "weakref.WeakSet[Lock]" = weakref.WeakSet()


class Lock:
    """The right to write in a folder, held from `take` to `release`."""

    def __init__(self, path: Path, descriptor: int, left_by: dict[str, Any] | None) -> None:
        self.path = path
        self.descriptor: int | None = descriptor
        self.left_by = left_by
        """Who held the lock last, when that process ended without giving it back."""

    @classmethod
    def take(cls, folder: Path) -> Self:
        """Lock `folder`, or raise RunDirectoryError that says which process has it."""
        if fcntl is None:
            raise RunDirectoryError(
                f"can't lock {folder}: run directories need a POSIX system (Linux or macOS)"
            )
        path = folder / NAME
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise RunDirectoryError(f"can't lock {path}: {error.strerror}") from error
        try:
            free = _try(descriptor)
        except OSError as error:
            os.close(descriptor)
            raise RunDirectoryError(
                f"can't lock {path}: {error.strerror}; use a folder on a file system with locks"
            ) from error
        if not free:
            os.close(descriptor)
            raise RunDirectoryError(_in_use(folder))
        lock = cls(path, descriptor, _owner(path))
        lock._sign()
        _held.add(lock)
        _watch_forks()
        return lock

    def _sign(self) -> None:
        assert self.descriptor is not None
        now = datetime.now(UTC).isoformat(timespec="seconds")
        mine = {"pid": os.getpid(), "host": socket.gethostname(), "start": now}
        os.ftruncate(self.descriptor, 0)
        os.pwrite(self.descriptor, (jsonio.dumps(mine) + "\n").encode(), 0)

    def release(self) -> None:
        """Let others write. The file stays, empty: were it deleted, two could hold a lock."""
        if self.descriptor is not None:
            os.ftruncate(self.descriptor, 0)
            self._close()

    def _close(self) -> None:
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None


def holder(folder: Path) -> dict[str, Any] | None:
    """Who writes in `folder` now: pid, host, start; `{}` if not yet known; None for nobody."""
    path = folder / NAME
    if fcntl is None or not path.is_file():
        return None
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _owner(path) or {}
    finally:
        os.close(descriptor)
    return None


def _try(descriptor: int) -> bool:
    for _ in range(5):  # `holder` may hold it for a moment to look
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.02)
        else:
            return True
    return False


def _owner(path: Path) -> dict[str, Any] | None:
    try:
        value = jsonio.loads(path.read_bytes(), str(path))
    except (OSError, RunDirectoryError):
        return None
    return value if isinstance(value, dict) else None


def _in_use(folder: Path) -> str:
    owner = _owner(folder / NAME)  # absent for the moment between locking and signing
    who = (
        f"process {owner.get('pid')} on {owner.get('host')} since {owner.get('start')}"
        if owner
        else "another process"
    )
    return f"{folder} is in use by {who}; wait for it to end, or choose another folder"


@functools.cache
def _watch_forks() -> None:
    """Forked workers close their copy, so that no orphan holds the lock of its dead parent."""
    os.register_at_fork(after_in_child=_close_all)


def _close_all() -> None:
    for lock in list(_held):
        lock._close()

"""The event log of a run: one strict JSON object a line, appended, rewritten on resume only."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from fedloom import files
from fedloom.errors import RunDirectoryError
from fedloom.record import jsonio

Event = dict[str, Any]


class Log(NamedTuple):
    """What an event file holds."""

    events: list[Event]
    dropped: int
    """Lines at the end that were cut off by a kill, 0 or 1."""


def read(path: Path) -> Log:
    """Read an event file, without its last line where that was cut off.

    Raises RunDirectoryError that names the file and the line of any other damage.
    """
    lines, dropped = _lines(path)
    return Log([event for _, event in lines], dropped)


def _lines(path: Path) -> tuple[list[tuple[bytes, Event]], int]:
    try:
        *whole, last = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return [], 0
    except OSError as error:
        raise RunDirectoryError(f"can't read {path}: {error.strerror}") from None
    result = []
    for number, line in enumerate(whole, start=1):
        event = jsonio.loads(line, f"{path}, line {number},")
        if not isinstance(event, dict) or not isinstance(event.get("event"), str):
            raise RunDirectoryError(
                f"{path}, line {number}, is damaged: expected an object with an 'event'"
            )
        if not isinstance(event.get("round", 0), int):
            raise RunDirectoryError(
                f"{path}, line {number}, is damaged: 'round' is {event['round']!r}, not a number"
            )
        result.append((line, event))
    return result, int(bool(last))


class EventWriter:
    """Appends to an event file that this process alone writes, through one descriptor."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.dropped = self._drop_cut_line()
        self._descriptor: int | None = self._open()

    def _open(self) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
        try:
            return os.open(self.path, flags, 0o644)
        except OSError as error:
            raise files.write_error(self.path, 0, error) from error

    def _drop_cut_line(self) -> int:
        if not self.path.exists():
            return 0
        data = self.path.read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            os.truncate(self.path, whole)
        return int(whole < len(data))

    def append(self, kind: str, fields: dict[str, Any]) -> None:
        """Write one line; it reaches the system at once, the disk at the next `sync`."""
        if self._descriptor is None:
            raise RunDirectoryError(f"{self.path} is closed; events come before close or finish")
        line = memoryview((jsonio.dumps({"event": kind, **fields}) + "\n").encode("utf-8"))
        before = os.fstat(self._descriptor).st_size
        written = 0
        try:
            while written < len(line):
                written += os.write(self._descriptor, line[written:])
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._descriptor, before)
            raise files.write_error(self.path, len(line), error) from error

    def sync(self) -> None:
        """Wait until every line is on the disk."""
        if self._descriptor is not None:
            os.fsync(self._descriptor)

    def keep_rounds(self, last: int) -> tuple[int, list[int]]:
        """Keep what belongs to rounds up to `last`; gives lines dropped and rounds kept.

        An event without a round belongs to the round before it. 'start' lines stay, as the history
        of the run; 'end' lines go, for the run goes on.
        """
        lines, _ = _lines(self.path)
        kept = list(_up_to(lines, last))
        self.close()
        data = [line + b"\n" for line, _ in kept]
        files.write_atomic(self.path, data, sum(map(len, data)))
        self._descriptor = self._open()
        rounds = [event["round"] for _, event in kept if event["event"] == "round"]
        return len(lines) - len(kept), rounds

    def close(self) -> None:
        """Let go of the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _up_to(lines: list[tuple[bytes, Event]], last: int) -> Iterator[tuple[bytes, Event]]:
    current = 0
    for line, event in lines:
        if event["event"] == "start":
            current = event.get("resumed_from") or 0
            yield line, event
            continue
        current = event.get("round", current)
        if event["event"] != "end" and current <= last:
            yield line, event

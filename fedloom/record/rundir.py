"""A run directory: one process writes it, and at any moment it can be read or resumed."""

import shutil
from collections.abc import Collection
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from fedloom import files
from fedloom.errors import ConfigError, DivergedError, RunDirectoryError
from fedloom.record import changes, jsonio, names
from fedloom.record.events import EventWriter, Log
from fedloom.record.events import read as read_events
from fedloom.record.lock import NAME as LOCK
from fedloom.record.lock import Lock
from fedloom.version import __version__

CONFIG, EVENTS, RESULT = "config.json", "events.jsonl", "result.json"
CHECKPOINTS, MODEL = "checkpoints", "model.safetensors"
PARTS = (
    RESULT,
    EVENTS,
    CHECKPOINTS,
    MODEL,
    "environment.json",
    "partition.json",
    "partition.npz",
    "card.json",
)
"""What `overwrite` deletes, the result first; the configuration is replaced."""

Status = Literal["finished", "diverged", "interrupted", "failed"]
COMPLETE = ("finished", "diverged")


class RunDir:
    """The right to write one run directory, from `create` to `close` or `finish`.

    As a context manager it records how the run ended, also when an error or an interrupt ends it.
    """

    def __init__(self, path: Path, lock: Lock) -> None:
        self.path = path
        self.resumed = False
        """Whether the folder held this run before."""
        self.result: dict[str, Any] | None = None
        """The stored result of a run that is already complete: nothing is left to do."""
        self.changes: changes.Changes = {}
        """Fields that differ from the stored configuration, all allowed: name -> (old, new)."""
        self.notes: list[str] = []
        """What was found, repaired, dropped or deleted, in sentences; `start` records them."""
        self.round = 0
        """The last round that has an event."""
        self._lock = lock
        self._ended = False

    @classmethod
    def create(
        cls,
        path: str | Path,
        *,
        config: dict[str, Any],
        overwrite: bool = False,
        resume: bool = False,
        may_change: Collection[str] = changes.MAY_CHANGE,
    ) -> Self:
        """Make the folder, lock it, and store `config`; or go on with the run it holds.

        Raises RunDirectoryError when another process writes there, when the folder holds a run and
        neither `resume` nor `overwrite` is given, when it holds anything else, or when `resume`
        finds a configuration that differs in more than `may_change`.
        """
        if overwrite and resume:
            raise ConfigError("resume and overwrite exclude each other; give one of them")
        folder = Path(path)
        _refuse_foreign(folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunDirectoryError(f"can't make the folder {folder}: {error.strerror}") from error
        run = cls(folder, Lock.take(folder))
        try:
            run._prepare(jsonio.plain(config, "config"), overwrite, resume, may_change)
        except BaseException:
            run._lock.release()
            raise
        return run

    def _prepare(
        self, config: dict[str, Any], overwrite: bool, resume: bool, may_change: Collection[str]
    ) -> None:
        _refuse_foreign(self.path)
        self._note_leftovers()
        held = (self.path / CONFIG).exists()
        if held and overwrite:
            self._clear()
        elif held:
            self._continue(config, resume, may_change)
        elif resume:
            self.notes.append(f"{self.path} held no run to resume; this one starts at round 1")
        if self.result is None and (not self.resumed or self.changes):
            self.write_json(CONFIG, config)
        self._events = EventWriter(self.path / EVENTS)
        if self._events.dropped:
            self.notes.append(f"the last line of {EVENTS} was cut off and is dropped")

    def _note_leftovers(self) -> None:
        if left := self._lock.left_by:
            self.notes.append(
                f"process {left.get('pid')} on {left.get('host')} ended without closing this run; "
                "its lock is taken over"
            )
        if count := files.remove_leftovers(self.path):
            self.notes.append(f"{count} half-written files of a killed process are deleted")

    def _continue(self, config: dict[str, Any], resume: bool, may_change: Collection[str]) -> None:
        result_path = self.path / RESULT
        result = jsonio.read_object(result_path) if result_path.exists() else None
        complete = result is not None and result.get("status") in COMPLETE
        if not resume:
            raise RunDirectoryError(
                f"{self.path} holds a {'finished' if complete else 'unfinished'} run; "
                + ("" if complete else "go on with it (resume), ")
                + "delete it (overwrite), or write to another folder"
            )
        stored = jsonio.read_object(self.path / CONFIG)
        self.changes = changes.check(stored, config, may_change, str(self.path))
        self.resumed = True
        if complete and "rounds" not in self.changes:
            self.result = result
        else:
            result_path.unlink(missing_ok=True)

    def _clear(self) -> None:
        gone = [name for name in PARTS if (self.path / name).exists()]
        for name in gone:
            path = self.path / name
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        self.notes.append(f"an earlier run was deleted ({', '.join(gone)})")

    @property
    def checkpoints(self) -> Path:
        """The folder of checkpoints."""
        return self.path / CHECKPOINTS

    def start(self, resumed_from: int | None = None, notes: Collection[str] = ()) -> None:
        """Record that work begins: time, version, notes, and what changed in the configuration."""
        self.event(
            "start",
            time=datetime.now(UTC).isoformat(timespec="seconds"),
            fedloom=__version__,
            resumed_from=resumed_from,
            notes=[*self.notes, *notes],
            changes={name: {"from": old, "to": new} for name, (old, new) in self.changes.items()},
        )

    def event(self, kind: str, **fields: Any) -> None:
        """Append one line; all of a round's events come before that round's checkpoint."""
        self._events.append(kind, fields)
        if kind not in ("start", "end"):
            self.round = max(self.round, fields.get("round", 0))

    def events(self) -> Log:
        """All events so far."""
        return read_events(self.path / EVENTS)

    def sync(self) -> None:
        """Wait until all events are on the disk: call it before a checkpoint is saved."""
        self._events.sync()

    def truncate_after(self, round: int) -> int:
        """Drop the events of rounds after `round`, which will be run again; gives lines dropped.

        -1 drops all rounds, the evaluation of the initial model (round 0) included.
        """
        dropped, rounds = self._events.keep_rounds(round)
        self.round = max(round, 0)
        if dropped:
            self.notes.append(
                f"{dropped} lines of {EVENTS} of rounds after {round}, or of the end of the run, "
                "are dropped"
            )
        if missing := sorted(set(range(1, round + 1)) - set(rounds)):
            shown = ", ".join(map(str, missing[:10])) + (" ..." if len(missing) > 10 else "")
            self.notes.append(f"{EVENTS} lacks {len(missing)} rounds before the resume: {shown}")
        return dropped

    def write_json(self, name: str, value: Any) -> None:
        """Write a JSON file of this run, whole or not at all."""
        jsonio.write(names.inside(self.path, name), value)

    def end(self, status: Status) -> None:
        """Record how work ended; the run stays resumable."""
        self.event("end", status=status, round=self.round)
        self._events.sync()
        self._ended = True

    def finish(self, result: dict[str, Any]) -> None:
        """Record the end, then write the result, which makes the run complete, and close."""
        if result.get("status") not in COMPLETE:
            raise ValueError(f"status is {result.get('status')!r}; expected one of {COMPLETE}")
        self.end(result["status"])
        self.write_json(RESULT, result)
        self.close()

    def close(self) -> None:
        """Let go of the folder."""
        self._events.close()
        self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        try:
            if error is not None and not self._ended:
                with suppress(RunDirectoryError):  # a full disk must not hide `error`
                    self.end(_status(error))
        finally:
            self.close()


def _status(error: BaseException) -> Status:
    if isinstance(error, KeyboardInterrupt | SystemExit):
        return "interrupted"
    return "diverged" if isinstance(error, DivergedError) else "failed"


def is_run(folder: Path) -> bool:
    """Whether `folder` holds a run; a configuration alone could be any program's."""
    marks = (EVENTS, RESULT, LOCK)
    return (folder / CONFIG).is_file() and any((folder / name).is_file() for name in marks)


def _refuse_foreign(folder: Path) -> None:
    if not folder.exists():
        return
    if not folder.is_dir():
        raise RunDirectoryError(f"{folder} is a file; expected a folder for the run")
    if is_run(folder):
        return
    found = sorted(p.name for p in folder.iterdir() if p.name != LOCK and not files.is_leftover(p))
    if found:
        raise RunDirectoryError(
            f"{folder} is not empty and holds no run ({', '.join(found[:3])}"
            + (", ..." if len(found) > 3 else "")
            + "); choose a new or empty folder"
        )

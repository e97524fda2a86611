"""Many runs: one after another here, or in processes of their own with one thread each."""

import multiprocessing
import multiprocessing.connection
import os
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedloom.config import RunConfig
from fedloom.errors import FedloomError
from fedloom.server.run import NO_GUARD, Progress, RunResult, run


@dataclass(frozen=True)
class Cell:
    """One run of a matrix: where it goes below the folder, and what it is."""

    name: str
    config: RunConfig
    label: str
    role: str = "method"


Outcome = tuple[dict[str, RunResult], dict[str, FedloomError]]
"""(results by name, errors by name)."""


def run_cells(
    cells: Sequence[Cell],
    folder: Path,
    jobs: int = 1,
    *,
    resume: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Outcome:
    """Run all cells, `jobs` at a time; what one of them does never stops the others.

    An interrupt, or a worker process that is killed, ends all of them; finished runs are on disk.
    """
    mode = {"resume": resume, "overwrite": overwrite}
    if jobs == 1 or len(cells) < 2:
        return _one_by_one(cells, folder, mode, progress)
    return _in_processes(cells, folder, min(jobs, len(cells)), mode, progress)


def _one_by_one(
    cells: Sequence[Cell], folder: Path, mode: Mapping[str, bool], progress: Progress | None
) -> Outcome:
    results: dict[str, RunResult] = {}
    errors: dict[str, FedloomError] = {}
    for number, cell in enumerate(cells, 1):
        named = None if progress is None else _Numbered(progress, f"{number}/{len(cells)} ")
        try:
            results[cell.name] = _run(cell, folder, mode, named)
        except Exception as error:
            errors[cell.name] = _readable(error)
    return results, errors


def _readable(error: Exception) -> FedloomError:
    """An error of ours as it is, any other (a bug, a killed worker, no memory) with its type."""
    if isinstance(error, FedloomError):
        return error
    if isinstance(error, BrokenProcessPool):
        return FedloomError(
            f"a worker process ended early: it was killed, memory ran out, or {NO_GUARD}"
        )
    return FedloomError(f"{type(error).__name__}: {error}")


def _run(
    cell: Cell, folder: Path, mode: Mapping[str, bool], progress: Progress | None
) -> RunResult:
    return run(
        cell.config, folder / cell.name, label=cell.label, role=cell.role, progress=progress, **mode
    )


class _Numbered:
    """Progress whose label says which run of how many this is."""

    def __init__(self, inner: Progress, prefix: str) -> None:
        self._inner, self._prefix = inner, prefix
        self.advance, self.close = inner.advance, inner.close

    def start(self, total_rounds: int, label: str) -> None:
        self._inner.start(total_rounds, self._prefix + label)


def _in_processes(
    cells: Sequence[Cell],
    folder: Path,
    jobs: int,
    mode: Mapping[str, bool],
    progress: Progress | None,
) -> Outcome:
    results: dict[str, RunResult] = {}
    errors: dict[str, FedloomError] = {}
    context = multiprocessing.get_context("spawn")
    queue = context.SimpleQueue()
    total = sum(cell.config.rounds for cell in cells)
    if progress is not None:
        progress.start(total, f"{len(cells)} runs, {jobs} at a time")
    listener = threading.Thread(target=_listen, args=(queue, progress), daemon=True)
    listener.start()
    workers = ProcessPoolExecutor(jobs, context, initializer=_enter, initargs=(queue,))
    try:
        waiting = {workers.submit(_run_there, cell, folder, dict(mode)): cell for cell in cells}
        for future in as_completed(waiting):
            try:
                results[waiting[future].name] = future.result()
            except Exception as error:
                errors[waiting[future].name] = _readable(error)
    except BaseException:
        workers.shutdown(wait=False, cancel_futures=True)
        for child in multiprocessing.active_children():
            child.terminate()
        raise
    finally:
        queue.put(None)
        listener.join()
        if progress is not None:
            progress.close()
    workers.shutdown()
    return results, errors


def _listen(queue: Any, progress: Progress | None) -> None:
    done: dict[str, int] = {}
    while (message := queue.get()) is not None:
        name, round = message
        done[name] = round
        if progress is not None:
            progress.advance(sum(done.values()), {})


_channel: Any = None


def _enter(queue: Any) -> None:
    global _channel  # a worker process has one channel for its whole life
    _channel = queue
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A killed parent must not leave workers behind that hold its folders; writes are atomic."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    multiprocessing.connection.wait([parent.sentinel])
    os._exit(1)


class _Distant:
    """Progress of a run in a worker process, told to the parent."""

    def __init__(self, name: str) -> None:
        self._name = name

    def start(self, total_rounds: int, label: str) -> None:
        """Nothing: the parent shows one bar for all runs."""

    def advance(self, round: int, info: Mapping[str, Any]) -> None:
        _channel.put((self._name, max(0, round)))

    def close(self) -> None:
        """Nothing."""


def _run_there(cell: Cell, folder: Path, mode: dict[str, bool]) -> RunResult:
    return _run(cell, folder, mode, _Distant(cell.name))

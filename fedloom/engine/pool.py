"""Worker processes that live as long as a run; all of them read one copy of the data.

A worker that dies is replaced and its unfinished work repeated; since work is a pure function of
what is sent, the result has the same bits. Work that kills two workers ends the run.
"""

import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from shutil import rmtree
from typing import Any

import torch

from fedloom.engine import allocator
from fedloom.engine.wire import Shelf, dumps, loads
from fedloom.errors import ConfigError, FedloomError

LIVES = 2  # workers that a piece of work may kill before it is given up

OUT_OF_MEMORY = (
    "The system ends processes when memory runs out: use fewer workers or smaller batches"
)
NOT_STARTED = (
    "They import the script that starts them: put its calls under "
    'if __name__ == "__main__":, or use workers=1'
)

Work = Callable[[Any, Any, Any], Iterator[Any]]
"""(resident, shared, payload) -> results; a function of a module, the same each time it is run."""


@dataclass
class _Task:
    payload: Any
    given: int = 0
    """Results already handed on."""
    killed: int = 0


@dataclass
class _Worker:
    process: Any
    pipe: Connection
    knows: int = -1
    """Number of the shared value that it holds."""
    task: _Task | None = None
    seen: int = field(default=0)
    """Results of this task that came from this worker."""


class Pool:
    """Worker processes that hold `resident`, which is sent to each once.

    Raises ConfigError if it can't be sent, as with classes that only this process knows.
    """

    def __init__(self, resident: Any, workers: int) -> None:
        self._shelf = Shelf()
        try:
            self._resident = dumps(resident, self._shelf)
        except Exception as error:
            self._shelf.clear()
            raise ConfigError(
                f"workers={workers}: the model or the method can't be sent to worker processes "
                f"({type(error).__name__}: {error}); define it in a module, or use workers=1"
            ) from error
        self._context = multiprocessing.get_context("spawn")
        self._workers = [self._started() for _ in range(workers)]  # all at once, then in turn
        for worker in self._workers:
            self._introduce(worker)
        self._count = 0
        self.replaced = 0
        """Workers that died and were replaced so far."""

    def run(self, work: Work, shared: Any, payloads: Iterable[Any]) -> Iterator[Any]:
        """Every result of `work(resident, shared, payload)`, as they come, payloads in order.

        After an error, which is raised here, the pool is of no more use: close it.
        """
        self._count += 1
        message = dumps((work, shared))
        following = map(_Task, payloads)
        queue: list[_Task] = []  # work of workers that died
        while True:
            for place, worker in enumerate(self._workers):
                task = worker.task or (queue.pop() if queue else next(following, None))
                if task is not None and worker.task is None:
                    self._give(place, task, message, queue)
            if not any(worker.task for worker in self._workers):
                return
            for place in self._ready():
                yield from self._receive(place, queue)

    def close(self) -> None:
        """End the processes and remove the shared copy of the data."""
        for worker in self._workers:
            worker.pipe.close()
            worker.process.terminate()
        for worker in self._workers:
            worker.process.join()
        self._workers = []
        self._shelf.clear()

    def pids(self) -> list[int]:
        """Process ids of the workers."""
        return [worker.process.pid for worker in self._workers]

    def _started(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(
            target=_serve,
            args=(theirs, str(self._shelf.path), torch.get_num_threads()),
            daemon=True,
        )
        process.start()
        theirs.close()
        return _Worker(process, ours)

    def _introduce(self, worker: _Worker) -> None:
        with suppress(OSError):  # if it died at once, `_ready` finds out
            worker.pipe.send_bytes(self._resident)

    def _give(self, place: int, task: _Task, message: bytes, queue: list[_Task]) -> None:
        worker = self._workers[place]
        worker.task, worker.seen = task, 0
        try:
            if worker.knows != self._count:
                worker.pipe.send_bytes(b"s" + message)
                worker.knows = self._count
            worker.pipe.send_bytes(b"t" + dumps(task.payload))
        except OSError:
            self._replace(place, queue)

    def _ready(self) -> list[int]:
        """Workers with something to say, or dead."""
        busy = {worker.pipe: p for p, worker in enumerate(self._workers) if worker.task}
        ends = {worker.process.sentinel: p for p, worker in enumerate(self._workers) if worker.task}
        found = wait([*busy, *ends])
        return sorted({busy[each] if each in busy else ends[each] for each in found})

    def _receive(self, place: int, queue: list[_Task]) -> Iterator[Any]:
        """Results of one worker that have not been handed on before."""
        worker = self._workers[place]
        task = worker.task
        assert task is not None
        try:
            data = worker.pipe.recv_bytes()
        except (EOFError, OSError):
            self._replace(place, queue)
            return
        kind, value = loads(data)
        if kind == "error":
            raise value
        if kind == "end":
            worker.task = None
            return
        worker.seen += 1
        if worker.seen > task.given:
            task.given += 1
            yield value

    def _replace(self, place: int, queue: list[_Task]) -> None:
        """A new worker for a dead one, whose task goes back to the front of the queue."""
        worker = self._workers[place]
        worker.pipe.close()
        worker.process.join()
        task, code = worker.task, worker.process.exitcode
        assert task is not None
        task.killed += 1
        if task.killed >= LIVES:
            raise FedloomError(
                f"{LIVES} worker processes died over the same work (exit code {code}). "
                + (NOT_STARTED if code == 1 else OUT_OF_MEMORY)
            )
        self.replaced += 1
        self._workers[place] = self._started()
        self._introduce(self._workers[place])
        queue.append(task)


def _serve(pipe: Connection, shelf: str, threads: int) -> None:
    """The life of a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, args=(shelf,), daemon=True).start()
    torch.set_num_threads(threads)
    allocator.keep_freed_memory()
    try:
        resident, work, shared = loads(pipe.recv_bytes()), None, None
        while True:
            message = pipe.recv_bytes()
            value = loads(message[1:])
            if message[:1] == b"s":
                work, shared = value
                continue
            assert work is not None
            for result in work(resident, shared, value):
                pipe.send_bytes(dumps(("result", result)))
            pipe.send_bytes(dumps(("end", None)))
    except (EOFError, OSError):
        return
    except Exception as error:
        pipe.send_bytes(dumps(("error", _readable(error))))


def _readable(error: Exception) -> FedloomError:
    if isinstance(error, FedloomError):
        return error
    where = traceback.extract_tb(error.__traceback__)[-1]
    return FedloomError(
        f"{type(error).__name__} in a worker process: {error} ({where.filename}:{where.lineno})"
    )


def _end_with_parent(shelf: str) -> None:
    """A killed parent must leave neither processes nor the shared copy of the data behind."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    rmtree(shelf, ignore_errors=True)
    os._exit(1)

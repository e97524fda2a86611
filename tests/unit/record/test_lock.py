import multiprocessing
import os
import signal
import time
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from pathlib import Path

import pytest

from fedloom.errors import RunDirectoryError
from fedloom.record.lock import Lock, holder

fork = multiprocessing.get_context("fork")


def hold(folder: Path, out: Connection, grandchild: bool = False) -> None:
    lock = Lock.take(folder)
    if grandchild and os.fork() == 0:
        time.sleep(5)
        os._exit(0)
    out.send(lock.descriptor)
    time.sleep(60)


def held_elsewhere(folder: Path, *, grandchild: bool = False) -> ForkProcess:
    ours, theirs = fork.Pipe()
    process = fork.Process(target=hold, args=(folder, theirs, grandchild))
    process.start()
    assert ours.poll(20)
    ours.recv()
    return process


def test_the_second_process_stops_at_once_and_names_the_first(tmp_path: Path) -> None:
    process = held_elsewhere(tmp_path)
    began = time.monotonic()
    with pytest.raises(RunDirectoryError, match=f"in use by process {process.pid} on "):
        Lock.take(tmp_path)
    assert time.monotonic() - began < 1
    assert (holder(tmp_path) or {})["pid"] == process.pid
    process.kill()
    process.join()


@pytest.mark.parametrize("grandchild", [False, True])
def test_the_lock_of_a_killed_process_is_taken_over(tmp_path: Path, grandchild: bool) -> None:
    process = held_elsewhere(tmp_path, grandchild=grandchild)
    os.kill(process.pid or 0, signal.SIGKILL)
    process.join()
    assert holder(tmp_path) is None
    lock = Lock.take(tmp_path)
    assert (lock.left_by or {})["pid"] == process.pid
    lock.release()


def test_a_lock_given_back_leaves_nothing_to_take_over(tmp_path: Path) -> None:
    Lock.take(tmp_path).release()
    lock = Lock.take(tmp_path)
    assert lock.left_by is None
    lock.release()
    lock.release()


def test_one_process_cannot_lock_twice(tmp_path: Path) -> None:
    lock = Lock.take(tmp_path)
    with pytest.raises(RunDirectoryError, match=str(os.getpid())):
        Lock.take(tmp_path)
    lock.release()


def test_nobody_holds_a_folder_without_lock(tmp_path: Path) -> None:
    assert holder(tmp_path) is None


def test_looking_does_not_take_the_lock(tmp_path: Path) -> None:
    Lock.take(tmp_path).release()
    assert holder(tmp_path) is None
    Lock.take(tmp_path).release()

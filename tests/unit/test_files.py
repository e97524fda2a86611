import errno
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fedloom import files
from fedloom.errors import RunDirectoryError


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_file_is_replaced_whole_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "ü (1).bin"
    for content in (b"first", b"the second one"):
        files.write_atomic(path, [content[:3], content[3:]], len(content))
        assert path.read_bytes() == content
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_no_room_names_the_path_and_the_bytes_and_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    files.write_atomic(path, [b"old"], 3)
    with file_size_limit(1000), pytest.raises(RunDirectoryError) as caught:
        files.write_atomic(path, [bytes(5000)], 5000)
    assert str(path) in str(caught.value)
    assert "5000 bytes" in str(caught.value)
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.bin"]
    files.write_atomic(path, [bytes(5000)], 5000)
    assert path.stat().st_size == 5000


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_called_so(tmp_path: Path, number: int) -> None:
    error = files.write_error(tmp_path / "a", 7, OSError(number, os.strerror(number)))
    assert "7 bytes and the disk or quota is full" in str(error)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match="No such file"):
        files.write_atomic(tmp_path / "none" / "a", [b""], 0)


def test_an_interrupt_while_writing_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    files.write_atomic(path, [b"old"], 3)

    def interrupted() -> Iterator[bytes]:
        yield b"ne"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        files.write_atomic(path, interrupted(), 3)
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.bin"]


def test_only_leftovers_are_removed(tmp_path: Path) -> None:
    (tmp_path / ".fedloom-0123.part").write_bytes(b"x")
    (tmp_path / "mine.part").write_bytes(b"x")
    assert files.remove_leftovers(tmp_path) == 1
    assert [p.name for p in tmp_path.iterdir()] == ["mine.part"]

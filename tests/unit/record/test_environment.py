import getpass
import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from fedloom.record import environment, jsonio

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *who, "-C", str(folder), *arguments], check=True, capture_output=True)


def test_versions_and_machine_are_told_and_nothing_private() -> None:
    found = environment.collect()
    assert {"fedloom", "python", "packages", "platform", "processor", "threads"} <= set(found)
    assert found["packages"]["torch"]
    assert found["threads"] >= 1
    text = jsonio.dumps(found)
    for private in (str(Path.home()), os.getcwd(), socket.gethostname(), f'"{getpass.getuser()}"'):
        assert private not in text


@needs_git
def test_a_checkout_tells_its_commit_and_whether_it_changed(tmp_path: Path) -> None:
    git(tmp_path, "init")
    (tmp_path / "a").write_text("1")
    assert environment.commit(tmp_path) is None
    git(tmp_path, "add", "a")
    git(tmp_path, "commit", "-m", "one")
    clean = environment.commit(tmp_path)
    assert clean is not None
    assert len(clean["id"]) == 40
    assert clean["changed"] is False
    (tmp_path / "a").write_text("2")
    assert environment.commit(tmp_path) == {"id": clean["id"], "changed": True}


@needs_git
def test_a_folder_inside_somebody_elses_repository_tells_nothing(tmp_path: Path) -> None:
    git(tmp_path, "init")
    (tmp_path / "inner").mkdir()
    assert environment.commit(tmp_path / "inner") is None


def test_without_git_there_is_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert environment.commit(tmp_path) is None

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fedloom.cli import app

ROOT = Path(__file__).parents[3]
PROGRAM = "from fedloom.cli import main; main()"


@pytest.fixture
def cli(tmp_path, monkeypatch):
    """Run a command here, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")

    def call(*arguments):
        return CliRunner().invoke(app, [str(each) for each in arguments])

    return call


@pytest.fixture
def environment():
    """The environment of a process of its own."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("LC_")}
    return {**kept, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}


@pytest.fixture
def spawn(tmp_path, environment):
    """Start the command as a process of its own, in an empty folder."""
    started = []

    def call(*arguments, **changes):
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *map(str, arguments)],
            cwd=tmp_path,
            env={**environment, **changes},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        started.append(process)
        return process

    yield call
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()

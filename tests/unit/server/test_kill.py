"""A run that is killed at any moment goes on to the same end."""

import multiprocessing
import os
import random
import re
import signal
import time
from pathlib import Path

import pytest

from fedloom.config import RunConfig
from fedloom.server.run import run
from tests.unit.server.small import left

ROUNDS, KILLS = 60, 5


def work(settings: dict, out: Path) -> None:
    run(RunConfig(**settings), out, resume=True)


def rounds_of(folder: Path) -> int:
    path = folder / "events.jsonl"
    return len(re.findall(rb'"event": ?"round"', path.read_bytes())) if path.exists() else 0


@pytest.mark.slow
def test_five_kills_at_random_moments_leave_the_bits_of_an_unbroken_run(make, tmp_path):
    asked = make(method="scaffold", cohort=3, rounds=ROUNDS, local_epochs=1, executor="loop")
    run(asked, tmp_path / "unbroken")
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(["fedloom.server.run"])
    killed, moments = tmp_path / "killed", random.Random(0)
    found = []
    for number in range(1, KILLS + 1):
        process = server.Process(target=work, args=(asked.model_dump(), killed))
        process.start()
        deadline = time.monotonic() + 60
        while rounds_of(killed) < number * 6:
            assert process.is_alive()
            assert time.monotonic() < deadline
            time.sleep(0.002)
        time.sleep(moments.random() / 20)
        os.kill(process.pid or 0, signal.SIGKILL)
        process.join()
        assert process.exitcode == -signal.SIGKILL
        assert not (killed / "result.json").exists()
        found.append(rounds_of(killed))
    assert found == sorted(found)
    run(asked, killed, resume=True)
    assert left(killed) == left(tmp_path / "unbroken")
    assert not [path for path in killed.rglob("*") if path.name.startswith(".fedloom-")]

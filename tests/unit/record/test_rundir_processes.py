import multiprocessing
import os
import random
import signal
import time
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

from fedloom.errors import RunDirectoryError
from fedloom.record import RunDir, jsonio

fork = multiprocessing.get_context("fork")

CONFIG: dict[str, Any] = {"data": "fcube", "rounds": 3}


def compete(path: Path, barrier: Barrier, results: Any) -> None:
    barrier.wait()
    try:
        run = RunDir.create(path, config=CONFIG)
    except RunDirectoryError as error:
        results.put(str(error))
        return
    time.sleep(1)
    run.close()
    results.put("won")


def test_of_processes_that_start_at_once_one_wins(tmp_path: Path) -> None:
    barrier, results = fork.Barrier(3), fork.Queue()
    processes = [
        fork.Process(target=compete, args=(tmp_path / "a", barrier, results)) for _ in range(3)
    ]
    for process in processes:
        process.start()
    answers = sorted(results.get(timeout=20) for _ in processes)
    for process in processes:
        process.join()
    assert answers[-1] == "won"
    assert all("is in use by" in answer for answer in answers[:-1])


def work(path: Path) -> None:
    with RunDir.create(path, config=CONFIG, resume=True) as run:
        run.start()
        for r in range(1, 1_000_000):
            run.event("round", round=r, values=list(range(200)))
            run.write_json("card.json", {"round": r, "values": list(range(2000))})


def test_after_a_kill_at_any_moment_the_folder_reads_and_resumes(tmp_path: Path) -> None:
    moments = random.Random(0)
    path = tmp_path / "a"
    for _ in range(10):
        process = fork.Process(target=work, args=(path,))
        process.start()
        time.sleep(0.02 + moments.random() / 8)
        os.kill(process.pid or 0, signal.SIGKILL)
        process.join()
        with RunDir.create(path, config=CONFIG, resume=True) as run:
            rounds = [e["round"] for e in run.events().events if e["event"] == "round"]
            assert rounds == list(range(1, len(rounds) + 1))
            if (path / "card.json").exists():
                assert len(jsonio.read(path / "card.json")["values"]) == 2000
            assert not list(path.glob(".fedloom-*"))
            run.truncate_after(0)

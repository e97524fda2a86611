"""Starts jobs in processes of their own, on the cores and threads that are measured."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.job import Job
from benchmarks.work import Work

ROOT = Path(__file__).resolve().parents[1]


def systems() -> list[str]:
    """Every system there is a file for, FedLoom first."""
    found = sorted(path.stem for path in (ROOT / "benchmarks" / "peers").glob("[!_]*.py"))
    return sorted(found, key=lambda name: name != "fedloom")


def usable_cores() -> list[int]:
    """The cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def end_cleanly_when_told() -> None:
    """Let SIGTERM raise SystemExit, so that running jobs are stopped and their folders removed."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


def start(
    system: str,
    work: Work,
    *,
    rounds: int,
    cores: int,
    seed: int,
    options: dict[str, str],
    timeout: float,
) -> dict[str, Any]:
    """What a job gave, `seconds` of each round and `wall_seconds` of its process; or its `error`.

    The process and all that it starts stay on the first `cores` of the usable cores, one thread
    each.
    """
    pinned = hasattr(os, "sched_setaffinity")
    chosen = ",".join(map(str, usable_cores()[:cores])) if pinned else "any"
    with tempfile.TemporaryDirectory(prefix="fedloom-benchmark-") as folder:
        job = Job(system, work, rounds, cores, seed, folder, options)
        files = [Path(folder) / name for name in ("job.json", "result.json", "log.txt")]
        asked, answer, log = files
        asked.write_text(job.to_json())
        command = [sys.executable, "-m", "benchmarks.worker", str(asked), chosen, str(answer)]
        began = time.perf_counter()
        ended_by_itself = _wait(command, log, timeout)
        wall_seconds = time.perf_counter() - began
        if answer.exists():
            return {**json.loads(answer.read_text()), "wall_seconds": wall_seconds}
        said = log.read_text(errors="replace").strip().splitlines()[-25:]
        reason = said if ended_by_itself else [*said, f"stopped after {timeout:g} seconds"]
        return {"error": "\n".join(reason) or "ended without a word"}


def _wait(command: list[str], log: Path, timeout: float) -> bool:
    """Run to the end, or stop the process and those it started."""
    with log.open("w") as file:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment(),
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            return False
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    return True


def environment() -> dict[str, str]:
    """The variables of every process that is measured: one thread, nothing told to anybody."""
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "FLWR_TELEMETRY_ENABLED": "0",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
    }

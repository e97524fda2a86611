"""How much of a round is spent inside tensor operations, seen by torch's profiler.

A program of its own: `python -m benchmarks.kernels JOB.json OUT.json` runs one job in this process.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity
from torch.profiler import profile as profiler

import fedloom
from benchmarks import launch
from benchmarks.job import Job
from benchmarks.peers.fedloom import configuration, round_seconds
from benchmarks.work import Work

ROUNDS = 5
PROFILED = 2
"""The one round under the profiler, counted from 1; no model is scored or saved after it."""

KERNELS = ("aten::", "mkldnn::", "graph_", "cpp_")
"""How the names of tensor operations begin, those of compiled code included."""


@dataclass(frozen=True)
class Seen:
    """Of one run."""

    outside: float
    """Share of the profiled round that no tensor operation's own time accounts for."""
    slowdown: float
    """Seconds of that round over the fastest of the later ones."""


class Watch:
    """Progress of a run that profiles one round."""

    def __init__(self) -> None:
        self.profiler = profiler(activities=[ProfilerActivity.CPU])

    def start(self, total_rounds: int, label: str) -> None:
        """The run begins."""

    def advance(self, round: int, info: Mapping[str, Any]) -> None:
        """A round is done."""
        if round == PROFILED - 1:
            self.profiler.start()
        elif round == PROFILED:
            self.profiler.stop()

    def close(self) -> None:
        """The run is over."""

    @property
    def kernel_seconds(self) -> float:
        """Own time of all tensor operations, without that of those they call."""
        events = self.profiler.key_averages()
        own = [event.self_cpu_time_total for event in events if event.key.startswith(KERNELS)]
        return sum(own) / 1e6


def profile(work: Work, options: dict[str, str]) -> Seen:
    """Run a workload of FedLoom's in one process on one core.

    Raises RuntimeError with what the process said if it broke.
    """
    with tempfile.TemporaryDirectory(prefix="fedloom-benchmark-") as folder:
        asked, answer = Path(folder) / "job.json", Path(folder) / "seen.json"
        asked.write_text(Job("fedloom", work, ROUNDS, 1, 0, folder, options).to_json())
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.kernels", str(asked), str(answer)],
            cwd=launch.ROOT,
            env=launch.environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{work.name}: {done.stderr.strip()[-2000:]}")
        return Seen(**json.loads(answer.read_text()))


def main(asked: str, answer: str) -> None:
    """Run the job and write what was seen."""
    job = Job.from_json(Path(asked).read_text())
    torch.set_num_threads(1)
    watch = Watch()
    fedloom.run(configuration(job), out=job.path / "run", progress=watch)
    seconds = round_seconds(job.path / "run")
    profiled, later = seconds[PROFILED - 1], min(seconds[PROFILED:])
    seen = Seen(1 - watch.kernel_seconds / profiled, profiled / later)
    Path(answer).write_text(json.dumps(asdict(seen)))


if __name__ == "__main__":
    main(*sys.argv[1:])

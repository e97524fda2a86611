"""One job in a process of its own: `python -m benchmarks.worker JOB.json CORES OUT.json`.

CORES are the processor's cores to stay on, with commas; `any` leaves them alone.
"""

import importlib
import json
import os
import sys
from importlib import metadata
from pathlib import Path


def main(job_path: str, cores: str, out: str) -> None:
    """Run the job and write what came of it."""
    if cores != "any":
        os.sched_setaffinity(0, {int(core) for core in cores.split(",")})
    # after the cores are set, so that everything that starts threads sees them
    import torch

    from benchmarks import work
    from benchmarks.job import Job

    job = Job.from_json(Path(job_path).read_text())
    torch.set_num_threads(1)
    torch.manual_seed(1000 * job.seed + int(os.environ.get("RANK", 0)))
    system = importlib.import_module(f"benchmarks.peers.{job.system}")
    outcome = system.run(job)
    if int(os.environ.get("RANK", 0)) != 0:
        return
    accuracy, loss = work.score(job.work, outcome.weights)
    result = {
        "version": f"{system.PACKAGE} {version(system.PACKAGE)}",
        "seconds": outcome.seconds,
        "processes": outcome.processes,
        "accuracy": accuracy,
        "loss": loss,
    }
    Path(out).write_text(json.dumps(result))


def version(package: str) -> str:
    """The installed version; FedLoom may run from a checkout that isn't installed."""
    if package == "fedloom":
        import fedloom

        return fedloom.__version__
    return metadata.version(package)


if __name__ == "__main__":
    main(*sys.argv[1:])

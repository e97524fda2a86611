"""What a run ran on: versions, processor, threads and commit; no user names, no paths."""

import os
import platform
import shutil
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from fedloom.version import __version__

PACKAGES = ("torch", "numpy", "scipy", "scikit-learn", "pandas", "pydantic", "safetensors")


def collect() -> dict[str, Any]:
    """Everything that results may depend on besides configuration and data."""
    return {
        "fedloom": __version__,
        "commit": commit(),
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in PACKAGES},
        "platform": {
            "system": platform.system(),
            "release": platform.release(),
            "machine": platform.machine(),
        },
        "processor": processor(),
        "cores": os.cpu_count(),
        "cores_usable": usable_cores(),
        "threads": torch.get_num_threads(),
        "accelerators": [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())],
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def processor() -> str | None:
    """The processor's name, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return next(iter(names), platform.processor()) or None


def usable_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def commit(root: Path | None = None) -> dict[str, Any] | None:
    """`{"id", "changed"}` of the fedloom checkout that runs, None if it isn't one or git is absent.

    `changed` tells whether tracked files differ from the commit. Only a checkout whose top folder
    is `root` counts, so that an environment inside somebody else's repository reports nothing.
    """
    root = root or Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return None
    name = _git(root, "rev-parse", "HEAD")
    state = _git(root, "status", "--porcelain", "--untracked-files=no")
    return {"id": name, "changed": bool(state)} if name and state is not None else None


def _git(root: Path, *arguments: str) -> str | None:
    program = shutil.which("git")
    if program is None:
        return None
    clean = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    options = ("--no-optional-locks", "-c", "core.fsmonitor=false")
    try:
        done = subprocess.run(
            [program, *options, "-C", str(root), *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=10,
            env=clean,
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None

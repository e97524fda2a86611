"""How a run is trained where the configuration leaves it open: executor, workers, compiling.

Workers follow from the configuration and the machine and change no bit in the loop. The executor
comes from a measurement, which is kept for the next run of the same model on the same machine, and
in the run, which goes on with it when it is resumed.
"""

import hashlib
import json
import os
import shutil
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fedloom import files
from fedloom.config import RunConfig
from fedloom.engine import calibrate
from fedloom.engine.lanes import mapping_problem
from fedloom.engine.trainer import Executor, Trainer
from fedloom.errors import ConfigError
from fedloom.record.environment import processor, usable_cores
from fedloom.tasks.task import Task
from fedloom.types import Params

WORTH_WORKERS = 60.0  # seconds of arithmetic below which starting processes doesn't pay
RATE, OVERHEAD = 2e10, 5e-4  # FLOP a second and seconds a step, to guess with and nothing else
WORTH_COMPILING = 20_000  # calls of the step; each saves some 2 ms, and compiling takes 10 to 30 s
ARITHMETIC = 1e9  # FLOP of a step beyond which nothing but arithmetic counts


@dataclass(frozen=True)
class Choice:
    """What was chosen, and why, in a sentence."""

    executor: Executor
    workers: int
    compiled: bool
    reason: str

    def as_record(self) -> dict[str, Any]:
        """Plain data for the run's directory."""
        return asdict(self)


def executor(
    config: RunConfig,
    trainer: Trainer,
    params: Params,
    buffers: Params,
    input_shape: tuple[int, ...],
    lanes: int,
) -> tuple[Executor, str]:
    """(executor, reason). Raises ConfigError if lanes are asked for and can't be had."""
    task = trainer.task
    if config.executor == "loop":
        return "loop", "as asked"
    if config.executor == "auto" and task.has_dropout:
        return "loop", "dropout draws differently in lanes"
    problem = mapping_problem(task, input_shape)
    if problem is not None and config.executor == "mapped":
        raise ConfigError(
            f"executor=mapped: model {task.model.name} can't be mapped over clients ({problem}); "
            "use executor=loop"
        )
    if problem is not None:
        return "loop", f"model {task.model.name} can't be mapped over clients ({problem})"
    if config.executor == "mapped":
        return "mapped", "as asked"
    if lanes < 2:
        return "loop", "one client at a time"
    return _measured(config, trainer, params, buffers, input_shape, lanes)


def workers(config: RunConfig, cohort: int, seconds: float) -> int:
    """Worker processes: as asked, else one for each core if the run is long enough to pay."""
    if config.device != "cpu" and (config.workers or 1) > 1:
        raise ConfigError(f"workers={config.workers}: several processes train on the CPU only")
    if config.workers is not None or config.device != "cpu":
        return min(config.workers or 1, cohort)
    usable = usable_cores() // config.threads
    return max(1, min(usable, cohort)) if seconds >= WORTH_WORKERS else 1


def device(config: RunConfig) -> torch.device:
    """Where clients train. Raises ConfigError if this machine doesn't have it."""
    try:
        found = torch.device(config.device)
        torch.zeros(1, device=found)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = (str(error).splitlines() or [""])[0]
        raise ConfigError(f"device={config.device} can't be used here: {reason}") from error
    return found


def guessed_seconds(steps: float, examples: float, flops_an_example: float) -> float:
    """What so much local work may take on one core."""
    return examples * flops_an_example / RATE + steps * OVERHEAD


def compiles(config: RunConfig, calls: float) -> bool:
    """Whether the steps, called so often in all, are compiled to machine code.

    Raises ConfigError if that is asked for without a C++ compiler.
    """
    compiler = shutil.which(os.environ.get("CXX", "g++")) or shutil.which("clang++")
    possible = compiler is not None and sys.platform.startswith("linux")
    if config.compiled and not possible:
        raise ConfigError("compiled=true needs a C++ compiler (g++ or clang++) on Linux")
    if config.compiled is not None:
        return config.compiled
    return possible and calls >= WORTH_COMPILING


def cache_file() -> Path:
    """Where measurements are kept: `FEDLOOM_CACHE`, else the user's cache folder."""
    folder = os.environ.get("FEDLOOM_CACHE")
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fedloom"
    return (Path(folder) if folder else base) / "calibration.json"


def _measured(
    config: RunConfig,
    trainer: Trainer,
    params: Params,
    buffers: Params,
    input_shape: tuple[int, ...],
    lanes: int,
) -> tuple[Executor, str]:
    key = _key(config, trainer.task, params, input_shape, lanes)
    known = _read()
    if key not in known:
        speed = calibrate.measure(trainer, params, buffers, lanes)
        found = {key: {"loop": speed.loop, "mapped": speed.mapped}}
        known = found | _read()  # if another run was quicker, both do as it found
        _write(known)
    speed = calibrate.Speed(known[key]["loop"], known[key]["mapped"])
    chosen: Executor = "mapped" if speed.executor == "mapped" else "loop"
    if speed.mapped is None:
        return chosen, f"a step takes {1e3 * speed.loop:.3g} ms, too long for lanes to help"
    return chosen, (
        f"a client's step takes {1e3 * speed.loop:.3g} ms in the loop and "
        f"{1e3 * speed.mapped:.3g} ms in {lanes} lanes"
    )


def _key(config: RunConfig, task: Task, params: Params, shape: tuple[int, ...], lanes: int) -> str:
    leaves = [[name, list(leaf.shape), str(leaf.dtype)] for name, leaf in params.items()]
    what = [
        [task.model.name, leaves, list(shape), config.precision],
        [config.batch_size, lanes, bool(config.momentum), config.threads],
        [torch.__version__, np.__version__, processor()],
    ]
    return hashlib.sha256(json.dumps(what).encode()).hexdigest()[:24]


def _read() -> dict[str, Any]:
    try:
        known = json.loads(cache_file().read_text(encoding="utf-8"))
        return {
            key: value
            for key, value in known.items()
            if isinstance(value["loop"], float) and isinstance(value["mapped"], float | None)
        }
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}  # a lost or damaged cache costs one measurement


def _write(known: dict[str, Any]) -> None:
    data = json.dumps(known, indent=1, sort_keys=True).encode()
    with suppress(OSError):  # without a place to keep it, the next run measures again
        cache_file().parent.mkdir(parents=True, exist_ok=True)
        files.write_atomic(cache_file(), [data], len(data))

"""How much memory a run will hold at its peak, told by a process that did the run's first steps.

The interpreter, the libraries, the data with all copies, the partition and a few training steps are
there to be measured; only what a run does beyond that is worked out.
"""

import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from fedloom import tree
from fedloom.clients.examples import steps_at_once
from fedloom.clients.noise import KEPT_VALUES
from fedloom.server.evaluate import evaluate
from fedloom.server.round import RunState
from fedloom.server.setup import Setup, all_rows

STATUS = Path("/proc/self/status")
ALIGNED = 2**16  # bytes that the system maps beside each memory that is read
TABLE = 100  # bytes a client to look its memory up, and to save that


class Resident(NamedTuple):
    """Bytes of this process that lie in RAM."""

    now: int
    peak: int
    """The most since the process began."""


def resident() -> Resident | None:
    """None where the system doesn't tell."""
    if STATUS.exists():
        fields = dict(line.split(":", 1) for line in STATUS.read_text().splitlines())
        now, peak = (int(fields[key].split()[0]) * 1024 for key in ("VmRSS", "VmHWM"))
        return Resident(now, peak)
    if sys.platform == "win32":
        return None
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return Resident(peak, peak)


def reached(before: Resident, after: Resident) -> int:
    """Bytes at most between two moments; earlier peaks of the process don't count."""
    return after.peak if after.peak > before.peak else after.now


def score_once(setup: Setup, state: RunState) -> None:
    """One batch of an evaluation, whose activations are often the largest tensors of a run."""
    if state.server:
        rows = all_rows(setup.test)[: setup.config.eval_batch]
        batch = setup.config.eval_batch
        evaluate(setup.task, setup.params, state.buffers, setup.test, rows, batch)


def peak(
    setup: Setup, state: RunState, start: Resident, ready: Resident, tried: Resident, steps: int
) -> int:
    """Bytes at the peak of a run.

    `start` is from before the set-up, `ready` from after it, `tried` from after `steps` steps in
    each lane and `score_once`.
    """
    split = setup.partition
    arrays = [split.order, split.offsets, split.dropped, *split.facts.values()]
    opened = ready.now + 2 * sum(array.nbytes for array in arrays)
    trained = reached(ready, tried) + _beyond(setup, state, steps)
    return max(reached(start, ready), opened, trained)


def _beyond(setup: Setup, state: RunState, steps: int) -> int:
    """What whole rounds hold and a few steps of a few clients don't."""
    remembered = tree.num_bytes(setup.method.init_client(state.server))
    kept = tree.num_bytes(state.buffers) if setup.config.bn == "local" else 0
    cohort, everybody = setup.cohort_size, len(setup.population.eligible)
    taking_part = min(everybody, setup.config.rounds * cohort)
    share = taking_part / max(1, everybody)
    untried = max(0, cohort - setup.engine.trainer.lanes)
    result = _block(setup, None) - _block(setup, steps) + _noise(setup, share)
    result += 2 * untried * (remembered + kept)  # what each remembers before and after
    if remembered + kept:
        again = cohort * max(0, setup.config.rounds - 1) * share  # who has taken part before
        read = int(min(again, 3 * taking_part)) * (remembered + kept + ALIGNED)
        result += min(setup.config.memory_budget * 2**20, read) + TABLE * taking_part
    return result


def _block(setup: Setup, steps: int | None) -> int:
    """Bytes of the batches that are formed together, in rounds of so many steps (None: its own)."""
    trainer, work = setup.engine.trainer, setup.engine.trainer.work
    lanes = min(trainer.lanes, setup.cohort_size) if trainer.executor == "mapped" else 1
    typical = int(np.median(setup.sizes[setup.population.eligible]))
    count = trainer.steps(typical) if steps is None else steps
    together = min(count, steps_at_once(trainer.examples, lanes, work.batch_size))
    float_copies = 1 + trainer.noise.active + (trainer.augment.flip or trainer.augment.crop)
    if trainer.examples.x.dtype == torch.uint8:
        float_copies += 1
    row = 4 * float_copies * trainer.examples.values_per_row + 40  # and labels, rows, places, mask
    formed = 2 if count > together else 1  # the last ones are held while the next are formed
    return lanes * work.batch_size * (together * formed * row + 16 * count)


def _noise(setup: Setup, share: float) -> int:
    noise = setup.engine.trainer.noise
    if not noise.active or noise.refresh != "fixed":
        return 0
    values = setup.engine.trainer.examples.values_per_row * setup.total_examples
    return 4 * min(KEPT_VALUES, int(values * share))

"""Which way of training is quicker here: a few steps of each on the actual model and batches."""

import time
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from fedloom.clients.batches import LocalWork
from fedloom.engine.orders import Common, Order
from fedloom.engine.trace import Replay
from fedloom.engine.trainer import Trainer
from fedloom.method import Method
from fedloom.types import Params

REPEATS, STEPS = 3, 12
HEAVY = 0.02  # seconds; a step longer than this is arithmetic, which lanes can't shorten


class Speed(NamedTuple):
    """Seconds a client's step takes; None where it wasn't worth trying."""

    loop: float
    mapped: float | None

    @property
    def executor(self) -> str:
        """The quicker one; the simpler one unless lanes win by a tenth."""
        return "mapped" if self.mapped is not None and self.mapped < 0.9 * self.loop else "loop"


def measure(trainer: Trainer, params: Params, buffers: Params, lanes: int) -> Speed:
    """Time FedAvg's steps in the loop and in `lanes` lanes; nothing of it is kept."""
    single = replace(trainer, executor="loop")
    loop = _seconds(single, params, buffers, 1, 2, steps=1)
    if loop > HEAVY or lanes < 2:
        return Speed(loop, None)
    loop = _seconds(single, params, buffers, 1, REPEATS)
    mapped = replace(trainer, executor="mapped", lanes=lanes, replay=Replay(warm_calls=2))
    _seconds(mapped, params, buffers, lanes, 1)
    return Speed(loop, _seconds(mapped, params, buffers, lanes, REPEATS))


def _seconds(
    trainer: Trainer,
    params: Params,
    buffers: Params,
    clients: int,
    repeats: int,
    steps: int = STEPS,
) -> float:
    rows = np.arange(min(len(trainer.examples), 4 * trainer.work.batch_size))
    trial = replace(trainer, work=LocalWork(None, steps, trainer.work.batch_size))
    common = Common(Method(), {"params": params}, 0, 1e-4, "average", False, True)
    orders = [Order(0, rows, {}, buffers) for _ in range(clients)]
    spent = []
    for _ in range(repeats):
        began = time.perf_counter()
        for _ in trial.train(common, orders):
            pass
        spent.append((time.perf_counter() - began) / (steps * clients))
    return min(spent)

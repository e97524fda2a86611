"""What a run would do: clients, steps, bytes, memory and time, without doing it."""

import time
from dataclasses import dataclass, replace

import numpy as np

from fedloom import tree
from fedloom.clients.batches import LocalWork
from fedloom.config import RunConfig
from fedloom.engine.allocator import keep_freed_memory
from fedloom.engine.cohort import Engine
from fedloom.models.flops import training_flops
from fedloom.server import footprint
from fedloom.server.footprint import Resident
from fedloom.server.round import begin
from fedloom.server.setup import Setup, prepare

TRIAL_STEPS = 12
MIB = 2**20


@dataclass(frozen=True)
class Plan:
    """The plan of a run, in words and numbers; times and memory are estimates."""

    data: str
    partition: str
    clients: str
    model: str
    executor: str
    rounds: int
    clients_a_round: int
    steps_a_round: int
    steps: int
    bytes_down_a_client_and_round: int
    bytes_up_a_client_and_round: int
    bytes_in_all: str
    flops: str
    memory: str
    time: str
    notes: tuple[str, ...]


def plan(config: RunConfig) -> Plan:
    """Prepare a run, time a few steps, and say what the whole would take."""
    keep_freed_memory()
    start = footprint.resident()
    setup = prepare(config)
    ready = footprint.resident()
    state = begin(setup)
    sent = setup.method.broadcast(state.server)
    cohorts = [setup.cohort(round) for round in range(1, min(config.rounds, 20) + 1)]
    steps = [sum(setup.engine.steps(int(c)) for c in cohort) for cohort in cohorts] or [0]
    per_round = float(np.mean(steps))
    seconds, up = _trial(setup)
    footprint.score_once(setup, state)
    moving = 0 if config.bn == "local" or not sent else tree.num_bytes(setup.buffers)
    down = tree.num_bytes(sent) + moving
    up += moving
    rounds, cohort = config.rounds, setup.cohort_size
    total = rounds * cohort * (down + up)
    flops = training_flops(setup.task.model.net, setup.dataset.input_shape)
    examples = per_round * min(config.batch_size, float(np.mean(setup.sizes)))
    sizes = setup.sizes
    return Plan(
        data=f"{setup.dataset.name}: {setup.dataset.num_train} training and "
        f"{setup.dataset.num_test} test rows, {setup.dataset.num_classes} classes "
        f"({setup.dataset.test_rule})",
        partition=f"{config.partition}, seed {setup.partition.seed}, "
        f"digest {setup.partition.digest[:12]}",
        clients=f"{len(sizes)}, holding {sizes.min()} to {sizes.max()} rows",
        model=f"{setup.task.model.name}, {setup.task.model.num_parameters:,} parameters",
        executor=f"{setup.choice.executor}, {setup.choice.workers} workers ({setup.choice.reason})",
        rounds=rounds,
        clients_a_round=cohort,
        steps_a_round=round(per_round),
        steps=round(per_round * rounds),
        bytes_down_a_client_and_round=down,
        bytes_up_a_client_and_round=up,
        bytes_in_all=f"{total:,} ({total / MIB:,.1f} MiB), one copy a client",
        flops=f"{flops * examples * rounds:.3g}",
        memory=_memory(setup, start, ready),
        time=f"about {_duration(seconds * per_round * rounds)} of training, "
        f"from {TRIAL_STEPS} steps a client tried here",
        notes=setup.notes,
    )


def _trial(setup: Setup) -> tuple[float, int]:
    """(seconds a client-step, bytes of one report), from a few steps that leave no trace."""
    work = LocalWork(None, TRIAL_STEPS, setup.config.batch_size)
    engine = Engine(replace(setup.engine.trainer, work=work), setup.engine.rows)
    state = begin(setup)
    sent = setup.method.broadcast(state.server)
    cohort = [int(c) for c in setup.cohort(1)][: setup.engine.trainer.lanes]
    fresh = setup.method.init_client(state.server)
    memories, buffers = dict.fromkeys(cohort, fresh), dict.fromkeys(cohort, setup.buffers)
    spent = []
    for _ in range(3):
        began = time.perf_counter()
        trained = engine.train(
            setup.method, sent, cohort, memories, buffers, round=0, lr=setup.config.learning_rate
        )
        spent.append(time.perf_counter() - began)
    return min(spent) / (TRIAL_STEPS * len(cohort)), trained.done[0].num_bytes


def _memory(setup: Setup, start: Resident | None, ready: Resident | None) -> str:
    tried = footprint.resident()
    if start is None or ready is None or tried is None:
        return "unknown: this system doesn't tell what a process holds"
    found = footprint.peak(setup, begin(setup), start, ready, tried, TRIAL_STEPS)
    return f"about {found / MIB:,.0f} MiB at most"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"

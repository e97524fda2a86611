"""Small federations for tests: unequal clients, float64, one round at a time."""

import itertools
from copy import copy
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from torch import nn

from fedloom import tree
from fedloom.clients.batches import LocalWork
from fedloom.clients.examples import Examples
from fedloom.engine.cohort import Engine
from fedloom.engine.optimizer import Sgd
from fedloom.engine.reduce import plus
from fedloom.engine.trainer import Trainer
from fedloom.method import Method
from fedloom.models import Model
from fedloom.tasks.task import Task
from fedloom.types import Cohort, Params, State

SIZES = (28, 20, 9, 7, 15)
FEATURES, CLASSES = 6, 3


def task_of(net: nn.Module, num_classes: int = CLASSES) -> Task:
    """A task around a network with a `body` and a `head`."""
    head = tuple(n for n, _ in net.named_parameters() if n.startswith("head."))
    return Task(Model("test", net, head, "head", partial(copy, net)), num_classes)


class Net(nn.Module):
    """Two layers; with normalisation in between if asked."""

    def __init__(self, norm: bool = False) -> None:
        super().__init__()
        middle = nn.BatchNorm1d(8) if norm else nn.Identity()
        self.body = nn.Sequential(nn.Linear(FEATURES, 8), middle, nn.Tanh(), nn.Linear(8, 8))
        self.head = nn.Linear(8, CLASSES)

    def forward(self, x):
        return self.head(self.body(x))


@dataclass
class Federation:
    """An engine and the state of its clients."""

    engine: Engine
    params: Params
    buffers: Params

    def sizes(self) -> list[int]:
        return [len(rows) for rows in self.engine.rows]

    def with_engine(self, rows=None, **changes) -> "Federation":
        engine = Engine(replace(self.engine.trainer, **changes), rows or self.engine.rows)
        return Federation(engine, self.params, self.buffers)

    def play(self, method: Method, rounds: int = 3, lr: float = 0.05, cohorts=None):
        """(server state, memories) after some rounds of full or given participation."""
        server: State = method.init_server(self.params)
        memories: dict[int, State] = {}
        for round in range(1, rounds + 1):
            cohort = list(range(len(self.engine.rows))) if cohorts is None else cohorts[round - 1]
            server, memories = self.round(method, server, memories, round, lr, cohort)
        return server, memories

    def round(self, method, server, memories, round, lr, cohort):
        fresh = method.init_client(server)
        trained = self.engine.train(
            method,
            method.broadcast(server),
            cohort,
            {c: memories.get(c, fresh) for c in cohort},
            dict.fromkeys(cohort, self.buffers),
            round=round,
            lr=lr,
        )
        sizes = self.sizes()
        counts = torch.tensor([sizes[c] for c in cohort], dtype=torch.float64)
        here = Cohort(counts, len(sizes), sum(sizes))
        server = tree.rounded(method.aggregate(server, trained.sums, here), like=server)
        new = {done.client: done.memory for done in trained.done}
        return server, {**memories, **new}


def federation(
    sizes=SIZES,
    *,
    executor="loop",
    momentum=0.9,
    work=None,
    norm=False,
    lanes=3,
    workers=1,
    seed=0,
    data_seed=0,
) -> Federation:
    """Clients of these sizes with random float64 data of three classes."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        task = task_of(Net(norm).double())
    draw = np.random.RandomState(data_seed)
    total = sum(sizes)
    x = draw.randn(total, FEATURES)
    y = (x @ draw.randn(FEATURES, CLASSES)).argmax(1).astype(np.int64)
    bounds = np.cumsum([0, *sizes])
    rows = [np.arange(a, b) for a, b in itertools.pairwise(bounds)]
    params, buffers = task.initial()
    trainer = Trainer(
        task=task,
        examples=Examples(x, y),
        optimizer=Sgd(momentum, 1e-4),
        work=work or LocalWork(2, None, 7),
        seed=seed,
        executor=executor,
        lanes=lanes,
        min_batch=2 if norm else 1,
    )
    return Federation(Engine(trainer, rows, workers), params, buffers)


def aggregated(method: Method, server: State, reports: State, cohort: Cohort) -> State:
    """The server's next state after reports with leaves [N, ...]."""
    return tree.rounded(
        method.aggregate(server, collected(method, reports, cohort), cohort), server
    )


def collected(method: Method, reports: State, cohort: Cohort) -> State:
    """The sums that `aggregate` would get of these reports."""
    total = None
    for i, n in enumerate(cohort.num_examples):
        total = plus(total, method.collect(tree.row(reports, i), n))
    return total


def gap(a, b) -> float:
    """Largest difference between two nested states; infinite for unlike structures."""
    if isinstance(a, dict):
        if set(a) != set(b):
            return float("inf")
        return max((gap(a[key], b[key]) for key in a), default=0.0)
    if isinstance(a, tuple):
        return max(map(gap, a, b), default=0.0)
    if a.shape != b.shape:
        return float("inf")
    return float((a - b).detach().abs().max()) if a.numel() else 0.0


def same_bits(a, b) -> bool:
    """Whether two nested states are equal to the bit."""
    if isinstance(a, dict):
        return list(a) == list(b) and all(same_bits(a[key], b[key]) for key in a)
    return a.dtype == b.dtype and torch.equal(a, b)

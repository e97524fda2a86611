"""The loop that a careful researcher writes by hand, for one client and for a federation."""

import multiprocessing
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.job import Job, Outcome
from benchmarks.work import Work, client, network
from fedloom.rng import torch_stream

Batches = Callable[[Tensor, Tensor, int, torch.Generator], Iterable[tuple[Tensor, Tensor]]]
"""(x, y, rows a batch, generator) -> the batches of one epoch, in a new order each time."""

Arrays = list[np.ndarray]
"""Parameters in the network's order: what is sent between processes."""


def train(net: nn.Module, job: Job, batches: Batches, round: int, number: int) -> None:
    """Train `net` in place on one client's rows for one round."""
    work = job.work
    x, y = client(work, number)
    order = torch_stream(job.seed, "benchmark", "order", round, number)
    optimizer = torch.optim.SGD(net.parameters(), lr=work.lr, momentum=work.momentum)
    for _ in range(work.epochs):
        for inputs, labels in batches(x, y, work.batch, order):
            optimizer.zero_grad()
            F.cross_entropy(net(inputs), labels).backward()
            optimizer.step()


def arrays(net: nn.Module) -> Arrays:
    """The parameters as arrays that share the network's memory."""
    return [leaf.detach().numpy() for leaf in net.parameters()]


def loaded(work: Work, values: Arrays) -> nn.Module:
    """A network with these parameters."""
    net = network(work)
    with torch.no_grad():
        for leaf, value in zip(net.parameters(), values, strict=True):
            leaf.copy_(torch.from_numpy(value))
    return net


def federate(job: Job, batches: Batches) -> Outcome:
    """Federated averaging, clients one after the other or dealt to a pool of processes."""
    work, seconds = job.work, []
    values = arrays(network(work))
    share = np.float32(1 / work.clients)  # clients hold equally many rows
    with _pool(job) as pool:
        spread = map if pool is None else pool.map
        for round in range(job.rounds):
            began = time.perf_counter()
            task = partial(_client_round, job, batches, round, values)
            trained = list(spread(task, range(work.clients)))
            values = [sum(share * leaf for leaf in leaves) for leaves in zip(*trained, strict=True)]
            seconds.append(time.perf_counter() - began)
    return Outcome(seconds, [torch.from_numpy(value) for value in values], job.processes)


def _client_round(job: Job, batches: Batches, round: int, values: Arrays, number: int) -> Arrays:
    net = loaded(job.work, values)
    train(net, job, batches, round, number)
    return arrays(net)


def _pool(job: Job) -> "ProcessPoolExecutor | nullcontext[None]":
    if job.processes == 1:
        return nullcontext()
    return ProcessPoolExecutor(
        job.processes,
        multiprocessing.get_context("spawn"),
        initializer=torch.set_num_threads,
        initargs=(1,),
    )

"""A hand-written loop that keeps the rows in memory and takes batches by index."""

from collections.abc import Iterator

import torch
from torch import Tensor

from benchmarks.job import Job, Outcome
from benchmarks.local import federate

PACKAGE = "torch"


def batches(
    x: Tensor, y: Tensor, size: int, order: torch.Generator
) -> Iterator[tuple[Tensor, Tensor]]:
    """The batches of one epoch: a permutation, cut."""
    for rows in torch.randperm(len(y), generator=order).split(size):
        yield x[rows], y[rows]


def run(job: Job) -> Outcome:
    """Train; with several processes clients are dealt to a pool."""
    return federate(job, batches)

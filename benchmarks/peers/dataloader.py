"""The hand-written loop with torch's DataLoader, as most published code has it."""

import torch
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.job import Job, Outcome
from benchmarks.local import federate

PACKAGE = "torch"


def batches(
    x: Tensor, y: Tensor, size: int, order: torch.Generator
) -> DataLoader[tuple[Tensor, ...]]:
    """The batches of one epoch, collated row by row in this process."""
    return DataLoader(TensorDataset(x, y), size, shuffle=True, generator=order)


def run(job: Job) -> Outcome:
    """Train; with several processes clients are dealt to a pool."""
    return federate(job, batches)

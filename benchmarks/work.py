"""The work that every system does: same clients, network, initial weights, epochs, batch and rate.

Shapes: M rows of one client, B rows a batch, C classes.
"""

import copy
import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fedloom import models
from fedloom.rng import stream

SEED = 0
SCORED = 1000
"""Rows a batch when the final model is scored."""
PATCHES = 4
"""Squares a side of an image's pattern; sides are multiples of it."""


@dataclass(frozen=True)
class Work:
    """One workload: every client takes part in every round and trains with SGD."""

    name: str
    model: str
    """FedLoom's name of the network."""
    shape: tuple[int, ...]
    classes: int
    clients: int
    rows: int
    """Rows of each client."""
    epochs: int
    batch: int = 64
    lr: float = 0.01
    momentum: float = 0.9
    signal: float = 1.0
    """How far apart the classes are; chosen so that accuracy is between chance and one."""

    @property
    def steps(self) -> int:
        """Optimizer steps of all clients in one round; the last batch of an epoch is smaller."""
        return self.clients * self.epochs * math.ceil(self.rows / self.batch)

    @property
    def examples(self) -> int:
        """Examples that all clients train on in one round."""
        return self.clients * self.epochs * self.rows

    def small(self) -> "Work":
        """The same kind of work in a second or two: to see that everything runs."""
        return replace(
            self, clients=min(self.clients, 4), rows=min(self.rows, 160), epochs=min(self.epochs, 2)
        )


_FOUND = (
    Work("tabular", "mlp", (123,), 2, clients=10, rows=3256, epochs=10, signal=1.5),
    Work("image28", "cnn", (1, 28, 28), 10, clients=10, rows=640, epochs=5, signal=6.0),
    Work("image32", "cnn", (3, 32, 32), 10, clients=10, rows=640, epochs=5, signal=6.0),
    Work("vgg11", "vgg11", (3, 32, 32), 10, clients=2, rows=256, epochs=1, signal=6.0),
)
WORKLOADS = {work.name: work for work in _FOUND}


@lru_cache(maxsize=64)
def client(work: Work, number: int) -> tuple[Tensor, Tensor]:
    """Rows of one client: float32 [M, *shape] of unit noise about a centre, int64 [M]."""
    return _rows(work, number, work.rows)


def held_out(work: Work) -> tuple[Tensor, Tensor]:
    """A few rows that nobody trains on, for systems that insist on a test part: all classes."""
    return _rows(work, "test", 4 * work.classes)


def _rows(work: Work, who: int | str, count: int) -> tuple[Tensor, Tensor]:
    draw = stream(SEED, "benchmark", work.name, who)
    y = draw.permutation(np.arange(count) % work.classes)
    x = _centres(work)[y] + draw.standard_normal((count, *work.shape))
    return torch.from_numpy(x.astype(np.float32)), torch.from_numpy(y)


def _centres(work: Work) -> np.ndarray:
    """One centre a class [C, *shape], `signal` apart on average; of images a coarse pattern."""
    draw = stream(SEED, "benchmark", work.name, "centres")
    coarse = work.shape if len(work.shape) == 1 else (work.shape[0], PATCHES, PATCHES)
    centres = draw.standard_normal((work.classes, *coarse))
    for axis, side in enumerate(work.shape[1:], start=2):
        centres = centres.repeat(side // PATCHES, axis=axis)
    return work.signal / math.sqrt(2 * math.prod(work.shape)) * centres


def network(work: Work) -> nn.Module:
    """A network [B, *shape] -> [B, C] with the initial weights of FedLoom's run with seed 0.

    It is written with plain modules, so that no peer depends on how FedLoom runs its own. Pooling
    comes before ReLU as it does there: the same function, and no system pays for the slower order.
    """
    return copy.deepcopy(_network(work))


@lru_cache(maxsize=4)
def _network(work: Work) -> nn.Module:
    made = models.make(work.model, input_shape=work.shape, num_classes=work.classes, seed=SEED).net
    if work.model == "vgg11":
        return made
    net = _mlp(work) if work.model == "mlp" else _cnn(work)
    with torch.no_grad():
        for mine, theirs in zip(net.parameters(), made.parameters(), strict=True):
            assert mine.shape == theirs.shape
            mine.copy_(theirs)
    return net


def _mlp(work: Work) -> nn.Sequential:
    (features,) = work.shape
    return nn.Sequential(
        nn.Linear(features, 32),
        nn.ReLU(),
        nn.Linear(32, 16),
        nn.ReLU(),
        nn.Linear(16, 8),
        nn.ReLU(),
        nn.Linear(8, work.classes),
    )


def _cnn(work: Work) -> nn.Sequential:
    channels, side, _ = work.shape
    left = ((side - 4) // 2 - 4) // 2
    return nn.Sequential(
        nn.Conv2d(channels, 6, 5),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Conv2d(6, 16, 5),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(16 * left * left, 120),
        nn.ReLU(),
        nn.Linear(120, 84),
        nn.ReLU(),
        nn.Linear(84, work.classes),
    )


def score(work: Work, weights: list[Tensor]) -> tuple[float, float]:
    """(accuracy, mean loss in nats) on the rows of all clients.

    `weights` are the parameters in the order of `network(work).parameters()`.
    """
    net = network(work)
    hits, loss, total = 0, 0.0, 0
    with torch.no_grad():
        for leaf, value in zip(net.parameters(), weights, strict=True):
            assert leaf.shape == value.shape
            leaf.copy_(value)
        for number in range(work.clients):
            x, y = client(work, number)
            for rows in torch.arange(len(y)).split(SCORED):
                logits = net(x[rows])  # [B, C]
                hits += int((logits.argmax(1) == y[rows]).sum())
                loss += float(F.cross_entropy(logits, y[rows], reduction="sum"))
                total += len(rows)
    return hits / total, loss / total

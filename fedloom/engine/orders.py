"""What a round asks of the engine, and what comes back: the messages between server and workers."""

from typing import NamedTuple

import numpy as np

from fedloom.engine.statistics import BnRule
from fedloom.method import Method
from fedloom.types import Params, State


class Common(NamedTuple):
    """What is the same for all clients of a round."""

    method: Method
    sent: State
    round: int
    lr: float
    bn: BnRule
    keeps_buffers: bool
    """Whether clients keep running statistics to themselves."""
    counts_nonfinite: bool
    """Whether a report with NaN or infinities is counted all the same."""


class Order(NamedTuple):
    """One client's part of a round."""

    client: int
    rows: np.ndarray
    """int64 [M] rows of the data set that it trains on."""
    memory: State
    buffers: Params


class Done(NamedTuple):
    """What the server learns of one client beside the sums."""

    client: int
    refused: str | None
    """Why its report takes no part in the sums."""
    loss: float
    """Sum over its steps of loss times examples, nats."""
    num_steps: int
    skipped: int
    """Examples left out because a batch of one can't be normalised."""
    num_bytes: int
    """Of its report."""
    memory: State | None
    """None if refused."""
    buffers: Params | None
    """None if refused, or unless clients keep them."""


class Part(NamedTuple):
    """One shard of the cohort, done."""

    shard: int
    sums: State | list[State] | None
    """Float64 sums of the terms of its clients' reports (side by side if the method needs each)."""
    statistics: State | None
    """Sums of the terms of their running statistics."""
    done: list[Done]
    slots: int
    """Steps that the lanes it was trained in had room for since the part before."""
    notes: tuple[str, ...]
    """What could not be recorded or compiled, in sentences."""

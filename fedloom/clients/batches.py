"""Which examples make up which batch: positions, drawn before training from one stream."""

from dataclasses import dataclass

import numpy as np

from fedloom.rng import stream


@dataclass(frozen=True)
class LocalWork:
    """How much a client trains in a round: whole epochs, or a number of steps.

    `steps=K` takes K batches of min(B, M) examples, each the first of a fresh shuffle, so batches
    of one client are independent draws and every client does the same number of steps.
    """

    epochs: int | None = 10
    steps: int | None = None
    batch_size: int = 64


@dataclass(frozen=True, eq=False)
class Plan:
    """One client's batches of one round; T = all its steps."""

    index: np.ndarray
    """int64 [T, B], positions among the client's rows; padding repeats the batch's first."""
    count: np.ndarray
    """int64 [T], examples of each batch that are not padding."""
    epoch: np.ndarray
    """int64 [T]."""
    skipped: int
    """Examples left out because a batch of one can't be normalised."""


def plan(
    num_examples: int, work: LocalWork, *, seed: int, round: int, client: int, min_batch: int = 1
) -> Plan:
    """Draw the batch order of one client in one round.

    A last batch with fewer than `min_batch` examples is left out and counted, unless it is the only
    one. The order depends on (seed, round, client) alone.
    """
    draw = stream(seed, "batches", round, client)
    if work.steps is not None:
        return _independent_batches(num_examples, work, draw)
    assert work.epochs is not None
    size = work.batch_size
    num_batches = -(-num_examples // size)
    rest = num_examples - (num_batches - 1) * size
    skip = num_batches > 1 and rest < min_batch
    num_batches -= skip
    order = np.stack([draw.permutation(num_examples) for _ in range(work.epochs)])
    kept = order[:, : num_batches * size]
    short = num_batches * size - kept.shape[1]
    if short:
        first = kept[:, (num_batches - 1) * size, None]
        kept = np.concatenate([kept, np.repeat(first, short, 1)], 1)
    count = np.full(num_batches, size, np.int64)
    count[-1] = size - short
    return Plan(
        index=kept.reshape(-1, size),
        count=np.tile(count, work.epochs),
        epoch=np.repeat(np.arange(work.epochs), num_batches),
        skipped=rest * work.epochs if skip else 0,
    )


def plan_in_order(num_examples: int, batch_size: int) -> Plan:
    """All of a client's examples once, as they come; padding repeats the first."""
    steps = -(-num_examples // batch_size)
    index = np.zeros(steps * batch_size, np.int64)
    index[:num_examples] = np.arange(num_examples)
    count = np.full(steps, batch_size, np.int64)
    count[-1] -= steps * batch_size - num_examples
    return Plan(index.reshape(steps, batch_size), count, np.zeros(steps, np.int64), 0)


def _independent_batches(num_examples: int, work: LocalWork, draw: np.random.RandomState) -> Plan:
    assert work.steps is not None
    size = min(work.batch_size, num_examples)
    index = np.zeros((work.steps, work.batch_size), np.int64)
    for step in range(work.steps):
        batch = draw.permutation(num_examples)[:size]
        index[step, :size], index[step, size:] = batch, batch[0]
    return Plan(
        index=index,
        count=np.full(work.steps, size, np.int64),
        epoch=np.zeros(work.steps, np.int64),
        skipped=0,
    )


def num_steps(num_examples: int, work: LocalWork, min_batch: int = 1) -> int:
    """Optimizer steps a client of this size takes in a round, as `plan` makes them."""
    if work.steps is not None:
        return work.steps
    assert work.epochs is not None
    full, rest = divmod(num_examples, work.batch_size)
    partial = rest >= min_batch or (rest > 0 and full == 0)
    return work.epochs * (full + partial)

"""Running statistics of normalisation across clients: one declared rule, never an accident.

Methods treat parameters only; whatever a model keeps in buffers follows one of these rules.
"""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from fedloom import tree
from fedloom.clients.examples import Examples
from fedloom.tasks.task import Task
from fedloom.types import Params

BnRule = Literal["average", "pooled", "local", "server_recalibrate", "groupnorm"]

RECALIBRATION_ROWS = 2000


def combine(rule: BnRule, reported: Sequence[Params], num_examples: Sequence[int]) -> Params:
    """The global model's buffers out of the cohort's.

    `average`: means and variances by examples. `pooled`: the moments of all the clients' values
    together, mean m = sum p_i m_i and variance sum p_i (v_i + m_i^2) - m^2. `local`: clients keep
    their own, and this average serves only to evaluate the global model. Counters take the largest
    value.
    """
    weights = torch.tensor(num_examples, dtype=torch.float64)  # [N]
    stacked = tree.stack(list(reported))
    floating = {name: leaf for name, leaf in stacked.items() if leaf.is_floating_point()}
    merged = tree.mean(floating, weights)
    if rule == "pooled":
        merged |= _pooled_variances(floating, weights)
    counters = {n: leaf.amax(0) for n, leaf in stacked.items() if not leaf.is_floating_point()}
    return {name: merged.get(name, counters.get(name)) for name in stacked}  # type: ignore[misc]


def _pooled_variances(stacked: Params, weights: Tensor) -> Params:
    share = (weights / weights.sum())[:, None]  # [N, 1]
    pooled = {}
    for name, variance in stacked.items():
        mean_name = name.removesuffix("running_var") + "running_mean"
        if name.endswith("running_var") and mean_name in stacked:
            means = stacked[mean_name].double()  # [N, c]
            centre = (share * means).sum(0)
            within, between = variance.double(), (means - centre).square()
            pooled[name] = (share * (within + between)).sum(0).to(variance.dtype)
    return pooled


def recalibrate(
    task: Task, params: Params, buffers: Params, examples: Examples, rows: Tensor, batch_size: int
) -> Params:
    """Buffers estimated afresh on the given rows: the mean over batches of each batch's moments."""
    found: list[Params] = []
    sizes: list[int] = []
    for part in rows.split(batch_size):
        if len(part) < min(batch_size, len(rows)):
            continue
        x, y = examples.take(part)
        batch = {"x": x, "y": y, "mask": torch.ones(len(part))}
        with torch.no_grad():
            found.append(task.bind(buffers, training=False).moments(params, batch))
        sizes.append(len(part))
    return {**buffers, **combine("average", found, sizes)} if found and found[0] else buffers

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
from fedloom.types import Params, State

BnRule = Literal["average", "pooled", "local", "server_recalibrate", "groupnorm"]

RECALIBRATION_ROWS = 2000


def terms(rule: BnRule, buffers: Params, num_examples: int) -> State:
    """One client's terms of the sums that `settle` reads, weighed by its examples."""
    floating = {name: leaf for name, leaf in buffers.items() if leaf.is_floating_point()}
    sums: State = {
        "weight": torch.tensor(float(num_examples), dtype=torch.float64),
        "first": tree.weigh(floating, num_examples),
        "counters": {n: leaf for n, leaf in buffers.items() if not leaf.is_floating_point()},
    }
    if rule == "pooled":
        second = {
            name: floating[name].double() + floating[_mean_of(name)].double().square()
            for name in _variances(floating)
        }
        sums["second"] = tree.weigh(second, num_examples)
    return sums


def plus(total: State | None, more: State) -> State:
    """The sum of two clients' or shards' terms; of counters the larger one."""
    if total is None:
        return more
    largest = {n: torch.maximum(leaf, more["counters"][n]) for n, leaf in total["counters"].items()}
    sums = {
        part: {name: leaf + more[part][name] for name, leaf in total[part].items()}
        for part in total
        if part not in ("weight", "counters")
    }
    return {**sums, "weight": total["weight"] + more["weight"], "counters": largest}


def settle(rule: BnRule, sums: State, like: Params) -> Params:
    """The global model's buffers out of the cohort's sums.

    `average`: means and variances by examples. `pooled`: the moments of all the clients' values
    together, mean m = sum p_i m_i and variance sum p_i (v_i + m_i^2) - m^2. `local`: clients keep
    their own, and this average serves only to evaluate the global model. Counters take the largest
    value.
    """
    merged = tree.mean(sums["first"], sums["weight"])
    if rule == "pooled":
        second = tree.mean(sums["second"], sums["weight"])
        merged |= {n: leaf - merged[_mean_of(n)].square() for n, leaf in second.items()}
    merged |= sums["counters"]
    return {name: merged[name].to(leaf.dtype) for name, leaf in like.items()}


def combine(rule: BnRule, reported: Sequence[Params], num_examples: Sequence[int]) -> Params:
    """`settle` for buffers that are all there at once."""
    sums: State | None = None
    for buffers, count in zip(reported, num_examples, strict=True):
        sums = plus(sums, terms(rule, buffers, count))
    assert sums is not None
    return settle(rule, sums, reported[0])


def _variances(floating: Params) -> list[str]:
    return [n for n in floating if n.endswith("running_var") and _mean_of(n) in floating]


def _mean_of(name: str) -> str:
    return name.removesuffix("running_var") + "running_mean"


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

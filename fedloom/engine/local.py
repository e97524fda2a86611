"""Local training of one client as pure functions: begin, step, finish, and the loop over them.

Every executor uses these: the plain loop as they stand, the mapped one with a lane axis in front
of `step`.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from fedloom.engine.optimizer import Sgd
from fedloom.engine.trace import Replay
from fedloom.method import Method, calling, check_state
from fedloom.tasks.task import Task
from fedloom.types import Batch, Context, Params, State

Objective = Callable[[Params], tuple[Tensor, Params]]
"""Trained leaves -> (loss [], new buffers)."""

Gradient = Callable[[Objective, Params], tuple[Params, Tensor, Params]]
"""(objective, trained leaves) -> (gradients, loss [], new buffers)."""


class Problem(NamedTuple):
    """What stays the same for all clients of a round."""

    method: Method
    task: Task
    optimizer: Sgd
    padded: bool
    """Whether batches may hold padding."""
    teaches_each_batch: bool = False
    """Whether the method's teachers are asked in each step, not beforehand."""


class Facts(NamedTuple):
    """Numbers about one client in one round, before it trains."""

    lr: float
    num_steps: int
    num_examples: int
    epochs: int


class Lane(NamedTuple):
    """One client in the middle of its round."""

    params: Params
    momentum: Params
    buffers: Params
    loss: Tensor
    """[] sum over steps of loss times examples."""


class Outcome(NamedTuple):
    """One client after its round."""

    report: State
    memory: State
    buffers: Params
    loss: Tensor
    """[] sum over steps of loss times examples."""


def reverse(objective: Objective, trained: Params) -> tuple[Params, Tensor, Params]:
    """Gradients by PyTorch's autograd: the quick way for one client at a time."""
    leaves = {name: leaf.detach().requires_grad_() for name, leaf in trained.items()}
    with torch.enable_grad():
        loss, buffers = objective(leaves)
        grads = torch.autograd.grad(
            loss, list(leaves.values()), allow_unused=True, materialize_grads=True
        )
    return dict(zip(leaves, grads, strict=True)), loss.detach(), buffers


def functional(objective: Objective, trained: Params) -> tuple[Params, Tensor, Params]:
    """Gradients by `torch.func`, which can be mapped over lanes."""
    grads, (loss, buffers) = torch.func.grad_and_value(objective, has_aux=True)(trained)
    return grads, loss, buffers


def begin(
    problem: Problem, sent: State, memory: State, buffers: Params, data: Batch, facts: Facts
) -> tuple[Lane, Context]:
    """Start a client's round. `data` [M, ...] is empty unless the method reads it."""
    method = problem.method
    task = problem.task.bind(buffers, training=False)
    with calling(method, "start"):
        params, memory = method.start(task, sent, memory, data)
    names = tuple(name for name in params if name not in problem.task.frozen)
    groups = [method.trainable(names, epoch) for epoch in range(facts.epochs)]
    some = next(iter(params.values()))
    ctx = Context(
        sent=sent,
        client=memory,
        start=params,
        trained=tuple(name for name in names if any(name in group for group in groups)),
        lr=some.new_tensor(facts.lr),
        num_steps=some.new_tensor(facts.num_steps),
        num_examples=some.new_tensor(facts.num_examples),
        travel=some.new_tensor(
            problem.optimizer.travel(facts.num_steps, facts.lr, problem.method.pull)
        ),
        buffers=buffers,
    )
    momentum = problem.optimizer.init({name: params[name] for name in ctx.trained})
    return Lane(params, momentum, buffers, some.new_zeros(())), ctx


def taught(problem: Problem, batch: Batch, ctx: Context) -> Batch:
    """What the method's teachers say of a batch, without gradients."""
    task = problem.task.bind(ctx.buffers, training=False)
    with torch.no_grad(), calling(problem.method, "teach"):
        return problem.method.teach(task, batch, ctx)


def step(
    problem: Problem,
    gradient: Gradient,
    names: tuple[str, ...],
    lane: Lane,
    ctx: Context,
    batch: Batch,
) -> Lane:
    """One optimizer step over the leaves `names`; everything else stays as it is."""
    method, params = problem.method, lane.params
    if problem.teaches_each_batch:
        batch = {**batch, **taught(problem, batch, ctx)}

    def objective(trained: Params) -> tuple[Tensor, Params]:
        task = problem.task.bind(lane.buffers, training=True, padded=problem.padded)
        with calling(method, "loss"):
            loss = method.loss(task, {**params, **trained}, batch, ctx)
        return loss, {name: leaf.detach() for name, leaf in task.updates.items()}

    grads, loss, buffers = gradient(objective, {name: params[name] for name in names})
    with calling(method, "correct"):
        grads = method.correct(grads, params, ctx)
    moved, momentum = problem.optimizer.step(
        params, {name: grads[name] for name in names}, lane.momentum, ctx.lr
    )
    with calling(method, "after_step"):
        after = method.after_step(moved, ctx)
    return Lane(
        params={**params, **{name: after[name] for name in names}},
        momentum=momentum,
        buffers={**lane.buffers, **buffers},
        loss=lane.loss + loss * batch["mask"].sum(),
    )


def finish(problem: Problem, lane: Lane, ctx: Context, data: Batch) -> Outcome:
    """End a client's round: its report and what it remembers."""
    task = problem.task.bind(lane.buffers, training=False)
    with calling(problem.method, "report"):
        report, memory = problem.method.report(task, lane.params, data, ctx)
        check_state(report, "what is sent")
        check_state(memory, "the memory")
    return Outcome(report, memory, lane.buffers, lane.loss)


def train_client(
    problem: Problem,
    sent: State,
    memory: State,
    buffers: Params,
    blocks: Callable[[Context], Iterable[tuple[int, Batch]]],
    data: Batch,
    facts: Facts,
    replay: Replay,
) -> Outcome:
    """One client, one round: a pure function of what was sent, what it remembers and its batches.

    `blocks` gives pairs (epoch, some batches of it with leaves [T, B, ...]); `data` [M, ...] may be
    empty for methods that don't read it.
    """
    lane, ctx = begin(problem, sent, memory, buffers, data, facts)
    trained = ctx.trained
    for epoch, block in blocks(ctx):
        names = problem.method.trainable(trained, epoch)

        def one(lane: Lane, batch: Batch, ctx: Context, names: tuple[str, ...] = names) -> Lane:
            return step(problem, reverse, names, lane, ctx._replace(trained=trained), batch)

        key = (problem.method, problem.optimizer, trained, names)
        lane = replay.fold(key, one, lane, [block], ctx._replace(trained=()))
    return finish(problem, lane, ctx, data)


def detached(value: Any) -> Any:
    """A nested state without graphs."""
    if isinstance(value, dict):
        return {key: detached(item) for key, item in value.items()}
    return value.detach()

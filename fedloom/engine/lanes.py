"""Several clients at once: `step` mapped over lanes, each lane refilled when its client is done.

Clients begin and finish one at a time with the hooks as they stand; only the step, where the time
goes, has a lane axis in front. Lanes hold clients at different places of their rounds, so unequal
clients waste nothing while others wait; the longest start first.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedloom import tree
from fedloom.engine.local import Facts, Lane, Outcome, Problem, begin, finish, functional, step
from fedloom.engine.trace import Replay
from fedloom.tasks.task import Task
from fedloom.types import Batch, Context, Params, State

Former = Callable[[Sequence[int], Sequence[int], int], Iterator[Batch]]
"""(clients by place in the cohort, their next steps, how many) -> batches, leaves [L, B, ...]."""

GATE = "gate "

_Row = tuple[Lane, State, Params, tuple[Tensor, ...]]
"""What one lane holds: the client in mid-round, its memory, its start and the context's scalars."""


@dataclass
class _Seat:
    """Who sits in a lane, and how far they are."""

    place: int
    done: int
    total: int
    ctx: Context


def train_lanes(
    problem: Problem,
    sent: State,
    states: Sequence[tuple[State, Params, Batch]],
    facts: Sequence[Facts],
    epochs: Sequence[np.ndarray],
    lanes: int,
    form: Former,
    replay: Replay,
) -> list[Outcome]:
    """Outcomes in the order of `states`, each (memory, buffers, data) of one client."""
    queue = sorted(range(len(states)), key=lambda place: (facts[place].num_steps, -place))
    outcomes: dict[int, Outcome] = {}
    seats: list[_Seat] = []
    rows: list[_Row] = []
    while queue or seats:
        while queue and len(seats) < lanes:
            place = queue.pop()
            lane, ctx = begin(problem, sent, *states[place], facts[place])
            seats.append(_Seat(place, 0, facts[place].num_steps, ctx))
            rows.append((lane, ctx.client, ctx.start, _scalars(ctx)))
        run = min(seat.total - seat.done for seat in seats)
        rows = _advance(problem, sent, seats, rows, epochs, form, run, replay)
        for seat, row in zip(seats, rows, strict=True):
            seat.done += run
            if seat.done == seat.total:
                data = states[seat.place][2]
                outcomes[seat.place] = finish(problem, row[0], seat.ctx, data)
        staying = [seat.done < seat.total for seat in seats]
        rows = [row for row, stays in zip(rows, staying, strict=True) if stays]
        seats = [seat for seat, stays in zip(seats, staying, strict=True) if stays]
    return [outcomes[place] for place in range(len(states))]


def _scalars(ctx: Context) -> tuple[Tensor, ...]:
    return ctx.lr, ctx.num_steps, ctx.num_examples, ctx.travel


def _advance(
    problem: Problem,
    sent: State,
    seats: Sequence[_Seat],
    rows: list[_Row],
    epochs: Sequence[np.ndarray],
    form: Former,
    run: int,
    replay: Replay,
) -> list[_Row]:
    """`run` steps of all lanes together."""
    trained = seats[0].ctx.trained
    places = [seat.place for seat in seats]

    def one(lane: Lane, item: Batch, constants: Any) -> Lane:
        client, start, scalars, sent = constants
        gates = {name.removeprefix(GATE): g for name, g in item.items() if name.startswith(GATE)}
        batch = {name: leaf for name, leaf in item.items() if not name.startswith(GATE)}
        ctx = Context(sent, client, start, trained, *scalars)
        new = step(problem, functional, trained, lane, ctx, batch)
        return _gated(new, lane, gates) if gates else new

    alone = len(seats) == 1  # a lane axis of one would only cost

    def items() -> Iterator[Batch]:
        for t, batch in enumerate(form(places, [seat.done for seat in seats], run)):
            now = [int(epochs[seat.place][seat.done + t]) for seat in seats]
            item = {**batch, **_gates(problem, trained, now)}
            yield tree.row(item, 0) if alone else item

    call = one if alone else torch.func.vmap(one, (0, 0, (0, 0, 0, None)), randomness="different")
    key = (problem.method, problem.optimizer, trained, alone)
    lane, client, start, scalars = rows[0] if alone else _stack(rows)
    lane = replay.fold(key, call, lane, items(), (client, start, scalars, sent))
    return [
        (part, seat.ctx.client, seat.ctx.start, _scalars(seat.ctx))
        for part, seat in zip([lane] if alone else _split(lane, len(seats)), seats, strict=True)
    ]


def _gates(problem: Problem, trained: tuple[str, ...], epochs: list[int]) -> dict[str, Tensor]:
    """Per leaf, under `GATE` + its name, which lanes train it now [L]; empty when all train all."""
    groups = [problem.method.trainable(trained, epoch) for epoch in epochs]
    if all(len(group) == len(trained) for group in groups):
        return {}
    return {GATE + name: torch.tensor([name in group for group in groups]) for name in trained}


def _gated(new: Lane, old: Lane, gates: dict[str, Tensor]) -> Lane:
    """The new value of leaves whose gate is open, the old one of the rest."""

    def choose(after: Params, before: Params) -> Params:
        return {
            name: torch.where(gates[name], leaf, before[name]) if name in gates else leaf
            for name, leaf in after.items()
        }

    return new._replace(
        params=choose(new.params, old.params), momentum=choose(new.momentum, old.momentum)
    )


def _stack(rows: list[_Row]) -> Any:
    return torch.utils._pytree.tree_map(lambda *leaves: torch.stack(leaves), *rows)


def _split(stacked: Lane, count: int) -> list[Lane]:
    return [
        torch.utils._pytree.tree_map(lambda leaf, i=i: leaf[i].clone(), stacked)
        for i in range(count)
    ]


def mapping_problem(task: Task, input_shape: tuple[int, ...]) -> str | None:
    """Why a model can't be trained in lanes, from one step of two lanes; None if it can."""
    params, buffers = task.initial()
    batch = {
        "x": torch.zeros(2, 2, *input_shape),
        "y": torch.zeros(2, 2, dtype=torch.int64),
        "mask": torch.ones(2, 2),
    }

    def one(params: Params, buffers: Params, batch: Batch) -> Params:
        def objective(trained: Params) -> tuple[Tensor, Params]:
            bound = task.bind(buffers, training=True)
            return bound.loss(trained, batch), bound.updates

        return functional(objective, params)[0]

    two = [tree.stack([part, part]) for part in (params, buffers)]
    try:
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.func.vmap(one, randomness="different")(two[0], two[1], batch)
    except Exception as error:  # whatever a model does that can't be mapped
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return None

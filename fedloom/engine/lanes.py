"""Several clients at once: `step` mapped over lanes, each lane refilled when its client is done.

Clients begin and finish one at a time with the hooks as they stand; only the step, where the time
goes, has a lane axis in front. Lanes hold clients at different places of their rounds, so unequal
clients waste nothing while others wait; the longest start first.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

from fedloom import tree
from fedloom.engine.local import Facts, Lane, Outcome, Problem, begin, finish, functional, step
from fedloom.engine.trace import Replay
from fedloom.method import Method
from fedloom.tasks.task import Task
from fedloom.types import Batch, Context, Params, State

Feed = TypeVar("Feed")

Former = Callable[[Sequence[Feed], Sequence[int], int], Iterator[Batch]]
"""(feeds by lane, their next steps, how many) -> blocks of batches, leaves [T, L, B, ...]."""

GATE = "gate "

_Row = tuple[Lane, State, Params, tuple[Any, ...]]
"""What one lane holds: the client in mid-round, its memory, its start and the context's rest."""


class Pending(NamedTuple):
    """A client that waits for a lane."""

    place: int
    num_steps: int


@dataclass(frozen=True)
class Seated(Generic[Feed]):
    """All that a client's round needs, made when a lane becomes free for it."""

    memory: State
    buffers: Params
    data: Batch
    facts: Facts
    epochs: np.ndarray
    """int64 [T] the epoch of each step."""
    skipped: int
    feed: Callable[[Context], Feed]
    """Its batches, once its training has begun."""


@dataclass
class _Seat(Generic[Feed]):
    """Who sits in a lane, and how far they are."""

    place: int
    client: Seated[Feed]
    ctx: Context
    feed: Feed
    done: int = 0

    @property
    def left(self) -> int:
        return self.client.facts.num_steps - self.done


def train_lanes(
    problem: Problem,
    sent: State,
    pending: Sequence[Pending],
    seat: Callable[[int], Seated[Feed]],
    lanes: int,
    form: Former[Feed],
    replay: Replay,
) -> Iterator[tuple[int, Seated[Feed], Outcome, int]]:
    """(place, client, outcome, slots) of every pending client, in the order in which they finish.

    Slots are the steps that the lanes had room for since the last client finished.
    """
    queue = sorted(pending, key=lambda client: (client.num_steps, -client.place))
    allowed = widths(min(lanes, len(queue))) if replay.compiled else None
    seats: list[_Seat[Feed]] = []
    rows: list[_Row] = []
    while queue or seats:
        while queue and len(seats) < lanes:
            place = queue.pop().place
            client = seat(place)
            lane, ctx = begin(
                problem, sent, client.memory, client.buffers, client.data, client.facts
            )
            seats.append(_Seat(place, client, ctx, client.feed(ctx)))
            rows.append((lane, ctx.client, ctx.start, _rest(ctx)))
        run = min(one.left for one in seats)
        width = len(seats) if allowed is None else min(w for w in allowed if w >= len(seats))
        rows = _advance(problem, sent, seats, rows, width, form, run, replay)
        staying, slots = [], width * run
        for one, row in zip(seats, rows, strict=True):
            one.done += run
            staying.append(one.left > 0)
            if one.left == 0:
                outcome = finish(problem, row[0], one.ctx, one.client.data)
                yield one.place, one.client, outcome, slots
                slots = 0
        rows = [row for row, stays in zip(rows, staying, strict=True) if stays]
        seats = [one for one, stays in zip(seats, staying, strict=True) if stays]


def widths(most: int) -> list[int]:
    """Numbers of lanes worth a compiled program each: the most there can be, and its halves.

    >>> widths(10)
    [1, 2, 3, 5, 10]
    """
    return [1] if most <= 1 else [*widths((most + 1) // 2), most]


def _rest(ctx: Context) -> tuple[Any, ...]:
    return ctx.lr, ctx.num_steps, ctx.num_examples, ctx.travel, ctx.buffers


def _advance(
    problem: Problem,
    sent: State,
    seats: Sequence[_Seat[Feed]],
    rows: list[_Row],
    width: int,
    form: Former[Feed],
    run: int,
    replay: Replay,
) -> list[_Row]:
    """`run` steps of all lanes together; lanes beyond the seats repeat the first one for nobody."""
    trained = seats[0].ctx.trained
    extra = width - len(seats)
    filled = [*seats, *([seats[0]] * extra)]

    def one(lane: Lane, item: Batch, constants: Any) -> Lane:
        client, start, rest, sent = constants
        gates = {name.removeprefix(GATE): g for name, g in item.items() if name.startswith(GATE)}
        batch = {name: leaf for name, leaf in item.items() if not name.startswith(GATE)}
        ctx = Context(sent, client, start, trained, *rest)
        new = step(problem, functional, trained, lane, ctx, batch)
        return _gated(new, lane, gates) if gates else new

    alone = width == 1  # a lane axis of one would only cost

    def blocks() -> Iterator[Batch]:
        feeds, starts = [each.feed for each in filled], [each.done for each in filled]
        done = 0
        for block in form(feeds, starts, run):
            count = len(block["mask"])
            now = [each.client.epochs[each.done + done :][:count] for each in filled]
            item = {**block, **_gates(problem, trained, now, block["mask"].device)}
            yield {name: leaf[:, 0] for name, leaf in item.items()} if alone else item
            done += count

    call = one if alone else torch.func.vmap(one, (0, 0, (0, 0, 0, None)), randomness="different")
    key = (problem.method, problem.optimizer, trained, alone)
    stacked = rows[0] if alone else _stack([*rows, *([rows[0]] * extra)])
    lane, client, start, rest = stacked
    lane = replay.fold(key, call, lane, blocks(), (client, start, rest, sent))
    return [
        (part, each.ctx.client, each.ctx.start, _rest(each.ctx))
        for part, each in zip([lane] if alone else _split(lane, len(seats)), seats, strict=True)
    ]


def _gates(
    problem: Problem, trained: tuple[str, ...], epochs: list[np.ndarray], device: torch.device
) -> dict[str, Tensor]:
    """Per leaf, under `GATE` + its name, which lanes train it when [T, L]; empty if all always do.

    `epochs` holds each lane's, [T].
    """
    method = problem.method
    if type(method).trainable is Method.trainable:
        return {}
    groups = [[method.trainable(trained, int(epoch)) for epoch in lane] for lane in epochs]

    def open_for(name: str) -> Tensor:
        return torch.tensor([[name in group for group in lane] for lane in groups]).T

    return {GATE + name: open_for(name).to(device) for name in trained}


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

"""Reports become sums as they arrive, in an order that no executor and no worker can change.

The cohort is divided into a fixed number of shards. Within a shard clients are added one after
another, then the shards in order, all in float64 and rounded once by the server; so the sums have
the same bits on any number of workers, and need room for a few models, not for the cohort's.
"""

import heapq
from collections.abc import Iterable, Iterator, Sequence

import torch

from fedloom import tree
from fedloom.engine import statistics
from fedloom.engine.local import Outcome
from fedloom.engine.orders import Common, Done, Order, Part
from fedloom.method import calling, check_state
from fedloom.types import State

SHARDS = 32


def divide(num_steps: Sequence[int], count: int) -> list[list[int]]:
    """Places in at most `count` groups: longest first, each to the group with least work so far.

    >>> divide([5, 1, 3], 2)
    [[0], [2, 1]]
    """
    groups: list[list[int]] = [[] for _ in range(min(count, len(num_steps)))]
    loads = [(0, group) for group in range(len(groups))]
    for place in sorted(range(len(num_steps)), key=lambda place: (-num_steps[place], place)):
        load, group = heapq.heappop(loads)
        groups[group].append(place)
        heapq.heappush(loads, (load + num_steps[place], group))
    return groups


def plus(total: State | None, terms: State) -> State:
    """total + terms, written into `total`; whole numbers count as float64 like everything else."""
    if total is None:
        return {
            key: plus(None, value) if isinstance(value, dict) else value.clone().double()
            for key, value in terms.items()
        }
    for key, value in terms.items():
        if isinstance(value, dict):
            plus(total[key], value)
        else:
            total[key] += value
    return total


def finite(state: State) -> bool:
    """Whether every number of a state is."""
    return all(
        bool(torch.isfinite(leaf).all())
        for _, leaf in tree.leaves(state)
        if leaf.is_floating_point()
    )


class Shard:
    """The sums of one shard; clients may come in any order and are added in theirs."""

    def __init__(self, number: int, common: Common, orders: Sequence[Order]) -> None:
        self._number, self._common, self._orders = number, common, orders
        self._waiting: dict[int, tuple[Done, State | None, State | None]] = {}
        self._done: list[Done] = []
        self._sums: State | None = None
        self._each: list[State] = []
        self._statistics: State | None = None

    def add(self, index: int, outcome: Outcome, num_steps: int, skipped: int) -> Part | None:
        """Take one client's outcome; the finished part after the last one."""
        self._waiting[index] = self._terms(self._orders[index], outcome, num_steps, skipped)
        while len(self._done) in self._waiting:
            done, terms, moments = self._waiting.pop(len(self._done))
            self._done.append(done)
            if terms is not None and self._common.method.needs_each:
                self._each.append(terms)
            elif terms is not None:
                self._sums = plus(self._sums, terms)
            if moments is not None:
                self._statistics = statistics.plus(self._statistics, moments)
        if len(self._done) < len(self._orders):
            return None
        sums = self._each if self._common.method.needs_each else self._sums
        return Part(self._number, sums, self._statistics, self._done, 0, ())

    def _terms(
        self, order: Order, outcome: Outcome, num_steps: int, skipped: int
    ) -> tuple[Done, State | None, State | None]:
        common, size = self._common, len(order.rows)
        parts: list[tuple[str, State]] = [
            ("loss", {"loss": outcome.loss}),
            ("report", outcome.report),
            ("memory", outcome.memory),
            ("running statistics", outcome.buffers),
        ]
        bad = next((f"{what} is not finite" for what, part in parts if not finite(part)), None)
        counts = bad is None or common.counts_nonfinite
        done = Done(
            client=order.client,
            refused=bad,
            loss=float(outcome.loss),
            num_steps=num_steps,
            skipped=skipped,
            num_bytes=tree.num_bytes(outcome.report),
            memory=outcome.memory if counts else None,
            buffers=outcome.buffers if counts and common.keeps_buffers else None,
        )
        if not counts:
            return done, None, None
        with calling(common.method, "collect"):
            num_examples = torch.tensor(float(size), dtype=torch.float64)
            terms = common.method.collect(outcome.report, num_examples)
            check_state(terms, "what is collected")
        moments = statistics.terms(common.bn, outcome.buffers, size) if outcome.buffers else None
        return done, terms, moments


def total(parts: Iterable[Part]) -> tuple[State | None, State | None]:
    """(sums or stacked terms, sums of running statistics) of all shards, which come in order."""
    sums: State | None = None
    each: list[State] = []
    moments: State | None = None
    for part in parts:
        if isinstance(part.sums, list):
            each += part.sums
        elif part.sums is not None:
            sums = plus(sums, part.sums)
        if part.statistics is not None:
            moments = statistics.plus(moments, part.statistics)
    return (tree.stack(each) if each else sums), moments


def in_order(parts: Iterable[Part]) -> Iterator[Part]:
    """The parts by their shard's number, each as soon as those before it are there."""
    waiting: dict[int, Part] = {}
    following = 0
    for part in parts:
        waiting[part.shard] = part
        while following in waiting:
            yield waiting.pop(following)
            following += 1

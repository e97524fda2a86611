"""Train a cohort: one round's clients, here or in worker processes, reduced to sums."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from fedloom.clients.examples import Examples
from fedloom.engine.orders import Common, Done, Order, Part
from fedloom.engine.pool import Pool, Work
from fedloom.engine.reduce import SHARDS, divide, in_order, total
from fedloom.engine.statistics import BnRule
from fedloom.engine.trainer import Trainer
from fedloom.method import Method
from fedloom.types import Params, State

Shard = tuple[int, list[Order]]


class Trained(NamedTuple):
    """What a cohort's round gave."""

    sums: State | None
    """Sums of what the method collected (leaves [N, ...] if it needs each); None without any."""
    statistics: State | None
    """Sums of running statistics, for `statistics.settle`."""
    done: tuple[Done, ...]
    """Every client, in the order in which they were asked for."""
    busy: float
    """Share of the lanes' steps that trained a client."""
    replaced: int
    """Worker processes that died and whose work was repeated."""
    notes: tuple[str, ...]
    """What could not be recorded or compiled, in sentences."""


@dataclass
class Engine:
    """A trainer and everybody's rows; more than one worker means processes of their own."""

    trainer: Trainer
    rows: Sequence[np.ndarray]
    """Each client's training rows."""
    workers: int = 1
    test: Examples | None = None
    """What models are scored on beside the training rows."""
    pool: Pool | None = field(default=None, repr=False)

    def steps(self, client: int) -> int:
        """Optimizer steps this client takes in a round."""
        return self.trainer.steps(len(self.rows[client]))

    def train(
        self,
        method: Method,
        sent: State,
        clients: Sequence[int],
        memories: Mapping[int, State],
        buffers: Mapping[int, Params],
        *,
        round: int,
        lr: float,
        bn: BnRule = "average",
        keeps_buffers: bool = False,
        counts_nonfinite: bool = False,
    ) -> Trained:
        """Train every client of the cohort from what was sent; nothing that goes in is changed."""
        common = Common(method, sent, round, lr, bn, keeps_buffers, counts_nonfinite)
        orders = [Order(c, self.rows[c], memories[c], buffers[c]) for c in clients]
        groups = divide([self.trainer.steps(len(order.rows)) for order in orders], SHARDS)
        work = [(number, [orders[place] for place in group]) for number, group in enumerate(groups)]
        done: list[Done] = []
        slots, replaced = 0, self._replaced
        notes: tuple[str, ...] = ()

        def noted() -> Iterator[Part]:
            nonlocal slots, notes
            for part in in_order(self._parts(common, work)):
                done.extend(part.done)
                slots, notes = slots + part.slots, part.notes or notes
                yield part

        sums, statistics = total(noted())
        places = [place for group in groups for place in group]
        by_place = dict(zip(places, done, strict=True))
        return Trained(
            sums,
            statistics,
            tuple(by_place[place] for place in range(len(clients))),
            busy=sum(one.num_steps for one in done) / max(1, slots),
            replaced=self._replaced - replaced,
            notes=notes,
        )

    @property
    def _replaced(self) -> int:
        return 0 if self.pool is None else self.pool.replaced

    def _parts(self, common: Common, work: list[Shard]) -> Iterator[Part]:
        tasks = [[shard] for shard in work]
        if self.trainer.executor == "mapped":  # lanes are refilled within one process
            loads = [sum(self.trainer.steps(len(o.rows)) for o in group) for _, group in work]
            tasks = [[work[i] for i in part] for part in divide(loads, self.workers)]
        yield from self.run(_parts, common, tasks)

    def run(self, work: Work, shared: Any, payloads: Iterable[Any]) -> Iterator[Any]:
        """Results of `work(engine, shared, payload)` for every payload, here or in the workers.

        Results come as they are ready: in the order of payloads only with one worker.
        """
        if self.workers == 1:
            for payload in payloads:
                yield from work(self, shared, payload)
            return
        if self.pool is None:
            alone = Engine(self.trainer, (), test=self.test)
            self.pool = Pool(alone, self.workers)
        try:
            yield from self.pool.run(work, shared, payloads)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the worker processes, if there are any."""
        if self.pool is not None:
            self.pool.close()
            self.pool = None

    def __del__(self) -> None:
        with suppress(Exception):
            self.close()


def _parts(engine: Engine, common: Common, work: list[Shard]) -> Iterator[Part]:
    return engine.trainer.parts(common, work)

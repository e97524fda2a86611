"""Train clients: one after another, or several lanes at a time. What a worker process holds."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import numpy as np
import torch

from fedloom import tree
from fedloom.clients.batches import LocalWork, Plan, num_steps, plan, plan_in_order
from fedloom.clients.examples import NO_AUGMENT, Augment, Examples, Feed, form, steps_at_once
from fedloom.clients.noise import NO_NOISE, Noise
from fedloom.engine.lanes import Pending, Seated, train_lanes
from fedloom.engine.local import Facts, Outcome, Problem, detached, taught, train_client
from fedloom.engine.optimizer import Sgd
from fedloom.engine.orders import Common, Order, Part
from fedloom.engine.reduce import Shard
from fedloom.engine.trace import Replay
from fedloom.method import Method
from fedloom.rng import words
from fedloom.tasks.task import Task
from fedloom.types import Batch, Context

CPU = torch.device("cpu")

Executor = Literal["loop", "mapped"]


class Trained(NamedTuple):
    """One client after its round, by its place among the orders."""

    place: int
    outcome: Outcome
    num_steps: int
    skipped: int
    slots: int
    """Steps that the lanes had room for since the client before."""


@dataclass(frozen=True)
class Trainer:
    """The one place that knows about batches and lanes."""

    task: Task
    examples: Examples
    optimizer: Sgd
    work: LocalWork
    seed: int
    executor: Executor = "loop"
    lanes: int = 16
    augment: Augment = NO_AUGMENT
    noise: Noise = NO_NOISE
    min_batch: int = 1
    pads: bool = False
    """Whether the loop fills up short batches, so that all steps are one program."""
    device: torch.device = CPU
    """Where examples lie and clients train; what comes in and goes out is on the CPU."""
    replay: Replay = field(default_factory=Replay, repr=False)

    def steps(self, num_examples: int) -> int:
        """Optimizer steps that a client of this size takes in a round."""
        return num_steps(num_examples, self.work, self.min_batch)

    def parts(self, common: Common, shards: Sequence[tuple[int, list[Order]]]) -> Iterator[Part]:
        """Train the clients of some shards; each shard's part when it is complete."""
        orders = [order for _, group in shards for order in group]
        where = [
            (shard, index)
            for shard, group in ((Shard(number, common, group), group) for number, group in shards)
            for index in range(len(group))
        ]
        slots = 0
        for trained in self.train(common, orders):
            slots += trained.slots
            shard, index = where[trained.place]
            part = shard.add(index, trained.outcome, trained.num_steps, trained.skipped)
            if part is not None:
                yield part._replace(slots=slots, notes=self.replay.notes())
                slots = 0

    def train(self, common: Common, orders: Sequence[Order]) -> Iterator[Trained]:
        """Train every client from what was sent, in any order; what goes in is not changed."""
        mapped = self.executor == "mapped"
        padded = mapped or self.pads
        teaches_each = common.method.teaches and not self._sees_the_same
        problem = Problem(common.method, self.task, self.optimizer, padded, teaches_each)
        common = common._replace(sent=tree.to(common.sent, self.device))
        devices = [] if self.device.type == "cpu" else [self.device]
        with torch.random.fork_rng(devices, device_type=self.device.type), torch.no_grad():
            if mapped:
                torch.manual_seed(self._layer_seed(common.round, -1))
                yield from self._lanes(problem, common, orders)
                return
            for place, order in enumerate(orders):
                drawn = self._plan(order, common.round)
                facts = self._facts(drawn, order, common)
                outcome = self._train_one(problem, common, order, drawn, facts)
                steps = facts.num_steps
                yield Trained(place, _back(outcome), steps, drawn.skipped, steps)

    def _train_one(
        self, problem: Problem, common: Common, order: Order, drawn: Plan, facts: Facts
    ) -> Outcome:
        torch.manual_seed(self._layer_seed(common.round, order.client))

        def blocks(ctx: Context) -> Iterator[tuple[int, Batch]]:
            """Batches of one epoch each; unless padded, of one size each and without padding."""
            feed, done = self._feed(problem, drawn, order, ctx, common.round), 0
            for block in self._blocks([feed], [0], len(drawn.count)):
                span = slice(done, done + len(block["mask"]))
                sizes = np.where(self.pads, 0, drawn.count[span])
                kinds = np.stack([drawn.epoch[span], sizes], 1)  # [T, 2]
                cuts = [0, *(np.flatnonzero((kinds[1:] != kinds[:-1]).any(1)) + 1), len(kinds)]
                for first, last in itertools.pairwise(cuts):
                    epoch, count = (int(each) for each in kinds[first])
                    size = self.work.batch_size if self.pads else count
                    yield epoch, {k: leaf[first:last, 0, :size] for k, leaf in block.items()}
                done = span.stop

        data = self._whole(common.method, order)
        sent = common.sent
        memory, buffers = (tree.to(part, self.device) for part in (order.memory, order.buffers))
        return train_client(problem, sent, memory, buffers, blocks, data, facts, self.replay)

    def _lanes(
        self, problem: Problem, common: Common, orders: Sequence[Order]
    ) -> Iterator[Trained]:
        def seat(place: int) -> Seated[Feed]:
            order = orders[place]
            drawn = self._plan(order, common.round)
            return Seated(
                memory=tree.to(order.memory, self.device),
                buffers=tree.to(order.buffers, self.device),
                data=self._whole(common.method, order),
                facts=self._facts(drawn, order, common),
                epochs=drawn.epoch,
                skipped=drawn.skipped,
                feed=lambda ctx: self._feed(problem, drawn, order, ctx, common.round),
            )

        pending = [Pending(place, self.steps(len(o.rows))) for place, o in enumerate(orders)]
        finished = train_lanes(
            problem, common.sent, pending, seat, self.lanes, self._blocks, self.replay
        )
        for place, seated, outcome, slots in finished:
            steps = seated.facts.num_steps
            yield Trained(place, _back(outcome), steps, seated.skipped, slots)

    def _blocks(self, feeds: Sequence[Feed], starts: Sequence[int], steps: int) -> Iterator[Batch]:
        """The next `steps` batches of all lanes, some at a time: leaves [T, L, B, ...]."""
        together = steps_at_once(self.examples, len(feeds), feeds[0].rows.shape[1])
        for first in range(0, steps, together):
            here = [start + first for start in starts]
            count = min(together, steps - first)
            yield form(self.examples, feeds, here, count, self.augment, self.noise)

    def _layer_seed(self, round: int, client: int) -> int:
        """Seed of layers that draw (dropout): per client in the loop, per round in lanes."""
        return int(words(self.seed, "layers", round, client)[0])

    def _facts(self, drawn: Plan, order: Order, common: Common) -> Facts:
        return Facts(common.lr, len(drawn.count), len(order.rows), self.work.epochs or 1)

    def _plan(self, order: Order, round: int) -> Plan:
        return plan(
            len(order.rows),
            self.work,
            seed=self.seed,
            round=round,
            client=order.client,
            min_batch=self.min_batch,
        )

    def _feed(self, problem: Problem, drawn: Plan, order: Order, ctx: Context, round: int) -> Feed:
        """A client's batches, with what teachers say of its examples if that can be asked once."""
        feed = self._plain_feed(drawn, order, round)
        if not problem.method.teaches or problem.teaches_each_batch:
            return feed
        in_order = plan_in_order(len(order.rows), self.work.batch_size)
        every = self._blocks([self._plain_feed(in_order, order, round)], [0], len(in_order.count))
        said = [
            taught(problem, {name: leaf[t, 0] for name, leaf in block.items()}, ctx)
            for block in every
            for t in range(len(block["mask"]))
        ]
        names = said[0] if said else ()
        return replace(feed, taught={name: torch.cat([s[name] for s in said]) for name in names})

    @property
    def _sees_the_same(self) -> bool:
        """Whether an example is the same input in every epoch of a round."""
        noisy = self.noise.active and self.noise.refresh == "each_access"
        return not (self.augment.flip or self.augment.crop or noisy)

    def _plain_feed(self, drawn: Plan, order: Order, round: int) -> Feed:
        choices = self.augment.draw(drawn, self.seed, round, order.client)
        return Feed(
            rows=torch.from_numpy(order.rows[drawn.index]).to(self.device),
            position=torch.from_numpy(drawn.index),
            count=torch.from_numpy(drawn.count).to(self.device),
            choices=None if choices is None else choices.to(self.device),
            client=order.client,
            round=round,
        )

    def _whole(self, method: Method, order: Order) -> Batch:
        if not method.reads_data:
            return {}
        rows = torch.from_numpy(np.ascontiguousarray(order.rows)).to(self.device)
        x, y = self.examples.take(rows)
        return {"x": x, "y": y, "mask": torch.ones(len(y), device=self.device)}


def _back(outcome: Outcome) -> Outcome:
    """An outcome without graphs, on the CPU."""
    report, memory, buffers = (tree.to(detached(part), CPU) for part in outcome[:3])
    return Outcome(report, memory, buffers, outcome.loss.detach().cpu())

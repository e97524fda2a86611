"""Train a cohort: one round's clients, one after another or several lanes at a time."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
import torch

from fedloom.clients.batches import LocalWork, Plan, num_steps, plan
from fedloom.clients.examples import NO_AUGMENT, Augment, Examples, Feed, form, steps_at_once
from fedloom.clients.noise import NO_NOISE, Noise
from fedloom.engine.lanes import train_lanes
from fedloom.engine.local import Facts, Outcome, Problem, detached, train_client
from fedloom.engine.optimizer import Sgd
from fedloom.engine.trace import Replay
from fedloom.method import Method
from fedloom.rng import words
from fedloom.tasks.task import Task
from fedloom.types import Batch, Params, State

Executor = Literal["loop", "mapped"]


class Trained(NamedTuple):
    """What a cohort's round gave, in the order of `clients`."""

    clients: tuple[int, ...]
    outcomes: list[Outcome]
    num_examples: list[int]
    num_steps: list[int]
    skipped: list[int]
    """Examples left out because a batch of one can't be normalised."""


@dataclass(frozen=True)
class Engine:
    """The one place that knows about batches, lanes and devices."""

    task: Task
    examples: Examples
    rows: Sequence[np.ndarray]
    """Each client's training rows."""
    optimizer: Sgd
    work: LocalWork
    seed: int
    executor: Executor = "loop"
    lanes: int = 16
    augment: Augment = NO_AUGMENT
    noise: Noise = NO_NOISE
    min_batch: int = 1
    replay: Replay = field(default_factory=Replay, repr=False)

    def steps(self, client: int) -> int:
        """Optimizer steps this client takes in a round."""
        return num_steps(len(self.rows[client]), self.work, self.min_batch)

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
    ) -> Trained:
        """Train every client of the cohort from what was sent; nothing that goes in is changed."""
        plans = [self._plan(client, round) for client in clients]
        facts = [
            Facts(lr, len(p.count), len(self.rows[c]), self.work.epochs or 1)
            for p, c in zip(plans, clients, strict=True)
        ]
        feeds = [self._feed(p, c, round) for p, c in zip(plans, clients, strict=True)]
        problem = Problem(method, self.task, self.optimizer, padded=self.executor == "mapped")
        states = [(memories[c], buffers[c], self._whole(method, c)) for c in clients]
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            if self.executor == "mapped":
                torch.manual_seed(self._layer_seed(round, -1))
                outcomes = train_lanes(
                    problem,
                    sent,
                    states,
                    facts,
                    [p.epoch for p in plans],
                    self.lanes,
                    lambda places, starts, steps: self._batches(
                        [feeds[place] for place in places], starts, steps
                    ),
                    self.replay,
                )
            else:
                outcomes = [
                    self._train_one(problem, sent, state, fact, feed, p)
                    for state, fact, feed, p in zip(states, facts, feeds, plans, strict=True)
                ]
        return Trained(
            tuple(clients),
            [Outcome(*(detached(part) for part in outcome)) for outcome in outcomes],
            [fact.num_examples for fact in facts],
            [fact.num_steps for fact in facts],
            [p.skipped for p in plans],
        )

    def _train_one(
        self,
        problem: Problem,
        sent: State,
        state: tuple[State, Params, Batch],
        facts: Facts,
        feed: Feed,
        plan: Plan,
    ) -> Outcome:
        torch.manual_seed(self._layer_seed(feed.round, feed.client))
        memory, buffers, data = state

        def batches() -> Iterator[tuple[int, Batch]]:
            every = self._batches([feed], [0], len(plan.count))
            for stacked, epoch, count in zip(every, plan.epoch, plan.count, strict=True):
                yield int(epoch), {key: leaf[0, :count] for key, leaf in stacked.items()}

        return train_client(problem, sent, memory, buffers, batches(), data, facts)

    def _batches(self, feeds: Sequence[Feed], starts: Sequence[int], steps: int) -> Iterator[Batch]:
        """The next `steps` batches of all lanes, leaves [L, B, ...], formed some at a time."""
        together = steps_at_once(self.examples, len(feeds), feeds[0].rows.shape[1])
        for first in range(0, steps, together):
            count = min(together, steps - first)
            here = [start + first for start in starts]
            block = form(self.examples, feeds, here, count, self.augment, self.noise)
            for t in range(count):
                yield {key: leaf[t] for key, leaf in block.items()}

    def _layer_seed(self, round: int, client: int) -> int:
        """Seed of layers that draw (dropout): per client in the loop, per round in lanes."""
        return int(words(self.seed, "layers", round, client)[0])

    def _plan(self, client: int, round: int) -> Plan:
        return plan(
            len(self.rows[client]),
            self.work,
            seed=self.seed,
            round=round,
            client=client,
            min_batch=self.min_batch,
        )

    def _feed(self, plan: Plan, client: int, round: int) -> Feed:
        return Feed(
            rows=torch.from_numpy(self.rows[client][plan.index]),
            position=torch.from_numpy(plan.index),
            count=torch.from_numpy(plan.count),
            choices=self.augment.draw(plan, self.seed, round, client),
            client=client,
            round=round,
        )

    def _whole(self, method: Method, client: int) -> Batch:
        if not method.reads_data:
            return {}
        x, y = self.examples.take(torch.from_numpy(self.rows[client]))
        return {"x": x, "y": y, "mask": torch.ones(len(y))}

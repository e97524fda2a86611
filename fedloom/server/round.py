"""One round: sample, broadcast, train, refuse what isn't finite, aggregate."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from fedloom import tree
from fedloom.engine.cohort import Trained
from fedloom.engine.local import Outcome
from fedloom.errors import DivergedError
from fedloom.method import calling, check_state
from fedloom.rng import stream
from fedloom.server.setup import Setup
from fedloom.server.statistics import RECALIBRATION_ROWS, combine, recalibrate
from fedloom.types import Cohort, Params, State


@dataclass(frozen=True)
class RunState:
    """All that the next round reads, and all that a checkpoint holds."""

    server: State
    buffers: Params
    memories: dict[int, State] = field(default_factory=dict)
    """Of clients that have taken part; the others have what `init_client` gives."""
    own_buffers: dict[int, Params] = field(default_factory=dict)
    """Running statistics that clients keep to themselves."""


def begin(setup: Setup) -> RunState:
    """The state before the first round."""
    with calling(setup.method, "init_server"):
        server = setup.method.init_server(setup.params)
        check_state(server, "the server's state")
    return RunState(server, setup.buffers)


def run_round(setup: Setup, state: RunState, round: int) -> tuple[RunState, dict[str, Any]]:
    """(state after the round, the fields of its line in the record).

    Raises DivergedError when the configuration says that the run can't go on.
    """
    method, config = setup.method, setup.config
    cohort = [int(client) for client in setup.cohort(round)]
    lr = setup.lr(round)
    sent = method.broadcast(state.server)
    keeps = config.bn == "local" or not sent
    fresh = method.init_client(state.server)
    began = time.perf_counter()
    trained = setup.engine.train(
        method,
        sent,
        cohort,
        {client: state.memories.get(client, fresh) for client in cohort},
        {c: state.own_buffers.get(c, state.buffers) if keeps else state.buffers for c in cohort},
        round=round,
        lr=lr,
    )
    served = time.perf_counter()
    accepted, refused = _sift(trained, config.on_nonfinite, round)
    after, extras = _aggregate(setup, state, trained, accepted, keeps)
    if config.on_nonfinite != "ignore" and not finite(after.server):
        raise DivergedError(
            f"round {round}: the global model is not finite; lower the learning rate"
        )
    if config.bn == "server_recalibrate" and setup.task.has_batch_norm:
        after = _recalibrated(setup, after)
    fields = {
        "lr": lr,
        "cohort": cohort,
        **_costs(setup, sent, trained, accepted, keeps),
        "refused": refused,
        **extras,
        "seconds": served - began,
        "server_seconds": time.perf_counter() - served,
    }
    return after, fields


def finite(state: State) -> bool:
    """Whether every number of a state is."""
    return all(
        bool(torch.isfinite(leaf).all())
        for _, leaf in tree.leaves(state)
        if leaf.is_floating_point()
    )


def _sift(trained: Trained, policy: str, round: int) -> tuple[list[int], list[dict[str, Any]]]:
    """(places of the reports to use, the refused with reasons)."""
    checks: list[tuple[str, Callable[[Outcome], State]]] = [
        ("loss", lambda outcome: {"loss": outcome.loss}),
        ("report", lambda outcome: outcome.report),
        ("memory", lambda outcome: outcome.memory),
        ("running statistics", lambda outcome: outcome.buffers),
    ]
    accepted, refused = [], []
    for place, outcome in enumerate(trained.outcomes):
        bad = next((what for what, part in checks if not finite(part(outcome))), None)
        if bad is None or policy == "ignore":
            accepted.append(place)
        if bad is not None:
            refused.append({"client": trained.clients[place], "reason": f"{bad} is not finite"})
    if refused and policy != "ignore" and (policy == "stop" or not accepted):
        first = refused[0]
        raise DivergedError(
            f"round {round}: {first['reason']} at client {first['client']}"
            + (f" and {len(refused) - 1} more" if len(refused) > 1 else "")
            + "; lower the learning rate"
            + (", or go on without such clients (on_nonfinite=skip_client)" if accepted else "")
        )
    return accepted, refused


def _aggregate(
    setup: Setup, state: RunState, trained: Trained, accepted: list[int], keeps: bool
) -> tuple[RunState, dict[str, Any]]:
    outcomes = [trained.outcomes[place] for place in accepted]
    clients = [trained.clients[place] for place in accepted]
    counts = [trained.num_examples[place] for place in accepted]
    reports = tree.stack([outcome.report for outcome in outcomes])
    cohort = Cohort(
        torch.tensor(counts, dtype=torch.float64), len(setup.sizes), int(setup.sizes.sum())
    )
    with calling(setup.method, "aggregate"):
        server = setup.method.aggregate(state.server, reports, cohort)
        check_state(server, "the server's state")
    memories = {client: out.memory for client, out in zip(clients, outcomes, strict=True)}
    own = {client: out.buffers for client, out in zip(clients, outcomes, strict=True)}
    after = RunState(
        server=server,
        buffers=combine(setup.config.bn, list(own.values()), counts) if state.buffers else {},
        memories={**state.memories, **memories} if any(memories.values()) else state.memories,
        own_buffers={**state.own_buffers, **own} if keeps and state.buffers else {},
    )
    return after, setup.method.observe(state.server, reports, cohort)


def _costs(
    setup: Setup, sent: State, trained: Trained, accepted: list[int], keeps: bool
) -> dict[str, Any]:
    """Exact bytes, steps and examples of a round; bytes are of tensors, one copy a client."""
    moving = 0 if keeps else tree.num_bytes(setup.buffers)
    down = tree.num_bytes(sent) + moving
    up = sum(tree.num_bytes(outcome.report) + moving for outcome in trained.outcomes)
    examples = [_examples(setup, trained, place) for place in range(len(trained.clients))]
    loss = sum(float(trained.outcomes[place].loss) for place in accepted)
    return {
        "train_loss": loss / max(1, sum(examples[place] for place in accepted)),
        "steps": sum(trained.num_steps),
        "examples": sum(examples),
        "skipped_examples": sum(trained.skipped),
        "bytes_up": up,
        "bytes_down": down * len(trained.clients),
        "niid_equivalent_bytes": up + down,
    }


def _examples(setup: Setup, trained: Trained, place: int) -> int:
    """How many examples a client's steps looked at."""
    work, size = setup.engine.work, trained.num_examples[place]
    if work.steps is not None:
        return work.steps * min(work.batch_size, size)
    assert work.epochs is not None
    return work.epochs * size - trained.skipped[place]


def _recalibrated(setup: Setup, state: RunState) -> RunState:
    training = np.concatenate(setup.engine.rows)
    order = stream(setup.config.seed, "recalibrate").permutation(len(training))
    rows = torch.from_numpy(training[order[:RECALIBRATION_ROWS]])
    buffers = recalibrate(
        setup.task,
        state.server["params"],
        state.buffers,
        setup.engine.examples,
        rows,
        setup.config.batch_size,
    )
    return RunState(state.server, buffers, state.memories, state.own_buffers)

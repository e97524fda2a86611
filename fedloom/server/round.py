"""One round: sample, broadcast, train, refuse what isn't finite, aggregate."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from fedloom import tree
from fedloom.engine.cohort import Trained
from fedloom.engine.orders import Done
from fedloom.engine.reduce import finite
from fedloom.engine.statistics import recalibrate, settle
from fedloom.errors import DivergedError
from fedloom.method import calling, check_state
from fedloom.server.memory import Memories
from fedloom.server.setup import Setup
from fedloom.types import Cohort, Params, State


@dataclass(frozen=True)
class RunState:
    """All that the next round reads, and all that a checkpoint holds."""

    server: State
    buffers: Params
    memories: Memories
    """Of clients that have taken part; the others have what `init_client` gives."""
    own_buffers: Memories
    """Running statistics that clients keep to themselves."""

    def saved(self) -> State:
        """What a checkpoint holds: call it just before that is written."""
        stores = {"memories": self.memories.save(), "own_buffers": self.own_buffers.save()}
        return {"server": self.server, "buffers": self.buffers, **stores}

    def close(self) -> None:
        """Let go of the files."""
        self.memories.close()
        self.own_buffers.close()


def begin(setup: Setup, folder: Path | None = None) -> RunState:
    """The state before the first round; what clients remember goes to files in `folder`."""
    with calling(setup.method, "init_server"):
        server = setup.method.init_server(setup.params)
        check_state(server, "the server's state")
    budget = setup.config.memory_budget * 2**20
    fresh = setup.method.init_client(server)
    memories, own = (None if folder is None else folder / name for name in FILES)
    return RunState(
        server,
        setup.buffers,
        Memories.begin(fresh, memories, budget),
        Memories.begin(setup.buffers, own, budget),
    )


FILES = ("memories.bin", "own_buffers.bin")


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
        bn=config.bn,
        keeps_buffers=keeps,
        counts_nonfinite=config.on_nonfinite == "ignore",
    )
    served = time.perf_counter()
    refused = _refused(trained, config.on_nonfinite, round)
    after, extras = _aggregate(setup, state, trained, keeps)
    if config.on_nonfinite != "ignore" and not finite(after.server):
        raise DivergedError(
            f"round {round}: the global model is not finite; lower the learning rate"
        )
    if config.bn == "server_recalibrate" and setup.task.has_batch_norm:
        after = _recalibrated(setup, after)
    fields = {
        "lr": lr,
        "cohort": cohort,
        **_costs(setup, sent, trained, keeps),
        "refused": refused,
        "lanes_busy": trained.busy,
        **({"workers_replaced": trained.replaced} if trained.replaced else {}),
        **({"engine_notes": list(trained.notes)} if trained.notes else {}),
        **extras,
        "seconds": served - began,
        "server_seconds": time.perf_counter() - served,
    }
    return after, fields


def _refused(trained: Trained, policy: str, round: int) -> list[dict[str, Any]]:
    """The clients whose reports aren't finite, with reasons."""
    refused = [
        {"client": done.client, "reason": done.refused}
        for done in trained.done
        if done.refused is not None
    ]
    others = trained.sums is not None
    if refused and policy != "ignore" and (policy == "stop" or not others):
        first = refused[0]
        raise DivergedError(
            f"round {round}: {first['reason']} at client {first['client']}"
            + (f" and {len(refused) - 1} more" if len(refused) > 1 else "")
            + "; lower the learning rate"
            + (", or go on without such clients (on_nonfinite=skip_client)" if others else "")
        )
    return refused


def _aggregate(
    setup: Setup, state: RunState, trained: Trained, keeps: bool
) -> tuple[RunState, dict[str, Any]]:
    accepted = [done for done in trained.done if done.memory is not None]
    sizes = [len(setup.engine.rows[done.client]) for done in accepted]
    cohort = Cohort(
        torch.tensor(sizes, dtype=torch.float64), len(setup.sizes), setup.total_examples
    )
    with calling(setup.method, "aggregate"):
        server = setup.method.aggregate(state.server, trained.sums or {}, cohort)
        check_state(server, "the server's state")
        server = tree.rounded(server, like=state.server)
    memories = {done.client: done.memory for done in accepted if done.memory}
    own = {done.client: done.buffers for done in accepted if done.buffers}
    buffers = state.buffers
    if trained.statistics is not None:
        buffers = settle(setup.config.bn, trained.statistics, state.buffers)
    after = RunState(
        server=server,
        buffers=buffers,
        memories=state.memories.updated(memories),
        own_buffers=state.own_buffers.updated(own),
    )
    return after, setup.method.observe(state.server, trained.sums or {}, cohort)


def _costs(setup: Setup, sent: State, trained: Trained, keeps: bool) -> dict[str, Any]:
    """Exact bytes, steps and examples of a round; bytes are of tensors, one copy a client."""
    moving = 0 if keeps else tree.num_bytes(setup.buffers)
    down = tree.num_bytes(sent) + moving
    up = sum(done.num_bytes + moving for done in trained.done)
    examples = [_examples(setup, done) for done in trained.done]
    pairs = zip(trained.done, examples, strict=True)
    counted = [(done.loss, count) for done, count in pairs if done.memory is not None]
    return {
        "train_loss": sum(loss for loss, _ in counted) / max(1, sum(n for _, n in counted)),
        "steps": sum(done.num_steps for done in trained.done),
        "examples": sum(examples),
        "skipped_examples": sum(done.skipped for done in trained.done),
        "bytes_up": up,
        "bytes_down": down * len(trained.done),
        "niid_equivalent_bytes": up + down,
    }


def _examples(setup: Setup, done: Done) -> int:
    """How many examples a client's steps looked at."""
    work, size = setup.engine.trainer.work, len(setup.engine.rows[done.client])
    if work.steps is not None:
        return work.steps * min(work.batch_size, size)
    assert work.epochs is not None
    return work.epochs * size - done.skipped


def _recalibrated(setup: Setup, state: RunState) -> RunState:
    buffers = recalibrate(
        setup.task,
        state.server["params"],
        state.buffers,
        setup.engine.trainer.examples,
        setup.recalibration_rows,
        setup.config.batch_size,
    )
    return RunState(state.server, buffers, state.memories, state.own_buffers)

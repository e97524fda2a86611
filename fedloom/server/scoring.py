"""What is measured after a round: the global model, and at the end each client's own."""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from fedloom import partition
from fedloom.method import Method
from fedloom.server.evaluate import Model, Scores, Share, evaluate, score, score_together
from fedloom.server.round import RunState
from fedloom.server.setup import Setup, all_rows


def score_round(setup: Setup, state: RunState, round: int) -> list[dict[str, Any]]:
    """The `eval` lines of a round: the global model on every part it is scored on."""
    parts: list[tuple[str, Any]] = [("test", lambda: _score(setup, state))]
    if setup.noise_split:
        parts.append(("test_noise", lambda: _score_noisy(setup, state, round)))
    if len(setup.validation_rows):
        rows = torch.from_numpy(setup.validation_rows)
        parts.append(("validation", lambda: _score(setup, state, rows)))
    lines = []
    for split, scored in parts:
        began = time.perf_counter()
        fields = scored().as_event(_classes(setup))
        seconds = time.perf_counter() - began
        lines.append({"round": round, "split": split, **fields, "seconds": seconds})
    return lines


def has_personal(method: Method) -> bool:
    """Whether clients serve models of their own."""
    return type(method).personal is not Method.personal


def score_personal(setup: Setup, state: RunState, round: int) -> dict[str, Any]:
    """The `personal` line: every client's own model on the whole test set.

    The mean over clients counts each alike; a client without data has no model of its own (null).
    `client_names` are there where every client is one group of the data (see
    `partition.client_names`).
    """
    began = time.perf_counter()
    fresh, rows = setup.method.init_client(state.server), all_rows(setup.test)
    accuracy: list[float | None] = [None] * len(setup.sizes)
    holders = [int(client) for client in np.flatnonzero(setup.sizes)]
    took_part = [c for c in holders if c in state.memories or c in state.own_buffers]
    alike = set(holders).difference(took_part)  # clients that never did serve one model

    def shares() -> Iterator[Share]:
        for client in [*took_part, *sorted(alike)[:1]]:
            memory = state.memories.get(client, fresh)
            params = setup.method.personal(state.server["params"], memory)
            yield Share(client, params, state.own_buffers.get(client, state.buffers), rows)

    model = Model({}, {}, False, setup.config.eval_batch)
    scored = score(setup.engine, model, shares())
    for client, scores in zip(sorted([*took_part, *sorted(alike)[:1]]), scored, strict=True):
        for same in alike if client in alike else (client,):
            accuracy[same] = scores.accuracy if scores.finite else None
    defined = [value for value in accuracy if value is not None]
    weights = [n for n, value in zip(setup.sizes, accuracy, strict=True) if value is not None]
    names = partition.client_names(setup.partition, setup.dataset.groups)
    return {
        "round": round,
        "accuracy_mean": float(np.mean(defined)) if defined else None,
        "accuracy_weighted": float(np.average(defined, weights=weights)) if defined else None,
        "population_std": float(np.std(defined)) if defined else None,
        "num_clients": len(defined),
        "per_client": accuracy,
        **({"client_names": list(names)} if names else {}),
        "seconds": time.perf_counter() - began,
    }


def _classes(setup: Setup) -> tuple[str, ...]:
    extra = range(setup.dataset.num_classes, setup.task.num_classes)
    return (*setup.dataset.classes, *(f"output {i}" for i in extra))


def _score(setup: Setup, state: RunState, rows: torch.Tensor | None = None) -> Scores:
    """On the test set, or on these rows of the training data."""
    training, batch = rows is not None, setup.config.eval_batch
    model = Model(state.server["params"], state.buffers, training, batch)
    return score_together(setup.engine, model, all_rows(setup.test) if rows is None else rows)


def _score_noisy(setup: Setup, state: RunState, round: int) -> Scores:
    """The union over clients of the test set, copy i with client i's noise."""
    noise, rows, batch = setup.engine.trainer.noise, all_rows(setup.test), setup.config.eval_batch
    params = state.server["params"]
    total: Scores | None = None
    for client in range(len(setup.sizes)):

        def shift(first: int, x: torch.Tensor, client: int = client) -> torch.Tensor:
            return x + noise.test(client, round, first, tuple(x.shape))

        scores = evaluate(setup.task, params, state.buffers, setup.test, rows, batch, shift)
        total = scores if total is None else total + scores
    assert total is not None
    return total

"""Numbers that are not finite: reported, refused by name, never averaged in silence."""

import dataclasses
import json

import numpy as np
import pytest
import torch

from fedloom import methods
from fedloom.clients.sampler import Population
from fedloom.engine.cohort import Engine
from fedloom.record import jsonio
from fedloom.server.checkpoint import load_latest, load_model
from fedloom.server.round import begin, finite, run_round
from fedloom.server.run import run
from fedloom.server.setup import prepare
from tests.problems import gap
from tests.unit.server.small import arrays, events, table

BAD = 3


@pytest.fixture
def spoilt(tmp_path):
    """Data of five clients, of which one has features of 1e30."""
    own = arrays()
    x = own["x_train"].copy()
    x[own["who_train"] == BAD] *= 1e30
    return table(tmp_path / "spoilt.npz", x_train=x)


def by_owner(make, data, **changes):
    settings = {"partition": "by_group", "client": "who", "clients": 5, **changes}
    return make(data=data, **settings)


def owner(setup):
    """The client that holds the bad rows."""
    largest = [np.abs(setup.dataset.x_train[rows]).max() for rows in setup.engine.rows]
    return int(np.argmax(largest))


@pytest.mark.parametrize("executor", ["loop", "mapped"])
@pytest.mark.parametrize("method", sorted(methods.names()))
def test_too_large_a_rate_ends_as_diverged_with_all_files_readable(make, folder, method, executor):
    result = run(make(method=method, lr=1e3, rounds=5, executor=executor), folder)
    assert result.status == "diverged"
    assert result.accuracy is None
    stored = jsonio.read(folder / "result.json")
    assert (stored["status"], stored["final"], stored["diverged"]) == ("diverged", None, True)
    assert stored["diverged_round"] == len(events(folder, "round")) + 1
    assert "not finite" in stored["reason"]
    assert f"round {stored['diverged_round']}" in stored["reason"]
    params, meta = load_model(folder / "model.safetensors")
    assert meta["status"] == "diverged"
    assert finite(params)
    assert finite(load_latest(folder / "checkpoints").state)
    for line in (folder / "events.jsonl").read_text().splitlines():
        json.loads(line, parse_constant=pytest.fail)


def test_a_diverged_run_is_complete_and_given_back(make, folder):
    asked = make(lr=1e3)
    first = run(asked, folder)
    assert run(asked, folder, resume=True).result == first.result


@pytest.mark.parametrize("executor", ["loop", "mapped"])
@pytest.mark.parametrize("method", ["fedavg", "fedprox", "fednova"])
def test_a_refused_client_is_named_and_the_mean_is_of_the_others(make, spoilt, method, executor):
    """As if the bad client held no data, and so had never taken part."""
    setup = prepare(by_owner(make, spoilt, method=method, executor=executor))
    bad = owner(setup)
    rows = [own if i != bad else own[:0] for i, own in enumerate(setup.engine.rows)]
    engine = Engine(setup.engine.trainer, rows, test=setup.test)
    others = Population(setup.config.seed, np.array([len(own) for own in rows]))
    without = dataclasses.replace(setup, engine=engine, population=others, cohort_size=4)
    states = []
    for each in (setup, without):
        state = begin(each)
        for round in (1, 2):
            state, fields = run_round(each, state, round)
        states.append((state, fields))
    (state, fields), (expected, _) = states
    (refused,) = fields["refused"]
    assert refused["client"] == bad
    assert "not finite" in refused["reason"]
    assert bad in fields["cohort"]
    assert gap(state.server["params"], expected.server["params"]) < 1e-5


@pytest.mark.parametrize("method", sorted(methods.names()))
def test_every_method_goes_on_without_the_client_that_is_refused(make, spoilt, folder, method):
    asked = by_owner(make, spoilt, method=method, rounds=3)
    result = run(asked, folder)
    bad = owner(prepare(asked))
    assert result.status == "finished"
    assert finite(result.model)
    assert [[r["client"] for r in e["refused"]] for e in events(folder, "round")] == [[bad]] * 3
    assert result.result["refused_reports"] == 3
    assert bad not in load_latest(folder / "checkpoints").state["memories"]


def test_stopping_at_the_first_such_client_is_a_policy(make, spoilt, folder):
    result = run(by_owner(make, spoilt, on_nonfinite="stop"), folder)
    bad = owner(prepare(by_owner(make, spoilt)))
    assert (result.status, result.result["diverged_round"]) == ("diverged", 1)
    assert f"client {bad}" in result.result["reason"]
    assert "skip_client" in result.result["reason"]
    initial = prepare(by_owner(make, spoilt)).params
    assert gap(result.model, initial) == 0


def test_going_on_with_nan_is_the_published_preset_alone_and_is_flagged(make, folder):
    """The number stays, as class 0 for every row, and so does the mark."""
    result = run(make(lr=1e3, rounds=5, on_nonfinite="ignore"), folder)
    assert result.status == "finished"
    assert result.accuracy == pytest.approx(1 / 3)
    assert result.result["diverged"] is True
    assert result.result["constant_prediction"] == "0"
    last = events(folder, "eval")[-1]
    assert last["diverged"] is True
    assert events(folder, "round")[-1]["refused"]
    assert not finite(result.model)


def test_the_model_is_checked_after_the_mean_too(make):
    """Reports can be finite and their extrapolation not."""
    setup = prepare(make(method="fedavg(server_lr=3e38)", lr=5.0))
    with pytest.raises(ArithmeticError, match="the global model is not finite"):
        run_round(setup, begin(setup), 1)
    assert finite(setup.params)


def test_finite_looks_at_every_nested_number():
    inner = {"a": {"b": torch.tensor([1.0, float("inf")]), "n": torch.tensor(3)}}
    assert not finite(inner)
    assert finite({"a": {"n": torch.tensor(3)}})

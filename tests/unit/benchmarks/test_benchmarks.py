import dataclasses
import math
from pathlib import Path

import pytest
import torch
from packaging.requirements import Requirement

from benchmarks import arithmetic, compare, launch, summary
from benchmarks.job import Job
from benchmarks.peers import dataloader, plain
from benchmarks.peers import fedloom as own
from benchmarks.work import WORKLOADS, Work, client, network, score
from fedloom import models

ROOT = Path(__file__).resolve().parents[3]
TINY = Work("tiny", "mlp", (6,), 2, clients=3, rows=40, epochs=3, batch=16, lr=0.1, signal=10.0)
SETTINGS = {"executor": "loop"}


def job(system, folder, **changes):
    values = {"rounds": 6, "processes": 1, "seed": 0, "options": {}, **changes}
    return Job(system, TINY, folder=str(folder), **values)


@pytest.mark.parametrize(
    ("name", "parameters", "shape", "clients", "rows", "epochs", "steps"),
    [
        ("tabular", 4_650, (123,), 10, 3256, 10, 5100),
        ("image28", 44_426, (1, 28, 28), 10, 640, 5, 500),
        ("image32", 62_006, (3, 32, 32), 10, 640, 5, 500),
        ("vgg11", 9_750_922, (3, 32, 32), 2, 256, 1, 8),
    ],
)
def test_a_workload_is_what_the_readme_says(name, parameters, shape, clients, rows, epochs, steps):
    work = WORKLOADS[name]
    assert (work.shape, work.clients, work.rows, work.epochs) == (shape, clients, rows, epochs)
    assert (work.batch, work.lr, work.momentum) == (64, 0.01, 0.9)
    assert work.steps == steps
    assert work.examples == clients * rows * epochs
    assert sum(leaf.numel() for leaf in network(work).parameters()) == parameters
    x, y = client(dataclasses.replace(work, rows=50), 1)
    assert (x.shape, x.dtype, y.shape, y.dtype) == ((50, *shape), torch.float32, (50,), torch.int64)
    assert y.unique().tolist() == list(range(work.classes))


@pytest.mark.parametrize("name", ["tabular", "image28", "image32"])
def test_the_network_is_fedlooms_function_with_its_initial_weights(name):
    work = WORKLOADS[name]
    made = models.make(work.model, input_shape=work.shape, num_classes=work.classes, seed=0)
    x, _ = client(dataclasses.replace(work, rows=20), 0)
    torch.testing.assert_close(network(work)(x), made.net(x))


def test_clients_hold_other_rows_and_every_call_the_same_ones():
    first, second = client(TINY, 0)[0], client(TINY, 1)[0]
    assert not torch.equal(first, second)
    client.cache_clear()
    assert torch.equal(first, client(TINY, 0)[0])


def test_the_plain_loop_the_dataloader_and_fedloom_reach_the_same_accuracy(tmp_path):
    chance = score(TINY, list(network(TINY).parameters()))
    reached = {}
    for system in (plain, dataloader, own):
        name = system.__name__.rpartition(".")[2]
        (tmp_path / name).mkdir()
        options = SETTINGS if name == "fedloom" else {}
        outcome = system.run(job(name, tmp_path / name, options=options))
        assert len(outcome.seconds) == 6
        assert min(outcome.seconds) > 0
        reached[name] = score(TINY, outcome.weights)
    assert reached["plain"][0] > 0.9
    assert reached["plain"][1] < 0.5 * chance[1]
    for accuracy, loss in reached.values():
        assert accuracy == pytest.approx(reached["plain"][0], abs=0.04)
        assert loss == pytest.approx(reached["plain"][1], rel=0.3)


def test_with_one_full_batch_fedloom_gives_the_weights_of_the_plain_loop(tmp_path):
    """Then there is no order of rows, and nothing is left to chance."""
    work = dataclasses.replace(TINY, batch=TINY.rows)
    jobs = [dataclasses.replace(job(name, tmp_path), work=work) for name in ("plain", "fedloom")]
    jobs[1] = dataclasses.replace(jobs[1], options=SETTINGS)
    ours, theirs = own.run(jobs[1]).weights, plain.run(jobs[0]).weights
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-5)


def test_a_job_survives_the_way_to_its_process(tmp_path):
    sent = job("plain", tmp_path, options={"a": "1"})
    assert Job.from_json(sent.to_json()) == sent


def run(accuracy, loss, seconds=(9.0, 2.0, 3.0)):
    return {
        "version": "x 1",
        "processes": 1,
        "seconds": list(seconds),
        "accuracy": accuracy,
        "loss": loss,
        "wall_seconds": 20.0,
    }


def test_rows_leave_the_first_round_out_and_compare_with_the_fastest_of_fedloom():
    key = ("tabular", 1, "fedloom")
    runs = {
        key: [run(0.8, 0.4), run(0.8, 0.4, (8.0, 1.0, 5.0))],
        ("tabular", 1, "plain"): [run(0.8, 0.4, (9.0, 4.0, 4.0))],
    }
    mine, theirs = summary.rows(runs)
    assert (mine.fastest, mine.middle, mine.rounds, mine.ratio) == (1.0, 2.5, 4, 1.0)
    assert mine.start == 20.0 - 3 * 1.0
    assert theirs.ratio == 4.0
    assert mine.agrees is True
    assert theirs.agrees is None


@pytest.mark.parametrize(
    ("accuracy", "loss", "agrees"),
    [(0.805, 0.402, True), (0.75, 0.4, False), (0.8, 0.45, False)],
)
def test_other_work_is_told_from_noise(accuracy, loss, agrees):
    runs = {
        ("tabular", 1, "plain"): [run(0.8, 0.4), run(0.801, 0.401)],
        ("tabular", 1, "other"): [run(accuracy, loss), run(accuracy, loss)],
    }
    assert summary.rows(runs)[1].agrees is agrees


def test_a_system_that_failed_stays_in_the_table_with_its_words():
    runs = {("tabular", 2, "flwr"): [{"error": "no room"}], ("tabular", 2, "plain"): [run(1, 0)]}
    failed, other = summary.rows(runs)
    assert failed.error == "no room"
    assert math.isnan(other.ratio)
    text = summary.markdown([failed, other])
    assert "| flwr | failed |" in text
    assert "no room" in text


def test_a_broken_job_gives_its_error_and_not_a_number():
    found = launch.start(
        "fedloom", TINY, rounds=1, cores=1, seed=0, options={"nonsense": "1"}, timeout=300
    )
    assert set(found) == {"error"}
    assert "nonsense" in found["error"]


def test_the_arithmetic_of_the_perceptron_is_its_products():
    """Forward and weights for every layer, inputs for all layers but the first."""
    work = WORKLOADS["tabular"]
    layers = [123 * 32, 32 * 16, 16 * 8, 8 * 2]
    multiply_adds = 3 * sum(layers) - layers[0]
    assert arithmetic.round_flops(work) == 2 * multiply_adds * work.examples


def test_settings_without_a_value_and_cores_that_are_not_there_are_refused():
    assert compare.pairs(["a=b=c"]) == {"a": "b=c"}
    with pytest.raises(ValueError, match="KEY=VALUE"):
        compare.pairs(["executor"])
    with pytest.raises(ValueError, match="--cores 0"):
        compare.check_cores([0])


def test_every_system_is_found_and_pinned_with_the_torch_of_the_constraints():
    assert launch.systems()[0] == "fedloom"
    lines = (ROOT / "benchmarks" / "requirements.txt").read_text().splitlines()
    pins = {
        each.name: str(each.specifier)
        for each in (Requirement(line) for line in lines if not line.startswith("#"))
    }
    assert f"torch{pins['torch']}" in (ROOT / "constraints.txt").read_text().splitlines()
    others = set(launch.systems()) - {"fedloom", "plain", "dataloader", "fluke"}
    assert set(pins) == {"torch", "fluke-fl", *others}

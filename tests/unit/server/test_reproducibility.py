"""The same seed gives the same bits, whatever the process, the workers and the method."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from fedloom import methods
from fedloom.server.checkpoint import load_model
from fedloom.server.run import run
from fedloom.server.setup import prepare
from tests.problems import gap, same_bits
from tests.unit.server.small import DROPPING, events, left

ROOT = Path(__file__).parents[3]
PROGRAM = """
import json, sys
from fedloom.config import RunConfig
from fedloom.server.checkpoint import load_model
from fedloom.server.run import run
for settings, out in json.loads(sys.argv[1]):
    run(RunConfig(**settings), out)
"""


def test_a_fresh_process_gives_the_same_bits_and_another_seed_others(make, tmp_path):
    asked = [
        make(method="scaffold", cohort=3, rounds=3, noise=0.1),
        make(model=DROPPING, cohort=2, rounds=2, executor="loop"),
    ]
    jobs = [(each.model_dump(), str(tmp_path / f"there-{i}")) for i, each in enumerate(asked)]
    subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(jobs)],
        check=True,
        env={"PYTHONHASHSEED": "7", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
    )
    for number, each in enumerate(asked):
        here = tmp_path / f"here-{number}"
        run(each, here)
        assert left(here) == left(tmp_path / f"there-{number}")
    run(asked[0].replace(seed=1), tmp_path / "other")
    one, other = left(tmp_path / "here-0"), left(tmp_path / "other")
    assert one[0] != other[0]
    assert one[2]["partition_digest"] != other[2]["partition_digest"]
    cohorts = [[e["cohort"] for e in found[1] if e["event"] == "round"] for found in (one, other)]
    assert cohorts[0] != cohorts[1]


def test_seeds_of_partition_and_training_are_separate(make):
    def parts(**changes):
        setup = prepare(make(cohort=2, **changes))
        cohorts = [tuple(setup.cohort(r)) for r in range(1, 9)]
        return setup.partition.digest, setup.params, cohorts

    first = parts(seed=0, partition_seed=5)
    second, third = parts(seed=1, partition_seed=5), parts(seed=0, partition_seed=6)
    assert first[0] == second[0] != third[0]
    assert not same_bits(first[1], second[1])
    assert same_bits(first[1], third[1])
    assert first[2] == third[2] != second[2]


def test_all_methods_see_the_same_partition_model_and_cohorts(make, tmp_path):
    """And the first rounds of those that begin as FedAvg are FedAvg's."""
    names = ["fedavg", "fedprox(mu=0.0)", "scaffold", "fednova", "fedprox(mu=1.0)"]
    found = {}
    for number, method in enumerate(names):
        run(make(method=method, cohort=3, rounds=3), tmp_path / str(number))
        found[method] = left(tmp_path / str(number))
    model, record, result = found["fedavg"]
    for _, other_record, other_result in found.values():
        assert other_result["partition_digest"] == result["partition_digest"]
        initial = [next(e for e in r if e["event"] == "eval") for r in (record, other_record)]
        assert initial[0] == initial[1]
        cohorts = [
            [e["cohort"] for e in r if e["event"] == "round"] for r in (record, other_record)
        ]
        assert cohorts[0] == cohorts[1]
        sizes = [
            [e["examples"] for e in r if e["event"] == "round"] for r in (record, other_record)
        ]
        assert sizes[0] == sizes[1]
    same = ("fedavg", "fedprox(mu=0.0)")
    tensors = [load_model(tmp_path / str(names.index(m)) / "model.safetensors")[0] for m in same]
    assert same_bits(*tensors)
    assert found["fedprox(mu=0.0)"][1] == record
    losses = [found[m][1][1]["train_loss"] for m in ("fedavg", "scaffold", "fednova")]
    assert losses[0] == losses[2] == pytest.approx(losses[1], abs=1e-6)
    assert model != found["fedprox(mu=1.0)"][0]


def test_every_method_draws_the_same_cohorts_whatever_the_partition(make):
    cohorts = {
        tuple(tuple(setup.cohort(r)) for r in range(1, 6))
        for setup in (
            prepare(make(cohort=2, method=method, partition=partition))
            for method in methods.names()
            for partition in ("iid", "label_dirichlet(alpha=0.3, min_size=1)")
        )
    }
    assert len(cohorts) == 1


@pytest.mark.parametrize("executor", ["loop", "mapped"])
def test_evaluating_rarely_leaves_the_model_as_it_is(make, tmp_path, executor):
    every, rare = (
        run(
            make(model=DROPPING, rounds=5, eval_every=n, executor=executor, validation=0.1),
            tmp_path / str(n),
        )
        for n in (1, 5)
    )
    assert same_bits(every.model, rare.model)
    assert [e["round"] for e in events(rare.path, "eval") if e["split"] == "test"] == [0, 5]
    assert events(rare.path, "eval")[-1] == events(every.path, "eval")[-1]


def test_the_number_of_lanes_moves_the_model_by_rounding_alone(make, tmp_path):
    models = [
        run(make(executor=executor, lanes=lanes, rounds=3), tmp_path / f"{executor}{lanes}").model
        for executor, lanes in (("loop", 1), ("mapped", 1), ("mapped", 4), ("mapped", 16))
    ]
    assert max(gap(models[0], other) for other in models[1:]) < 1e-5


def test_a_run_leaves_the_global_generator_alone(make, folder):
    state = torch.random.get_rng_state()
    run(make(model=DROPPING, rounds=1), folder)
    assert torch.equal(state, torch.random.get_rng_state())

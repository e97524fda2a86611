"""What every method found has to keep, whatever it does."""

import copy
import dataclasses
import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch

from fedloom import methods, tree
from fedloom.clients.batches import LocalWork
from fedloom.method import Method
from fedloom.types import Cohort
from tests.problems import federation, gap, same_bits

ALL = sorted(methods.names())
VARIANTS = {
    "fedprox": ["fedprox(mu=0.1)"],
    "scaffold": [
        "scaffold",
        "scaffold(correction='gradient')",
        "scaffold(c_weights='uniform', weighting='uniform')",
        "scaffold(control_init='network', c_weights='uniform', divisor='cohort')",
    ],
    "fednova": [
        "fednova",
        "fednova(normaliser='steps', weighting='batches')",
        "fednova(normalise_W=True, prox_mu=0.1)",
    ],
}
CASES = [case for name in ALL for case in VARIANTS.get(name, [name])]


@pytest.fixture(params=CASES)
def method(request) -> Method:
    return methods.make(request.param)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_mapped_equals_looped(method, momentum):
    looped = federation(momentum=momentum).play(method)
    for lanes in (1, 3, 16):
        mapped = federation(executor="mapped", momentum=momentum, lanes=lanes).play(method)
        assert gap(looped, mapped) < 1e-12


def test_mapped_equals_looped_for_unequal_steps_of_a_replayed_recording(method):
    work = LocalWork(4, None, 2)  # long enough that the replay takes over within a round
    sizes = (60, 41, 40, 12, 3)
    looped = federation(sizes, work=work).play(method, rounds=2, lr=0.005)
    here = federation(sizes, work=work, executor="mapped")
    assert gap(looped, here.play(method, rounds=2, lr=0.005)) < 1e-12
    assert here.engine.trainer.replay.refused is None


def test_mapped_equals_looped_with_batch_normalisation(method):
    looped = federation(norm=True).play(method, rounds=2)
    assert gap(looped, federation(norm=True, executor="mapped").play(method, rounds=2)) < 1e-12


def test_the_order_of_clients_does_not_matter(method):
    here = federation()
    cohort = [0, 1, 2, 3, 4]
    forwards = here.play(method, cohorts=[cohort] * 3)
    backwards = here.play(method, cohorts=[cohort[::-1]] * 3)
    assert gap(forwards, backwards) < 1e-12


def test_inputs_are_left_as_they_were(method):
    here = federation()
    server, memories = here.play(method, rounds=1)
    before = copy.deepcopy((server, memories, here.params))
    here.round(method, server, memories, 2, 0.05, [0, 1, 2, 3, 4])
    assert gap(before[0], server) == 0
    assert gap(before[1], memories) == 0
    assert gap(before[2], here.params) == 0


def test_state_keeps_its_structure_and_does_not_grow(method):
    here = federation()
    early, late = here.play(method, rounds=1), here.play(method, rounds=4)
    for a, b in zip(early, late, strict=True):
        shapes = [
            [(name, leaf.shape, leaf.dtype) for name, leaf in tree.leaves(_named(part))]
            for part in (a, b)
        ]
        assert shapes[0] == shapes[1]


def _named(state):
    return {str(key): value for key, value in state.items()}


def test_a_client_that_stays_away_keeps_its_memory(method):
    here = federation()
    server, memories = here.play(method, rounds=2)
    _, after = here.round(method, server, memories, 3, 0.05, [0, 2])
    for absent in (1, 3, 4):
        assert same_bits(memories[absent], after[absent])


def test_it_pickles_and_has_a_sensible_text(method):
    assert pickle.loads(pickle.dumps(method)) == method
    assert dataclasses.is_dataclass(method)
    assert hash(method) == hash(copy.copy(method))


def test_thirty_rounds_stay_bounded(method):
    if getattr(method, "divisor", "") == "cohort":
        pytest.skip("this variant repeats a published defect that drifts without bound")
    server, _ = federation(momentum=0.9).play(method, rounds=30)
    assert max(float(leaf.abs().max()) for leaf in server["params"].values()) < 20


def test_stopping_and_going_on_gives_the_same_bits(method):
    here = federation()
    whole = here.play(method, rounds=4, cohorts=[[0, 1], [2, 3], [0, 4], [1, 2]])
    server, memories = here.play(method, rounds=2, cohorts=[[0, 1], [2, 3]])
    for round, cohort in ((3, [0, 4]), (4, [1, 2])):
        server, memories = here.round(method, server, memories, round, 0.05, cohort)
    assert same_bits(whole[0], server)
    assert all(same_bits(whole[1][c], memories[c]) for c in memories)


def test_reports_of_one_client_and_of_many_aggregate_alike(method):
    """A cohort of clones gives what one of them alone would."""
    here = federation((12,))
    server = method.init_server(here.params)
    fresh = method.init_client(server)
    sent = method.broadcast(server)
    sums = here.engine.train(method, sent, [0], {0: fresh}, {0: {}}, round=1, lr=0.05).sums
    one = method.aggregate(server, sums, Cohort(torch.tensor([12.0]), 1, 12))
    thrice = tree.weigh(sums, 3)
    three = method.aggregate(server, thrice, Cohort(torch.tensor([12.0] * 3), 3, 36))
    assert gap(one, three) < 1e-12


HASHED = """
import hashlib, sys
from fedloom import methods, tree
from tests.problems import federation
digest = hashlib.sha256()
for name in sorted(methods.names()):
    server, memories = federation().play(methods.make(name))
    for state in (server, {str(k): v for k, v in memories.items()}):
        for path, leaf in tree.leaves(state):
            digest.update(path.encode() + leaf.numpy().tobytes())
print(digest.hexdigest())
"""


def test_two_processes_with_other_hash_seeds_give_the_same_bits():
    found = {
        subprocess.run(
            [sys.executable, "-c", HASHED],
            env={"PYTHONHASHSEED": seed, "OMP_NUM_THREADS": "1", "PYTHONPATH": ".:"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1


def test_global_generators_are_left_alone():
    states = torch.random.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    federation(executor="mapped").play(methods.make("fedavg"), rounds=1)
    assert torch.equal(states[0], torch.random.get_rng_state())
    assert (states[1] == np.random.get_state()[1]).all()  # noqa: NPY002

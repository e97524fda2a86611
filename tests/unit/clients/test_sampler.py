"""Who takes part in a round."""

import itertools
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedloom.clients import sampler
from fedloom.clients.sampler import Population
from fedloom.errors import ConfigError
from fedloom.rng import stream

ALL = sorted(sampler.names())
SIZES = np.array([5, 0, 40, 12, 0, 7, 3, 90, 1, 20])
OCCUPIED = np.flatnonzero(SIZES)


@pytest.mark.parametrize(
    ("num_clients", "share", "expected"),
    [
        (100, 0.29, 29),
        (10, 0.01, 1),
        (10, 0.25, 3),
        (10, 0.24, 2),
        (10, 1.0, 10),
        (3, 0.5, 2),
        (1, 0.1, 1),
        (100, 0.1, 10),
        (1000, 0.0035, 4),
    ],
)
def test_a_share_is_rounded_half_up_and_never_to_nobody(num_clients, share, expected):
    assert sampler.cohort_size(num_clients, share) == expected


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 10_000), st.integers(1, 100))
def test_a_share_in_whole_percents_is_rounded_as_on_paper(num_clients, percent):
    exact = max(1, (2 * num_clients * percent + 100) // 200)
    assert sampler.cohort_size(num_clients, percent / 100) == exact


def test_a_cohort_asked_for_is_taken_as_it_is():
    assert sampler.cohort_size(10, cohort=3) == 3


@pytest.mark.parametrize("name", ALL)
@settings(deadline=None, max_examples=40)
@given(st.integers(0, 99), st.integers(1, 30), st.integers(1, len(OCCUPIED)))
def test_a_cohort_has_the_size_asked_for_no_client_twice_and_no_empty_one(name, seed, round, size):
    chosen = sampler.make(name)(Population(seed, SIZES), round, size)
    assert len(chosen) == size
    assert chosen.tolist() == sorted(set(chosen.tolist()))
    assert (SIZES[chosen] > 0).all()


@pytest.mark.parametrize("name", ALL)
def test_everybody_with_data_takes_part_when_all_are_asked_for(name):
    draw = sampler.make(name)
    for round in (1, 2, 7):
        assert draw(Population(0, SIZES), round, len(OCCUPIED)).tolist() == OCCUPIED.tolist()


@pytest.mark.parametrize("name", ALL)
def test_a_cohort_repeats_for_the_same_seed_and_round_and_changes_with_them(name):
    draw = sampler.make(name)
    sizes = np.arange(1, 41)

    def cohorts(seed):
        return [tuple(draw(Population(seed, sizes), round, 8)) for round in range(1, 9)]

    assert cohorts(1) == cohorts(1)
    assert cohorts(1) != cohorts(2)
    assert len(set(cohorts(1))) > 3


def test_uniform_cohorts_are_independent_of_who_holds_how_much():
    draw = sampler.make("uniform")
    even, uneven = np.full(20, 7), np.arange(1, 21) ** 3
    for round in range(1, 6):
        one, other = (draw(Population(3, sizes), round, 6) for sizes in (even, uneven))
        assert one.tolist() == other.tolist()


def test_no_sampler_reads_or_moves_the_global_generator():
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    for name in ALL:
        sampler.make(name)(Population(0, SIZES), 1, 3)
    assert (state == np.random.get_state()[1]).all()  # noqa: NPY002


def test_uniform_takes_every_client_equally_often():
    rounds = 4000
    draw = sampler.make("uniform")
    drawn = np.concatenate([draw(Population(0, SIZES), r, 2) for r in range(1, rounds + 1)])
    expected = 2 / len(OCCUPIED)
    error = np.sqrt(expected * (1 - expected) / rounds)
    shares = np.bincount(drawn, minlength=len(SIZES))[OCCUPIED] / rounds
    assert (abs(shares - expected) < 4 * error).all()


def test_by_size_takes_one_client_with_chances_in_proportion_to_its_examples():
    rounds = 4000
    draw = sampler.make("by_size")
    drawn = np.concatenate([draw(Population(0, SIZES), r, 1) for r in range(1, rounds + 1)])
    expected = SIZES / SIZES.sum()
    error = np.sqrt(expected * (1 - expected) / rounds)
    shares = np.bincount(drawn, minlength=len(SIZES)) / rounds
    assert (abs(shares - expected) <= 4 * error + 1e-12).all()


def test_every_set_of_clients_is_equally_likely():
    """Three of eight: 56 sets, 28,000 draws; chi squared with 55 degrees, false alarms 1e-6."""
    population, draw = Population(0, np.where(SIZES > 0, 7, 0)), sampler.make("uniform")
    for size in (3, 5):
        counts: dict[tuple[int, ...], int] = {}
        for round in range(28_000):
            chosen = tuple(draw(population, round, size).tolist())
            counts[chosen] = counts.get(chosen, 0) + 1
        assert len(counts) == 56
        assert sum((n - 500) ** 2 / 500 for n in counts.values()) < 121


@pytest.mark.parametrize("name", ["uniform", "round_robin"])
def test_a_cohort_of_a_million_clients_costs_what_a_cohort_of_few_does(name):
    """Typical: 0.1 ms either way; one pass over a million clients takes ten times as long."""
    draw, times = sampler.make(name), {}
    for count in (10_000, 1_000_000):
        population = Population(0, np.ones(count, np.int64))
        draw(population, 1, 100)
        spent = []
        for round in range(2, 32):
            began = time.process_time()
            draw(population, round, 100)
            spent.append(time.process_time() - began)
        times[count] = min(spent)
    assert times[1_000_000] < 3 * times[10_000] + 2e-4


@pytest.mark.parametrize("size", [1, 3, 4])
def test_in_round_robin_nobody_waits_longer_than_a_whole_turn(size):
    draw = sampler.make("round_robin")
    rounds = [set(draw(Population(0, SIZES), r, size).tolist()) for r in range(1, 41)]
    turn = -(-len(OCCUPIED) // size)
    for window in itertools.pairwise(range(0, len(rounds), turn)):
        assert set().union(*rounds[slice(*window)]) == set(OCCUPIED.tolist())


def test_streams_of_different_purposes_are_different():
    keys = ["cohort", "batches", "noise", "validation", "augment", "turns"]
    draws = {tuple(stream(0, key, 1).randint(2**31, size=4)) for key in keys}
    assert len(draws) == len(keys)


@pytest.mark.parametrize(
    ("spec", "message"),
    [("unifrom", "did you mean 'uniform'"), ("uniform(x=1)", "takes no options")],
)
def test_what_is_no_sampler_is_refused(spec, message):
    with pytest.raises(ConfigError, match=message):
        sampler.make(spec)

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedloom.partition import apportion
from fedloom.partition.dirichlet import log_gammas, softmax


def random_shares(count=10_000):
    rng = np.random.RandomState(0)
    for _ in range(count):
        shares = rng.gamma(rng.choice([0.05, 0.5, 5.0]), size=rng.randint(1, 20)) + 1e-300
        shares[rng.random_sample(len(shares)) < 0.2] = 0
        if shares.sum() > 0:
            yield shares / shares.sum(), rng.randint(0, 5000)


def test_both_rules_add_up_and_stay_within_one_of_the_exact_share():
    for shares, total in random_shares():
        for rule in (apportion.largest_remainder, apportion.floor_cumsum):
            counts = rule(shares, total)
            assert counts.sum() == total
            assert counts.min() >= 0
            assert counts.dtype == np.int64
            assert np.abs(counts - shares * total).max() < 1 + 1e-6


def test_largest_remainder_gives_nothing_to_a_share_of_zero():
    for shares, total in random_shares(2000):
        assert not apportion.largest_remainder(shares, total)[shares == 0].any()


def test_floor_cumsum_leaks_one_row_to_a_closed_last_client():
    leaks = 0
    for seed in range(200):
        shares = np.random.RandomState(seed).dirichlet([0.5] * 10)
        shares[-1] = 0
        leaks += apportion.floor_cumsum(shares / shares.sum(), 5000)[-1]
    assert 0 < leaks < 100


def test_ties_go_to_the_lower_position():
    assert apportion.largest_remainder(np.full(4, 0.25), 6).tolist() == [2, 2, 1, 1]


def test_one_entry_takes_all():
    assert apportion.largest_remainder(np.array([1.0]), 7).tolist() == [7]
    assert apportion.floor_cumsum(np.array([1.0]), 7).tolist() == [7]


def test_fewer_items_than_entries_are_spread_to_the_largest():
    assert apportion.largest_remainder(np.array([0.1, 0.4, 0.2, 0.3]), 2).tolist() == [0, 1, 0, 1]


def test_totals_beyond_64_bit_products_are_exact():
    shares = np.array([1, 2, 3, 4]) / 10
    total = 10**8 + 3
    counts = apportion.largest_remainder(shares, total)
    assert counts.sum() == total
    assert np.abs(counts - shares * total).max() < 1
    small = apportion.by_weights(np.array([3, 5, 7]), 100)
    large = apportion.by_weights(np.array([3, 5, 7]) * 2**56, 100)
    assert small.tolist() == large.tolist() == [20, 33, 47]


def test_the_last_bit_of_a_share_moves_nothing_off_a_boundary():
    rng = np.random.RandomState(1)
    for _ in range(200):
        shares = rng.dirichlet([0.5] * 20)
        nudged = np.nextafter(shares, rng.choice([0.0, 1.0], 20))
        a, b = (apportion.largest_remainder(p, 5000).tolist() for p in (shares, nudged))
        assert a == b


@given(total=st.integers(0, 10**6), parts=st.integers(1, 500))
def test_even_sizes_differ_by_at_most_one_and_fall(total, parts):
    sizes = apportion.even(total, parts)
    assert sizes.sum() == total
    assert sizes.max() - sizes.min() <= 1
    assert (np.diff(sizes) <= 0).all()


@pytest.mark.parametrize("alpha", [1e-4, 0.001, 0.01, 1.0, 1e6])
def test_draws_are_finite_however_small_alpha_is(alpha):
    shares = softmax(log_gammas(np.random.RandomState(0), alpha, (2000, 10)))
    assert np.isfinite(shares).all()
    assert np.allclose(shares.sum(1), 1)


def test_a_masked_entry_gets_exactly_nothing():
    assert softmax(np.array([-np.inf, -1e5, -1e5])).tolist() == [0.0, 0.5, 0.5]

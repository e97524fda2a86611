import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_rel

from fedloom.reporting import stats
from fedloom.reporting.gather import Curve

NAN = math.nan
shares = st.floats(0, 1)
trials = st.lists(st.tuples(shares, shares), min_size=2, max_size=8)


def test_two_trials_give_the_sample_deviation():
    figure = stats.spread([0.8, 0.9])
    assert figure.mean == pytest.approx(0.85)
    assert figure.std == pytest.approx(0.0707, abs=5e-5)
    assert figure.n == 2


def test_one_trial_has_a_mean_and_no_deviation():
    assert stats.spread([0.8]) == stats.Spread(0.8, None, 1)


def test_missing_values_count_in_nothing():
    assert stats.spread([None, 0.5, None]) == stats.Spread(0.5, None, 1)
    assert stats.spread([]) == stats.Spread(None, None, 0)


@given(trials)
def test_the_interval_is_that_of_the_paired_t_test(pairs):
    mine, theirs = (dict(enumerate(side)) for side in zip(*pairs, strict=True))
    gap = stats.paired(mine, theirs)
    gaps = [a - b for a, b in pairs]
    assert gap is not None
    assert gap.mean == pytest.approx(np.mean(gaps))
    if np.std(gaps) > 1e-6:
        wanted = ttest_rel(list(mine.values()), list(theirs.values())).confidence_interval(0.95)
        assert (gap.low, gap.high) == pytest.approx((wanted.low, wanted.high))


def test_pairs_are_matched_by_trial_and_never_by_position():
    gap = stats.paired({2: 0.5, 1: 0.9, 3: 0.1}, {1: 0.8, 2: 0.4})
    assert gap is not None
    assert gap.n == 2
    assert gap.mean == pytest.approx(0.1)


def test_one_shared_trial_has_no_interval_and_none_no_difference():
    gap = stats.paired({1: 0.9}, {1: 0.8, 2: 0.7})
    assert gap is not None
    assert gap.contains_zero is None
    assert stats.paired({1: 0.9}, {2: 0.8}) is None


@pytest.mark.parametrize(
    ("low", "high", "inside"), [(-1.0, 1.0, True), (0.1, 0.2, False), (-0.2, -0.1, False)]
)
def test_zero_is_looked_for_inside_the_interval(low, high, inside):
    assert stats.Difference(0.0, low, high, 3).contains_zero is inside


def test_equal_trials_have_zero_inside_their_interval():
    gap = stats.paired({1: 0.7, 2: 0.8}, {1: 0.7, 2: 0.8})
    assert gap is not None
    assert gap.contains_zero


def test_the_target_is_reached_at_the_first_measured_round_that_has_it():
    assert stats.first_round(Curve((5, 10, 15), (0.2, 0.7, 0.6)), 0.6) == 10
    assert stats.first_round(Curve((5, 10), (0.2, NAN)), 0.6) is None


def test_the_last_mean_takes_what_is_there_and_refuses_what_is_not_finite():
    assert stats.last_mean(Curve((1, 2), (0.2, 0.4))) == pytest.approx(0.3)
    assert stats.last_mean(Curve(tuple(range(1, 8)), (9, 9, 1, 2, 3, 4, 5))) == pytest.approx(3)
    assert stats.last_mean(Curve((1, 2), (0.2, NAN))) is None
    assert stats.last_mean(Curve((), ())) is None


def test_stability_is_the_deviation_of_the_last_ten_and_the_largest_fall():
    values = (0.9, 0.2, *np.linspace(0.3, 0.75, 10))
    calm = stats.stability(Curve(tuple(range(12)), values))
    assert calm.std_last_10 == pytest.approx(np.std(values[-10:], ddof=1))
    assert calm.largest_drop == pytest.approx(0.7)
    assert stats.stability(Curve((1,), (0.5,))) == stats.Stability(None, None)
    assert stats.stability(Curve((1, 2), (0.1, 0.2))).largest_drop == 0
    assert stats.stability(Curve(tuple(range(9)), values[:9])).std_last_10 is None
    assert stats.stability(Curve(tuple(range(10)), values[:10])).std_last_10 is not None


@given(st.lists(st.lists(shares, min_size=3, max_size=3), min_size=1, max_size=4))
def test_the_mean_of_a_band_lies_between_its_edges(rows):
    joined = stats.band([Curve((1, 2, 3), tuple(row)) for row in rows])
    for low, mean, high in zip(joined.low, joined.mean, joined.high, strict=True):
        assert low - 1e-12 <= mean <= high + 1e-12


def test_a_band_holds_only_rounds_that_every_trial_measured():
    joined = stats.band([Curve((1, 2, 4), (0.1, 0.2, 0.4)), Curve((2, 4), (0.4, NAN))])
    assert joined.x == (2, 4)
    assert joined.mean[0] == pytest.approx(0.3)
    assert math.isnan(joined.mean[1])
    assert stats.band([Curve((1,), (0.1,)), Curve((2,), (0.1,))]).x == ()

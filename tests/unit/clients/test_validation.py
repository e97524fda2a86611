"""Rows that clients keep back from training."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedloom.clients.validation import hold_out
from fedloom.partition import Rows


@st.composite
def federations(draw):
    """(rows of each client, labels): disjoint, of any sizes, some empty."""
    sizes = draw(st.lists(st.integers(0, 15), min_size=1, max_size=6).filter(any))
    order = np.random.RandomState(draw(st.integers(0, 99))).permutation(sum(sizes))
    labels = np.array(draw(st.lists(st.integers(0, 3), min_size=sum(sizes), max_size=sum(sizes))))
    return Rows.of(np.split(order, np.cumsum(sizes)[:-1])), labels


@settings(deadline=None, max_examples=40)
@given(federations(), st.floats(0.01, 0.99), st.integers(0, 50))
def test_each_row_is_trained_on_or_held_out_and_every_client_still_trains(made, share, seed):
    rows, labels = made
    kept, held, _ = hold_out(rows, labels, share, seed)
    assert len(kept) == len(rows)
    for before, after in zip(rows, kept, strict=True):
        assert set(after) <= set(before)
        assert bool(len(after)) == bool(len(before))
    together = np.concatenate([*kept, held])
    assert sorted(together.tolist()) == sorted(np.concatenate(rows).tolist())


@settings(deadline=None, max_examples=40)
@given(federations(), st.floats(0.01, 0.99))
def test_each_class_gives_its_share_to_the_nearest_row(made, share):
    rows, labels = made
    kept, held, _ = hold_out(rows, labels, share, 0)
    for before, after in zip(rows, kept, strict=True):
        taken = np.setdiff1d(before, after)
        assert set(taken) <= set(held)
        for label in np.unique(labels[before]):
            count, given_up = (labels[before] == label).sum(), (labels[taken] == label).sum()
            last = len(after) == 1  # the row that a client must keep
            assert abs(given_up - share * count) <= 0.5 + last + 1e-9


def test_a_class_with_one_row_stays_in_training():
    """Classes of 20, 1 and 2 rows, a quarter held out: 5, 0 and 1 rows."""
    labels = np.array([0] * 20 + [1] + [2] * 2)
    kept, held, _ = hold_out(Rows.of([np.arange(23)]), labels, 0.25, seed=3)
    assert np.bincount(labels[held], minlength=3).tolist() == [5, 0, 1]
    assert np.bincount(labels[kept[0]], minlength=3).tolist() == [15, 1, 1]


def test_a_client_with_one_row_keeps_it_and_is_counted():
    labels = np.zeros(11, np.int64)
    kept, held, notes = hold_out(Rows.of([np.arange(10), np.array([10])]), labels, 0.4, seed=0)
    assert kept[1].tolist() == [10]
    assert len(held) == 4
    assert any("1 clients are too small" in note for note in notes)


def test_without_a_share_nothing_is_held_out_or_noted():
    rows = Rows.of([np.array([4, 1]), np.array([0])])
    kept, held, notes = hold_out(rows, np.zeros(5, np.int64), 0.0, seed=0)
    assert kept is rows
    assert [part.tolist() for part in kept] == [[4, 1], [0]]
    assert (len(held), notes) == (0, [])


@pytest.mark.parametrize("seed", [0, 1])
def test_the_choice_repeats_with_the_seed_and_depends_on_the_client_alone(seed):
    labels = np.arange(40) % 2
    rows = [np.arange(20), np.arange(20, 40)]
    first = hold_out(Rows.of(rows), labels, 0.3, seed)
    again = hold_out(Rows.of([rows[0], rows[1][:7]]), labels, 0.3, seed)
    assert first[0][0].tolist() == again[0][0].tolist()
    other = hold_out(Rows.of(rows), labels, 0.3, seed + 1)
    assert first[1].tolist() != other[1].tolist()

"""What is computed a block of clients at a time is what one pass gives."""

import sys

import numpy as np

from fedloom.partition import make, measure
from fedloom.partition.partition import blocks


def test_blocks_cover_all_clients_once_and_stay_small(monkeypatch):
    monkeypatch.setattr("fedloom.partition.partition.BLOCK", 10)
    sizes = np.array([3, 0, 25, 4, 4, 4, 0, 0, 1, 9, 2])
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    found = list(blocks(offsets))
    assert [first for first, _ in found] == [0, *[last for _, last in found[:-1]]]
    assert found[-1][1] == len(sizes)
    assert all(sizes[a:b].sum() <= 10 or b == a + 1 for a, b in found)


def test_counts_and_skew_are_the_same_in_any_blocks(monkeypatch):
    y = np.random.RandomState(0).randint(0, 4, 500)
    whole = measure(make("quantity_dirichlet(on_small=allow, alpha=0.1)", y, 40, seed=0))
    for name in ("partition", "measure"):
        monkeypatch.setattr(sys.modules[f"fedloom.partition.{name}"], "BLOCK", 16)
    again = measure(make("quantity_dirichlet(on_small=allow, alpha=0.1)", y, 40, seed=0))
    for name, value in vars(whole).items():
        assert np.array_equal(value, getattr(again, name), equal_nan=True), name

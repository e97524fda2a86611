import numpy as np
import pytest

from fedloom.partition import make, margins, measure
from fedloom.partition.problem import Problem
from fedloom.partition.strategies.quantity_dirichlet import QuantityDirichlet

CIFAR = np.repeat(np.arange(10), 5000)


def test_label_and_quantity_skew_keep_both_margins():
    labels = np.random.RandomState(0).randint(0, 10, 5000)
    options = {"min_size": 20, "max_tries": 10**6, "on_small": "retry"}
    for seed in range(5):
        spec = "label_quantity(alpha_label=0.1, alpha_size=0.5, min_size=20)"
        partition = make(spec, labels, 20, seed=seed)
        problem = Problem(labels, tuple(range(10)), 20, seed, "label_quantity")
        sizes, tries = QuantityDirichlet(alpha=0.5, **options).sizes(problem)
        assert partition.sizes.tolist() == sizes.tolist()
        assert partition.tries == tries
        assert partition.count_matrix.sum(0).tolist() == np.bincount(labels).tolist()


def test_its_two_concentrations_act_apart():
    labels = np.arange(20_000) % 10
    skews = {
        (label, size): measure(
            make(
                f"label_quantity(alpha_label={label}, alpha_size={size}, min_size=1)",
                labels,
                10,
                seed=2,
            )
        )
        for label in (0.1, 100)
        for size in (0.5, 100)
    }
    for size in (0.5, 100):
        assert skews[0.1, size].tv_weighted > 0.4 > 0.1 > skews[100, size].tv_weighted
    for label in (0.1, 100):
        assert skews[label, 0.5].size_imbalance > 1.3 > 1.05 > skews[label, 100].size_imbalance


def test_a_floor_gives_every_client_its_minimum_first():
    for strategy in ("quantity_dirichlet(alpha=0.01", "label_quantity(alpha_size=0.01"):
        partition = make(f"{strategy}, min_size=7, on_small=floor)", CIFAR, 100, seed=0)
        assert partition.sizes.min() >= 7
        assert partition.tries == 1
        assert partition.params["on_small"] == "floor"


@pytest.mark.parametrize("alpha", [0.01, 0.1, 1.0, 100.0])
def test_fitted_tables_round_to_exact_margins(alpha):
    for seed in range(10):
        rng = np.random.RandomState(seed)
        rows = rng.multinomial(3000, rng.dirichlet([0.5] * 12))
        columns = rng.multinomial(3000, rng.dirichlet([2.0] * 7))
        shares = rng.dirichlet([alpha] * 7, 12)
        fitted = margins.fit(shares, rows, columns)
        table = margins.round_table(fitted, rows, columns)
        assert table.min() >= 0
        assert table.sum(1).tolist() == rows.tolist()
        assert table.sum(0).tolist() == columns.tolist()
        if np.abs(fitted.sum(1) - rows).sum() < 0.5:
            assert np.abs(table - fitted).max() < 1


def test_a_table_with_exact_margins_is_only_rounded():
    rng = np.random.RandomState(0)
    for _ in range(50):
        rows, columns = rng.multinomial(200, [1 / 9] * 9), rng.multinomial(200, [1 / 6] * 6)
        exact = np.outer(rows, columns) / 200
        table = margins.round_table(exact, rows, columns)
        assert np.abs(table - exact).max() < 1


def test_a_table_with_other_margins_is_completed():
    table = margins.round_table(np.zeros((3, 2)), np.array([4, 0, 3]), np.array([5, 2]))
    assert table.sum(1).tolist() == [4, 0, 3]
    assert table.sum(0).tolist() == [5, 2]

import numpy as np

from fedloom.partition import make

CIFAR = np.repeat(np.arange(10), 5000)


def test_a_closed_client_gets_nothing_more():
    partition = make("label_dirichlet(alpha=0.2)", CIFAR, 10, seed=4)
    before = np.cumsum(partition.count_matrix, axis=1) - partition.count_matrix
    assert (partition.count_matrix[before >= 5000] == 0).all()
    assert (before >= 5000).any()


def test_without_balance_clients_grow_past_a_fair_share():
    free = make("label_dirichlet(alpha=0.2, balance=false)", CIFAR, 10, seed=4)
    before = np.cumsum(free.count_matrix, axis=1) - free.count_matrix
    assert (free.count_matrix[before >= 5000] > 0).any()


def test_a_random_class_order_spares_other_classes():
    runs = [
        make("label_dirichlet(alpha=0.2, class_order=random)", CIFAR, 10, seed=s) for s in range(9)
    ]
    ascending = [make("label_dirichlet(alpha=0.2)", CIFAR, 10, seed=s) for s in range(9)]
    first, last = (np.mean([(p.count_matrix[:, c] == 0).sum() for p in runs]) for c in (0, 9))
    plain = [np.mean([(p.count_matrix[:, c] == 0).sum() for p in ascending]) for c in (0, 9)]
    assert plain[1] - plain[0] > abs(last - first) + 1


def test_one_concentration_a_client_sets_who_gets_more():
    sizes = make("quantity_dirichlet(alpha=[1, 1, 98], on_small=allow)", CIFAR, 3, seed=0).sizes
    assert sizes[2] > 0.9 * 50_000
    tilted = make("label_dirichlet(alpha=[1, 1, 98], balance=false)", CIFAR, 3, seed=0)
    assert (tilted.count_matrix[2] > 4000).all()


def test_many_tries_are_reported():
    partition = make("quantity_dirichlet(alpha=0.1)", CIFAR[::10], 10, seed=1)
    assert partition.tries > 10
    assert f"{partition.tries} draws were needed" in partition.warnings[0]


def test_skew_that_alpha_does_not_ask_for_is_pointed_out():
    few = make("label_dirichlet(alpha=10, min_size=1)", np.arange(60) % 30, 6, seed=0)
    assert any("lack some class" in warning for warning in few.warnings)
    noise = make("label_dirichlet(alpha=200)", CIFAR, 10, seed=0)
    assert any("closes clients on noise" in warning for warning in noise.warnings)
    assert make("label_dirichlet(alpha=200, balance=false)", CIFAR, 10, seed=0).warnings == ()


def test_warnings_are_logged_too(caplog):
    make("label_dirichlet(alpha=200)", CIFAR, 10, seed=0)
    assert "closes clients on noise" in caplog.text

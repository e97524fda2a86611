"""Laws of the draws, with fixed seeds; tolerances are four standard errors unless said."""

import numpy as np
import pytest

from fedloom.partition import make, measure
from fedloom.partition.dirichlet import log_gammas, softmax

CIFAR = np.repeat(np.arange(10), 5000)
SMALL = np.repeat(np.arange(10), 500)
BELOW = {
    0.5: {0.001: 0.0735, 0.01: 0.2301, 0.05: 0.4914, 0.1: 0.6566, 0.3: 0.9189, 0.5: 0.985},
    0.1: {0.01: 0.6207, 0.1: 0.7821, 0.5: 0.9227},
}
RANGES = [
    # spec, rows by class, clients, smallest (1 %, 99 %), largest (1 %, 99 %), classes a client
    ("label_dirichlet", [5000] * 10, 10, (992, 4065), (5680, 8929), 8.71),
    ("label_dirichlet(balance=false)", [6000] * 10, 10, (990, 4384), (7596, 15106), 9.81),
    ("label_dirichlet(alpha=0.1)", [5000] * 10, 10, (26, 3211), (6394, 9888), 5.48),
    ("label_dirichlet(alpha=0.1, balance=false)", [5000] * 10, 10, (19, 2552), (7553, 18262), 6.45),
    ("label_dirichlet(alpha=100)", [5000] * 10, 10, (4563, 4902), (5105, 5465), 10.0),
    ("label_dirichlet", [24720, 7841], 10, (12, 1415), (5231, 18090), 1.72),
    ("label_dirichlet", [5000] * 10, 100, (54, 233), (807, 1377), 8.14),
    ("quantity_dirichlet", [6000] * 10, 10, (11, 1323), (11340, 42120), None),
]


def shares_of(spec, labels, clients, seeds, column=0):
    """Shares of one class over many seeds, flat."""
    return np.concatenate(
        [
            make(spec, labels, clients, seed=s).count_matrix[:, column] / (labels == column).sum()
            for s in range(seeds)
        ]
    )


@pytest.mark.parametrize("alpha", [0.1, 0.5, 100.0])
def test_shares_have_the_mean_and_variance_of_the_dirichlet_law(alpha):
    shares = softmax(log_gammas(np.random.RandomState(0), alpha, (20_000, 10)))
    variance = 0.1 * 0.9 / (10 * alpha + 1)
    assert abs(shares[:, 0].mean() - 0.1) < 4 * np.sqrt(variance / 20_000)
    squares = shares[:, 0] ** 2
    assert abs(squares.mean() - (variance + 0.01)) < 4 * squares.std() / np.sqrt(20_000)
    total = (shares**2).sum(1)
    expected = (alpha + 1) / (10 * alpha + 1)
    assert abs(total.mean() - expected) < 4 * total.std() / np.sqrt(20_000)


@pytest.mark.parametrize(("alpha", "limit"), [(a, q) for a in BELOW for q in BELOW[a]])
def test_shares_have_the_marginal_beta_law(alpha, limit):
    shares = softmax(log_gammas(np.random.RandomState(1), alpha, (20_000, 10)))[:, 3]
    expected = BELOW[alpha][limit]
    error = np.sqrt(expected * (1 - expected) / 20_000)
    assert abs((shares < limit).mean() - expected) < 4 * error + 5e-5


@pytest.mark.parametrize(
    ("spec", "column"),
    [("label_dirichlet", 0), ("label_dirichlet(balance=false, on_small=allow)", 7)],
)
def test_a_class_that_balance_never_touches_follows_the_law(spec, column):
    shares = shares_of(spec, CIFAR, 10, 100, column)
    for limit in (0.01, 0.1, 0.3):
        hits = (shares.reshape(100, 10) < limit).sum(1)
        error = hits.std() / 10
        assert abs(hits.mean() - 10 * BELOW[0.5][limit]) < 4 * error


def test_sizes_before_truncation_follow_the_law():
    sizes = np.array(
        [
            make("quantity_dirichlet(on_small=allow)", SMALL, 10, seed=s).sizes / 5000
            for s in range(400)
        ]
    )
    total = (sizes**2).sum(1)
    assert abs(total.mean() - 0.25) < 4 * total.std() / 20


@pytest.mark.parametrize(("n", "expected"), [(60_000, 0.73), (15_181, 0.54)])
def test_quantity_draws_are_accepted_as_often_as_measured(n, expected):
    labels = np.zeros(n, int)
    tries = np.array([make("quantity_dirichlet", labels, 10, seed=s).tries for s in range(200)])
    rate = 200 / tries.sum()
    assert abs(rate - expected) < 4 * np.sqrt(expected * (1 - expected) / tries.sum())


@pytest.mark.parametrize(("k", "alone"), [(2, 0.3464), (3, 0.1042)])
def test_holders_of_a_class_are_binomial(k, alone):
    holders = np.array(
        [
            (make(f"label_count(k={k})", SMALL, 10, seed=s).count_matrix > 0).sum(0)
            for s in range(300)
        ]
    )
    assert holders.mean() == k
    ones = (holders == 1).sum(1)
    assert abs(ones.mean() / 10 - alone) < 4 * ones.std() / 10 / np.sqrt(300)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_label_counts_have_the_exact_total_variation(k):
    for seed in range(5):
        partition = make(f"label_count(k={k})", CIFAR, 10, seed=seed)
        skew = measure(partition)
        shares = partition.count_matrix / partition.sizes[:, None]
        full = np.where(shares > 0, shares, 1).min(1) >= 0.1
        assert np.allclose(skew.tv_per_client[full], 1 - k / 10)


def test_iid_counts_are_hypergeometric():
    counts = np.array([make("iid", CIFAR, 10, seed=s).count_matrix for s in range(60)])
    assert abs(counts.std() - 20.1) < 0.5
    assert counts.mean() == 500


@pytest.mark.parametrize(
    ("spec", "clients", "low", "high"),
    [
        ("iid", 10, 0.013, 0.019),
        ("iid", 100, 0.051, 0.055),
        ("label_dirichlet", 10, 0.420, 0.559),
        ("label_dirichlet(alpha=0.1)", 10, 0.654, 0.785),
        ("label_dirichlet", 100, 0.487, 0.529),
        ("sorted_shards(shards=2)", 100, 0.80, 0.82),
    ],
)
def test_total_variation_lies_in_the_measured_range(spec, clients, low, high):
    """Each bound is a 1 % or 99 % point; of 20 seeds more than two outside have odds under 1 %."""
    values = [measure(make(spec, CIFAR, clients, seed=s)).tv for s in range(20)]
    assert sum(not low <= value <= high for value in values) <= 2


def test_quantity_skew_has_sizes_but_no_labels():
    skews = [measure(make("quantity_dirichlet", CIFAR, 10, seed=s)) for s in range(60)]
    assert np.mean([s.tv_weighted for s in skews]) == pytest.approx(0.013, abs=0.001)
    assert np.mean([s.size_imbalance for s in skews]) == pytest.approx(2.38, abs=0.4)


@pytest.mark.parametrize(("spec", "rows", "clients", "low", "high", "classes"), RANGES)
def test_sizes_lie_in_the_measured_ranges(spec, rows, clients, low, high, classes):
    """Each bound is a 1 % or 99 % point; more than three of 40 outside have odds under 1 %."""
    labels = np.repeat(np.arange(len(rows)), rows)
    made = [make(spec, labels, clients, seed=s) for s in range(20)]
    smallest, largest = ([f(p.sizes) for p in made] for f in (np.min, np.max))
    outside = sum(not low[0] <= v <= low[1] for v in smallest)
    outside += sum(not high[0] <= v <= high[1] for v in largest)
    assert outside <= 3
    if classes is not None:
        held = np.array([(p.count_matrix > 0).sum(1).mean() for p in made])
        assert abs(held.mean() - classes) < 4 * held.std() / np.sqrt(20) + 0.01


def test_a_shard_partition_sees_the_measured_number_of_labels():
    mnist = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    labels = np.repeat(np.arange(10), mnist)
    seen = np.array(
        [(make("sorted_shards", labels, 100, seed=s).count_matrix > 0).sum(1) for s in range(40)]
    )
    for labels_seen, expected in ((1, 0.087), (2, 0.843), (3, 0.067)):
        share = (seen == labels_seen).mean(1)
        assert abs(share.mean() - expected) < 4 * share.std() / np.sqrt(40) + 0.0005
    one = np.array(
        [
            ((make("sorted_shards", CIFAR, 100, seed=s).count_matrix > 0).sum(1) == 1).mean()
            for s in range(40)
        ]
    )
    assert abs(one.mean() - 19 / 199) < 4 * one.std() / np.sqrt(40)


def test_alpha_changes_the_skew():
    labels = np.random.RandomState(0).permutation(np.arange(5000) % 10)
    entropy = np.array(
        [
            [
                measure(
                    make(f"label_dirichlet(alpha={alpha}, on_small=allow)", labels, 20, seed=s)
                ).entropy
                for s in range(5)
            ]
            for alpha in (0.05, 0.5, 5.0, 1e6)
        ]
    )  # [alpha, seed]
    assert (entropy[:-1].max(1) < entropy[1:].min(1)).all()
    near = make("label_dirichlet(alpha=1e6, balance=false)", labels, 20, seed=0)
    assert np.abs(near.count_matrix - 25).max() < 5 * np.sqrt(25)
    for client, rows in enumerate(near.indices):
        assert (np.bincount(labels[rows], minlength=10) == near.count_matrix[client]).all()


@pytest.mark.parametrize(("shards", "expected"), [(2, 1.90), (3, 2.71), (5, 4.10), (10, 6.51)])
def test_class_table_shards_repeat_labels_as_often_as_computed(shards, expected):
    held = [
        (make(f"class_table_shards(shards={shards})", SMALL, 50, seed=s).count_matrix > 0).sum(1)
        for s in range(20)
    ]
    assert np.mean(held) == pytest.approx(expected, abs=0.08)


@pytest.mark.parametrize(
    ("variant", "alpha", "low", "high", "classes"),
    [("capped", 0.5, 152, 891, 8.3), ("pure", 0.5, 130, 1133, 9.3), ("capped", 1.0, 248, 777, 8.9)],
)
def test_lda_variants_have_the_published_sizes(variant, alpha, low, high, classes):
    """One published draw each, so the bounds are loose: a third either way."""
    spec = f"lda(alpha={alpha}, lda_variant={variant})"
    made = [make(spec, CIFAR, 100, seed=s) for s in range(5)]
    assert np.mean([p.sizes.min() for p in made]) == pytest.approx(low, rel=0.34)
    assert np.mean([p.sizes.max() for p in made]) == pytest.approx(high, rel=0.34)
    held = np.mean([(p.count_matrix > 0).sum(1).mean() for p in made])
    assert held == pytest.approx(classes, abs=0.2)

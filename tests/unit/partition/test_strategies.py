"""What each strategy promises, on sizes from the smallest up."""

import numpy as np
import pytest

from fedloom.errors import PartitionError
from fedloom.partition import hands, make, margins
from fedloom.spec import Spec

CIFAR = np.repeat(np.arange(10), 5000)


def cube(n=4000, seed=0):
    return np.random.RandomState(seed).uniform(-1, 1, (n, 3))


def octants(per_octant=500, seed=0):
    """Equally many points in each octant, and their labels."""
    signs = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, 8).T
    x = np.abs(cube(8 * per_octant, seed)) * np.repeat(signs, per_octant, axis=0)
    return x, (x[:, 0] >= 0).astype(int)


# --- iid


def test_iid_mixes_rows_sorted_by_class():
    labels = np.repeat([0, 1], 150)
    for seed in range(5):
        partition = make("iid", labels, 2, seed=seed)
        assert partition.sizes.tolist() == [150, 150]
        assert ((partition.count_matrix >= 53) & (partition.count_matrix <= 97)).all()


def test_stratified_iid_spreads_every_class_and_every_size_to_within_one():
    labels = np.random.RandomState(0).choice(7, 1003, p=[0.4, 0.3, 0.1, 0.1, 0.05, 0.04, 0.01])
    partition = make("iid(stratified=true)", labels, 13, seed=0)
    assert np.ptp(partition.sizes) <= 1
    assert np.ptp(partition.count_matrix, axis=0).max() <= 1


# --- label_count


@pytest.mark.parametrize("assign", ["first_fixed", "random", "cyclic", "balanced"])
@pytest.mark.parametrize("k", [1, 2, 9, 10])
def test_every_client_has_exactly_k_labels_shared_evenly(assign, k):
    partition = make(f"label_count(k={k}, assign={assign}, on_unheld=drop)", CIFAR, 30, seed=1)
    counts = partition.count_matrix
    assert ((counts > 0).sum(1) == k).all()
    for column in counts.T:
        if column.any():
            assert np.ptp(column[column > 0]) <= 1
    if assign == "balanced":
        assert np.ptp((counts > 0).sum(0)) <= 1


def test_the_first_label_is_fixed_by_the_client_number():
    partition = make("label_count(k=3)", CIFAR, 25, seed=0)
    assert all(partition.count_matrix[i, i % 10] > 0 for i in range(25))


def test_one_label_each_for_as_many_clients_as_classes_is_one_class_a_client():
    counts = make("label_count(k=1)", CIFAR, 10, seed=0).count_matrix
    assert (counts == 5000 * np.eye(10)).all()


def test_all_labels_each_is_the_stratified_split():
    labels = np.random.RandomState(1).randint(0, 4, 999)
    partition = make("label_count(k=4)", labels, 6, seed=0)
    assert np.ptp(partition.count_matrix, axis=0).max() <= 1


def test_two_labels_of_a_binary_data_set_are_honoured():
    partition = make("label_count(k=2)", [0, 1] * 50, 5, seed=0)
    assert (partition.count_matrix == 10).all()


def test_cyclic_labels_follow_the_client_number():
    counts = make("label_count(k=3, assign=cyclic)", CIFAR, 10, seed=0).count_matrix
    assert [np.flatnonzero(row).tolist() for row in counts[[0, 9]]] == [[0, 1, 2], [0, 1, 9]]


def test_unheld_classes_are_named_and_never_lost_in_silence():
    with pytest.raises(PartitionError, match=r"holds the classes [\d, ]+ \(\d+ rows\)"):
        make("label_count(k=2)", CIFAR, 5, seed=0)


def test_dropped_classes_are_counted():
    partition = make("label_count(k=2, on_unheld=drop)", CIFAR, 5, seed=0)
    unheld = np.flatnonzero(partition.count_matrix.sum(0) == 0)
    assert len(unheld) > 0
    assert len(partition.dropped) == 5000 * len(unheld)
    assert set(CIFAR[partition.dropped]) == set(unheld)
    assert f"{len(unheld)} whole classes" in partition.warnings[0]
    assert f"{len(partition.dropped)} of 50000 rows" in partition.warnings[0]


@pytest.mark.parametrize("assign", ["first_fixed", "random", "cyclic"])
def test_repair_gives_every_class_a_holder_and_says_so(assign):
    for seed in range(20):
        spec = f"label_count(k=2, assign={assign}, on_unheld=repair)"
        partition = make(spec, CIFAR, 6, seed=seed)
        counts = partition.count_matrix
        assert (counts.sum(0) == 5000).all()
        assert ((counts > 0).sum(1) == 2).all()
        if assign == "first_fixed":
            assert (np.diag(counts) > 0).all()
        if partition.warnings:
            assert "labels were replaced" in partition.warnings[0]
    assert assign == "random" or partition.warnings


def test_a_hundred_classes_for_ten_clients_with_two_labels_are_refused():
    with pytest.raises(PartitionError, match="at most 20 of the 100 classes, so at least 80"):
        make("label_count(k=2, on_unheld=drop)", np.arange(5000) % 100, 10, seed=0)


def test_a_class_with_fewer_rows_than_holders_is_refused():
    labels = [0] * 50 + [1] * 3
    with pytest.raises(PartitionError, match="class 1 has 3 rows for 5 clients"):
        make("label_count(k=2)", labels, 5, seed=0)


def test_large_populations_are_dealt_in_chunks_of_one_stream(monkeypatch):
    whole = hands.first_fixed(np.random.RandomState(0), 50, 10, 3)
    monkeypatch.setattr(hands, "CHUNK", 70)
    assert (hands.first_fixed(np.random.RandomState(0), 50, 10, 3) == whole).all()


# --- shards


def test_shards_leave_nothing_over_and_are_used_once():
    labels = np.random.RandomState(0).randint(0, 4, 103)
    partition = make("sorted_shards(shards=2)", labels, 10, seed=0)
    assert sorted(partition.order) == list(range(103))
    assert partition.sizes.min() >= 10
    assert partition.sizes.max() <= 12


def test_a_dropped_remainder_is_listed():
    labels = np.random.RandomState(0).randint(0, 4, 103)
    partition = make("sorted_shards(shards=2, drop_remainder=true)", labels, 10, seed=0)
    assert (partition.sizes == 10).all()
    assert len(partition.dropped) == 3
    assert "3 of 103 rows are held by nobody" in partition.warnings[0]


def test_shards_that_fit_the_classes_never_straddle():
    counts = make("sorted_shards(shards=2)", CIFAR, 100, seed=0).count_matrix
    assert set(np.unique(counts)) == {0, 250, 500}


def test_class_table_shards_give_every_class_equally_many_shards():
    partition = make("class_table_shards(shards=2)", CIFAR, 100, seed=0)
    assert (partition.sizes == 500).all()
    assert set(np.unique(partition.count_matrix)) == {0, 250, 500}
    table = partition.facts["table"]
    assert (np.bincount(table.ravel()) == 20).all()
    assert all(set(np.flatnonzero(c)) == set(t) for c, t in zip(partition.count_matrix, table))


def test_class_table_shards_of_uneven_classes_use_every_row():
    labels = np.repeat([0, 1, 2], [50, 61, 7])
    partition = make("class_table_shards(shards=3)", labels, 4, seed=0)
    assert len(partition.order) == 118


# --- by_group


def test_groups_stay_whole_and_are_spread_evenly():
    groups = np.random.RandomState(0).randint(0, 23, 500)
    partition = make("by_group", np.arange(500) % 5, 4, seed=0, groups=groups)
    held = [set(groups[rows]) for rows in partition.indices]
    assert sorted(map(len, held)) == [5, 6, 6, 6]
    assert sum(map(len, held)) == len(set.union(*held)) == 23


def test_balanced_rows_beat_the_largest_group():
    rng = np.random.RandomState(0)
    groups = rng.permutation(np.repeat(np.arange(40), rng.randint(1, 60, 40)))
    y = np.zeros(len(groups), int)
    fair = make("by_group(balance_rows=true)", y, 6, seed=0, groups=groups)
    plain = make("by_group", y, 6, seed=0, groups=groups)
    held = [set(groups[rows]) for rows in fair.indices]
    assert sum(map(len, held)) == len(set.union(*held)) == 40
    assert np.ptp(fair.sizes) <= 2 < np.ptp(plain.sizes)


def test_without_a_number_every_group_is_a_client():
    groups = ["b", "a", "c", "a", "b", "a"]
    partition = make("real", [0, 1, 0, 1, 0, 1], None, seed=0, groups=groups)
    assert sorted(partition.sizes) == [1, 2, 3]
    for name, owner in zip(partition.facts["ids"], partition.facts["owner"], strict=True):
        assert {groups[row] for row in partition.rows(owner)} == {name}


def test_the_order_of_rows_does_not_move_a_group():
    groups = np.random.RandomState(0).randint(0, 9, 200)
    y = np.zeros(200, int)
    owners = [
        make("by_group", y, 3, seed=5, groups=ids).facts["owner"].tolist()
        for ids in (groups, groups[::-1])
    ]
    assert owners[0] == owners[1]


# --- fcube_octants


@pytest.mark.parametrize("clients", [1, 2, 4, 8, 12, 20])
def test_octants_of_a_client_are_antipodal_and_its_classes_balanced(clients):
    x, y = octants(per_octant=60)
    partition = make("fcube_octants", y, clients, seed=0, x=x)
    for rows in partition.indices:
        codes = set(((x[rows] >= 0) @ [4, 2, 1]).tolist())
        assert {7 - code for code in codes} == codes
        assert len(codes) == 8 // min(clients, 4)
    assert (partition.count_matrix == 240 // clients).all()


def test_clients_zero_to_three_hold_the_documented_octants():
    x = np.array([[1, 1, 1], [-1, -1, 1], [1, -1, 1], [1, -1, -1], [0, 0, 0], [-1, 1, -1]])
    partition = make("real", [1, 0, 1, 1, 1, 0], 4, seed=0, x=x)
    assert [rows.tolist() for rows in partition.indices] == [[0, 4], [1], [2, 5], [3]]


def test_inside_a_client_every_coordinate_tells_the_label():
    x, y = octants()
    for rows in make("fcube_octants", y, 4, seed=0, x=x).indices:
        for axis in (1, 2):
            assert len(set(zip(y[rows], x[rows, axis] > 0, strict=True))) == 2


@pytest.mark.parametrize(
    ("clients", "x", "message"),
    [
        (3, cube(), "multiple of 4"),
        (6, cube(), "multiple of 4"),
        (4, cube()[:, :2], r"shape \(4000, 3\), not \(4000, 2\)"),
        (4, cube()[:10], "shape"),
        (4, np.full((4000, 3), np.nan), "missing"),
    ],
)
def test_cubes_that_are_none_are_refused(clients, x, message):
    with pytest.raises(PartitionError, match=message):
        make("fcube_octants", np.arange(4000) % 2, clients, seed=0, x=x)


# --- label_pair_dirichlet, from_histograms, label_quantity


def test_pairs_of_classes_are_held_by_pairs_of_clients():
    for seed in range(30):
        counts = make(
            "label_pair_dirichlet(alpha=5)", np.arange(2000) % 10, 10, seed=seed
        ).count_matrix
        assert (np.diag(counts) > 0).all()
        assert ((counts > 0).sum(1) <= 2).all()
        assert ((counts > 0).sum(0) == 2).all()


def test_pairs_keep_the_minimum_size():
    partition = make("label_pair_dirichlet(alpha=0.2, min_size=20)", np.arange(600) % 6, 6, seed=1)
    assert partition.sizes.min() >= 20


def test_histograms_of_users_are_carried_over():
    users = np.random.RandomState(0).poisson(5, (50, 10))
    partition = make(Spec("from_histograms", {"counts": users}), CIFAR, 8, seed=0)
    chosen = users[partition.facts["users"]]
    assert len(set(partition.facts["users"])) == 8
    assert np.abs(partition.count_matrix - chosen / chosen.sum(0) * 5000).max() < 1
    assert "50 x 10 table" in partition.params["counts"]


def test_a_stored_table_gives_the_same_split(tmp_path):
    users = np.random.RandomState(0).poisson(5, (20, 10))
    np.save(tmp_path / "table.npy", users)
    np.savetxt(tmp_path / "table.csv", users, delimiter=",")
    tables = [users, users.tolist(), str(tmp_path / "table.npy"), str(tmp_path / "table.csv")]
    made = [make(Spec("from_histograms", {"counts": t}), CIFAR, 8, seed=0) for t in tables]
    assert len({partition.key for partition in made}) == 1


def test_users_are_drawn_again_until_every_class_is_held():
    users = np.eye(10, dtype=int).repeat(3, axis=0) * 4
    spec = Spec("from_histograms", {"counts": users, "min_size": 1})
    partition = make(spec, CIFAR, 11, seed=0)
    assert (partition.count_matrix.sum(0) == 5000).all()
    assert partition.tries > 1


def test_histograms_that_leave_clients_small_end_with_advice():
    users = np.ones((12, 2), int)
    users[:6] = 0
    labels = [0, 1] * 50
    options = {"counts": users, "min_size": 5}
    for rule, expected in (("retry", "in 40 draws"), ("error", "in 1 draws")):
        spec = Spec("from_histograms", {**options, "max_tries": 40, "on_small": rule})
        with pytest.raises(PartitionError, match=expected):
            make(spec, labels, 10, seed=0)
    allowed = make(Spec("from_histograms", {**options, "on_small": "allow"}), labels, 10, seed=0)
    assert (allowed.sizes == 0).sum() >= 4


def test_a_class_that_no_user_has_is_refused():
    with pytest.raises(PartitionError, match="no user in the table has class 1"):
        make("from_histograms(counts=[[3, 0], [2, 0]])", [0, 1] * 20, 2, seed=0)


def test_label_and_quantity_skew_keep_both_margins():
    labels = np.random.RandomState(0).randint(0, 10, 5000)
    for seed in range(5):
        partition = make(
            "label_quantity(alpha_label=0.1, alpha_size=0.5, min_size=20)", labels, 20, seed=seed
        )
        sizes = make("quantity_dirichlet(alpha=0.5, min_size=20)", labels, 20, seed=seed).sizes
        assert partition.sizes.min() >= 20
        assert partition.sizes.sum() == sizes.sum() == 5000


def test_a_floor_gives_every_client_its_minimum_first():
    for strategy in ("quantity_dirichlet(alpha=0.01", "label_quantity(alpha_size=0.01"):
        partition = make(f"{strategy}, min_size=7, on_small=floor)", CIFAR, 100, seed=0)
        assert partition.sizes.min() >= 7
        assert partition.tries == 1
        assert partition.params["on_small"] == "floor"


# --- tables with given margins


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


# --- label_dirichlet and quantity_dirichlet


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
    sizes = make(
        "quantity_dirichlet(alpha=[1, 1, 98], on_small=allow)", CIFAR, 3, seed=0
    ).sizes
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

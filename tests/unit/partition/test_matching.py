import numpy as np
import pytest

from fedloom.errors import PartitionError
from fedloom.partition import make, match_test, resampled
from fedloom.spec import Spec

rng = np.random.RandomState(0)
TRAIN = rng.permutation(np.repeat(np.arange(5), 400))
TEST = rng.permutation(np.repeat(np.arange(5), 80))
GROUPS = rng.randint(0, 30, 2000)
SPECS = [
    "iid",
    "label_count(k=2)",
    "label_dirichlet(alpha=0.3)",
    "quantity_dirichlet",
    "sorted_shards",
    "class_table_shards(shards=2)",
    "label_quantity",
    Spec("from_histograms", {"counts": rng.poisson(3, (40, 5))}),
]


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_every_test_row_is_used_once(spec):
    test = match_test(make(spec, TRAIN, 10, seed=0), TEST)
    assert sorted(test.order.tolist()) == list(range(400))
    assert test.num_clients == 10
    assert not test.dropped.size


@pytest.mark.parametrize("spec", [s for s in SPECS if "shards" not in str(s)], ids=str)
def test_shares_of_each_class_are_those_of_training(spec):
    train = make(spec, TRAIN, 10, seed=0)
    test = match_test(train, TEST)
    assert np.abs(test.count_matrix - train.count_matrix / 5).max() < 1


@pytest.mark.parametrize("spec", ["sorted_shards(shards=2)", "class_table_shards(shards=2)"])
def test_shards_of_test_rows_hold_the_classes_of_training(spec):
    train = make(spec, TRAIN, 10, seed=0)
    test = match_test(train, TEST)
    assert ((test.count_matrix > 0) == (train.count_matrix > 0)).all()
    assert (test.count_matrix == train.count_matrix // 5).all()


def test_groups_are_followed_by_name_whatever_the_order():
    train_groups = [f"user {g}" for g in GROUPS]
    train = make("by_group", TRAIN, 6, seed=0, groups=train_groups)
    test_groups = np.array([f"user {g}" for g in rng.randint(0, 32, 400)])[::-1]
    test = match_test(train, TEST, groups=test_groups)
    home = dict(zip(train.facts["ids"], train.facts["owner"], strict=True))
    for client, rows in enumerate(test.indices):
        assert {home[name] for name in test_groups[rows]} <= {client}
    strangers = np.flatnonzero(~np.isin(test_groups, train.facts["ids"]))
    assert test.dropped.tolist() == strangers.tolist()
    assert "2 groups have test rows but no training rows" in test.warnings
    assert f"{len(strangers)} of 400 test rows belong to no client" in test.warnings


def test_a_group_without_test_rows_is_reported():
    train = make("by_group", [0, 1, 0], 3, seed=0, groups=["B", "A", "C"])
    test = match_test(train, [0, 1], groups=["A", "B"])
    (empty,) = np.flatnonzero(test.sizes == 0)
    assert train.facts["ids"][train.facts["owner"] == empty].tolist() == ["C"]
    assert test.warnings == (f"1 clients have no test row: {empty}",)


def test_groups_need_group_ids_on_the_test_side_too():
    train = make("by_group", TRAIN, 6, seed=0, groups=GROUPS)
    with pytest.raises(PartitionError, match="pass groups"):
        match_test(train, TEST)
    with pytest.raises(PartitionError, match="3 entries for 400"):
        match_test(train, TEST, groups=[1, 2, 3])


def test_octants_are_followed():
    x = rng.uniform(-1, 1, (2400, 3))
    y = (x[:, 0] >= 0).astype(int)
    train = make("fcube_octants", y[:2000], 4, seed=0, x=x[:2000])
    test = match_test(train, y[2000:], x=x[2000:])
    again = make("fcube_octants", y[2000:], 4, seed=9, x=x[2000:])
    assert test.digest == again.digest


def test_classes_that_training_lacks_go_to_nobody():
    test = match_test(make("iid", TRAIN, 4, seed=0), [0, 1, 9, 9, 2])
    assert test.dropped.tolist() == [2, 3]
    assert "2 of 5 test rows belong to no client" in test.warnings
    train = make("label_count(k=2, on_unheld=drop)", TRAIN, 3, seed=1)
    lost = np.flatnonzero(train.count_matrix.sum(0) == 0)
    assert len(lost) > 0
    assert set(TEST[match_test(train, TEST).dropped]) == set(lost)
    shards = make("sorted_shards", TRAIN, 4, seed=0)
    assert match_test(shards, [7, 0, 1]).dropped.tolist() == [0]


def test_another_seed_gives_other_rows_in_the_same_numbers():
    train = make("label_dirichlet", TRAIN, 10, seed=0)
    a, b = match_test(train, TEST), match_test(train, TEST, seed=5)
    assert a.digest != b.digest
    assert (a.count_matrix == b.count_matrix).all()
    assert a.digest == match_test(train, TEST).digest


def test_resampled_test_sets_are_as_large_as_training_allows():
    train = make("label_dirichlet(alpha=0.3)", TRAIN, 10, seed=0)
    test = resampled(train, TEST)
    assert (test.count_matrix == np.minimum(train.count_matrix, 80)).all()
    for rows in test.indices:
        assert len(set(rows.tolist())) == len(rows)
    shared = (np.bincount(test.order, minlength=400) > 1).sum()
    assert f"{shared} of 400 test rows belong to more than one client" in test.warnings
    assert test.overlapping


def test_clients_do_not_all_draw_the_same_rows():
    train = make("iid", TRAIN, 10, seed=0)
    small = resampled(train, TEST)
    assert len({tuple(rows) for rows in small.indices}) == 10


def test_a_division_of_test_rows_has_none_of_its_own():
    test = match_test(make("iid", TRAIN, 4, seed=0), TEST)
    with pytest.raises(PartitionError, match="training rows"):
        match_test(test, TEST)
    with pytest.raises(PartitionError, match="training rows"):
        resampled(test, TEST)

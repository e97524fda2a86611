import numpy as np

from fedloom.partition import make

CIFAR = np.repeat(np.arange(10), 5000)


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
    assert all(
        set(np.flatnonzero(c)) == set(t) for c, t in zip(partition.count_matrix, table, strict=True)
    )


def test_class_table_shards_of_uneven_classes_use_every_row():
    labels = np.repeat([0, 1, 2], [50, 61, 7])
    partition = make("class_table_shards(shards=3)", labels, 4, seed=0)
    assert len(partition.order) == 118


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

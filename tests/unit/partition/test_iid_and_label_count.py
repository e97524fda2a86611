import numpy as np
import pytest

from fedloom.errors import PartitionError
from fedloom.partition import hands, make

CIFAR = np.repeat(np.arange(10), 5000)


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

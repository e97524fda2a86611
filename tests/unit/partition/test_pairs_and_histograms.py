import numpy as np
import pytest

from fedloom.errors import PartitionError
from fedloom.partition import make
from fedloom.spec import Spec

CIFAR = np.repeat(np.arange(10), 5000)


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

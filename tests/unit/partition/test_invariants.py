"""What holds for every strategy, every size and every seed."""

import os
import random
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedloom.partition import make

SPECS = [
    "iid",
    "iid(stratified=true)",
    "label_count(k=1, assign=balanced, on_unheld=drop)",
    "label_count(k=1, on_unheld=drop)",
    "label_dirichlet(on_small=allow)",
    "label_dirichlet(on_small=allow, balance=false, alpha=0.05)",
    "label_dirichlet(on_small=allow, class_order=random)",
    "quantity_dirichlet(on_small=allow)",
    "quantity_dirichlet(on_small=floor, min_size=1)",
    "sorted_shards(shards=1)",
    "sorted_shards(shards=1, drop_remainder=true)",
    "by_group",
    "by_group(balance_rows=true)",
    "label_quantity(on_small=allow)",
]
PROBE = """
import hashlib, sys
import numpy as np
from fedloom.partition import make
y = np.random.RandomState(0).randint(0, 6, 600)
g = np.random.RandomState(1).randint(0, 30, 600)
for spec in sys.argv[1:]:
    print(make(spec, y, 6, seed=5, groups=g).digest)
"""
PROBED = [*SPECS, "class_table_shards", "label_pair_dirichlet", "label_dirichlet", "mixed"]


def possible(spec, n, clients, classes):
    """Whether the strategy promises a split of such a problem."""
    if spec.startswith("label_count"):
        return classes <= clients <= n // classes
    return True


@pytest.mark.parametrize("spec", SPECS)
@given(data=st.data())
@settings(max_examples=12, deadline=None)
def test_every_row_has_one_place(spec, data):
    clients = data.draw(st.integers(1, 12))
    n = clients + data.draw(st.integers(0, 300))
    classes = data.draw(st.integers(1, min(n, 8)))
    seed = data.draw(st.integers(0, 2**40))
    y = np.random.RandomState(seed % 2**32).permutation(np.arange(n) % classes)
    if not possible(spec, n, clients, classes):
        return
    groups = np.arange(n) % max(clients, n // 3)
    partition = make(spec, y, clients, seed=seed, groups=groups)
    held = np.concatenate([*partition.indices, partition.dropped])
    assert sorted(held.tolist()) == list(range(n))
    assert partition.order.dtype == np.int64
    assert partition.num_clients == clients
    recount = [np.bincount(y[rows], minlength=classes) for rows in partition.indices]
    assert (partition.count_matrix == recount).all()
    assert (partition.sizes == partition.count_matrix.sum(1)).all()
    again = make(spec, y, clients, seed=seed, groups=groups)
    assert (again.digest, again.key) == (partition.digest, partition.key)


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("shape", ["n = N", "n = N + 1", "C = 1", "C = 2", "C = n"])
def test_the_smallest_problems_are_divided(spec, shape):
    n, clients, classes = {
        "n = N": (6, 6, 2),
        "n = N + 1": (7, 6, 2),
        "C = 1": (30, 4, 1),
        "C = 2": (30, 4, 2),
        "C = n": (12, 12, 12),
    }[shape]
    if not possible(spec, n, clients, classes) and shape != "C = n":
        clients = min(clients, n // classes)
    if spec.startswith("label_count") and shape == "C = n":
        spec = spec.replace("balanced", "cyclic")
    y = np.arange(n) % classes
    partition = make(spec, y, clients, seed=0, groups=np.arange(n) % clients)
    assert len(partition.order) + len(partition.dropped) == n


@pytest.mark.parametrize("spec", SPECS)
def test_one_client_has_everything(spec):
    if "label_count" in spec:
        spec = "label_count(k=5)"
    partition = make(spec, np.arange(50) % 5, 1, seed=0, groups=np.arange(50))
    assert partition.sizes.tolist() == [50]


@pytest.mark.parametrize("spec", SPECS)
def test_another_seed_gives_another_split(spec):
    y = np.arange(600) % 6
    digests = {
        make(spec, y, 6, seed=s, groups=np.arange(600) % 60).digest for s in (0, 1, 2, 2**63)
    }
    assert len(digests) == 4


@pytest.mark.parametrize("rng", ["default", "niid_legacy"])
@pytest.mark.parametrize(
    "spec", ["iid", "label_count(k=2)", "label_dirichlet", "quantity_dirichlet", "by_group"]
)
def test_global_generators_are_left_alone(spec, rng):
    before = (np.random.get_state()[1].tolist(), random.getstate(), torch.get_rng_state().tolist())  # noqa: NPY002
    make(spec, np.arange(500) % 5, 5, seed=0, groups=np.arange(500) % 9, rng=rng)
    after = (np.random.get_state()[1].tolist(), random.getstate(), torch.get_rng_state().tolist())  # noqa: NPY002
    assert before == after


@pytest.mark.parametrize("spec", SPECS)
def test_renaming_classes_in_order_moves_nothing(spec):
    y = np.random.RandomState(0).randint(0, 6, 300)
    names = np.array(["ant", "bee", "cat", "dog", "eel", "fox"])[y]
    a, b = (make(spec, v, 6, seed=2, groups=np.arange(300) % 20) for v in (y * 10 - 7, names))
    assert a.digest == b.digest
    assert (a.classes[0], b.classes[0]) == (-7, "ant")


def test_processes_agree_whatever_their_hash_seed():
    outputs = set()
    for hash_seed in ("0", "123"):
        done = subprocess.run(
            [sys.executable, "-c", PROBE, *PROBED],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        )
        outputs.add(done.stdout)
    assert len(outputs) == 1
    y = np.random.RandomState(0).randint(0, 6, 600)
    g = np.random.RandomState(1).randint(0, 30, 600)
    here = [make(spec, y, 6, seed=5, groups=g).digest for spec in PROBED]
    assert outputs.pop().split() == here


@given(seed=st.integers(0, 10**6), clients=st.integers(2, 15), alpha=st.floats(0.05, 5))
@settings(max_examples=30, deadline=None)
def test_balance_bounds_every_size(seed, clients, alpha):
    y = np.random.RandomState(seed).randint(0, 5, 800)
    spec = f"label_dirichlet(alpha={alpha}, on_small=allow)"
    partition = make(spec, y, clients, seed=seed)
    assert (partition.sizes < 800 / clients + partition.class_counts.max()).all()


@pytest.mark.parametrize("balance", ["true", "false"])
def test_a_huge_alpha_shares_every_class_equally(balance):
    y = np.repeat(np.arange(10), 5000)
    spec = f"label_dirichlet(alpha=1e6, balance={balance})"
    counts = make(spec, y, 10, seed=0).count_matrix
    if balance == "true":
        counts = counts[:, :9]  # the rule closes clients in the last class, on noise alone
    assert np.abs(counts - 500).max() < 50


def test_a_tiny_alpha_leaves_each_class_at_one_client():
    y = np.repeat(np.arange(10), 1000)
    spec = "label_dirichlet(alpha=0.001, balance=false, on_small=allow)"
    counts = make(spec, y, 10, seed=0).count_matrix
    assert (counts.max(0) > 990).sum() >= 9


def test_small_alpha_and_closed_clients_still_share_out_everything():
    y = np.repeat(np.arange(10), 100)
    for seed in range(100):
        partition = make("label_dirichlet(alpha=0.005, on_small=allow)", y, 10, seed=seed)
        assert partition.sizes.sum() == 1000


def test_the_seed_of_training_is_no_part_of_a_split():
    digests = set()
    for seed in range(3):
        torch.manual_seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        digests.add(make("label_dirichlet", np.arange(500) % 5, 5, seed=1).digest)
    assert len(digests) == 1

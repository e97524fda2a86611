"""Upper bounds with room for a busy machine; what is typical stands beside each."""

import time
import tracemalloc

import numpy as np
import pytest

from fedloom.partition import make


def test_a_thousand_clients_and_a_hundred_classes_take_seconds_and_little_memory():
    """Typical: 0.3 s, 60 MB."""
    labels = np.random.RandomState(0).randint(0, 100, 10**6)
    start = time.process_time()
    make("label_dirichlet(alpha=0.5)", labels, 1000, seed=0)
    assert time.process_time() - start < 5
    tracemalloc.start()
    make("label_dirichlet(alpha=0.5)", labels, 1000, seed=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 500e6


@pytest.mark.parametrize(
    "spec", ["iid", "by_group", "quantity_dirichlet(on_small=floor, min_size=1)"]
)
def test_as_many_clients_as_a_tenth_of_the_rows_need_no_loop(spec):
    """Typical: 0.2 s for 10^6 rows and 10^5 clients; a loop over clients would take several."""
    rng = np.random.RandomState(0)
    labels, groups = rng.randint(0, 10, 10**6), rng.permutation(10**6) // 5
    start = time.process_time()
    partition = make(spec, labels, 10**5, seed=0, groups=groups)
    assert time.process_time() - start < 4
    assert partition.num_clients == 10**5

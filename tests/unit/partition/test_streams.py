"""The default streams are part of the format: a change here moves everybody's splits.

Remake: print `make(spec, Y, 6, seed=5, groups=GROUPS).digest[:16]` for each key, as the test does.
"""

import hashlib

import numpy as np
import pytest

from fedloom.partition import make
from fedloom.partition.problem import stream

Y = np.random.RandomState(0).randint(0, 6, 600)
GROUPS = np.random.RandomState(1).randint(0, 30, 600)
DIGESTS = {
    "iid": "9344bf3057587b37",
    "iid(stratified=true)": "d159d5141ebcd4d7",
    "label_count(k=2)": "78ba7e45d4b5ff70",
    "label_count(k=2, assign=balanced)": "b3f2248192d29f30",
    "label_dirichlet": "a3e99c1ce3a33b9f",
    "label_dirichlet(balance=false, class_order=random)": "293139e8ea35d8b0",
    "quantity_dirichlet": "43ab777964ef9a36",
    "sorted_shards": "8aa9dca0fd51a160",
    "class_table_shards": "d518812ea99d80f0",
    "by_group": "7474661b8eb981cb",
    "by_group(balance_rows=true)": "8bcb9ce1322a6710",
    "label_pair_dirichlet": "85dbe037764f3d77",
    "label_quantity": "5c0a632233612684",
}


@pytest.mark.parametrize("spec", DIGESTS)
def test_a_default_split_never_changes(spec):
    assert make(spec, Y, 6, seed=5, groups=GROUPS).digest[:16] == DIGESTS[spec]


def test_a_stream_is_named_by_seed_strategy_stage_and_counter():
    digest = hashlib.sha256(b"fedpart|v1|7|iid|assign|2").digest()
    words = [int.from_bytes(digest[i : i + 4], "little") for i in range(0, 32, 4)]
    expected = np.random.RandomState(words).randint(10**9, size=5)
    assert stream(7, "iid", "assign", 2).randint(10**9, size=5).tolist() == expected.tolist()


def test_stages_do_not_move_one_another():
    spec = "label_dirichlet(alpha=0.3, min_size={})"
    loose, strict = (make(spec.format(m), Y, 6, seed=1) for m in (1, 5))
    assert loose.tries == strict.tries == 1
    assert loose.digest == strict.digest

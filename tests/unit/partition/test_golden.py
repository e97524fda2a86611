"""Splits that NIID-Bench's code makes, computed with NumPy's frozen RandomState stream."""

import random

import numpy as np
import pytest

from fedloom.errors import PartitionError
from fedloom.partition import hands, make
from fedloom.partition.problem import Problem

MNIST = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
SVHN = [4948, 13861, 10585, 8497, 7458, 6882, 5727, 5595, 5045, 4659]
CLASS_SIZES = {
    "mnist": MNIST,
    "fmnist": [6000] * 10,
    "cifar10": [5000] * 10,
    "svhn": SVHN,
    "adult": [24720, 7841],
}
LABEL_SIZES = {
    ("mnist", 2020): "6675 6249 5232 6005 4858 8806 5435 4350 5799 6591",
    ("mnist", 0): "5473 6055 6477 6271 3285 7469 8499 6337 6722 3412",
    ("fmnist", 2020): "6016 5191 7714 5901 6011 5960 6075 4210 5966 6956",
    ("fmnist", 0): "6260 4975 5977 6056 4360 6274 5714 6651 5615 8118",
    ("cifar10", 2020): "3979 6352 4307 5285 3220 5027 5224 5047 5384 6175",
    ("cifar10", 0): "5307 3688 4435 5047 5189 3803 5202 4325 8078 4926",
    ("svhn", 2020): "6176 5737 7966 6266 10239 8171 3085 6903 9044 9670",
    ("svhn", 0): "8186 7584 7906 8627 7448 8556 5406 6390 6335 6819",
    ("adult", 2020): "410 4085 6241 118 1134 3292 5365 449 32 11435",
    ("adult", 0): "1076 674 7412 3373 4888 4506 1640 147 2965 5880",
}
CIFAR_2020 = """
 149  437    7   76  231  558  556  465  214 1286
 586  285 1751   79 1169   24   14   96    5 2343
  17  227   13    1 2149    0 1713   25   85   77
1230   10  821  253   48  759   35  568  948  613
 328  425   89 1258   20  149    6  329   92  524
1004   17 1001 1760    4  700   91   87  281   82
  39 1674  344   59 1119 1216  773    0    0    0
 607  778  404   14  239 1348  134  803  646   74
   4  930  431 1051   20   70 1047 1080  751    0
1036  217  139  449    1  176  631 1547 1978    1
"""
QUANTITY_SIZES = {
    (60_000, 0): "19554 5830 6267 712 7867 2579 13866 2192 1100 33",
    (60_000, 1): "1679 1104 4762 3953 22814 1666 5010 9534 9441 37",
    (60_000, 2): "16792 36 3232 11145 1413 9059 681 5026 7818 4798",
    (50_000, 0): "3901 25 174 3079 2770 9374 6256 5140 1741 17540",
    (50_000, 1): "1556 2110 8034 63 337 3308 16520 38 9660 8374",
    (50_000, 2): "19855 969 1160 4418 3673 2156 11218 332 102 6117",
    (73_257, 0): "13602 60 2813 378 21654 2083 6690 24449 617 911",
    (73_257, 1): "8301 43 723 9510 596 7467 3239 677 41192 1509",
    (73_257, 2): "361 166 27550 3122 3039 1892 47 5721 15722 15637",
    (32_561, 0): "406 12002 517 793 360 2689 3776 7055 2731 2232",
    (32_561, 1): "4111 2390 5296 5586 2420 2941 374 2257 114 7072",
    (32_561, 2): "10203 2136 16 3442 1259 137 51 163 1993 13161",
}
HELD = {
    (2, 0): "06 16 20 34 48 57 64 75 89 93",
    (2, 1): "02 19 21 34 41 57 67 76 83 91",
    (2, 2): "01 15 24 34 49 53 69 70 89 92",
    (3, 0): "064 187 264 375 493 582 642 719 849 924",
    (3, 1): "029 147 276 317 406 569 607 743 891 950",
    (3, 2): "015 124 249 390 492 568 658 784 805 975",
}


def labels(name):
    """Shuffled labels with the data set's class sizes; the order of rows moves no count."""
    y = np.repeat(np.arange(len(CLASS_SIZES[name])), CLASS_SIZES[name])
    return np.random.RandomState(7).permutation(y)


@pytest.mark.parametrize(("name", "seed"), LABEL_SIZES)
def test_label_dirichlet_gives_the_published_sizes(name, seed):
    partition = make("noniid-labeldir(beta=0.5)", labels(name), 10, seed=seed, rng="niid_legacy")
    assert partition.sizes.tolist() == [int(n) for n in LABEL_SIZES[name, seed].split()]


def test_label_dirichlet_gives_the_published_count_matrix():
    partition = make("label_dirichlet", labels("cifar10"), 10, seed=2020, rng="niid_legacy")
    expected = np.array([line.split() for line in CIFAR_2020.strip().splitlines()], int)
    assert (partition.count_matrix == expected).all()


@pytest.mark.parametrize(("n", "seed"), QUANTITY_SIZES)
def test_quantity_dirichlet_gives_the_published_sizes(n, seed):
    partition = make(
        "iid-diff-quantity(beta=0.5)", np.arange(n) % 10, 10, seed=seed, rng="niid_legacy"
    )
    assert partition.sizes.tolist() == [int(size) for size in QUANTITY_SIZES[n, seed].split()]


@pytest.mark.parametrize(("k", "seed"), HELD)
def test_label_count_holds_the_published_labels(k, seed):
    partition = make(f"noniid-#label{k}", np.arange(1000) % 10, 10, seed=seed, rng="niid_legacy")
    expected = [{int(digit) for digit in hand} for hand in HELD[k, seed].split()]
    assert [set(np.flatnonzero(row)) for row in partition.count_matrix] == expected


def test_label_count_draws_again_on_repetition_in_the_original_order():
    problem = Problem(np.arange(10), tuple(range(10)), 10, 5, "label_count")
    twin, expected = random.Random(5), []
    for client in range(10):
        hand = [client]
        while len(hand) < 4:
            if (label := twin.randint(0, 9)) not in hand:
                hand.append(label)
        expected.append(sorted(hand))
    held = hands.legacy(random.Random(5), problem, 4)
    assert [np.flatnonzero(row).tolist() for row in held] == expected


def test_iid_cuts_one_permutation():
    partition = make("homo", np.arange(103) % 4, 10, seed=3, rng="niid_legacy")
    blocks = np.array_split(np.random.RandomState(3).permutation(103), 10)
    assert all((a == b).all() for a, b in zip(partition.indices, blocks, strict=True))


def test_by_group_takes_rows_group_by_group():
    groups = np.random.RandomState(0).randint(0, 7, 60)
    partition = make("by_group", np.arange(60) % 3, 3, seed=4, groups=groups, rng="niid_legacy")
    blocks = np.array_split(np.random.RandomState(4).permutation(7), 3)
    expected = [np.concatenate([np.flatnonzero(groups == g) for g in block]) for block in blocks]
    assert all((a == b).all() for a, b in zip(partition.indices, expected, strict=True))


def test_label_dirichlet_rows_follow_the_original_statements():
    y = np.random.RandomState(1).randint(0, 4, 400)
    rng, parts = np.random.RandomState(9), [np.empty(0, int)] * 5
    for c in range(4):
        rows = np.flatnonzero(y == c)
        rng.shuffle(rows)
        shares = rng.dirichlet(np.repeat(0.5, 5)) * [len(part) < 400 / 5 for part in parts]
        cuts = (np.cumsum(shares / shares.sum()) * len(rows)).astype(int)[:-1]
        pieces = np.split(rows, cuts)
        parts = [np.concatenate(pair) for pair in zip(parts, pieces, strict=True)]
    lists = [part.tolist() for part in parts]
    for part in lists:
        rng.shuffle(part)
    partition = make("label_dirichlet(min_size=0)", y, 5, seed=9, rng="niid_legacy")
    assert [part.tolist() for part in partition.indices] == lists


def test_quantity_draws_in_blocks_like_one_after_another():
    rng = np.random.RandomState(0)
    rng.permutation(2000)
    tries = 0
    while True:
        tries += 1
        shares = rng.dirichlet(np.repeat(0.1, 6))
        if (shares / shares.sum()).min() * 2000 >= 10:
            break
    partition = make("quantity_dirichlet(alpha=0.1)", [0, 1] * 1000, 6, seed=0, rng="niid_legacy")
    assert partition.tries == tries > 1
    ends = (np.cumsum(shares / shares.sum()) * 2000).astype(int)
    assert np.cumsum(partition.sizes)[:-1].tolist() == ends[:-1].tolist()


@pytest.mark.parametrize(
    "spec",
    [
        "sorted_shards",
        "iid(stratified=true)",
        "label_count(assign=random)",
        "label_count(on_unheld=repair)",
        "label_dirichlet(class_order=random)",
        "quantity_dirichlet(on_small=floor)",
    ],
)
def test_what_the_original_lacks_is_refused(spec):
    with pytest.raises(PartitionError, match="niid_legacy"):
        make(spec, [0, 1] * 50, 4, seed=0, rng="niid_legacy")


def test_groups_balanced_by_rows_are_not_in_the_original():
    with pytest.raises(PartitionError, match="niid_legacy"):
        make(
            "by_group(balance_rows=true)",
            [0, 1] * 5,
            2,
            seed=0,
            groups=[0, 1] * 5,
            rng="niid_legacy",
        )


def test_zero_divided_by_zero_is_an_error_not_garbage():
    spec = "label_dirichlet(alpha=0.001, on_small=allow)"
    with pytest.raises(PartitionError, match=r"0 / 0"):
        make(spec, np.arange(1000) % 10, 10, seed=0, rng="niid_legacy")


def test_seeds_beyond_32_bits_are_refused():
    with pytest.raises(PartitionError, match="niid_legacy"):
        make("iid", [0, 1], 2, seed=2**32, rng="niid_legacy")

import numpy as np
import pytest
import torch

from fedloom.errors import PartitionError
from fedloom.partition import make
from fedloom.partition.labels import align, encode

VALUES = [3, 0, 3, 7, 0, 7, 7, 3]


@pytest.mark.parametrize(
    "labels",
    [
        VALUES,
        tuple(VALUES),
        np.array(VALUES, np.uint8),
        np.array(VALUES, np.float32),
        np.array(VALUES, object),
        np.array(VALUES)[:, None],
        np.repeat(VALUES, 2)[::2],
        torch.tensor(VALUES),
        [str(v) for v in VALUES],
        np.array([f"class {v}" for v in VALUES], object),
    ],
)
def test_any_container_of_the_same_labels_gives_the_same_split(labels):
    spec = "label_dirichlet(min_size=1)"
    assert make(spec, labels, 2, seed=1).digest == make(spec, VALUES, 2, seed=1).digest


def test_classes_are_the_distinct_values_sorted():
    position, distinct = encode([7, -2, 7, 0])
    assert distinct.tolist() == [-2, 0, 7]
    assert position.tolist() == [2, 0, 2, 1]


def test_far_apart_values_need_no_large_table():
    assert encode([2**62, -(2**62), 5])[0].tolist() == [2, 0, 1]


def test_booleans_are_two_classes():
    assert encode([True, False])[1].tolist() == [0, 1]


def test_the_result_shares_no_memory_with_the_input():
    labels = np.array([0, 1, 0, 1])
    partition = make("iid", labels, 2, seed=0)
    labels[:] = 1
    assert partition.count_matrix.sum(0).tolist() == [2, 2]


def test_strangers_are_marked():
    assert align(["b", "z"], ("a", "b")).tolist() == [1, -1]


def test_numbers_match_the_same_numbers_as_text():
    assert align(["10", "2"], (2, 10)).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([], "empty"),
        (np.zeros((3, 2)), "one dimension"),
        ([[0, 1], [0]], "flat list"),
        ([0.0, np.nan], "missing .* row 1"),
        ([0.0, 0.5], "row 1 holds 0.5"),
        ([0.0, np.inf], "row 1 holds inf"),
        ([0, "a", None], "all integers or all text"),
        ([None, None], "NoneType"),
        (np.array([1 + 2j]), "complex"),
        (np.array([2**64 - 1], np.uint64), "64-bit"),
    ],
)
def test_labels_that_are_none_are_refused_with_the_reason(labels, message):
    with pytest.raises(PartitionError, match=message):
        make("iid", labels, 1, seed=0)

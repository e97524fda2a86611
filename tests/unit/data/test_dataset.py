import numpy as np
import pytest
from scipy.sparse import csr_matrix

from fedloom.data import Dataset
from fedloom.errors import DataError


def small(**changes):
    parts = {
        "name": "small",
        "x_train": np.arange(12, dtype=np.float32).reshape(6, 2),
        "y_train": np.array([0, 1, 2, 0, 1, 2]),
        "x_test": np.ones((2, 2), np.float32),
        "y_test": np.array([0, 1]),
        "classes": ("a", "b", "c"),
        "kind": "table",
    }
    return Dataset(**(parts | changes))


def test_arrays_cannot_be_written():
    data = small(groups_train=np.zeros(6, int), groups=("only",))
    for array in (data.x_train, data.y_train, data.x_test, data.y_test, data.groups_train):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_the_callers_array_stays_writable_and_is_not_copied():
    x = np.zeros((6, 2), np.float32)
    data = small(x_train=x)
    x[0, 0] = 5
    assert data.x_train[0, 0] == 5
    assert np.shares_memory(x, data.x_train)


def test_images_stay_uint8_and_tables_become_float32():
    images = np.zeros((6, 1, 4, 4), np.uint8)
    data = small(x_train=images, x_test=images[:2], kind="image")
    assert data.x_train.dtype == np.uint8
    assert np.shares_memory(images, data.x_train)
    assert data.input_shape == (1, 4, 4)
    assert small(x_train=np.zeros((6, 2))).x_train.dtype == np.float32


def test_sparse_features_stay_sparse():
    x = csr_matrix(np.eye(6, 2))
    data = small(x_train=x, x_test=x[:2])
    assert data.is_sparse
    assert data.x_train.dtype == np.float32
    assert data.digest == small(x_train=x.copy(), x_test=x[:2]).digest


@pytest.mark.parametrize(
    "change",
    [
        {"x_train": np.arange(12, dtype=np.float32).reshape(6, 2) + 1},
        {"y_train": np.array([0, 1, 2, 0, 2, 1])},
        {"classes": ("a", "b", "d")},
        {"groups_train": np.zeros(6, int), "groups": ("u",)},
    ],
)
def test_any_change_of_content_changes_the_digest(change):
    assert small(**change).digest != small().digest


def test_name_and_notes_leave_the_digest_alone():
    assert small(name="other", notes=("n",), source="elsewhere").digest == small().digest


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y_train": np.array([0, 1, 2, 0, 1, 3])}, "run from 0 to 3, expected 0 to 2"),
        ({"y_train": np.array([0, 1])}, r"whole numbers \[6\]"),
        ({"y_train": np.array([0, 1, 2, 0, 1, 1.5])}, "whole numbers"),
        ({"x_test": np.ones((2, 3), np.float32)}, "must be alike"),
        ({"x_train": np.full((6, 2), np.nan)}, "12 NaN or infinite values"),
        ({"classes": ("a", "a", "c")}, "differ"),
        ({"kind": "image"}, "needs 4 axes"),
        ({"features": ("one",)}, "1 names for 2 features"),
        ({"x_test": np.ones((0, 2)), "y_test": np.zeros(0, int)}, "at least one"),
        ({"groups_train": np.full(6, 2), "groups": ("u",)}, "client ids run from 2 to 2"),
    ],
)
def test_parts_that_do_not_fit_are_refused(change, message):
    with pytest.raises(DataError, match=message):
        small(**change)

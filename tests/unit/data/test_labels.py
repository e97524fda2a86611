import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedloom.data import holdout, labels
from fedloom.errors import DataError

TEXTS = st.lists(st.sampled_from(["1", "01", "1.0", "2", "-3", "b", "a", "1e1", "1.5"]), min_size=1)


@given(TEXTS, st.randoms())
def test_the_label_table_does_not_depend_on_the_order_of_rows(values, random):
    mixed = list(values)
    random.shuffle(mixed)
    first, codes, _ = labels.table(values)
    second, other, _ = labels.table(mixed)
    assert first == second
    assert [first[c] for c in codes] == [labels.plain(v) for v in values]
    assert [second[c] for c in other] == [labels.plain(v) for v in mixed]


def test_whole_numbers_sort_by_value_and_texts_by_code_point():
    assert labels.table(["10", "9", "-1"])[0] == ("-1", "9", "10")
    assert labels.table(["pear", "fig", "Apple"])[0] == ("Apple", "fig", "pear")


def test_spellings_of_one_number_are_one_class_and_said():
    names, codes, notes = labels.table(["1", "1.0", "0"])
    assert (names, codes.tolist()) == (("0", "1"), [1, 1, 0])
    assert notes == ("'1', '1.0' count as one, '1'",)


def test_columns_of_labels_and_clean_one_hot_rows_are_read():
    codes, names, _ = labels.code_array(np.array([[1], [2], [3]], np.uint8), "y", True)
    assert (codes.tolist(), names) == ([0, 1, 2], ("1", "2", "3"))
    codes, names, notes = labels.code_array(np.eye(3)[[2, 0]], "y", True)
    assert (codes.tolist(), names) == ([2, 0], ("0", "1", "2"))
    assert "one-hot" in notes[0]


def test_soft_and_empty_one_hot_rows_are_refused_with_their_numbers():
    soft = np.array([[1, 0], [0.3, 0.7], [0, 0], [1, 1]])
    with pytest.raises(DataError, match=r"3 rows are not one-hot.*row 2, 3, 4"):
        labels.code_array(soft, "y", True)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.array([0.0, 1.5, 1.0]), "'1.5' in row 2"),
        (np.array([0.0, np.nan]), "NaN or infinite, the first in row 2"),
        (np.array(["a", " "]), "blank, the first in row 2"),
        (np.zeros((2, 2, 2)), "one value a row"),
    ],
)
def test_labels_that_are_no_classes_are_refused_with_their_row(values, message):
    with pytest.raises(DataError, match=message):
        labels.code_array(values, "y", True)


def test_fractions_are_allowed_as_client_ids():
    assert labels.code_array(np.array([0.5, 1.0]), "id", False)[1] == ("0.5", "1")


@given(
    st.lists(st.integers(0, 5), min_size=12, max_size=200),
    st.floats(0.1, 0.9),
    st.integers(0, 3),
)
def test_a_held_out_part_is_disjoint_complete_and_near_its_share(values, share, seed):
    y = np.unique(values, return_inverse=True)[1]
    counts = np.bincount(y)
    train, test = holdout.stratified(y, share, seed)
    assert np.array_equal(np.sort(np.concatenate([train, test])), np.arange(len(y)))
    taken = np.bincount(y[test], minlength=len(counts))
    assert (counts - taken >= 1).all()
    spare = counts > 2 / (1 - share)
    assert (np.abs(taken - share * counts)[spare] <= 1).all()
    again = holdout.stratified(y, share, seed)
    assert np.array_equal(test, again[1])


def test_another_seed_holds_out_other_rows():
    y = np.arange(200) % 4
    assert not np.array_equal(holdout.stratified(y, 0.2, 0)[1], holdout.stratified(y, 0.2, 1)[1])


def test_one_row_per_class_leaves_nothing_to_hold_out():
    with pytest.raises(DataError, match="no row can be held out"):
        holdout.stratified(np.arange(5), 0.2, 0)


def test_identical_rows_of_train_and_test_are_counted():
    train, test = (
        np.eye(9, dtype=np.float32),
        np.eye(9, dtype=np.float32)[[0, 0, 3]] * [[1], [1], [2]],
    )
    assert holdout.repeated(train, test.astype(np.float32)) == 2

import numpy as np
import pytest
from scipy.sparse import random as random_csr

from fedloom import data
from fedloom.data.archive import Archive
from fedloom.errors import DataError

X = np.arange(40, dtype=np.float64).reshape(20, 2)
Y = np.arange(20) % 2


@pytest.fixture
def store(tmp_path):
    def put(name="own.npz", **arrays):
        np.savez(tmp_path / name, **arrays)
        return tmp_path / name

    return put


def test_features_and_labels_are_split_when_there_is_no_test_part(store):
    found = data.load(store(x=X, y=Y), test_share=0.5)
    assert (found.num_train, found.num_test, found.kind) == (10, 10, "table")
    assert found.x_train.dtype == np.float32
    assert found.test_rule == "50 % of the rows, stratified, seed 0"


def test_the_given_test_part_is_never_mixed_into_training(store):
    path = store(x_train=X, y_train=Y, x_test=X + 100, y_test=Y)
    found = data.load(path)
    assert np.array_equal(found.x_train, X)
    assert np.array_equal(found.x_test, X + 100)
    assert found.notes == ()


def test_two_files_make_two_parts(store):
    train, test = store("a.npz", x=X, y=Y), store("b.npz", x_test=X[:4] + 0.5, y_test=Y[:4])
    found = data.load(train, test=test)
    assert (found.num_train, found.num_test, found.test_rule) == (20, 4, "file b.npz")


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((6, 8, 9), (1, 8, 9)),
        ((6, 8, 9, 3), (3, 8, 9)),
        ((6, 3, 8, 9), (3, 8, 9)),
        ((6, 8, 9, 1), (1, 8, 9)),
    ],
)
def test_images_get_their_channels_in_front(store, shape, expected):
    images = np.random.RandomState(0).randint(0, 256, shape).astype(np.uint8)
    found = data.load(store(x=images, y=Y[:6]), test_share=0.5)
    assert (found.input_shape, found.kind) == (expected, "image")
    assert found.x_train.dtype == np.uint8
    assert np.sort(
        np.concatenate([found.x_train.ravel(), found.x_test.ravel()])
    ).tolist() == sorted(images.ravel().tolist())


def test_whole_number_images_become_bytes_and_others_are_refused(store):
    images = np.full((6, 4, 4), 255, np.int64)
    found = data.load(store(x=images, y=Y[:6]), test_share=0.5)
    assert found.x_train.dtype == np.uint8
    assert any("stored as uint8" in note for note in found.notes)
    with pytest.raises(DataError, match="0 to 255"):
        data.load(store(x=images + 1, y=Y[:6]))


def test_labels_of_any_kind_are_classes(store):
    two_d = data.load(store(x=X, y=(Y + 1).astype(np.uint8)[:, None]))
    text = data.load(store(x=X, y=np.array(["pear", "fig"])[Y]))
    hot = data.load(store(x=X, y=np.eye(3)[Y]))
    assert two_d.classes == ("1", "2")
    assert text.classes == ("fig", "pear")
    assert hot.classes == ("0", "1", "2")
    assert any("no training rows of class '2'" in note for note in hot.notes)


def test_clients_are_one_table_for_both_parts(store):
    path = store(
        x_train=X, y_train=Y, x_test=X[:3] + 99, y_test=Y[:3],
        user_train=np.repeat([30, 4], 10), user_test=np.array([4, 30, 7]), extra=np.zeros(1),
    )  # fmt: skip
    found = data.load(path, client="user")
    assert found.groups == ("4", "7", "30")
    assert found.groups_train[[0, 10]].tolist() == [2, 0]
    assert found.groups_test.tolist() == [0, 2, 1]
    assert any("not used: 'extra'" in note for note in found.notes)


def test_sparse_tables_stay_sparse(store):
    x = random_csr(20, 50, 0.1, "csr", np.float32, np.random.RandomState(0))
    path = store(data=x.data, indices=x.indices, indptr=x.indptr, num_features=50, y=Y)
    found = data.load(path, test_share=0.5)
    assert found.is_sparse
    assert found.input_shape == (50,)
    assert np.isclose(found.x_train.sum() + found.x_test.sum(), x.sum())


def test_a_broken_sparse_table_is_refused(store):
    good = {
        "data": np.ones(2),
        "indices": np.array([0, 1]),
        "indptr": np.array([0, 1, 2]),
        "y": Y[:2],
    }
    for change in (
        {"indices": np.array([0, 9])},
        {"indptr": np.array([0, 3, 2])},
        {"data": np.ones(3)},
    ):
        with pytest.raises(DataError, match="not a CSR matrix of 4 columns"):
            data.load(store(num_features=4, **(good | change)))
    with pytest.raises(DataError, match="no array 'num_features'"):
        data.load(store(**good))


def test_object_arrays_are_not_accepted(store):
    lists = np.empty(2, dtype=object)
    lists[:] = [[1], [2, 3]]
    with pytest.raises(DataError, match="array 'x': object arrays are not accepted"):
        data.load(store(x=lists, y=Y[:2]))


@pytest.mark.parametrize("share", [0.5, 0.99])
def test_half_an_archive_is_damaged(store, tmp_path, share):
    whole = store(x=X, y=Y).read_bytes()
    path = tmp_path / "cut.npz"
    path.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(DataError, match=r"cut\.npz.*damaged or incomplete"):
        data.load(path)


def test_a_flipped_byte_is_found(store):
    path = store(x=X, y=Y)
    content = bytearray(path.read_bytes())
    content[300] ^= 255
    path.write_bytes(content)
    with pytest.raises(DataError, match="array 'x': damaged"):
        data.load(path)


def test_member_names_that_point_outside_write_nothing(store, tmp_path):
    path = store(**{"../outside": np.zeros(1), "x": X, "y": Y})
    found = data.load(path)
    assert any("../outside" in note for note in found.notes)
    assert [item.name for item in tmp_path.iterdir()] == ["own.npz"]
    assert not (tmp_path.parent / "outside.npy").exists()


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"a": X}, "expected arrays x and y.*it holds a"),
        ({"x_train": X, "y_train": Y}, "x_train without x_test"),
        ({"x": X}, "no array 'y'"),
        ({"x": X, "y": Y[:5]}, "y has shape"),
        ({"x": X, "y": Y * 0}, "training shows one class"),
        ({"x": np.where(X == 3, np.nan, X), "y": Y}, "NaN or infinite"),
        ({"x": X, "y": np.where(Y == 1, 1.5, 0)}, "'1.5' in row 2"),
        ({"x": np.zeros(20), "y": Y}, "expected numbers"),
        ({"x_train": X, "y_train": Y, "x_test": X, "y_test": Y + 1}, "training never shows: '2'"),
    ],
)
def test_archives_that_do_not_fit_are_refused(store, arrays, message):
    with pytest.raises(DataError, match=message):
        data.load(store(**arrays))


def test_a_single_array_or_a_pickle_is_no_archive(tmp_path):
    np.save(tmp_path / "a", X)
    (tmp_path / "a.npy").rename(tmp_path / "a.npz")
    with pytest.raises(DataError, match="got a single array"):
        Archive(tmp_path / "a.npz")
    (tmp_path / "p.npz").write_bytes(b"\x80\x04N.")
    with pytest.raises(DataError, match="object arrays are not accepted"):
        Archive(tmp_path / "p.npz")

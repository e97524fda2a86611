import time

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from fedloom import data
from fedloom.data import fetch, named
from fedloom.data.catalog import SETS
from fedloom.errors import DataError


def test_class_counts_of_the_catalogue_add_up():
    for name, known in SETS.items():
        for rows, counts in zip(known.rows, (known.counts_train, known.counts_test), strict=True):
            assert not counts or (sum(counts), len(counts)) == (rows, len(known.classes)), name
    assert len(set(SETS["cifar100"].classes)) == 100
    assert [int(0.75 * SETS[name].rows[0]) for name in ("rcv1", "covtype")] == [15_181, 435_759]


@pytest.mark.parametrize("name", sorted(SETS))
def test_without_file_and_network_the_message_says_what_to_put_where(name, tmp_path, monkeypatch):
    monkeypatch.setattr(fetch, "reachable", lambda *_: False)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "cache"))
    start = time.perf_counter()
    with pytest.raises(
        DataError, match=rf"put {name}\.npz into {tmp_path}, with the arrays"
    ) as caught:
        data.load(name, data_dir=tmp_path)
    assert time.perf_counter() - start < 30
    assert "y" in str(caught.value)


def test_a_server_that_does_not_answer_is_found_out_in_time():
    start = time.perf_counter()
    assert not fetch.reachable("http://192.0.2.1", seconds=1.0)
    assert not fetch.reachable("http://name.invalid", seconds=1.0)
    assert time.perf_counter() - start < 5


def test_a_folder_that_is_not_there_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDLOOM_DATA", str(tmp_path / "gone"))
    with pytest.raises(DataError, match=r"gone: no such folder \(from FEDLOOM_DATA\)"):
        data.load("mnist")


def test_a_partial_download_is_not_taken_as_complete(tmp_path):
    x, y = np.zeros((600, 28, 28), np.uint8), np.zeros(600, np.int64)
    path = tmp_path / "mnist.npz"
    np.savez(path, x_train=x, y_train=y, x_test=x, y_test=y)
    with pytest.raises(DataError, match=r"mnist has 60,000 training rows .* this copy has 600"):
        data.load("mnist", data_dir=tmp_path)
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(DataError, match=r"mnist\.npz: damaged or incomplete"):
        data.load("mnist", data_dir=tmp_path)
    np.savez(path, x_train=x)
    with pytest.raises(DataError, match=r"no array 'y_train'.*Expected x_train \(uint8"):
        data.load("mnist", data_dir=tmp_path)


def test_a_complete_size_with_wrong_classes_is_refused(tmp_path):
    x = np.zeros((16_281, 123), np.uint8)
    xs = {"x_train": np.zeros((32_561, 123), np.uint8), "x_test": x}
    np.savez(
        tmp_path / "adult.npz", y_train=np.zeros(32_561, int), y_test=np.zeros(16_281, int), **xs
    )
    with pytest.raises(DataError, match=r"rows per class of adult should be \(24720, 7841\)"):
        data.load("adult", data_dir=tmp_path)


def sparse_rcv1(folder):
    rng = np.random.RandomState(0)
    indices = rng.randint(0, 47_236, (20_242, 3)).astype(np.int32)
    y = rng.permutation(np.repeat([-1, 1], [9_751, 10_491]))
    np.savez(
        folder / "rcv1.npz",
        data=np.ones(indices.size, np.float32),
        indices=indices.ravel(),
        indptr=np.arange(20_243) * 3,
        y=y,
    )


def test_rcv1_stays_sparse_and_its_cut_follows_the_seed(tmp_path):
    sparse_rcv1(tmp_path)
    found = data.load("rcv1", data_dir=tmp_path, seed=3)
    assert found.is_sparse
    assert (found.num_train, found.num_test, found.input_shape) == (15_181, 5_061, (47_236,))
    assert found.classes == ("-1", "1")
    assert found.test_rule == "5,061 random rows (25 %), seed 3"
    assert data.load("rcv1", data_dir=tmp_path, seed=3).digest == found.digest
    assert data.load("rcv1", data_dir=tmp_path, seed=4).digest != found.digest


def test_rcv1_from_topics_leaves_out_documents_of_both_sides():
    names = ["C15", "CCAT", "ECAT", "GCAT", "MCAT"]
    member = np.array(
        [[1, 1, 0, 0, 0], [0, 0, 0, 1, 1], [0, 1, 0, 1, 0], [0, 0, 1, 0, 0], [1, 0, 0, 0, 0]]
    )
    found = fetch.rcv1_binary(csr_matrix(np.diag(np.arange(1, 6))), csr_matrix(member), names)
    assert found["y"].tolist() == [1, 0, 1]
    assert found["x"].sum(axis=1).ravel().tolist() == [[1, 2, 4]]


def test_covtype_becomes_binary_and_lies_in_the_unit_range(tmp_path):
    rng = np.random.RandomState(0)
    rows = 581_012
    y = rng.permutation(np.repeat([1, 2, 5], [200_000, 283_301, 97_711]))
    x = np.zeros((rows, 54), np.int16)
    x[:, 0] = rng.randint(1800, 3900, rows)
    np.savez(tmp_path / "covtype.npz", x=x, y=y)
    found = data.load("covtype", data_dir=tmp_path)
    assert (found.num_train, found.num_test) == (435_759, 145_253)
    assert found.x_train.dtype == np.float32
    assert (found.x_train[:, 0].min(), found.x_train[:, 0].max()) == (0, 1)
    assert not found.x_train[:, 1:].any()


def test_svhn_zero_may_be_written_as_ten():
    assert SETS["svhn"].labels(np.array([10, 1, 9])).tolist() == [0, 1, 9]


def test_rows_of_the_hub_become_arrays():
    rows = {"image": [np.full((28, 28), i, np.uint8) for i in range(3)], "label": [0, 1, 2]}
    calls = []

    def serve(path, config):
        calls.append((path, config))
        return {"train": rows, "test": rows}

    arrays, source = fetch.from_hub("mnist", "put it there", serve)
    assert calls == [("ylecun/mnist", None)]
    assert arrays["x_train"].shape == (3, 28, 28)
    assert source == "Hugging Face ylecun/mnist"
    with pytest.raises(DataError, match="mnist has 60,000"):
        named.build("mnist", SETS["mnist"], arrays, source, 0)


def test_a_failing_hub_ends_with_what_to_do():
    def serve(path, config):
        raise ConnectionError("no route")

    with pytest.raises(DataError, match=r"no route.*put it there"):
        fetch.from_hub("svhn", "put it there", serve)


def test_writers_need_one_id_a_row():
    arrays = {"writer_train": np.zeros(2, int), "writer_test": np.zeros(3, int)}
    with pytest.raises(DataError, match="one id a row"):
        named._writers("femnist", arrays, [np.zeros(5), np.zeros(3)])


def test_mnist_is_whole_and_knows_its_writers(real):
    folder = real("mnist")
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        mnist = data.load("mnist", data_dir=folder)
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 2
    assert mnist.x_train.shape == (60_000, 1, 28, 28)
    assert mnist.x_train.dtype == np.uint8
    pixels = mnist.x_train.astype(np.float32) / 255
    assert np.allclose((pixels.mean(), pixels.std()), (0.1307, 0.3081), atol=1e-4)
    train, test = np.unique(mnist.groups_train), np.unique(mnist.groups_test)
    assert (len(train), len(test), len(mnist.groups)) == (539, 297, 836)
    sizes = np.bincount(mnist.groups_train, minlength=836)[train]
    assert (sizes.min(), sizes.max(), np.median(sizes)) == (19, 131, 116)
    employees = [int(mnist.groups[g]) < 2100 for g in train]
    assert (sum(employees), int(sizes[employees].sum())) == (289, 30_950)


@pytest.mark.parametrize(
    ("name", "mean"),
    [("fashion_mnist", [0.2860]), ("cifar10", [0.49140, 0.48216, 0.44653])],
)
def test_image_sets_have_the_known_mean(real, name, mean):
    found = data.load(name, data_dir=real(name))
    sums = found.x_train.sum(axis=(0, 2, 3), dtype=np.int64)
    size = found.x_train[:, 0].size * 255
    assert np.allclose(sums / size, mean, atol=1e-4)


def test_adult_has_123_binary_features_and_names_its_repeated_rows(real):
    adult = data.load("adult", data_dir=real("adult"))
    assert adult.x_train.sum() == 451_592
    assert adult.x_test.sum() == 225_731
    assert set(np.unique(adult.x_train)) == {0, 1}
    assert adult.classes == ("<=50K", ">50K")
    assert any("test rows have the features of a training row" in note for note in adult.notes)


def test_cifar100_keeps_its_hundred_names(real):
    found = data.load("cifar100", data_dir=real("cifar100"))
    assert (found.num_classes, found.classes[0], found.classes[99]) == (100, "apple", "worm")

import json

import numpy as np
import pytest

from fedloom.errors import PartitionError
from fedloom.partition import Partition, confirm, make, match_test, resampled

Y = np.random.RandomState(0).randint(0, 5, 1000)


@pytest.fixture
def saved(tmp_path):
    partition = make("label_dirichlet(alpha=0.3)", Y, 8, seed=3)
    partition.save(tmp_path / "partition")
    return tmp_path / "partition.npz", partition


def rewrite(path, **changed):
    with np.load(path) as stored:
        arrays = dict(stored)
    np.savez(path, **{**arrays, **changed})


def rewrite_record(path, **changed):
    text = path.with_suffix(".json")
    record = json.loads(text.read_text())
    text.write_text(json.dumps({**record, **changed}))


def test_what_was_saved_comes_back_the_same(saved):
    path, partition = saved
    for name in (path, path.with_suffix(".json"), path.with_suffix("")):
        again = Partition.load(name, Y)
        assert again.digest == partition.digest
        assert again.settings == partition.settings
        assert (again.count_matrix == partition.count_matrix).all()
        assert (again.tries, again.warnings) == (partition.tries, partition.warnings)
        assert again.classes == partition.classes


def test_saving_twice_gives_the_same_bytes(saved, tmp_path):
    path, partition = saved
    partition.save(tmp_path / "again")
    assert path.read_bytes() == (tmp_path / "again.npz").read_bytes()
    assert path.with_suffix(".json").read_bytes() == (tmp_path / "again.json").read_bytes()


def test_text_labels_dropped_rows_and_facts_come_back(tmp_path):
    labels = [f"kind {v}" for v in Y[:103]]
    partition = make("sorted_shards(shards=2, drop_remainder=true)", labels, 5, seed=0)
    partition.save(tmp_path / "p")
    again = Partition.load(tmp_path / "p", labels)
    assert again.dropped.tolist() == partition.dropped.tolist() != []
    assert again.facts["blocks"].tolist() == partition.facts["blocks"].tolist()
    assert match_test(again, labels).digest == match_test(partition, labels).digest


def test_divisions_of_test_rows_come_back(saved, tmp_path):
    _, partition = saved
    for made in (match_test(partition, Y[:200]), resampled(partition, Y[:200])):
        made.save(tmp_path / "test")
        assert Partition.load(tmp_path / "test", Y[:200]).digest == made.digest


def test_arrays_are_read_only(saved):
    path, partition = saved
    for part in (partition, Partition.load(path, Y)):
        with pytest.raises(ValueError, match="read-only"):
            part.rows(0)[0] = 1
        with pytest.raises(ValueError, match="read-only"):
            part.offsets[0] = 1


def test_labels_of_another_length_are_refused(saved):
    with pytest.raises(PartitionError, match="1000 rows, but these labels have 900"):
        Partition.load(saved[0], Y[:900])


def test_other_labels_of_the_same_length_are_refused(saved):
    with pytest.raises(PartitionError, match="fingerprint"):
        Partition.load(saved[0], Y[::-1])
    one_changed = Y.copy()
    one_changed[17] = (one_changed[17] + 1) % 5
    with pytest.raises(PartitionError, match="fingerprint"):
        Partition.load(saved[0], one_changed)


@pytest.mark.parametrize(
    ("position", "value", "message"),
    [(0, -1, "names row -1"), (0, 1000, "names row 1000"), (0, None, "2 places|0 places")],
)
def test_impossible_rows_are_refused_with_the_reason(saved, position, value, message):
    path, partition = saved
    order = partition.order.copy()
    order[position] = order[1] if value is None else value
    rewrite(path, order=order)
    with pytest.raises(PartitionError, match=message):
        Partition.load(path, Y)


def test_float_rows_are_refused(saved):
    path, partition = saved
    rewrite(path, order=partition.order.astype(float))
    with pytest.raises(PartitionError, match="order must be a flat int64 array, not float64"):
        Partition.load(path, Y)


def test_a_possible_but_other_order_is_refused(saved):
    path, partition = saved
    rewrite(path, order=partition.order[::-1].copy())
    with pytest.raises(PartitionError, match="fingerprints differ"):
        Partition.load(path, Y)


@pytest.mark.parametrize("offsets", [[], [0, 2000], [5, 1000], [0, 600, 400, 1000]])
def test_offsets_that_do_not_fit_are_refused(saved, offsets):
    path, _ = saved
    rewrite(path, offsets=np.array(offsets, np.int64))
    with pytest.raises(PartitionError, match="offsets"):
        Partition.load(path, Y)


@pytest.mark.parametrize(
    "change", [{"seed": 4}, {"params": {"alpha": 9}}, {"num_clients": 9}, {"warnings": ["x"]}]
)
def test_a_changed_record_is_refused(saved, change):
    rewrite_record(saved[0], **change)
    with pytest.raises(PartitionError, match="was changed"):
        Partition.load(saved[0], Y)


def test_another_format_version_is_refused(saved):
    rewrite_record(saved[0], format_version=99)
    with pytest.raises(PartitionError, match="format version 99"):
        Partition.load(saved[0], Y)


def test_files_that_are_no_partition_are_refused(saved, tmp_path):
    path, partition = saved
    with pytest.raises(PartitionError, match="can't be read"):
        Partition.load(tmp_path / "nothing", Y)
    rewrite(path, order=np.array([None, 1], object))
    with pytest.raises(PartitionError, match="can't be read"):
        Partition.load(path, Y)
    np.savez(path, offsets=partition.offsets)
    with pytest.raises(PartitionError, match="no array 'order'"):
        Partition.load(path, Y)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(PartitionError, match="can't be read"):
        Partition.load(path, Y)
    path.with_suffix(".json").write_text("[]")
    with pytest.raises(PartitionError, match="not a stored partition"):
        Partition.load(path, Y)
    path.with_suffix(".json").write_text("{")
    with pytest.raises(PartitionError, match="can't be read"):
        Partition.load(path, Y)


def test_confirm_accepts_the_same_settings_only(saved):
    partition = saved[1]
    confirm(partition, "noniid-labeldir(beta=0.3)", Y, 8, seed=3)
    swapped = Y.copy()
    swapped[0] = (swapped[0] + 1) % 5
    for arguments, name in (
        (("label_dirichlet(alpha=0.4)", Y, 8, 3, "default"), "params"),
        (("label_dirichlet(alpha=0.3)", Y, 9, 3, "default"), "num_clients is 8, not 9"),
        (("label_dirichlet(alpha=0.3)", Y, 8, 4, "default"), "seed is 3, not 4"),
        (("label_count(k=2)", Y, 8, 3, "default"), "strategy"),
        (("label_dirichlet(alpha=0.3)", Y, 8, 3, "niid_legacy"), "rng"),
        (("label_dirichlet(alpha=0.3)", swapped, 8, 3, "default"), "labels_sha256"),
    ):
        spec, labels, clients, seed, rng = arguments
        with pytest.raises(PartitionError, match=name):
            confirm(partition, spec, labels, clients, seed=seed, rng=rng)


def test_keys_differ_with_every_setting():
    groups = np.arange(1000) % 20
    keys = {
        make(spec, labels, clients, seed=seed, groups=ids).key
        for spec, labels, clients, seed, ids in (
            ("by_group", Y, 5, 0, groups),
            ("by_group", Y, 5, 1, groups),
            ("by_group", Y, 6, 0, groups),
            ("by_group", Y[::-1], 5, 0, groups),
            ("by_group", Y, 5, 0, groups[::-1]),
            ("by_group", Y, 5, 0, [f"writer {g}" for g in groups]),
            ("by_group(balance_rows=true)", Y, 5, 0, groups),
            ("iid", Y, 5, 0, None),
        )
    }
    assert len(keys) == 8


def test_the_sequence_of_clients_behaves_like_one(saved):
    partition = saved[1]
    assert len(partition.indices) == 8
    assert (partition.indices[-1] == partition.rows(7)).all()
    assert [part.tolist() for part in partition.indices[2:4]] == [
        partition.rows(2).tolist(),
        partition.rows(3).tolist(),
    ]
    assert sum(len(part) for part in partition.indices) == 1000
    assert "label_dirichlet(min_size=10" in repr(partition)
    for client in (8, -9):
        with pytest.raises(IndexError):
            partition.indices[client]

"""Who trains: empty clients, cohorts of every size, rounds without any."""

import json

import numpy as np
import pytest

from fedloom import methods
from fedloom.errors import ConfigError, FedloomError, PartitionError
from fedloom.server.run import run
from fedloom.server.setup import prepare
from tests.unit.server.small import NORMED, arrays, events, table

SPARSE = "quantity_dirichlet(alpha=0.1, min_size=0, on_small='allow')"


@pytest.mark.parametrize("method", sorted(methods.names()))
def test_empty_clients_never_take_part_and_are_named(make, folder, method):
    asked = make(method=method, partition=SPARSE, clients=12, partition_seed=1, rounds=2)
    setup = prepare(asked)
    empty = np.flatnonzero(setup.sizes == 0).tolist()
    assert empty
    result = run(asked, folder)
    assert result.status == "finished"
    for line in events(folder, "round"):
        assert not set(line["cohort"]) & set(empty)
    start = json.loads((folder / "events.jsonl").read_text().splitlines()[0])
    assert any("never take part" in note and str(empty[0]) in note for note in start["notes"])
    for line in events(folder, "personal"):
        assert [i for i, value in enumerate(line["per_client"]) if value is None] == empty
        assert line["num_clients"] == 12 - len(empty)


def test_more_clients_than_occupied_cannot_be_asked_for(make):
    asked = make(partition=SPARSE, clients=12, partition_seed=1)
    occupied = int((prepare(asked).sizes > 0).sum())
    with pytest.raises(ConfigError, match=f"cohort=12 is more than the {occupied} clients"):
        prepare(asked.replace(cohort=12))


@pytest.mark.parametrize(("share", "expected"), [(0.01, 1), (0.25, 3), (0.5, 5), (1.0, 10)])
def test_a_share_of_ten_clients_is_rounded_half_up_to_at_least_one(make, share, expected):
    setup = prepare(make(clients=10, partition="iid", participation=share))
    assert all(len(setup.cohort(round)) == expected for round in range(1, 5))


@pytest.mark.parametrize(
    "change",
    [{"participation": 0}, {"participation": 5.0}, {"participation": -0.1}, {"cohort": 20}],
    ids=str,
)
def test_impossible_cohorts_are_refused_before_any_work(make, change):
    with pytest.raises(ConfigError, match=next(iter(change))):
        make(clients=10, **change)


def test_no_rounds_evaluate_the_initial_model_alone(make, folder):
    asked = make(rounds=0)
    result = run(asked, folder)
    (line,) = events(folder)
    assert (line["event"], line["round"]) == ("eval", 0)
    assert result.result["rounds"] == 0
    assert result.accuracy == line["accuracy"]
    initial = prepare(asked).params
    assert all((result.model[name] == leaf).all() for name, leaf in initial.items())


def test_a_batch_larger_than_a_client_trains_on_all_it_has(make, folder):
    run(make(batch_size=500, rounds=1, local_epochs=3), folder)
    (line,) = events(folder, "round")
    assert line["steps"] == 3 * len(line["cohort"])
    assert line["examples"] == 3 * 150


def test_a_single_example_and_batch_normalisation_fail_at_set_up(make, tmp_path):
    who = arrays()["who_train"].copy()
    lonely = np.flatnonzero(who == 2)
    who[lonely[1:]] = 0
    data = table(tmp_path / "lonely.npz", who_train=who)
    asked = make(data=data, partition="by_group", client="who", clients=5, model=NORMED)
    with pytest.raises(PartitionError, match="one example each"):
        prepare(asked)
    assert prepare(asked.replace(model="linear")).sizes.min() == 1
    assert prepare(asked.replace(bn="groupnorm")).sizes.min() == 1


def test_one_row_over_a_full_batch_trains_where_it_cannot_be_normalised(make, folder):
    """25 rows in batches of 8, with batch normalisation: three batches, one row left out."""
    result = run(make(partition="iid", model=NORMED, rounds=2), folder)
    assert result.status == "finished"
    assert [line["skipped_examples"] for line in events(folder, "round")] == [6 * 2] * 2


def test_a_split_that_cannot_be_made_is_refused_before_a_folder_is_made(make, folder):
    with pytest.raises(FedloomError):
        run(make(clients=1000), folder)
    assert not folder.exists()


def test_augmentation_of_a_table_is_refused(make):
    with pytest.raises(ConfigError, match="needs images"):
        prepare(make(augment="flip"))

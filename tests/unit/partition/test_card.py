import io
import json
import time
import warnings

import matplotlib as mpl
import numpy as np
import pytest

from fedloom.errors import PartitionError
from fedloom.partition import card, client_names, heatmap, make, measure

Y = np.random.RandomState(0).randint(0, 4, 1000)
STRANGE = ["$x_1$ costs $5", "a_very_long_name_that_goes_on_and_on", "line\nbreak", "<b>&"]


def png(figure):
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=60)
    return buffer.getvalue()


def test_equal_shares_have_no_skew_and_single_classes_have_all():
    flat = measure(make("iid(stratified=true)", np.arange(400) % 4, 5, seed=0))
    assert flat.tv == flat.tv_weighted == 0
    assert flat.size_imbalance == pytest.approx(1)
    assert flat.entropy == pytest.approx(np.log(4)) == flat.entropy_global
    single = measure(make("label_count(k=1)", np.arange(400) % 4, 4, seed=0))
    assert single.tv == single.tv_weighted == pytest.approx(0.75)
    assert single.entropy == 0
    assert single.classes_per_client.tolist() == [1] * 4


def test_empty_clients_are_left_out_of_means_and_counted():
    partition = make("quantity_dirichlet(on_small=allow, alpha=0.01)", Y, 20, seed=0)
    skew = measure(partition)
    empty = partition.sizes == 0
    assert skew.num_empty == empty.sum() > 0
    assert np.isnan(skew.tv_per_client[empty]).all()
    assert skew.tv == skew.tv_per_client[~empty].mean()
    entries = card(partition)["clients"]
    assert [entry["tv"] is None for entry in entries] == empty.tolist()


def test_a_card_is_strict_json_and_says_what_was_made():
    partition = make("label_dirichlet(alpha=0.3)", Y, 8, seed=1)
    shown = card(partition, ["a", "b", "c", "d"])
    assert json.loads(json.dumps(shown, allow_nan=False)) == shown
    assert shown["strategy"] == "label_dirichlet"
    assert shown["params"]["alpha"] == 0.3
    assert (shown["seed"], shown["rng"], shown["digest"]) == (1, "default", partition.digest)
    assert shown["count_matrix"] == partition.count_matrix.tolist()
    assert shown["class_counts"] == np.bincount(Y).tolist()
    assert shown["sizes"]["min"] == partition.sizes.min()
    assert shown["skew"]["tv"] == measure(partition).tv
    assert len(shown["clients"]) == 8


def test_a_card_counts_what_was_dropped_by_class():
    partition = make("label_count(k=2, on_unheld=drop)", Y, 2, seed=3)
    shown = card(partition, ["a", "b", "c", "d"])
    assert sum(shown["dropped_by_class"].values()) == shown["num_dropped"] > 0
    assert shown["num_dropped"] + shown["num_assigned"] == shown["num_rows"]
    assert shown["warnings"]


def test_clients_under_one_batch_are_named():
    partition = make("quantity_dirichlet(min_size=1)", Y, 10, seed=0)
    small = np.flatnonzero(partition.sizes < 64).tolist()
    (warning,) = card(partition, batch_size=64)["warnings"]
    assert warning.startswith(f"{len(small)} clients hold fewer rows than one batch of 64")
    assert str(small[0]) in warning
    assert card(partition, batch_size=1)["warnings"] == []


def test_a_card_of_many_clients_stays_small():
    partition = make("iid", np.arange(20_000) % 10, 5000, seed=0)
    shown = card(partition)
    assert shown["clients"] is None
    assert shown["count_matrix"] is None
    assert len(json.dumps(shown)) < 10_000
    assert [line.split(":")[0] for line in shown["shortened"]] == ["clients", "count_matrix"]
    assert "5,000 clients" in shown["shortened"][0]
    sample = shown["client_sample"]
    assert [sample[0]["client"], sample[-1]["client"], len(sample)] == [0, 4999, 20]
    assert all(each["size"] == partition.sizes[each["client"]] for each in sample)
    assert shown["size_percentiles"]["50"] == np.median(partition.sizes)


def test_nothing_is_shortened_where_everything_is_listed():
    shown = card(make("iid", Y, 8, seed=0))
    assert shown["shortened"] == []
    assert "client_sample" not in shown
    assert [each["client"] for each in shown["clients"]] == list(range(8))


def test_a_card_of_a_million_named_clients_is_small_and_quick():
    """Typical: 1 s in all; the card is 4 kB."""
    groups = np.arange(10**6).repeat(2)
    start = time.process_time()
    partition = make("by_group", np.arange(2 * 10**6) % 3, None, seed=0, groups=groups)
    names = client_names(partition, [f"client {i}" for i in range(10**6)])
    shown = card(partition, client_names=names, batch_size=10)
    assert time.process_time() - start < 10
    assert len(json.dumps(shown)) < 10_000
    for each in shown["client_sample"]:
        first = partition.rows(each["client"])[0]
        assert each["name"] == f"client {groups[first]}"


def test_class_names_must_be_as_many_as_the_classes():
    with pytest.raises(PartitionError, match="3 class names for 4 classes"):
        card(make("iid", Y, 2, seed=0), ["a", "b", "c"])


def test_names_are_drawn_as_plain_short_text():
    figure = heatmap(make("iid", Y, 3, seed=0), STRANGE)
    labels = figure.axes[1].get_yticklabels()
    texts = [label.get_text() for label in labels]
    assert texts == ["$x_1$ costs $5", "a_very_long_name_th…", "line break", "<b>&"]
    assert not any(label.get_parse_math() for label in labels)
    assert png(figure)


def test_few_cells_carry_their_counts():
    partition = make("label_dirichlet", Y, 6, seed=0)
    cells = heatmap(partition).axes[1]
    assert [int(t.get_text()) for t in cells.texts] == partition.count_matrix.T.ravel().tolist()
    assert cells.images[0].get_array().shape == (4, 6)


@pytest.mark.parametrize(("clients", "classes"), [(1, 1), (3000, 3), (20, 400), (250, 150)])
def test_any_size_is_drawn_with_few_ticks_and_says_what_is_left_out(clients, classes):
    y = np.arange(6000) % classes
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = heatmap(make("iid", y, clients, seed=0))
        assert png(figure)
    cells = figure.axes[1]
    assert len(cells.get_xticks()) <= 20
    assert len(cells.get_yticks()) <= 30
    assert ("300 of 3000 shown" in cells.get_xlabel()) == (clients == 3000)
    assert ("200 of 400 shown" in cells.get_ylabel()) == (classes == 400)


def test_drawing_leaves_global_state_alone():
    before = dict(mpl.rcParams)
    figure = heatmap(make("iid", Y, 3, seed=0))
    assert dict(mpl.rcParams) == before
    from matplotlib import pyplot as plt

    assert figure.number if hasattr(figure, "number") else not plt.get_fignums()


IDS = np.array([2, 0, 1, 0, 2, 2, 1, 0] * 20)
PLACES = ("oslo", "rome", "a town with a very long name")


def test_a_client_that_is_one_group_bears_its_name():
    partition = make("by_group", np.arange(160) % 4, None, seed=3, groups=IDS)
    names = client_names(partition, PLACES)
    assert sorted(names) == sorted(PLACES)
    for client, name in enumerate(names):
        assert set(IDS[partition.rows(client)]) == {PLACES.index(name)}
    entries = card(partition, client_names=names)["clients"]
    assert [entry["name"] for entry in entries] == list(names)
    assert [entry["name"] for entry in card(partition)["clients"]] == [None] * 3
    ticks = heatmap(partition, client_names=names).axes[1].get_xticklabels()
    assert {"oslo", "rome"} < {tick.get_text() for tick in ticks}


def test_ids_that_are_text_are_the_names(tmp_path):
    ids = np.array(PLACES)[IDS]
    partition = make("by_group", np.arange(160) % 4, None, seed=3, groups=ids)
    names = client_names(partition)
    assert [set(ids[partition.rows(i)]) for i in range(3)] == [{name} for name in names]
    partition.save(tmp_path / "p")
    again = client_names(partition.load(tmp_path / "p", np.arange(160) % 4))
    assert list(again) == list(names)


def test_clients_of_several_groups_and_of_other_strategies_have_no_names():
    assert client_names(make("by_group", np.arange(160) % 4, 2, seed=0, groups=IDS)) is None
    assert client_names(make("iid", Y, 3, seed=0), PLACES) is None


def test_names_must_fit_the_clients_and_the_ids():
    partition = make("by_group", np.arange(160) % 4, None, seed=3, groups=IDS)
    with pytest.raises(PartitionError, match="2 client names for 3 clients"):
        card(partition, client_names=PLACES[:2])
    with pytest.raises(PartitionError, match="not positions in the 2 group names"):
        client_names(partition, PLACES[:2])


def test_a_small_client_is_named_in_its_warning():
    ids = np.array([0] * 5 + [1] * 155)
    partition = make("by_group", np.arange(160) % 4, None, seed=3, groups=ids)
    names = client_names(partition, PLACES)
    (warning,) = card(partition, client_names=names, batch_size=64)["warnings"]
    assert warning == "1 client holds fewer rows than one batch of 64: oslo"

import json

import numpy as np
import pytest

from fedloom.errors import ConfigError, PartitionError
from fedloom.partition import make, names, resolve

Y = np.arange(100) % 10


@pytest.mark.parametrize("clients", [0, -1, 2.0, True, "3", None, 101])
def test_numbers_of_clients_that_make_no_sense_are_refused(clients):
    with pytest.raises(PartitionError, match="clients"):
        make("iid", Y, clients, seed=0)


@pytest.mark.parametrize("seed", [-1, 1.5, True, None])
def test_seeds_that_are_no_whole_numbers_are_refused(seed):
    with pytest.raises(PartitionError, match="seed"):
        make("iid", Y, 2, seed=seed)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("label_dirichlet(alpha=0)", "alpha must be a finite number above 0, not 0"),
        ("label_dirichlet(alpha=-1)", "alpha"),
        ("label_dirichlet(alpha=inf)", "alpha"),
        ("label_dirichlet(alpha=nan)", "alpha"),
        ("label_dirichlet(alpha=true)", "alpha"),
        ("label_dirichlet(alpha=[])", "empty list"),
        ("label_dirichlet(alpha=[1, 2, 3])", "3 values for 4 clients"),
        ("label_dirichlet(alpha=[1, 2, 3, 0])", r"alpha\[3\]"),
        ("quantity_dirichlet(alpha=[1, 2, 3])", "3 values for 4 clients"),
        ("label_dirichlet(min_size=30)", "need 120 rows, but there are 100"),
        ("quantity_dirichlet(min_size=26)", "need 104 rows"),
        ("label_dirichlet(min_size=-1)", "min_size"),
        ("label_dirichlet(max_tries=0)", "max_tries"),
        ("label_dirichlet(on_small=floor)", "on_small.*Known: allow, error, retry"),
        ("label_dirichlet(balance=1)", "balance must be true or false"),
        ("label_dirichlet(class_order=down)", "class_order"),
        ("label_dirichlet(lda_variant=capped, balance=true)", "given twice"),
        ("label_dirichlet(lda_variant=cap)", "lda_variant.*did you mean 'capped'"),
        ("label_dirichlet(alpha=1, beta=1)", "alpha.*given twice"),
        ("label_dirichlet(alhpa=1)", "no option 'alhpa'; did you mean 'alpha'"),
        ("iid(stratified=yes)", "stratified"),
        ("label_count(k=0)", "k must be"),
        ("label_count(k=11)", "from 1 to 10, not 11"),
        ("label_count(k=2.0)", "k must be"),
        ("label_count(k=2)", "at most 8 of the 10 classes"),
        ("label_count(k=3, assign=first)", "did you mean 'first_fixed'"),
        ("label_count(k=3, on_unheld=keep)", "on_unheld"),
        ("sorted_shards(shards=0)", "shards"),
        ("sorted_shards(shards=26)", "need 104 rows"),
        ("class_table_shards(shards=3)", "multiple of the 10 classes"),
        ("class_table_shards(shards=50)", "has 10 rows for 20 shards"),
        ("by_group", "group id for every row"),
        ("fcube_octants", "pass x="),
        ("real", "neither"),
        ("label_pair_dirichlet", "4 clients, 10 classes"),
        ("label_pair_dirichlet(alpha=[1, 2])", "alpha"),
        ("from_histograms", "needs counts"),
        ("from_histograms(counts=[1, 2])", "must be a table"),
        ("from_histograms(counts=[[1, -2]])", "not negative"),
        ("from_histograms(counts=[[1, 2]])", "row for each client"),
        ("from_histograms(counts='nowhere.npy')", "can't be read"),
        ("from_histograms(counts=[[1, 2], [3]])", "can't be read"),
        ("label_quantity(alpha_size=0)", "alpha_size"),
        ("label_dirchlet", "did you mean 'label_dirichlet'"),
        ("iid(clients=5)", "names 5 clients, the settings 4"),
    ],
)
def test_a_message_states_the_parameter_and_the_rule(spec, message):
    with pytest.raises(PartitionError, match=message):
        make(spec, Y, 4, seed=0)


def test_unknown_generators_are_refused():
    with pytest.raises(PartitionError, match="Known: default, niid_legacy"):
        make("iid", Y, 2, seed=0, rng="numpy")


def test_text_that_is_no_spec_is_a_configuration_error():
    with pytest.raises(ConfigError):
        make("label_dirichlet(0.5)", Y, 2, seed=0)


def test_group_ids_must_be_as_many_as_the_labels():
    with pytest.raises(PartitionError, match="99 entries for 100 labels"):
        make("by_group", Y, 2, seed=0, groups=Y[:99])


def test_more_clients_than_groups_are_refused():
    with pytest.raises(PartitionError, match="only 10 groups"):
        make("by_group", Y, 11, seed=0, groups=Y)


@pytest.mark.parametrize("spec", ["iid", "label_dirichlet(min_size=0)", "quantity_dirichlet"])
def test_more_clients_than_rows_are_refused_with_both_numbers(spec):
    with pytest.raises(PartitionError, match=r"50 clients .*30"):
        make(spec, np.arange(30) % 3, 50, seed=0)


@pytest.mark.parametrize("spec", ["label_dirichlet", "quantity_dirichlet", "label_quantity"])
def test_empty_clients_are_listed_where_they_were_allowed(spec):
    partition = make(f"{spec}(on_small=allow)", np.arange(30) % 3, 50, seed=0)
    empty = np.flatnonzero(partition.sizes == 0)
    assert f"{len(empty)} clients hold no row: {empty[0]}, {empty[1]}" in partition.warnings[-1]


@pytest.mark.parametrize("minimum", [1, 10])
def test_an_unreachable_minimum_ends_with_advice(minimum):
    labels = np.random.RandomState(0).randint(0, 10, 500)
    with pytest.raises(PartitionError, match=r"min_size|alpha") as caught:
        make(f"label_dirichlet(alpha=0.01, min_size={minimum}, max_tries=200)", labels, 100, seed=0)
    text = str(caught.value)
    assert all(word in text for word in ("100 clients", "500", "min_size", "on_small=allow"))


def test_one_try_is_all_that_on_small_error_allows():
    labels = np.random.RandomState(0).randint(0, 10, 500)
    with pytest.raises(PartitionError, match="in 1 draws"):
        make("label_dirichlet(alpha=0.01, on_small=error)", labels, 20, seed=0)
    with pytest.raises(PartitionError, match="in 1 draws"):
        make("quantity_dirichlet(alpha=0.01, on_small=error)", labels, 20, seed=0)


def test_quantity_draws_end_at_max_tries():
    with pytest.raises(PartitionError, match="in 2000 draws"):
        make("quantity_dirichlet(alpha=0.05, max_tries=2000)", Y, 9, seed=0)
    with pytest.raises(PartitionError, match="in 2000 draws"):
        make("quantity_dirichlet(alpha=0.05, max_tries=2000)", Y, 9, seed=0, rng="niid_legacy")


def test_every_strategy_is_described_with_options_and_source():
    lines = names()
    assert len(lines) == 11
    assert all("Source:" in line and "ption" in line for line in lines.values())
    assert "alpha=0.5" in lines["label_dirichlet"]


@pytest.mark.parametrize(
    ("alias", "name", "options"),
    [
        ("homo", "iid", {}),
        ("noniid-#label3", "label_count", {"k": 3}),
        ("noniid_label1", "label_count", {"k": 1}),
        ("noniid-labeldir(beta=0.1)", "label_dirichlet", {"alpha": 0.1}),
        ("iid-diff-quantity(beta=0.2)", "quantity_dirichlet", {"alpha": 0.2}),
        ("mixed", "label_pair_dirichlet", {"alpha": 0.5}),
        ("lda(lda_variant=pure)", "label_dirichlet", {"balance": False}),
        ("lda(lda_variant=capped)", "label_dirichlet", {"balance": True}),
        ("transfer-from-femnist(counts=[[1, 2]])", "from_histograms", {"min_size": 10}),
        ("Label-Quantity(beta_label=2, beta_size=3)", "label_quantity", {"alpha_size": 3.0}),
    ],
)
def test_names_of_other_tools_are_understood(alias, name, options):
    found, strategy, _ = resolve(alias)
    assert found == name
    assert options.items() <= strategy.params().items()
    json.dumps(strategy.params())


def test_real_is_the_natural_split_that_the_data_have():
    assert resolve("real", has_groups=True)[0] == "by_group"
    assert resolve("real", has_points=True)[0] == "fcube_octants"


@pytest.mark.parametrize("option", ["clients", "parties", "n_parties", "num_clients"])
def test_the_spec_may_name_the_number_of_clients(option):
    assert make(f"iid({option}=5)", Y, None, seed=0).num_clients == 5
    assert make(f"iid({option}=5)", Y, 5, seed=0).num_clients == 5


@pytest.mark.parametrize(
    ("spec", "key"),
    [
        ("label_count(k=2, beta=3)", "beta"),
        ("label_count(k=2, alpha=3)", "alpha"),
        ("iid(lda_variant=pure)", "lda_variant"),
    ],
)
def test_an_option_is_named_as_it_was_written(spec, key):
    with pytest.raises(PartitionError, match=f"has no option '{key}'"):
        make(spec, [0, 1] * 20, 2, seed=0)

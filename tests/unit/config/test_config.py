import string

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fedloom.config import RunConfig
from fedloom.config_keys import SettingsError
from fedloom.errors import ConfigError
from fedloom.spec import Spec

patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
FIELDS = tuple(RunConfig.model_fields)

WORDS = st.text(string.ascii_lowercase + "_", min_size=1, max_size=12)
LITERALS = st.one_of(
    st.integers(-(10**9), 10**9),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.none(),
    st.text(max_size=8),
    st.lists(st.integers(0, 99), max_size=3),
)
SPECS = st.builds(
    Spec, WORDS, st.dictionaries(WORDS.filter(str.isidentifier), LITERALS, max_size=3)
).filter(lambda spec: all(key not in ("if", "in", "is", "or", "as") for key in spec.options))
LOCAL_WORK = st.one_of(
    st.fixed_dictionaries({"local_epochs": st.integers(1, 99)}),
    st.fixed_dictionaries({"local_steps": st.integers(1, 99)}),
)
COHORTS = st.one_of(
    st.fixed_dictionaries({"participation": st.floats(0.001, 1.0)}),
    st.fixed_dictionaries({"cohort": st.integers(1, 7)}),
)
REST = st.fixed_dictionaries(
    {},
    optional={
        "data": st.text(min_size=1, max_size=10),
        "clients": st.integers(7, 10**6),
        "rounds": st.integers(0, 10**6),
        "lr": st.one_of(st.none(), st.floats(1e-9, 1e9)),
        "momentum": st.floats(0, 1, exclude_max=True),
        "validation": st.floats(0, 1, exclude_max=True),
        "seed": st.integers(0, 2**32 - 1),
        "method": SPECS,
        "model": SPECS,
        "bn": st.sampled_from(["average", "pooled", "local"]),
        "separator": st.sampled_from([None, ";", "\t"]),
    },
)


def problems(**values):
    with pytest.raises(SettingsError) as caught:
        RunConfig(**values)
    return caught.value.problems


@patient
@given(LOCAL_WORK, COHORTS, REST)
def test_json_gives_back_the_same_configuration_and_digest(local_work, cohort, rest):
    config = RunConfig(**{"clients": 7} | local_work | cohort | rest)
    again = RunConfig.from_json(config.to_json())
    assert again == config
    assert again.digest == config.digest


@patient
@given(st.sampled_from(FIELDS), st.text(string.ascii_lowercase, min_size=1, max_size=3))
def test_every_misspelt_key_is_refused_and_named(field, tail):
    key = f"{field}_{tail}x"
    (problem,) = problems(**{key: 1})
    assert repr(key) in problem


@patient
@given(st.dictionaries(WORDS.map(lambda word: "zz_" + word), st.integers(), min_size=1, max_size=5))
def test_all_unknown_keys_are_in_one_message(values):
    message = "\n".join(problems(**values))
    assert all(repr(key) in message for key in values)


def test_the_nearest_key_is_offered():
    assert problems(local_epoch=3) == ("unknown key 'local_epoch'; did you mean 'local_epochs'?",)


@pytest.mark.parametrize(
    ("old", "new"), [("parties", "clients"), ("comm_round", "rounds"), ("epochs", "local_epochs")]
)
def test_a_renamed_key_says_what_to_use(old, new):
    assert problems(**{old: 3}) == (f"{old!r} was renamed: use {new!r}",)


def test_keys_that_moved_into_a_specification_say_where():
    assert "partition" in problems(beta=0.5)[0]
    assert "method" in problems(mu=0.5)[0]


def test_keys_in_an_unknown_table_are_named_with_their_place():
    (problem,) = problems(training={"lr": 0.1, "epochs": 2})
    assert "training.lr" in problem
    assert "training.epochs" in problem


@pytest.mark.parametrize("text", ["1e-3", "0.001", ".001", " 1E-3 "])
def test_numbers_written_as_text_are_numbers(text):
    assert RunConfig(lr=text).lr == 0.001
    assert RunConfig(lr=text).digest == RunConfig(lr=1e-3).digest


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("rounds", -1),
        ("rounds", 1.5),
        ("rounds", True),
        ("rounds", "many"),
        ("batch_size", 0),
        ("lr", 0),
        ("lr", -0.1),
        ("lr", "nan"),
        ("lr", float("inf")),
        ("lr", "1_0"),
        ("test_share", 1.0),
        ("test_share", 0),
        ("participation", 0),
        ("participation", 5.0),
        ("participation", -0.1),
        ("validation", 1.0),
        ("momentum", 1.0),
        ("cohort", 0),
        ("clients", 0),
        ("seed", -1),
        ("bn", "none"),
        ("bn", True),
        ("method", ""),
        ("method", "fedprox(0.1)"),
        ("method", "fedprox(mu=__import__('os'))"),
        ("method", "fedprox(a={[]: 1})"),
        ("method", 3),
        ("model", {"hidden": 3}),
        ("data", ""),
        ("preset", "niid"),
    ],
)
def test_an_impossible_value_names_key_value_and_what_is_allowed(key, value):
    (problem,) = problems(**{key: value})
    assert problem.startswith(f"{key} = {value!r}")
    assert "expected" in problem


def test_three_impossible_values_and_a_contradiction_come_in_one_message():
    found = problems(rounds=-1, batch_size=0, lr=-1, local_epochs=1, local_steps=1)
    assert [text.split(" ")[0] for text in found] == ["batch_size", "lr", "rounds", "local_epochs"]


def test_settings_that_exclude_each_other_are_refused():
    assert "give one of them" in problems(local_epochs=1, local_steps=1)[0]
    assert "give one of them" in problems(participation=0.5, cohort=3)[0]
    assert "give one of them" in problems(test="x.csv", test_share=0.3)[0]
    assert "both none" in problems(local_epochs=None)[0]


def test_a_cohort_above_the_number_of_clients_names_both():
    assert problems(data="adult", clients=10, cohort=20) == (
        "cohort = 20: expected at most the 10 clients there are",
    )
    assert problems(data="fcube", cohort=5)[0].endswith("the 4 clients there are")


def test_groups_of_the_data_leave_the_number_of_clients_open():
    config = RunConfig(data="mnist", partition="by_group", cohort=20)
    assert config.num_clients is None
    assert config.replace(clients=50).num_clients == 50
    assert RunConfig(partition="label_count(k=2, clients=6)").num_clients == 6


def test_asking_for_steps_switches_the_default_epochs_off_and_back():
    config = RunConfig(local_steps=5)
    assert (config.local_epochs, config.local_steps) == (None, 5)
    assert config.replace(local_epochs=2).local_steps is None
    assert RunConfig(cohort=2).replace(participation=0.5).cohort is None


def test_rounds_zero_and_the_word_none_are_allowed():
    assert RunConfig(rounds=0).rounds == 0
    assert RunConfig(lr="none", clients="None").lr is None


def test_one_specification_has_one_way_of_writing():
    ways = ["FedProx(mu=1e-3)", "fedprox( mu = 0.001 )", {"name": "fedprox", "mu": 0.001}]
    assert {RunConfig(method=way).digest for way in ways} == {RunConfig(method=ways[0]).digest}


def test_the_dotted_path_of_a_class_keeps_its_capitals():
    assert RunConfig(model="my_nets:Wide(width=8)").model == "my_nets:Wide(width=8)"


def test_a_configuration_cannot_be_changed_in_place():
    with pytest.raises(ValueError, match="frozen"):
        RunConfig().rounds = 3


@pytest.mark.parametrize(
    ("schedule", "depends"),
    [
        ("constant", False),
        ("step(every=3)", False),
        ("cosine", True),
        ("multistep", True),
        ("multistep(milestones=[0.5, 0.75])", True),
        ("multistep(milestones=[10, 20])", False),
    ],
)
def test_schedules_that_depend_on_the_number_of_rounds_say_so(schedule, depends):
    assert RunConfig(schedule=schedule).depends_on_rounds is depends


def test_default_learning_rates_are_those_of_the_benchmark():
    assert RunConfig(data="rcv1").learning_rate == 0.1
    assert RunConfig(data="adult").learning_rate == 0.01
    assert RunConfig(data="rcv1", lr=0.5).learning_rate == 0.5


def test_columns_to_ignore_become_a_tuple():
    assert RunConfig(ignore="id, name").data_options["ignore"] == ("id", "name")


def test_every_setting_has_a_description_and_a_panel():
    for field in RunConfig.model_fields.values():
        assert field.description
        assert field.json_schema_extra["panel"]


def test_the_errors_are_configuration_errors():
    with pytest.raises(ConfigError):
        RunConfig(rounds=-1)

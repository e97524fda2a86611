import pytest

from fedloom import presets
from fedloom.config import RunConfig
from fedloom.errors import ConfigError


def applied(preset, **user):
    values, deviations = presets.apply(preset, user)
    return RunConfig(**values), deviations


def test_published_label_dirichlet_has_seed_2020_whatever_the_trial():
    for name in ("label_dirichlet(alpha=0.5)", "noniid-labeldir(beta=0.5)"):
        config, deviations = applied("niid_published", data="adult", partition=name, seed=2)
        assert (config.partition_seed, config.partition_rng) == (2020, "niid_legacy")
        assert deviations == []


def test_other_published_partitions_follow_the_trial():
    config, _ = applied("niid_published", partition="quantity_dirichlet(alpha=0.5)", seed=2)
    assert (config.partition_seed, config.partition_rng) == (None, "niid_legacy")


@pytest.mark.parametrize(
    ("key", "published", "corrected"),
    [
        ("partition_rng", "niid_legacy", "default"),
        ("noise_rule", "niid_code", "niid_code"),
        ("noise_refresh", "each_access", "fixed"),
        ("test_noise", "party_union", "both"),
        ("on_nonfinite", "ignore", "stop"),
        ("bn", "average", "average"),
    ],
)
def test_the_two_presets_differ_where_the_table_says(key, published, corrected):
    assert getattr(applied("niid_published", data="mnist")[0], key) == published
    assert getattr(applied("niid_corrected", data="mnist")[0], key) == corrected


@pytest.mark.parametrize(
    ("preset", "method", "options"),
    [
        ("niid_published", "fednova", {"normaliser": "momentum", "weighting": "batches"}),
        ("niid_corrected", "fednova", {"normaliser": "momentum", "weighting": "examples"}),
        (
            "niid_published",
            "scaffold",
            {
                "control_init": "network",
                "divisor": "cohort",
                "c_weights": "uniform",
                "correction": "post_step",
            },
        ),
        (
            "niid_corrected",
            "scaffold",
            {
                "control_init": "zeros",
                "divisor": "population",
                "c_weights": "match",
                "correction": "post_step",
            },
        ),
        ("niid_published", "fedavg", {}),
    ],
)
def test_methods_get_the_options_of_the_table(preset, method, options):
    assert applied(preset, method=method)[0].spec("method").options == options


def test_every_option_of_a_preset_is_one_the_method_has():
    from fedloom import methods

    for per_method in presets.METHOD_OPTIONS.values():
        for name, options in per_method.items():
            methods.make(name, **options)


@pytest.mark.parametrize("values", [{"clients": 100, "data": "adult"}, {"model": "vgg11"}])
def test_published_fednova_counts_steps_in_the_big_studies(values):
    spec = applied("niid_published", method="fednova", **values)[0].spec("method")
    assert spec.options["normaliser"] == "steps"


def test_the_published_models_of_fcube_and_resnet():
    assert applied("niid_published", data="fcube")[0].model == "linear"
    assert applied("niid_corrected", data="fcube")[0].model == "mlp"
    config, deviations = applied("niid_published", data="cifar10", model="resnet50")
    assert config.model == "resnet50(outputs=1000)"
    assert deviations == []


def test_heavy_models_and_the_sampling_study_have_more_rounds():
    assert applied("niid_published", data="cifar10", model="vgg9")[0].rounds == 100
    assert applied("niid_published", data="cifar10", clients=100)[0].rounds == 500
    assert applied("niid_published", data="cifar10")[0].rounds == 50


def test_the_learning_rate_is_ten_times_larger_on_rcv1():
    assert applied("niid_corrected", data="rcv1")[0].lr == 0.1
    assert applied("niid_corrected", data="adult")[0].lr == 0.01


def test_the_user_wins_and_every_difference_is_listed():
    config, deviations = applied(
        "niid_published", lr=0.5, method="scaffold(divisor='population')", noise_refresh="fixed"
    )
    assert config.lr == 0.5
    assert config.spec("method").options["divisor"] == "population"
    assert len(deviations) == 3
    assert deviations == presets.deviations(config)


def test_what_equals_the_preset_is_no_deviation():
    assert applied("niid_corrected", lr="1e-2", rounds=50.0, bn="Average")[1] == []


def test_steps_in_place_of_the_presets_epochs_are_a_deviation_not_a_contradiction():
    config, deviations = applied("niid_corrected", local_steps=5)
    assert config.local_epochs is None
    assert deviations == ["local_epochs = None (niid_corrected: 10)"]


def test_applying_a_preset_twice_changes_nothing():
    config, _ = applied("niid_published", data="adult", method="fednova")
    again, deviations = applied(**config.model_dump())
    assert again == config
    assert deviations == []


def test_without_a_preset_nothing_deviates():
    assert presets.deviations(RunConfig(lr=3)) == []


def test_an_unknown_preset_offers_the_nearest():
    with pytest.raises(ConfigError, match="niid_published"):
        presets.apply("niid_publish", {})

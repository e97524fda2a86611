"""NIID-Bench's two settings: as the published numbers were computed, and with defects corrected.

Source: Li, Diao, Chen, He, Federated Learning on Non-IID Data Silos: An Experimental Study,
ICDE 2022, arXiv:2102.02079, and the authors' public code at the time of the published table.
A preset gives defaults: what the user sets wins, and every setting that then differs is listed as
a deviation.
"""

from collections.abc import Mapping
from typing import Any, Literal, get_args

from fedloom.config import EITHER, RunConfig, name_of
from fedloom.config_keys import SPECS
from fedloom.config_values import spec_text
from fedloom.errors import ConfigError, nearest
from fedloom.spec import Spec, parse

Preset = Literal["niid_published", "niid_corrected"]

ABOUT: dict[str, str] = {
    "niid_published": "NIID-Bench as its table was computed, defects included: legacy splits "
    "(label Dirichlet: seed 2020 always), noise redrawn at each access and added to the test rows "
    "too, FedNova weighted by batches, SCAFFOLD from random controls. "
    "Source: arXiv:2102.02079 and its authors' code.",
    "niid_corrected": "NIID-Bench with those defects corrected; what a new study should use. "
    "Source: arXiv:2102.02079.",
}
METHOD_OPTIONS: dict[str, dict[str, dict[str, Any]]] = {
    "niid_published": {
        "fednova": {"normaliser": "momentum", "weighting": "batches"},
        "scaffold": {
            "control_init": "network",
            "divisor": "cohort",
            "c_weights": "uniform",
            "correction": "post_step",
        },
    },
    "niid_corrected": {
        "fednova": {"normaliser": "momentum", "weighting": "examples"},
        "scaffold": {
            "control_init": "zeros",
            "divisor": "population",
            "c_weights": "match",
            "correction": "post_step",
        },
    },
}
LABEL_DIRICHLET = ("labeldirichlet", "noniidlabeldir")
DEEP = ("vgg", "resnet")
STUDY_CLIENTS = 100
"""The party-sampling study has 100 clients, 500 rounds and FedNova's plain step count."""


def names() -> dict[str, str]:
    """Every preset with what it is and where it comes from."""
    return dict(ABOUT)


def apply(preset: str, user_values: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The preset's settings under the user's, and the user's deviations from it.

    >>> apply("niid_published", {"partition": "label_dirichlet(alpha=0.5)"})[0]["partition_seed"]
    2020
    >>> apply("niid_corrected", {"lr": 0.1})[1]
    ['lr = 0.1 (niid_corrected: 0.01)']
    """
    user = {key: _as_text(key, value) for key, value in user_values.items() if key != "preset"}
    defaults = settings(preset, user)
    for key, other in EITHER.items():
        if user.get(key) is not None and other not in user:
            defaults.pop(other, None)
    if _name(user, "model") and "(" not in str(user["model"]) and "model" in defaults:
        same = _name(user, "model") == _name(defaults, "model")
        user = {k: v for k, v in user.items() if k != "model"} if same else user
    values = {**defaults, **user, "preset": preset}
    config = RunConfig(**values)
    values["method"] = str(with_options(preset, config.method, values))
    return values, deviations(config.replace(method=values["method"]))


def deviations(config: RunConfig) -> list[str]:
    """One sentence for each setting that differs from the preset; [] without a preset."""
    if config.preset is None:
        return []
    values = config.model_dump()
    expected = settings(config.preset, values)
    found = [
        f"{key} = {values[key]!r} ({config.preset}: {wanted!r})"
        for key, wanted in expected.items()
        if values[key] != wanted
    ]
    return found + method_deviations(config.preset, config.method, values)


def method_deviations(
    preset: str, method: str | Spec, values: Mapping[str, Any] | None = None
) -> list[str]:
    """One sentence for each option of a method that differs from the preset's."""
    given = parse(method, "method")
    return [
        f"{given.name}: {key} = {given.options.get(key)!r} ({preset}: {wanted!r})"
        for key, wanted in method_options(preset, given.name, values or {}).items()
        if given.options.get(key) != wanted
    ]


def with_options(preset: str, method: str | Spec, values: Mapping[str, Any] | None = None) -> Spec:
    """The method with the preset's options under those it is given.

    >>> str(with_options("niid_published", "fednova"))
    "fednova(normaliser='momentum', weighting='batches')"
    """
    given = parse(method, "method")
    return Spec(given.name, {**method_options(preset, given.name, values or {}), **given.options})


def method_options(preset: str, method: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """The options that a preset gives a method, {} for a method it says nothing about."""
    _known(preset)
    name = _plain(method)
    options = dict(METHOD_OPTIONS[preset].get(name, {}))
    if preset == "niid_published" and name == "fednova" and (_is_study(values) or _is_deep(values)):
        options["normaliser"] = "steps"
    return options


def settings(preset: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a preset for the data, partition, model and clients that `values` name."""
    _known(preset)
    data = name_of(str(values.get("data", RunConfig.model_fields["data"].default)))
    result: dict[str, Any] = {
        "rounds": 500 if _is_study(values) else 100 if _is_deep(values) else 50,
        "local_epochs": 10,
        "batch_size": 64,
        "lr": 0.1 if data == "rcv1" else 0.01,
        "momentum": 0.9,
        "weight_decay": 1e-5,
        "schedule": "constant",
        "noise_rule": "niid_code",
        "bn": "average",
        "augment": "auto",
    }
    own = _published(data, values) if preset == "niid_published" else _corrected(data)
    return result | own


def _published(data: str, values: Mapping[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = {
        "partition_rng": "niid_legacy",
        "noise_refresh": "each_access",
        "test_noise": "party_union",
        "on_nonfinite": "ignore",
    }
    if _name(values, "partition") in LABEL_DIRICHLET:
        result["partition_seed"] = 2020
    if data == "fcube":
        result["model"] = "linear"
    elif _name(values, "model") == "resnet50":
        result["model"] = "resnet50(outputs=1000)"
    return result


def _corrected(data: str) -> dict[str, Any]:
    result: dict[str, Any] = {
        "partition_rng": "default",
        "noise_refresh": "fixed",
        "test_noise": "both",
        "on_nonfinite": "stop",
    }
    return result | ({"model": "mlp"} if data == "fcube" else {})


def _as_text(key: str, value: Any) -> Any:
    """A specification in its one way of writing; RunConfig refuses what can't be read."""
    if key not in SPECS:
        return value
    try:
        return spec_text(value, key)
    except ValueError:
        return value


def _known(preset: str) -> None:
    if preset not in get_args(Preset):
        raise ConfigError(f"unknown preset {preset!r}; {nearest(preset, ABOUT)}")


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def _name(values: Mapping[str, Any], key: str) -> str:
    return _plain(name_of(str(values.get(key, ""))))


def _is_deep(values: Mapping[str, Any]) -> bool:
    return _name(values, "model").startswith(DEEP)


def _is_study(values: Mapping[str, Any]) -> bool:
    return str(values.get("clients")) == str(STUDY_CLIENTS)

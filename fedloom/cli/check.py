"""Names and options in a configuration, checked against what there is before data are loaded."""

from collections.abc import Callable, Mapping
from typing import Any

from fedloom.config_values import spec_text
from fedloom.errors import ConfigError, FedloomError, nearest
from fedloom.spec import Spec, parse


def method(spec: Spec) -> Spec:
    """The method under its own name, its options checked. Raises ConfigError."""
    from fedloom import methods

    cls = methods.find(spec.name)
    own = cls.__module__.rsplit(".", 1)[-1]
    name = own if cls.__module__ == f"{methods.__name__}.{own}" else spec.name
    methods.make(Spec(name, spec.options))
    return Spec(name, spec.options)


def _partition(spec: Spec) -> Spec:
    from fedloom.partition import registry

    registry.resolve(spec, has_groups=True)
    return spec if spec.name == "real" else registry.canonical(spec)


def _model(spec: Spec) -> Spec:
    from fedloom import models

    read = models.parse(spec)
    if "." not in read.name and ":" not in read.name and read.name not in (*models.names(), "auto"):
        raise ConfigError(
            f"unknown model {spec.name!r}; {nearest(read.name, [*models.names(), 'auto'])}"
        )
    return read


def _schedule(spec: Spec) -> Spec:
    from fedloom.server import schedule

    schedule.make(spec)
    return spec


def _sampler(spec: Spec) -> Spec:
    from fedloom.clients import sampler

    sampler.make(spec)
    return spec


CHECKS: dict[str, Callable[[Spec], Spec]] = {
    "method": method,
    "partition": _partition,
    "model": _model,
    "schedule": _schedule,
    "sampler": _sampler,
}


def names(values: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The specifications under this library's own names, and a sentence for each that there isn't.

    What can't be read at all is left to RunConfig.
    """
    found, problems = {}, []
    for key, check in CHECKS.items():
        if key not in values:
            continue
        try:
            spec = parse(spec_text(values[key], key), key)
        except ValueError:
            continue
        try:
            found[key] = str(check(spec))
        except FedloomError as error:
            problems.append(f"{key} = {values[key]!r}: {error}")
    return found, problems

"""From a file, flags and a preset to one checked configuration; the nearest source wins."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedloom import config_file, presets
from fedloom.cli import check, extras
from fedloom.config import RunConfig
from fedloom.config_keys import SettingsError, unknown_key
from fedloom.config_values import spec_text
from fedloom.errors import ConfigError
from fedloom.spec import Spec, parse


@dataclass(frozen=True)
class Gathered:
    """The settings that were given, before they are checked, and all that was found wrong."""

    values: dict[str, Any]
    notes: tuple[str, ...]
    problems: tuple[str, ...]
    options: dict[str, str | bool]
    """Options of methods that stood on the command line, still text."""


def gather(
    *,
    base: Mapping[str, Any],
    sets: Iterable[str] | None,
    flags: Mapping[str, Any],
    arguments: Iterable[str],
    methods: Callable[[Mapping[str, Any]], list[Spec] | None],
    also: Iterable[str] = (),
) -> Gathered:
    """Lay flags over `--set`, `--set` over the file; `methods` says whose options may be flags.

    `also` are flags of the command that are no settings, to be offered when one is misspelt.
    """
    problems: list[str] = []
    values = {**base, **_pairs(sets or (), problems), **flags}
    found = extras.Found()
    try:
        rest = extras.split(arguments)
        found = extras.sort_out(rest, methods(values | extras.renamed_method(rest)), also)
    except ConfigError as error:
        problems.append(str(error))
    for key in found.settings:
        if key in flags:
            problems.append(f"{key} is given twice, under two names")
    values |= found.settings
    if found.alpha is not None:
        try:
            values["partition"] = extras.with_alpha(
                spec_text(values.get("partition", "iid"), "partition"), found.alpha
            )
        except ValueError as error:
            problems.append(str(error))
    all_problems = (*problems, *found.problems)
    return Gathered(values, tuple(found.notes), all_problems, found.options)


def used(path: Path | None, names: Iterable[str]) -> dict[str, Any]:
    """What a file says about these settings; {} without a file.

    Other settings and the [compare] table are left out. A key that there isn't is kept, so that it
    is refused wherever the file is read.
    """
    found = {} if path is None else config_file.read(path)
    others = {"compare", *RunConfig.model_fields} - set(names)
    return {key: value for key, value in found.items() if key not in others}


def chosen_method(values: Mapping[str, Any]) -> list[Spec]:
    """The method of a run, [] if there is none of that name: `build` says so."""
    try:
        spec = parse(spec_text(values.get("method", "fedavg"), "method"), "method")
    except ValueError:
        return []
    return [] if check.names({"method": spec.name})[1] else [spec]


def build(gathered: Gathered) -> tuple[RunConfig, list[str]]:
    """The configuration and its deviations from the preset.

    Raises SettingsError with every problem, names of methods, partitions and models included.
    """
    values, problems = dict(gathered.values), list(gathered.problems)
    if "method" in check.names({"method": values.get("method", "fedavg")})[0]:
        values["method"] = str(_method(values, gathered.options))
    known, wrong = check.names(values)
    values |= known
    problems += wrong
    try:
        config, deviations = resolve(values)
    except SettingsError as error:
        # A specification that can't be read is reported once, here.
        problems += [text for text in error.problems if text not in problems]
        raise SettingsError(problems) from None
    if problems:
        raise SettingsError(problems)
    return config, deviations


def resolve(values: Mapping[str, Any]) -> tuple[RunConfig, list[str]]:
    """The configuration of these values under their preset, if any, and the deviations from it."""
    preset = values.get("preset")
    if preset in (None, "none"):
        return RunConfig(**values), []
    preset = str(preset).lower().replace("-", "_")
    if preset not in presets.names():
        raise SettingsError(_with_preset_problem(values))
    applied, deviations = presets.apply(preset, values)
    return RunConfig(**applied), deviations


def stored(out: Path) -> dict[str, Any]:
    """The settings of the run in this folder, {} where there is none."""
    path = out / "config.json"
    if not path.exists():
        return {}
    return {
        key: value for key, value in config_file.read(path).items() if key in RunConfig.model_fields
    }


def _with_preset_problem(values: Mapping[str, Any]) -> tuple[str, ...]:
    """All problems of values whose preset there isn't."""
    try:
        RunConfig(**values)
    except SettingsError as error:
        return error.problems
    return ()


def _method(values: Mapping[str, Any], options: Mapping[str, str | bool]) -> Spec:
    spec = parse(spec_text(values.get("method", "fedavg"), "method"), "method")
    for key, text in options.items():
        if key in spec.options:
            raise ConfigError(f"{key} is given twice: in {spec} and as a flag of its own")
        spec = extras.with_option(spec, key, extras.literal(spec, key, text))
    return spec


def _pairs(texts: Iterable[str], problems: list[str]) -> dict[str, Any]:
    """`key=value` texts -> values; every one that isn't adds a problem."""
    values: dict[str, Any] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        key = key.strip().replace("-", "_")
        outer, dot, inner = key.partition(".")
        if not equals or not key:
            problems.append(f"--set {text!r}: expected KEY=VALUE")
        elif dot and outer in RunConfig.model_fields:
            problems.append(f"--set {text!r}: write --set '{outer}=name({inner}={value})'")
        elif key in values:
            problems.append(f"--set {key} is given twice")
        elif key not in RunConfig.model_fields:
            problems.append("--set " + unknown_key(key, RunConfig.model_fields))
        else:
            values[key] = value
    return values

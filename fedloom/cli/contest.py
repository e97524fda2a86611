"""What `fedloom compare` was asked to do: methods, trials and grids, checked with all the rest."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fedloom import presets
from fedloom.cli import check, extras, settings
from fedloom.config import RunConfig
from fedloom.config_keys import SettingsError, suggestion
from fedloom.config_values import number, spec_text, truth, whole
from fedloom.errors import FedloomError
from fedloom.spec import Spec, parse

DEFAULTS: dict[str, Any] = {
    "methods": "fedavg,fedprox,scaffold,fednova",
    "trials": 3,
    "jobs": 1,
    "reference": True,
    "baseline": None,
    "target": None,
}
"""The keys of a configuration file's [compare] table, beside options of methods."""


@dataclass(frozen=True)
class Contest:
    """A comparison, ready to be run."""

    config: RunConfig
    methods: tuple[Spec, ...]
    trials: int
    jobs: int
    reference: bool
    baseline: str | None
    target: float | None
    grid: dict[str, list[Any]]
    """Option of a method -> the values to choose from on validation data."""
    notes: tuple[str, ...]
    deviations: tuple[str, ...]


def read(
    *,
    base: Mapping[str, Any],
    sets: Iterable[str] | None,
    flags: Mapping[str, Any],
    own: Mapping[str, Any],
    arguments: Iterable[str],
) -> Contest:
    """One checked comparison. Raises SettingsError with all problems."""
    problems: list[str] = []
    table = _table(base, problems)
    options = {key: value for key, value in table.items() if key not in DEFAULTS}
    asked = _own_values({**DEFAULTS, **table, **own}, problems)
    methods = _methods(asked["methods"], problems)
    gathered = settings.gather(
        base={key: value for key, value in base.items() if key not in ("compare", "method")},
        sets=sets,
        flags=flags,
        arguments=arguments,
        methods=lambda _: list(methods),
        also=DEFAULTS,
    )
    notes = list(gathered.notes)
    if "method" in base:
        notes.append(f"method = {base['method']!r} is not used: compare takes methods")
    methods, grid = _with_options(methods, {**options, **gathered.options}, problems)
    found = settings.Gathered(gathered.values, (), (*problems, *gathered.problems), {})
    config, deviations = settings.build(found)
    if grid:
        notes.append(
            f"{', '.join(grid)} is chosen on training rows that are held out for it; the runs that "
            "are compared then train on all rows"
        )
    methods, more = _under_preset(config, methods)
    rest = {key: asked[key] for key in DEFAULTS if key != "methods"}
    _baseline(rest["baseline"], methods)
    return Contest(
        config, methods, grid=grid, notes=tuple(notes), deviations=(*deviations, *more), **rest
    )


def split_outside_brackets(text: str) -> list[str]:
    """Parts between commas that stand in no bracket.

    >>> split_outside_brackets("fedavg, fedprox(mu=0.1, server_lr=1)")
    ['fedavg', 'fedprox(mu=0.1, server_lr=1)']
    """
    parts, depth = [""], 0
    for letter in text:
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(letter, 0)
        if letter == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def _table(base: Mapping[str, Any], problems: list[str]) -> Mapping[str, Any]:
    table = base.get("compare", {})
    if isinstance(table, Mapping):
        return table
    problems.append(f"compare = {table!r}: expected a table, [compare]")
    return {}


def _own_values(values: Mapping[str, Any], problems: list[str]) -> dict[str, Any]:
    result = dict(values)
    readers = {"trials": whole, "jobs": whole, "reference": truth, "target": number}
    expected = {
        "trials": "a whole number, at least 1",
        "jobs": "a whole number, at least 1",
        "reference": "true or false",
        "target": "a number, above 0, at most 1",
    }
    for key, reader in readers.items():
        if result[key] is None:
            continue
        try:
            result[key] = reader(result[key])
            good = key == "reference" or result[key] > 0
            good = good and (key != "target" or result[key] <= 1)
        except ValueError:
            good = False
        if not good:
            problems.append(f"{key} = {values[key]!r}: expected {expected[key]}")
    return result


def _methods(listed: Any, problems: list[str]) -> tuple[Spec, ...]:
    texts = split_outside_brackets(listed) if isinstance(listed, str) else listed
    if not isinstance(texts, list) or not texts:
        problems.append(f"methods = {listed!r}: expected names with commas between them")
        return ()
    found: list[Spec] = []
    for text in texts:
        try:
            spec = check.method(parse(spec_text(text, "method"), "method"))
        except (FedloomError, ValueError) as error:
            problems.append(f"methods, {text!r}: {error}")
            continue
        if spec in found:
            problems.append(f"methods: {spec} is listed twice")
        found.append(spec)
    return tuple(found)


def _with_options(
    methods: tuple[Spec, ...], options: Mapping[str, Any], problems: list[str]
) -> tuple[tuple[Spec, ...], dict[str, list[Any]]]:
    """The methods with the options that were given once for all, and the grids."""
    grid: dict[str, list[Any]] = {}
    result = list(methods)
    for key, given in options.items():
        takers = [i for i, spec in enumerate(result) if extras.has_option(spec, key)]
        if not takers:
            close = suggestion(key, [*DEFAULTS, *extras.options_of(methods).values()])
            problems.append(f"compare.{key}: no option of a method listed; {close}")
            continue
        values = _values(result[takers[0]], key, given)
        if len(values) > 1:
            grid[key] = values
        for i in takers:
            try:
                for value in values:
                    check.method(extras.with_option(result[i], key, value))
            except FedloomError as error:
                problems.append(str(error))
                continue
            if len(values) == 1:
                result[i] = extras.with_option(result[i], key, values[0])
    return tuple(result), grid


def _values(spec: Spec, key: str, given: Any) -> list[Any]:
    """The different values of an option, in the order given: 1e-2 and 0.01 are one."""
    if isinstance(given, str):
        text = given.strip()
        listed: list[Any] = split_outside_brackets(
            text[1:-1] if text.startswith("[") and text.endswith("]") else text
        )
    else:
        listed = list(given) if isinstance(given, list | tuple) else [given]
    read = [
        extras.literal(spec, key, each) if isinstance(each, str | bool) else each for each in listed
    ]
    return [value for i, value in enumerate(read) if value not in read[:i]]


def _under_preset(
    config: RunConfig, methods: tuple[Spec, ...]
) -> tuple[tuple[Spec, ...], list[str]]:
    if config.preset is None:
        return methods, []
    values = config.model_dump()
    full = tuple(presets.with_options(config.preset, spec, values) for spec in methods)
    found = [presets.method_deviations(config.preset, spec, values) for spec in full]
    return full, [sentence for sentences in found for sentence in sentences]


def _baseline(name: str | None, methods: tuple[Spec, ...]) -> None:
    names = [spec.name for spec in methods]
    texts = [str(spec) for spec in methods]
    if name is not None and name.lower().replace("_", "").replace("-", "") not in names:
        if name in texts:
            return
        text = f"baseline = {name!r} is none of the methods compared: {', '.join(texts)}"
        raise SettingsError([text])

"""Flags that are no settings: options of the chosen methods, and other tools' names."""

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fedloom.config import RunConfig
from fedloom.config_keys import RENAMED, suggestion
from fedloom.config_values import FALSE, TRUE
from fedloom.errors import ConfigError
from fedloom.spec import Spec, parse

SKEW = ("alpha", "beta")
"""Both name the Dirichlet concentration, an option of the partition."""


Pairs = list[tuple[str, str | bool]]
"""Flags and their values; True and False where a flag had none."""


COMMON = ("config", "set", "out", "dry_run", "resume", "overwrite", "quiet")
"""Flags of the training commands that are no settings."""


@dataclass
class Found:
    """What the flags beyond the settings meant."""

    settings: dict[str, str] = field(default_factory=dict)
    options: dict[str, str | bool] = field(default_factory=dict)
    """Options of a method, under their own names, still text."""
    alpha: str | None = None
    notes: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def split(arguments: Iterable[str]) -> Pairs:
    """`--name value`, `--name=value`, `--name` and `--no-name` -> (name, value) pairs.

    >>> split(["--mu", "0.1", "--no-normalise-W", "--momentum=0"])
    [('mu', '0.1'), ('normalise_W', False), ('momentum', '0')]

    Raises ConfigError for a word that belongs to no flag.
    """
    words = list(arguments)
    pairs: Pairs = []
    while words:
        word = words.pop(0)
        if not word.startswith("--") or word == "--":
            raise ConfigError(f"unexpected argument {word!r}; settings are given as --name value")
        name, equals, value = word.removeprefix("--").partition("=")
        key = name.replace("-", "_")
        if equals:
            pairs.append((key, value))
        elif words and not words[0].startswith("--"):
            pairs.append((key, words.pop(0)))
        elif key.startswith("no_"):
            pairs.append((key.removeprefix("no_"), False))
        else:
            pairs.append((key, True))
    return pairs


def renamed_method(pairs: Pairs) -> dict[str, str]:
    """The method, where another tool's name for it was used."""
    texts = {RENAMED.get(key.lower()): value for key, value in pairs if isinstance(value, str)}
    return {"method": texts["method"]} if "method" in texts else {}


def sort_out(pairs: Pairs, methods: list[Spec] | None, also: Iterable[str] = ()) -> Found:
    """Tell options of these methods from renamed settings and from mistakes.

    No methods: nothing but settings can be meant. An empty list: the methods' names were wrong, so
    nothing can be said about flags that are no settings.
    """
    found = Found()
    known = options_of(methods) if pairs and methods else {}
    offered = [*COMMON, *also, *known.values()]
    judge = methods is None or bool(methods)
    for key, value in pairs:
        flag = "--" + key.replace("_", "-")
        own = known.get(_plain(key))
        if own is not None:
            if own in found.options:
                found.problems.append(f"{flag} is given twice")
            found.options[own] = value
        elif isinstance(value, bool) and judge:
            found.problems.append(f"{flag}: " + _unknown(key, offered, lacks_value=True))
        elif key.lower() in RENAMED and isinstance(value, str):
            name = RENAMED[key.lower()]
            found.settings[name] = value
            found.notes.append(f"{flag} is called --{name.replace('_', '-')} here")
        elif key.lower() in SKEW and isinstance(value, str):
            found.alpha = value
        elif judge:
            found.problems.append(f"{flag}: " + _unknown(key, offered))
    return found


def options_of(methods: Iterable[Spec]) -> dict[str, str]:
    """Options that some of the methods have: name without case and separators -> its own name."""
    from fedloom.methods import find

    names = [each.name for spec in methods for each in dataclasses.fields(find(spec.name))]
    return {_plain(name): name for name in names}


def with_option(spec: Spec, key: str, value: Any) -> Spec:
    """The method with one option, read as the option's type; an option it was given stays."""
    return Spec(spec.name, {key: value, **spec.options})


def has_option(spec: Spec, key: str) -> bool:
    """Whether the method has an option of this name."""
    from fedloom.methods import find

    return key in {each.name for each in dataclasses.fields(find(spec.name))}


def literal(spec: Spec, key: str, text: str | bool) -> Any:
    """The text as a number, list or word; as true or false where the method's default is one."""
    from fedloom.methods import find

    default = {each.name: each.default for each in dataclasses.fields(find(spec.name))}[key]
    if isinstance(text, bool):
        return text
    if isinstance(default, bool):
        word = text.strip().lower()
        return True if word in TRUE else False if word in FALSE else text
    if isinstance(default, str):
        return text.strip().lower().replace("-", "_")
    try:
        return parse(f"{spec.name}({key}={text})").options[key]
    except ConfigError:
        return text


def with_alpha(partition: str, alpha: str) -> str:
    """The partition with its Dirichlet concentration. Raises ConfigError if that is given twice."""
    spec = parse(partition, "partition")
    if set(SKEW) & set(spec.options):
        raise ConfigError(f"alpha is given twice: in {partition!r} and as a flag of its own")
    value = parse(f"x(alpha={alpha})", "partition").options["alpha"]
    return str(Spec(spec.name, {**spec.options, "alpha": value}))


def _unknown(key: str, options: Iterable[str], lacks_value: bool = False) -> str:
    names = (name for name in (*RunConfig.model_fields, *options) if name != key)
    choices = {_plain(name): name for name in names}
    mapping: Mapping[str, str] = choices
    close = suggestion(_plain(key), mapping)
    if not close:
        return "no such setting, and no option of the chosen method; see --help"
    name = mapping[close.split("'")[1]]
    hint = f"did you mean --{name.replace('_', '-')}?"
    return f"unknown flag, without a value; {hint}" if lacks_value else f"unknown flag; {hint}"


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")

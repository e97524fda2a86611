"""What a setting may be called and what it may be: the words of the configuration's messages."""

import difflib
from collections.abc import Iterable, Mapping
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from fedloom.errors import ConfigError

SPECS = ("partition", "model", "method", "schedule", "sampler")
"""Settings written `name` or `name(key=value, ...)`."""

RENAMED = {
    "party": "clients",
    "parties": "clients",
    "n_parties": "clients",
    "num_parties": "clients",
    "num_clients": "clients",
    "n_clients": "clients",
    "epochs": "local_epochs",
    "num_epochs": "local_epochs",
    "comm_round": "rounds",
    "comm_rounds": "rounds",
    "num_rounds": "rounds",
    "global_rounds": "rounds",
    "dataset": "data",
    "datadir": "data_dir",
    "alg": "method",
    "algorithm": "method",
    "sample": "participation",
    "fraction": "participation",
    "join_ratio": "participation",
    "learning_rate": "lr",
    "reg": "weight_decay",
    "rho": "momentum",
    "init_seed": "seed",
}
"""Names that other benchmarks and older files use, one for one."""

MOVED = {
    "alpha": 'an option of the partition: partition = "label_dirichlet(alpha=0.5)"',
    "beta": 'called alpha, an option of the partition: "label_dirichlet(alpha=0.5)"',
    "mu": 'an option of the method: method = "fedprox(mu=0.01)"',
    "server_lr": 'an option of the method: method = "fedavg(server_lr=0.5)"',
}
"""Names that now belong to one part of the configuration."""


class SettingsError(ConfigError):
    """Every problem found in a configuration, at once."""

    def __init__(self, problems: Iterable[str]):
        self.problems = tuple(problems)
        if len(self.problems) == 1:
            message = f"the configuration: {self.problems[0]}"
        else:
            head = f"the configuration has {len(self.problems)} problems:"
            message = "\n  - ".join([head, *self.problems])
        super().__init__(message)


def suggestion(name: str, choices: Iterable[str]) -> str:
    """A short question that offers the nearest choice, or nothing when none is near.

    >>> suggestion("local_epoch", ["local_epochs", "lr"])
    "did you mean 'local_epochs'?"
    """
    close = difflib.get_close_matches(name.lower(), sorted(choices), n=1, cutoff=0.5)
    return f"did you mean {close[0]!r}?" if close else ""


def unknown_key(key: str, fields: Iterable[str]) -> str:
    """One sentence about a key that no setting has."""
    name = key.strip().lower().replace("-", "_")
    if name in RENAMED:
        return f"{key!r} was renamed: use {RENAMED[name]!r}"
    if name in MOVED:
        return f"{key!r} is {MOVED[name]}"
    hint = suggestion(name, fields)
    return f"unknown key {key!r}; " + (hint or "`fedloom run --help` lists every setting")


def unknown_keys(values: Mapping[str, Any], fields: Iterable[str]) -> list[str]:
    """One sentence for each key that no setting has, with its place; tables are looked into."""
    fields = tuple(fields)
    problems = []
    for key, value in values.items():
        if key in fields:
            continue
        if isinstance(value, Mapping):
            inner = ", ".join(f"{key}.{name}" for name in value) or "it is empty"
            tables = ", ".join(f"[{name}]" for name in SPECS)
            problems.append(
                f"unknown table [{key}] ({inner}): settings stand at the top of the file; "
                f"only {tables} may be tables"
            )
        else:
            problems.append(unknown_key(key, fields))
    return problems


def base_type(annotation: Any) -> Any:
    """The annotation without `None`."""
    if get_origin(annotation) in (Union, UnionType):
        return next(arg for arg in get_args(annotation) if arg is not type(None))
    return annotation


def choices(annotation: Any) -> tuple[str, ...]:
    """The words of a Literal, () for anything else."""
    base = base_type(annotation)
    return get_args(base) if get_origin(base) is Literal else ()


def ranges(field: FieldInfo) -> list[str]:
    """The bounds of a number, in words."""
    signs = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
    return [
        f"{sign} {getattr(rule, short)}"
        for rule in field.metadata
        for short, sign in signs.items()
        if getattr(rule, short, None) is not None
    ]


def allowed(name: str, field: FieldInfo) -> str:
    """What a setting may be, in words: kind and range.

    >>> from fedloom.config import RunConfig
    >>> allowed("momentum", RunConfig.model_fields["momentum"])
    'a number, at least 0, below 1'
    """
    words = choices(field.annotation)
    base = base_type(field.annotation)
    if words:
        kind = "one of " + ", ".join(words)
    elif name in SPECS:
        kind = "name or name(key=value, ...)"
    else:
        kind = {int: "a whole number", float: "a number", bool: "true or false"}.get(base, "text")
    none = ["or none"] if base is not field.annotation and not words and base is not str else []
    return ", ".join([kind, *ranges(field), *none])

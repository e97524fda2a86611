"""Strategies by name: found by looking in the folder, under the names other tools use as well."""

import inspect
import pkgutil
import re
from dataclasses import fields
from functools import cache
from importlib import import_module
from typing import Any

from fedloom.errors import PartitionError, nearest
from fedloom.partition import strategies
from fedloom.partition.strategy import Strategy
from fedloom.spec import Spec, parse

ALIASES = {
    "homo": "iid",
    "noniid_labeldir": "label_dirichlet",
    "lda": "label_dirichlet",
    "iid_diff_quantity": "quantity_dirichlet",
    "mixed": "label_pair_dirichlet",
    "transfer_from_femnist": "from_histograms",
    "transfer_from_criteo": "from_histograms",
}
"""NIID-Bench's names, and `lda`; `real` and `noniid-#labelK` are resolved by `canonical`."""

OPTION_ALIASES = {"beta": "alpha", "beta_label": "alpha_label", "beta_size": "alpha_size"}
CLIENT_OPTIONS = ("clients", "num_clients", "parties", "n_parties")
LDA_VARIANTS = {"capped": True, "pure": False}
"""`lda_variant` is another name for `balance`: capped draws skip clients that hold a fair share."""


@cache
def known() -> tuple[str, ...]:
    """Names of all strategies."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(strategies.__path__)))


@cache
def find(name: str) -> type[Strategy]:
    """The strategy's class; `name` is one of `known()`."""
    module = import_module(f"{strategies.__name__}.{name}")
    (found,) = (
        value
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, Strategy)
        and value.__module__ == module.__name__
    )
    return found


def canonical(spec: str | Spec, *, has_groups: bool = False, has_points: bool = False) -> Spec:
    """The same strategy and options under this library's names.

    Raises PartitionError for a strategy that is not known; ConfigError when `spec` can't be read.
    """
    given = parse(spec, "partition")
    name, options = ALIASES.get(given.name, given.name), dict(given.options)
    if counted := re.fullmatch(r"noniid_#?label(\d+)", name):
        name, options = "label_count", {"k": int(counted[1]), **options}
    if name == "real":
        name = _natural(has_groups, has_points)
    if name not in known():
        raise PartitionError(f"partition {given.name!r} is not known; {nearest(name, known())}")
    return Spec(name, _rename(name, options))


def resolve(
    spec: str | Spec, *, has_groups: bool = False, has_points: bool = False
) -> tuple[str, Strategy, object]:
    """The strategy's name, the strategy with its options checked, and the clients it names or None.

    Needs no data, so that a configuration can be checked before anything is loaded.

    >>> resolve("noniid-labeldir(beta=0.1)")[1].alpha
    0.1
    """
    chosen = canonical(spec, has_groups=has_groups, has_points=has_points)
    options = dict(chosen.options)
    clients = options.pop("clients", None)
    cls = find(chosen.name)
    names = [f.name for f in fields(cls)]
    written = {_own_name(option): option for option in parse(spec, "partition").options}
    for option in options:
        if option not in names:
            key = written.get(option, option)
            offer = nearest(key, [*names, "clients"])
            raise PartitionError(f"{chosen.name} has no option {key!r}; {offer}")
    return chosen.name, cls(**options), clients


def names() -> dict[str, str]:
    """Each strategy with one line: what it does, its options and their defaults, its source."""
    return {name: _line(find(name)) for name in known()}


def _natural(has_groups: bool, has_points: bool) -> str:
    if has_groups:
        return "by_group"
    if has_points:
        return "fcube_octants"
    raise PartitionError(
        "partition 'real' is by_group for data with client ids and fcube_octants for points "
        "[n, 3]; these data have neither"
    )


def _own_name(option: str) -> str:
    """This library's name of an option."""
    if option in CLIENT_OPTIONS:
        return "clients"
    return {**OPTION_ALIASES, "lda_variant": "balance"}.get(option, option)


def _rename(name: str, options: dict[str, Any]) -> dict[str, Any]:
    renamed: dict[str, Any] = {}
    for option, value in options.items():
        key, kept = _own_name(option), value
        if option == "lda_variant":
            if value not in LDA_VARIANTS:
                offer = nearest(str(value), LDA_VARIANTS)
                raise PartitionError(f"lda_variant={value!r} is not known; {offer}")
            kept = LDA_VARIANTS[value]
        if key in renamed:
            raise PartitionError(f"{name}: option {key!r} is given twice, once as {option!r}")
        renamed[key] = kept
    return renamed


def _line(cls: type[Strategy]) -> str:
    text = inspect.cleandoc(cls.__doc__ or "")
    first = text.split("\n\n")[0].replace("\n", " ")
    source = re.search(r"Source: (.+?)(?=\n\n|\n[A-Z]\w+:|$)", text, re.DOTALL)
    own_first = sorted(fields(cls), key=lambda f: f.name not in cls.__annotations__)
    options = ", ".join(f"{f.name}={f.default!r}" for f in own_first)
    parts = [first, f"Options: {options}." if options else "No options."]
    if source:
        parts.append("Source: " + source[1].replace("\n", " "))
    return " ".join(parts)

"""One file a method, found by looking: `make("fedprox", mu=0.1)` imports that module."""

import dataclasses
import difflib
import importlib
import inspect
import pkgutil
from typing import Any, Literal, get_args, get_origin, get_type_hints

from fedloom import foreign
from fedloom.errors import ConfigError, nearest
from fedloom.method import Method
from fedloom.spec import Spec, parse
from fedloom.types import NonNegative

LARGEST = 3e38  # what a float32 holds


def names() -> dict[str, str]:
    """Every method found -> the first line of its docstring."""
    return {name: (find(name).__doc__ or "").strip().splitlines()[0] for name in _modules()}


def find(name: str) -> type[Method]:
    """The class of a method; case and separators don't matter.

    Raises ConfigError for an unknown name, with the nearest one.
    """
    if ":" in name:
        return _foreign(name)
    wanted = name.lower().replace("_", "").replace("-", "")
    modules = {module.replace("_", ""): module for module in _modules()}
    if wanted not in modules:
        raise ConfigError(f"unknown method {name!r}; {nearest(name, _modules())}")
    module = importlib.import_module(f"{__name__}.{modules[wanted]}")
    return _only_method(module)


def make(spec: str | Spec, **options: Any) -> Method:
    """A method from `name` or `name(key=value, ...)`; unknown options are refused.

    >>> make("fedprox(mu=0.1)").mu
    0.1
    """
    read = parse(spec, "method")
    cls = find(read.name)
    hints = get_type_hints(cls, include_extras=True)
    fields = {field.name: hints[field.name] for field in dataclasses.fields(cls)}
    given = {**read.options, **options}
    for key, value in given.items():
        if key not in fields:
            raise ConfigError(f"{cls.__name__} has no option {key!r}; {nearest(key, fields)}")
        given[key] = _checked(cls, key, value, fields[key])
    return cls(**given)


def _modules() -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def _only_method(module: Any) -> type[Method]:
    found = [
        value
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, Method)
        and value.__module__ == module.__name__
    ]
    if len(found) != 1:
        raise ConfigError(f"{module.__name__} should define one Method; it defines {len(found)}")
    return found[0]


def _foreign(path: str) -> type[Method]:
    found = foreign.load(path, "method")
    if not (isinstance(found, type) and issubclass(found, Method)):
        raise ConfigError(f"{path!r} is not a subclass of fedloom.Method")
    _check_class(found)
    return found


def _check_class(cls: type[Method]) -> None:
    """Refuse what would be FedAvg in silence: a misspelt hook, options that aren't fields."""
    hooks = [name for name in dir(Method) if name[0] != "_"]
    for name, value in vars(cls).items():
        close = difflib.get_close_matches(name, hooks, n=1, cutoff=0.8)
        if callable(value) and name[0] != "_" and name not in hooks and close:
            raise ConfigError(
                f"{cls.__name__} has a method {name!r}, which nothing calls; "
                f"did you mean {close[0]!r}? Give it another name, or _{name}"
            )
    fields = {field.name for field in dataclasses.fields(cls)}
    if lost := [name for name in inspect.get_annotations(cls) if name not in fields]:
        raise ConfigError(
            f"{cls.__name__}: {', '.join(lost)} can't be set; "
            "put @dataclass(frozen=True) above the class"
        )


def _checked(cls: type[Method], key: str, value: Any, annotation: Any) -> Any:
    """The value, if it is of the field's type; text never passes for a number."""
    where = f"{cls.__name__}: {key}={value!r}"
    if get_origin(annotation) is Literal:
        if value not in get_args(annotation):
            raise ConfigError(f"{where} should be one of {', '.join(get_args(annotation))}")
        return value
    least = 0.0 if annotation == NonNegative else -LARGEST
    annotation = float if annotation == NonNegative else annotation
    if annotation is float and isinstance(value, int | float) and not isinstance(value, bool):
        if not least <= value <= LARGEST:
            raise ConfigError(f"{where} should be between {least:g} and {LARGEST:g}")
        return float(value)
    if get_origin(annotation) is tuple and isinstance(value, list | tuple):
        if all(isinstance(item, int | float) for item in value):
            return tuple(value)
        raise ConfigError(f"{where} should be a list of numbers")
    if not isinstance(annotation, type):
        raise ConfigError(f"{where}: options of type {annotation} can't be given as text")
    if isinstance(value, annotation) and (annotation is bool) == isinstance(value, bool):
        return value
    raise ConfigError(f"{where} should be of type {annotation.__name__}")

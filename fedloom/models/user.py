"""A network of the user's own, found by its dotted path."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from torch import nn

from fedloom import foreign
from fedloom.errors import ConfigError, nearest
from fedloom.spec import Spec


def factory(
    spec: Spec, input_shape: tuple[int, ...], num_classes: int
) -> tuple[Callable[[], nn.Module], tuple[str, ...]]:
    """(a function that makes the network, notes) for `package.module:Class` or a function there.

    The current directory is importable. `input_shape` and `num_classes` are passed on if the class
    takes arguments of those names and the specification doesn't set them.

    Raises ConfigError for a path that leads nowhere and for options that the class doesn't take.
    """
    target = _resolve(spec.name)
    known = inspect.signature(target).parameters
    open_ended = any(each.kind is each.VAR_KEYWORD for each in known.values())
    for option in spec.options:
        if option not in known and not open_ended:
            raise ConfigError(
                f"model {spec.name} has no option {option!r}; {nearest(option, known)}"
            )
    offered = {"input_shape": input_shape, "num_classes": num_classes}
    given = {key: offered[key] for key in offered if key in known and key not in spec.options}
    missing = [
        key
        for key, each in known.items()
        if each.default is each.empty
        and each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)
        and key not in {**given, **spec.options}
    ]
    if missing:
        raise ConfigError(
            f"model {spec.name} needs a value for {', '.join(missing)}; "
            f"write {spec.name}({missing[0]}=...)"
        )
    notes = tuple(f"Model {spec.name} was given {key}={value}." for key, value in given.items())
    return partial(_call, target, spec, {**given, **spec.options}), notes


def _call(target: Callable[..., Any], spec: Spec, options: dict[str, Any]) -> nn.Module:
    try:
        net = target(**options)
    except Exception as error:
        raise ConfigError(f"model {spec} can't be made: {type(error).__name__}: {error}") from error
    if not isinstance(net, nn.Module):
        raise ConfigError(
            f"model {spec.name} must give a torch.nn.Module, but gives {type(net).__name__}"
        )
    return net


def _resolve(path: str) -> Callable[..., Any]:
    target = foreign.load(path, "model")
    if isinstance(target, nn.Module) or not callable(target):
        raise ConfigError(
            f"model {path} is an object of type {type(target).__name__}; name its class, or a "
            "function that makes it, so that every run starts from fresh weights"
        )
    found: Callable[..., Any] = target
    return found

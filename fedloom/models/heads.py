"""Which part of a network is its head, found by watching one forward pass."""

from typing import NamedTuple

import torch
from torch import nn

from fedloom.errors import ConfigError

LISTED = 40
"""Layer names that a message shows at most."""


class Trace(NamedTuple):
    """What a forward pass showed: the modules called, in order, and the logits for one example."""

    called: tuple[str, ...]
    num_outputs: int


class Head(NamedTuple):
    """The head's leaves, the first of its modules to be called, and notes."""

    leaves: tuple[str, ...]
    module: str
    notes: tuple[str, ...]


def trace(net: nn.Module, name: str, input_shape: tuple[int, ...], num_classes: int) -> Trace:
    """Pass two blank examples through `net` in evaluation mode.

    Raises ConfigError if that fails or doesn't give at least `num_classes` logits an example.
    """
    called: list[str] = []
    hooks = [
        module.register_forward_pre_hook(lambda _, __, path=path: called.append(path))
        for path, module in net.named_modules()
    ]
    training = net.training
    try:
        with torch.no_grad():
            logits = net.eval()(torch.zeros(2, *input_shape))
    except Exception as error:
        raise ConfigError(
            f"model {name} fails on a float32 batch of shape {(2, *input_shape)}: {error}; "
            f"its forward takes [batch, {', '.join(map(str, input_shape))}] and nothing else"
        ) from error
    finally:
        net.train(training)
        for hook in hooks:
            hook.remove()
    shape = tuple(logits.shape) if isinstance(logits, torch.Tensor) else type(logits).__name__
    if not isinstance(shape, tuple) or len(shape) != 2 or shape[0] != 2 or shape[1] < num_classes:
        raise ConfigError(
            f"model {name} must give logits of shape [batch, {num_classes}], one for each class, "
            f"but for a batch of 2 it gives {shape}"
        )
    return Trace(tuple(dict.fromkeys(called)), shape[1])


def find(net: nn.Module, name: str, called: tuple[str, ...], head: str | None) -> Head:
    """The head named by `head` ("fc", or "fc1,fc2"); without it the last nn.Linear called.

    Raises ConfigError, with the names of all layers, if there is no such module or it is unused.
    """
    modules = dict(net.named_modules())
    layers = [path for path in modules if path and any(True for _ in modules[path].parameters())]
    wanted = [part.strip() for part in head.split(",")] if head else []
    notes: tuple[str, ...] = ()
    if not wanted:
        linear = [path for path in called if path and isinstance(modules[path], nn.Linear)]
        if not linear:
            raise ConfigError(f"model {name} calls no nn.Linear; {_advice(layers)}")
        wanted = linear[-1:]
        notes = (f"The head is {wanted[0]!r}, the last nn.Linear that model {name} calls.",)
    for path in wanted:
        if path not in layers:
            raise ConfigError(f"model {name} has no layer {path!r}; {_advice(layers)}")
        if path not in called:
            raise ConfigError(f"layer {path!r} of model {name} is never called; {_advice(layers)}")
    leaves = tuple(
        leaf
        for leaf, _ in net.named_parameters()
        if any(leaf.startswith(f"{path}.") for path in wanted)
    )
    if not leaves:
        raise ConfigError(
            f"head {head!r} of model {name} shares all its weights with other layers; "
            f"{_advice(layers)}"
        )
    return Head(leaves, min(wanted, key=called.index), notes)


def _advice(layers: list[str]) -> str:
    more = f" and {len(layers) - LISTED} more before them" if len(layers) > LISTED else ""
    return f"name its head with head=LAYER (or LAYER,LAYER); layers: {_join(layers)}{more}"


def _join(layers: list[str]) -> str:
    return ", ".join(layers[-LISTED:]) or "none"

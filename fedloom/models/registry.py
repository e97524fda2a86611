"""From a specification to a network with weights of its own stream."""

import copy
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from pydantic import ValidationError, validate_call
from torch import nn

from fedloom import spec as notation
from fedloom.errors import ConfigError, nearest
from fedloom.models import heads, nets, user
from fedloom.models.model import Model
from fedloom.rng import torch_stream
from fedloom.spec import Spec


def names() -> dict[str, str]:
    """Every built-in network with one line: what it is, its options, its source."""
    return {name: _line(_builder(name)) for name in _found()}


def default(input_shape: tuple[int, ...]) -> str:
    """The network that `auto` stands for: `cnn` for images of 16 x 16 pixels or more, else `mlp`.

    >>> default((1, 28, 28)), default((1, 8, 8)), default((123,))
    ('cnn', 'mlp', 'mlp')
    """
    return "cnn" if len(input_shape) == 3 and min(input_shape[1:]) >= 16 else "mlp"


def parse(text: str | Spec) -> Spec:
    """Read a model's specification; the case of a dotted path is kept.

    >>> parse("my_nets:Wide(width=8)")
    Spec(name='my_nets:Wide', options={'width': 8})
    >>> parse("VGG-9").name
    'vgg9'
    """
    path = text.name if isinstance(text, Spec) else str(text).partition("(")[0].strip()
    read = notation.parse(text, "model")
    if "." in path or ":" in path:
        return Spec(path, read.options)
    return Spec(read.name.replace("_", ""), read.options)


def make(
    text: str | Spec,
    *,
    input_shape: tuple[int, ...],
    num_classes: int,
    head: str | None = None,
    seed: int = 0,
) -> Model:
    """A network for this data, its weights drawn by `initialise` from `seed`.

    `text` is `auto`, a name from `names()`, or the dotted path of the user's class, each with
    options in brackets. `head` names the head's layer (several: with commas); a built-in network
    has one called `head`, for others the default is the last nn.Linear called.

    Raises ConfigError for unknown names, options and layers, and for data that doesn't fit.
    """
    asked = parse(text)
    notes: tuple[str, ...] = ()
    if asked.name == "auto":
        asked = Spec(default(input_shape), asked.options)
        notes = (f"Model auto is {asked.name} for this data.",)
    if "." in asked.name or ":" in asked.name:
        build, extra = user.factory(asked, input_shape, num_classes)
        notes += extra
    else:
        build, head = partial(_call, asked, input_shape, num_classes), head or "head"
    again = partial(_ready, build, str(asked), input_shape, num_classes)
    with _drawing(torch_stream(seed, "init", "body")):
        net = again()
        seen = heads.trace(net, str(asked), input_shape, num_classes)
    if seen.num_outputs > num_classes:
        notes += (f"Model {asked} has {seen.num_outputs} outputs for {num_classes} classes.",)
    found = heads.find(net, str(asked), seen.called, head)
    model = Model(str(asked), net, found.leaves, found.module, again, notes + found.notes)
    initialise(model, seed)
    return model


def initialise(model: Model, seed: int) -> None:
    """Give `model.net` the weights of this seed, in place.

    Body and head have streams of their own: the network is made twice, once from each, and takes
    its head from the second. So another head leaves the body's weights alone, provided that the
    network makes and starts its body first. Torch's global generator is left as it was.
    """
    with _drawing(torch_stream(seed, "init", "body")):
        start = model.build().state_dict()
    with _drawing(torch_stream(seed, "init", "head")):
        other = model.build().state_dict()
    start.update({leaf: other[leaf] for leaf in model.head})
    # Surgery may have taken buffers away since.
    model.net.load_state_dict({leaf: start[leaf] for leaf in model.net.state_dict()})


def _ready(
    build: Callable[[], nn.Module], name: str, input_shape: tuple[int, ...], num_classes: int
) -> nn.Module:
    """The network, with layers that wait for their first input given one."""
    net = build()
    if any(isinstance(leaf, nn.UninitializedParameter) for leaf in net.parameters()):
        heads.trace(net, name, input_shape, num_classes)
    return net


@contextmanager
def _drawing(stream: torch.Generator) -> Iterator[None]:
    """Let the global generator be `stream` for a while; only the processor's is touched."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.set_state(stream.get_state())
        yield


def _found() -> list[str]:
    return sorted(each.name for each in pkgutil.iter_modules(nets.__path__))


def _builder(name: str) -> Callable[..., nn.Module]:
    if name not in _found():
        choices = [*_found(), "auto"]
        raise ConfigError(
            f"unknown model {name!r}; {nearest(name, choices)}; or write the dotted path of your "
            "own class, package.module:Class"
        )
    return importlib.import_module(f"{nets.__name__}.{name}").build


def _call(asked: Spec, input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    build = _builder(asked.name)
    known = _options(build)
    for option in asked.options:
        if option not in known:
            advice = nearest(option, known) if known else "it takes none"
            raise ConfigError(f"model {asked.name} has no option {option!r}; {advice}")
    checked = validate_call(build)
    try:
        return checked(input_shape, num_classes, **copy.deepcopy(asked.options))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ConfigError(
            f"model {asked}: {where} is {first['input']!r}; {first['msg'].lower()}"
        ) from None


def _options(build: Callable[..., Any]) -> dict[str, Any]:
    parameters = inspect.signature(build).parameters
    return {key: each.default for key, each in parameters.items() if each.kind is each.KEYWORD_ONLY}


def _line(build: Callable[..., Any]) -> str:
    text = inspect.getdoc(build) or ""
    source = " ".join(text.partition("Source: ")[2].split())
    options = ", ".join(f"{key}={value!r}" for key, value in _options(build).items())
    first = text.splitlines()[0]
    return f"{first} Options: {options or 'none'}. Source: {source}"

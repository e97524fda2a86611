"""Arithmetic on dictionaries of tensors, leaf by leaf. Nothing here knows what a client is."""

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor

from fedloom.types import Params, State


def add(a: Params, b: Params, scale: float | Tensor = 1.0) -> Params:
    """a + scale * b over the leaves of b; leaves of a that b lacks pass through."""
    if isinstance(scale, Tensor):
        return {**a, **{name: torch.addcmul(a[name], leaf, scale) for name, leaf in b.items()}}
    return {**a, **{name: torch.add(a[name], leaf, alpha=scale) for name, leaf in b.items()}}


def sub(a: Params, b: Params) -> Params:
    """a - b over the leaves of a."""
    return {name: leaf - b[name] for name, leaf in a.items()}


def scale(a: Params, factor: float | Tensor) -> Params:
    """factor * a."""
    return {name: leaf * factor for name, leaf in a.items()}


def zeros_like(a: Params) -> Params:
    """The same leaves, all zero."""
    return {name: torch.zeros_like(leaf) for name, leaf in a.items()}


def dot(a: Params, b: Params) -> Tensor:
    """Inner product over the leaves of b, []."""
    return sum(((a[name] * leaf).sum() for name, leaf in b.items()), torch.zeros(()))


def sqnorm(a: Params) -> Tensor:
    """Squared Euclidean norm over all leaves, []."""
    return dot(a, a)


def pick(a: Params, names: Iterable[str]) -> Params:
    """The leaves named, in the order of `names`."""
    return {name: a[name] for name in names}


def weigh(state: State, weight: float | Tensor) -> State:
    """weight * state in float64, a term of a sum that is rounded only when it is complete."""
    return {
        key: weigh(value, weight) if isinstance(value, dict) else value.double() * weight
        for key, value in state.items()
    }


def mean(total: Params, weight: float | Tensor) -> Params:
    """Weighted mean out of a weighted sum and the sum of the weights."""
    if not weight > 0:
        raise ValueError(f"weights sum to {float(weight)}; a mean needs some weight")
    return {name: leaf / weight for name, leaf in total.items()}


def to(state: State, device: torch.device) -> State:
    """The state on a device; leaves that are there already stay as they are."""
    return {
        key: to(value, device) if isinstance(value, dict) else value.to(device)
        for key, value in state.items()
    }


def rounded(state: State, like: State) -> State:
    """The state with every leaf as precise as the leaf of the same place in `like`."""
    return {
        key: rounded(value, like[key]) if isinstance(value, dict) else value.to(like[key].dtype)
        for key, value in state.items()
    }


def stack(trees: list[State]) -> State:
    """Equal structures -> one structure whose leaves have a client axis in front."""
    first = trees[0]
    return {
        key: stack([tree[key] for tree in trees])
        if isinstance(value, dict)
        else torch.stack([tree[key] for tree in trees])
        for key, value in first.items()
    }


def row(stacked: State, i: int) -> State:
    """The structure of client i out of a stacked one."""
    return {
        key: row(value, i) if isinstance(value, dict) else value[i]
        for key, value in stacked.items()
    }


def leaves(state: State, prefix: str = "") -> Iterator[tuple[str, Tensor]]:
    """Every tensor of a nested state with its path, `outer/inner`, in order."""
    for key, value in state.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{prefix}{key}/")
        else:
            yield f"{prefix}{key}", value


def num_bytes(state: State) -> int:
    """Bytes of all tensors in a state: what a message of it costs on the wire, headers aside."""
    return sum(leaf.numel() * leaf.element_size() for _, leaf in leaves(state))

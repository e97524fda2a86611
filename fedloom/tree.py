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


def mean(stacked: Params, weights: Tensor) -> Params:
    """Weighted mean over the leading client axis; weights [N] need not sum to one.

    Sums in float64 and rounds once, so that the order of clients moves at most the last bit.
    """
    total = weights.double().sum()
    if not total > 0:
        raise ValueError(f"weights sum to {float(total)}; a mean needs some weight")
    share = weights.double() / total  # [N]
    return {
        name: torch.tensordot(share, leaf.double(), dims=1).to(leaf.dtype)
        for name, leaf in stacked.items()
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

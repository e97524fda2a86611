"""Small problems with known answers, for docstrings and tests."""

import torch
from torch import Tensor

from fedloom.types import Context, Params, State


def at(value: float) -> Params:
    """A model of one weight."""
    return {"w": torch.tensor(value)}


def began(value: float, *, sent: State | None = None, client: State | None = None) -> Context:
    """What a client of a one-weight model may read; its training began at `value`."""
    one = torch.tensor(1.0)
    return Context(
        sent=sent or {"params": at(value)},
        client=client or {},
        start=at(value),
        trained=("w",),
        lr=one,
        num_steps=one,
        num_examples=one,
        travel=one,
        buffers={},
    )


class Quadratic:
    """A task of one leaf `w` [d] whose loss at a client is the mean of |w - x|^2 / 2 over its rows.

    The optimum of a client is the mean of its rows, that of the federation the mean of all rows.
    """

    head: tuple[str, ...] = ()
    frozen: tuple[str, ...] = ()
    has_batch_norm = False
    has_dropout = False

    def __init__(self) -> None:
        self.updates: Params = {}

    def bind(self, buffers: Params, *, training: bool, padded: bool = True) -> "Quadratic":
        """The same task: it has no buffers."""
        return self

    def loss(self, params: Params, batch: dict[str, Tensor]) -> Tensor:
        """Mean over the batch, []."""
        square = (params["w"] - batch["x"]).square().sum(-1) / 2  # [B]
        return (square * batch["mask"]).sum() / batch["mask"].sum().clamp(min=1)

"""A model and its loss as functions of parameters: what a method sees of both.

A task is bound to the buffers (running statistics) of one client or of the server; binding is
cheap and changes nothing. Training passes leave the buffers' next values in `updates`.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from copy import copy
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call

from fedloom.models import Model
from fedloom.models.norm import BatchNorm, Pass, convert, during
from fedloom.types import Batch, Params

Precision = Literal["float32", "bfloat16"]


class _Captured(nn.Module):
    """Runs a network once and hands out what entered its head beside the logits."""

    def __init__(self, net: nn.Module, head_module: str) -> None:
        super().__init__()
        self.net = net
        self._entered: list[Tensor] = []
        net.get_submodule(head_module).register_forward_pre_hook(_Note(self._entered))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        self._entered.clear()
        logits = self.net(x)
        features = self._entered[0]
        self._entered.clear()
        return features, logits


class _Note:
    """A hook that keeps what entered; a class, so that networks with it can be sent elsewhere."""

    def __init__(self, entered: list[Tensor]) -> None:
        self._entered = entered

    def __call__(self, _: nn.Module, args: tuple[Tensor, ...]) -> None:
        self._entered.append(args[0])


class Task:
    """Classification with cross-entropy.

    `features` are the input of the head, [B, d], never normalised; `logits` are [B, C].
    """

    def __init__(self, model: Model, num_classes: int, precision: Precision = "float32") -> None:
        self.num_classes = num_classes
        self.precision = precision
        self.head = model.head
        self.model = model
        self.frozen = tuple(n for n, leaf in model.net.named_parameters() if not leaf.requires_grad)
        convert(model.net)
        self._call = _Captured(model.net, model.head_module)
        self.has_batch_norm = any(isinstance(m, BatchNorm) for m in model.net.modules())
        self.has_dropout = any(
            isinstance(m, nn.modules.dropout._DropoutNd) and m.p > 0 for m in model.net.modules()
        )
        self.buffers: Params = {}
        self.training = False
        self.padded = True
        self.rate: float | None = None
        self.updates: Params = {}

    @property
    def is_known(self) -> bool:
        """Whether all of the network is PyTorch's or ours, so that its passes are pure."""
        kinds = (type(module).__module__ for module in self.model.net.modules())
        return all(name.startswith(("torch.nn.", "fedloom.")) for name in kinds)

    def initial(self) -> tuple[Params, Params]:
        """The network's own (parameters, buffers), as copies."""
        net = self.model.net
        return (
            {name: leaf.detach().clone() for name, leaf in net.named_parameters()},
            {name: leaf.detach().clone() for name, leaf in net.named_buffers()},
        )

    def bind(self, buffers: Params, *, training: bool, padded: bool = True) -> Task:
        """The same task reading these buffers; `updates` starts empty.

        `padded=False` promises that no batch has padding, which lets normalisation skip the mask.
        """
        bound = copy(self)
        bound.buffers, bound.training, bound.padded, bound.updates = buffers, training, padded, {}
        return bound

    def moments(self, params: Params, batch: Batch) -> Params:
        """The running statistics that this batch alone would give."""
        bound = self.bind(self.buffers, training=True, padded=False)
        bound.rate = 1.0
        bound.outputs(params, batch)
        return bound.updates

    def teacher(self) -> Task:
        """The same task for a pass through a model that isn't being trained: evaluation mode."""
        return self.bind(self.buffers, training=False)

    def outputs(self, params: Params, batch: Batch) -> tuple[Tensor, Tensor]:
        """(features [B, d], logits [B, C]) from one pass."""
        self._call.train(self.training)
        leaves = {f"net.{name}": leaf for name, leaf in (*params.items(), *self.buffers.items())}
        mask = batch["mask"] if self.padded else None
        current = Pass(self.training, mask, self.rate, self.updates)
        half = self.training and self.precision == "bfloat16"
        with (
            during(current),
            torch.autocast(batch["x"].device.type, torch.bfloat16) if half else nullcontext(),
        ):
            features, logits = functional_call(self._call, leaves, (batch["x"],))
        return (features.float(), logits.float()) if half else (features, logits)

    def logits(self, params: Params, batch: Batch) -> Tensor:
        """[B, C]."""
        return self.outputs(params, batch)[1]

    def features(self, params: Params, batch: Batch) -> Tensor:
        """[B, d]."""
        return self.outputs(params, batch)[0]

    def mean(self, per_example: Tensor, batch: Batch) -> Tensor:
        """Mean over the examples that aren't padding, []."""
        mask = batch["mask"]
        return (per_example * mask).sum() / mask.sum().clamp(min=1)

    def loss(self, params: Params, batch: Batch) -> Tensor:
        """Mean cross-entropy in nats, []."""
        log_p = F.log_softmax(self.logits(params, batch), dim=-1)  # [B, C]
        nats = -log_p.gather(-1, batch["y"][:, None])[:, 0]  # [B]; a third of F.cross_entropy's ops
        return self.mean(nats, batch)

    def head_leaves(self, names: Iterable[str]) -> tuple[str, ...]:
        """Those of `names` that belong to the head."""
        return tuple(name for name in names if name in self.head)

    def body_leaves(self, names: Iterable[str]) -> tuple[str, ...]:
        """Those of `names` that don't belong to the head."""
        return tuple(name for name in names if name not in self.head)

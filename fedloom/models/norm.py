"""Batch normalisation as a pure function: statistics go in as state and come out as state.

PyTorch's module writes its running averages in place, which can't be mapped over clients and hides
them from aggregation. Here a forward pass reads the buffers it is given and leaves the new ones in
the active
`Pass`; padding rows of a batch, marked by the mask, take no part in the statistics.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass
class Pass:
    """One forward pass: its mode, its mask [B] (None: no padding) and the buffers it leaves."""

    train: bool
    mask: Tensor | None = None
    rate: float | None = None
    """How far running statistics move towards the batch's; None: as each layer says."""
    updates: dict[str, Tensor] = field(default_factory=dict)


_active: list[Pass] = []


@contextmanager
def during(current: Pass) -> Iterator[Pass]:
    """Make `current` the pass that every `BatchNorm` inside the block belongs to."""
    _active.append(current)
    try:
        yield current
    finally:
        _active.pop()


class BatchNorm(nn.Module):
    """Normalises [B, c, ...] over all axes but c, with the leaf names of `torch.nn.BatchNorm2d`.

    Without tracked statistics the batch's own are used in evaluation too, so predictions depend on
    the composition of the batch. `path` is the module's dotted name inside its network.
    """

    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(self, source: nn.modules.batchnorm._BatchNorm, path: str) -> None:
        super().__init__()
        self.eps, self.momentum, self.path = source.eps, source.momentum, path
        self.weight, self.bias = source.weight, source.bias
        for name in ("running_mean", "running_var", "num_batches_tracked"):
            self.register_buffer(name, getattr(source, name, None))

    def forward(self, x: Tensor) -> Tensor:
        """Normalise by the batch's moments in training, by the running ones in evaluation."""
        current = _active[-1] if _active else Pass(train=self.training)
        mean, var = self.running_mean, self.running_var
        if not current.train and mean is not None and var is not None:
            return F.batch_norm(x, mean, var, self.weight, self.bias, False, 0.0, self.eps)
        mask = current.mask if current.train else None
        if mask is None:
            values = x.detach()
            batch_var, batch_mean = torch.var_mean(values, [0, *range(2, x.dim())], correction=0)
            count = x.new_tensor(x.numel() // x.shape[1])
            self._track(current, batch_mean, batch_var, count)
            return F.batch_norm(x, None, None, self.weight, self.bias, True, 0.0, self.eps)
        batch_mean, batch_var, count = _masked_moments(x, mask)
        self._track(current, batch_mean.detach(), batch_var.detach(), count)
        shape = (1, -1, *[1] * (x.dim() - 2))
        scale = (batch_var + self.eps).rsqrt()
        scale = scale if self.weight is None else scale * self.weight
        shift = -batch_mean * scale if self.bias is None else self.bias - batch_mean * scale
        return x * scale.view(shape) + shift.view(shape)

    def _track(self, current: Pass, mean: Tensor, var: Tensor, count: Tensor) -> None:
        if not current.train or self.running_mean is None or self.running_var is None:
            return
        assert self.num_batches_tracked is not None
        seen = self.num_batches_tracked + 1
        fixed = self.momentum if current.rate is None else current.rate
        rate = seen.to(mean.dtype).reciprocal() if fixed is None else fixed
        unbiased = var * (count / (count - 1).clamp(min=1))
        current.updates[f"{self.path}.running_mean"] = torch.lerp(
            self.running_mean, mean, torch.as_tensor(rate, dtype=mean.dtype, device=mean.device)
        )
        current.updates[f"{self.path}.running_var"] = torch.lerp(
            self.running_var, unbiased, torch.as_tensor(rate, dtype=var.dtype, device=var.device)
        )
        current.updates[f"{self.path}.num_batches_tracked"] = seen


def _masked_moments(x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Mean [c], variance [c] and number of values per channel [] over the rows whose mask is 1."""
    weight = mask.to(x.dtype).view(-1, *[1] * (x.dim() - 1))  # [B, 1, ...]
    spots = x[0, 0].numel()
    count = mask.to(x.dtype).sum() * spots
    dims = [0, *range(2, x.dim())]
    mean = (x * weight).sum(dims) / count.clamp(min=1)  # [c]
    shape = (1, -1, *[1] * (x.dim() - 2))
    var = ((x - mean.view(shape)).square() * weight).sum(dims) / count.clamp(min=1)
    return mean, var, count


def convert(net: nn.Module) -> nn.Module:
    """Replace every batch normalisation inside `net`, in place, keeping names and values."""
    for path, module in list(net.named_modules()):
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            parent_path, _, name = path.rpartition(".")
            setattr(net.get_submodule(parent_path), name, BatchNorm(module, path))
    return net

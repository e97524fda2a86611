"""A convolution, 2x2 max-pooling and ReLU in one layer, for quick training on one CPU thread.

A pooling window's four spots all lie in one (k + 1) x (k + 1) patch of the input. So the kernel is
put at its four places in such a patch, one product with patches two pixels apart gives every
window's four candidates as four blocks of channels, and pooling is a maximum of whole blocks.
Letters: B batch, c channels in, o channels out, k kernel, [H, W] image, [h, w] pooled image.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd import Function

IN_CACHE = 1 << 19
"""Numbers in an unfolded image (2 MiB) beyond which memory makes a plain product the slower way."""


class PooledConv2d(nn.Conv2d):
    """`relu(max_pool2d(conv2d(x), 2))`, with the leaves and the start of `torch.nn.Conv2d`.

    The kernel is square; there is no padding. Values and gradients are PyTorch's up to rounding; as
    there, the first of equal candidates in scanning order gets the gradient. Can be mapped over
    lanes, traced, and differentiated twice. Evaluation and autocasting use PyTorch's own layers.
    """

    bias: Tensor

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int) -> None:
        super().__init__(in_channels, out_channels, kernel_size)

    def forward(self, x: Tensor) -> Tensor:
        """[B, c, H, W] -> [B, o, (H - k + 1) // 2, (W - k + 1) // 2]."""
        if not self.training or torch.is_autocast_enabled(x.device.type):
            return F.relu(F.max_pool2d(super().forward(x), 2))
        size = self.kernel_size[0] + 1
        batch, channels, height, width = x.shape
        pooled = ((height - size) // 2 + 1, (width - size) // 2 + 1)
        placed = _Placed.apply(self.weight)  # [2, 2, o, c, k + 1, k + 1]
        numbers = batch * channels * size * size * pooled[0] * pooled[1]
        if numbers > IN_CACHE and not x.requires_grad:
            spots = F.conv2d(x.contiguous(), placed.flatten(0, 2), stride=2)  # [B, 4 o, h, w]
            return _Peak.apply(spots, self.bias, 1)[0]
        last = x.permute(1, 2, 3, 0).contiguous()  # [c, H, W, B]: long runs of memory
        patches = _Patches.apply(last, size)  # [c (k + 1)^2, h w B]
        spots = placed.reshape(4 * self.out_channels, -1).mm(patches)  # [4 o, h w B]
        peak = _Peak.apply(spots, self.bias, 0)[0]  # [o, h w B]
        return peak.reshape(-1, *pooled, batch).permute(3, 0, 1, 2)


class _Placed(Function):
    """A kernel [o, c, k, k] at its places in a patch: [2, 2, o, c, k + 1, k + 1], last place first.

    The first two axes are row and column; index 1 is the upper or left place.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(weight: Tensor) -> Tensor:
        size = weight.shape[-1] + 1
        padded = F.pad(weight, (1, 1, 1, 1))
        return padded.unfold(2, size, 1).unfold(3, size, 1).permute(2, 3, 0, 1, 4, 5).contiguous()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        lower = grad[0, 0, ..., 1:, 1:] + grad[0, 1, ..., 1:, :-1]
        upper = grad[1, 0, ..., :-1, 1:] + grad[1, 1, ..., :-1, :-1]
        return lower + upper


class _Patches(Function):
    """Patches of an image [c, H, W, B] two pixels apart, as columns: [c size^2, h w B]."""

    generate_vmap_rule = True

    @staticmethod
    def forward(image: Tensor, size: int) -> Tensor:
        patches = image.unfold(1, size, 2).unfold(2, size, 2)  # [c, h, w, B, size, size]
        return patches.permute(0, 4, 5, 1, 2, 3).reshape(image.shape[0] * size * size, -1)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.shape, ctx.size = inputs[0].shape, inputs[1]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _Overlaid.apply(grad, ctx.shape, ctx.size), None


class _Overlaid(Function):
    """The transpose of `_Patches`: columns added up where they lie in an image."""

    generate_vmap_rule = True

    @staticmethod
    def forward(columns: Tensor, shape: tuple[int, ...], size: int) -> Tensor:
        channels, height, width, batch = shape
        rows, cols = (height - size) // 2 + 1, (width - size) // 2 + 1
        # Pixels of like parity side by side: then a patch's offset is a shift of whole rows.
        tall, wide, half = (height + 1) // 2, (width + 1) // 2, (size + 1) // 2
        columns = columns.reshape(channels, size, size, rows, cols, batch)
        total = columns.new_zeros(channels, 2, 2, tall, wide, batch)
        for i in range(half):
            for j in range(half):
                part = columns[:, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2]
                there = total[:, : part.shape[1], : part.shape[2]]
                there[:, :, :, i : i + rows, j : j + cols].add_(part)
        image = total.permute(0, 3, 1, 4, 2, 5).reshape(channels, 2 * tall, 2 * wide, batch)
        return image[:, :height, :width]

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.size = inputs[2]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return _Patches.apply(grad, ctx.size), None, None


class _Peak(Function):
    """ReLU of the highest of four blocks of channels plus a bias [o].

    `spots` has the blocks along axis `dim`, in the order of `_Placed`. Beside the result come the
    leads of the second candidate over the first, by rows' sides and by rows, for the gradient.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(spots: Tensor, bias: Tensor, dim: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        blocks = spots.unflatten(dim, (4, -1))
        lower_right, lower_left, upper_right, upper_left = blocks.unbind(dim)
        upper, lower = (
            torch.maximum(upper_right, upper_left),
            torch.maximum(lower_right, lower_left),
        )
        highest = torch.maximum(upper, lower)
        shape = [-1] + [1] * (spots.dim() - dim - 1)
        out = torch.relu(highest + bias.view(shape))
        return out, lower - upper, lower_right - lower_left, upper_right - upper_left

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.dim = inputs[2]
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(*output)
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, Tensor | None, None]:
        if grads[0] is None:
            return None, None, None
        out, rows, lower_sides, upper_sides = ctx.saved_tensors
        grad = _where_positive(grads[0], out.detach())
        lower = _where_positive(grad, rows)
        upper = grad - lower
        lower_right = _where_positive(lower, lower_sides)
        upper_right = _where_positive(upper, upper_sides)
        blocks = (lower_right, lower - lower_right, upper_right, upper - upper_right)
        others = [axis for axis in range(grad.dim()) if axis != ctx.dim]
        return torch.cat(blocks, ctx.dim), grad.sum(others), None


def _where_positive(grad: Tensor, score: Tensor) -> Tensor:
    """`grad` where `score` is positive, else zero; several times as quick as `torch.where`."""
    kept: Tensor = torch.ops.aten.threshold_backward(grad, score, 0)
    return kept

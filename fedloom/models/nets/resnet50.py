"""ResNet-50 for small images."""

import torch.nn.functional as F
from torch import Tensor, nn

from fedloom.models.parts import Split, Width, image

STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))
"""Width, number of blocks and stride of the first block, for each stage."""

EXPANSION = 4
"""Output channels of a block per unit of its width."""


class Bottleneck(nn.Module):
    """1x1, 3x3 and 1x1 convolutions with batch normalisation, around a shortcut."""

    def __init__(self, into: int, width: int, stride: int) -> None:
        super().__init__()
        out = EXPANSION * width
        self.residual = nn.Sequential(
            nn.Conv2d(into, width, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, stride=stride, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, out, 1, bias=False),
            nn.BatchNorm2d(out),
        )
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or into != out:
            self.shortcut = nn.Sequential(
                nn.Conv2d(into, out, 1, stride=stride, bias=False), nn.BatchNorm2d(out)
            )

    def forward(self, x: Tensor) -> Tensor:
        """[B, into, h, w] -> [B, 4 width, h / stride, w / stride]."""
        return F.relu(self.residual(x) + self.shortcut(x))


def build(input_shape: tuple[int, ...], num_classes: int, *, outputs: Width | None = None) -> Split:
    """3x3 stem without pooling, then 3, 4, 6 and 3 bottleneck blocks; tracked normalisation.

    `outputs` gives the head more logits than there are classes. PyTorch's default start. For 3
    channels: 23,520,842 parameters with 10 outputs, 25,549,352 with 1,000, and 53,173 buffer
    elements. Images need at least 8x8 pixels.
    Source: He et al., Deep Residual Learning, CVPR 2016, arXiv:1512.03385, form for 32x32 images.
    """
    into, _, _ = image("resnet50", input_shape, least=8)
    layers: list[nn.Module] = [
        nn.Conv2d(into, 64, 3, padding=1, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(),
    ]
    into = 64
    for width, blocks, first_stride in STAGES:
        for place in range(blocks):
            layers.append(Bottleneck(into, width, first_stride if place == 0 else 1))
            into = EXPANSION * width
    body = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
    return Split(body, nn.Linear(into, num_classes if outputs is None else outputs))

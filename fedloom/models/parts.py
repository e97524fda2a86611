"""What the built-in networks share: the cut between body and head, initial weights, size checks."""

import math
from typing import Annotated

from pydantic import Field
from torch import Tensor, nn

from fedloom.errors import ConfigError

Width = Annotated[int, Field(ge=1)]
"""A number of units, channels or outputs."""

Rate = Annotated[float, Field(ge=0.0, lt=1.0)]
"""The share of values that dropout zeroes."""


class Split(nn.Module):
    """`head(body(x))`: features [B, d], then logits [B, C]."""

    def __init__(self, body: nn.Module, head: nn.Linear) -> None:
        super().__init__()
        self.body = body
        self.head = head

    def forward(self, x: Tensor) -> Tensor:
        """Logits [B, C] of a batch [B, *input_shape]."""
        return self.head(self.body(x))


def image(name: str, input_shape: tuple[int, ...], least: int) -> tuple[int, int, int]:
    """(channels, height, width) of images that `name` can read.

    Raises ConfigError if these aren't images, or if a side is shorter than `least` pixels.
    """
    shape = " x ".join(map(str, input_shape))
    if len(input_shape) != 3:
        raise ConfigError(
            f"model {name} needs images (channels x height x width), but an example of this data "
            f"is {shape}; use mlp or linear"
        )
    channels, height, width = input_shape
    if min(height, width) < least:
        raise ConfigError(
            f"model {name} needs images of at least {least} x {least} pixels, but these are "
            f"{height} x {width}; use mlp or linear"
        )
    return channels, height, width


def normal_weights(module: nn.Module) -> None:
    """The benchmark's start for linear layers: weights N(0, 0.1^2), biases 0.1."""
    if isinstance(module, nn.Linear):
        nn.init.normal_(module.weight, 0.0, 0.1)
        nn.init.constant_(module.bias, 0.1)


def fan_out_weights(module: nn.Module) -> None:
    """The start of VGG's convolutions: weights N(0, 2 / (k^2 c_out)), biases 0."""
    if isinstance(module, nn.Conv2d):
        fan_out = math.prod(module.kernel_size) * module.out_channels
        nn.init.normal_(module.weight, 0.0, math.sqrt(2.0 / fan_out))
        if module.bias is not None:
            nn.init.zeros_(module.bias)

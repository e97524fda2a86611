"""VGG-11 without batch normalisation."""

from torch import nn

from fedloom.models.parts import Split, fan_out_weights, image

STAGES = ((64,), (128,), (256, 256), (512, 512), (512, 512))
"""Channels of the 3x3 convolutions; each stage ends with pooling."""


def build(input_shape: tuple[int, ...], num_classes: int) -> Split:
    """Eight 3x3 convolutions in five pooled stages, then linear layers 512, 512; no dropout.

    Convolutions start from N(0, 2 / (9 c_out)) with zero bias, linear layers from PyTorch's
    default. With ten classes 9,750,922 parameters, with a hundred 9,797,092, for 3x32x32 images.
    Images need at least 32x32 pixels.
    Source: Simonyan and Zisserman, Very Deep Convolutional Networks, ICLR 2015, arXiv:1409.1556.
    """
    into, height, width = image("vgg11", input_shape, least=32)
    layers: list[nn.Module] = []
    for stage in STAGES:
        for place, out in enumerate(stage, start=1):
            layers.append(nn.Conv2d(into, out, 3, padding=1))
            layers += [nn.MaxPool2d(2)] if place == len(stage) else []
            layers.append(nn.ReLU())
            into = out
    body = nn.Sequential(
        *layers,
        nn.Flatten(),
        nn.Linear(512 * (height // 32) * (width // 32), 512),
        nn.ReLU(),
        nn.Linear(512, 512),
        nn.ReLU(),
    ).apply(fan_out_weights)
    return Split(body, nn.Linear(512, num_classes))

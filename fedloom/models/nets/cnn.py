"""The benchmark's small convolutional network."""

from collections import OrderedDict

from torch import nn

from fedloom.models.parts import Split, image
from fedloom.models.pooled import PooledConv2d


def build(input_shape: tuple[int, ...], num_classes: int) -> Split:
    """Two 5x5 convolutions (6 and 16 channels) with max-pooling, then linear layers 120, 84.

    Convolution, pooling and ReLU are one layer, for speed; names count them as three, like a plain
    sequence. PyTorch's default start. With ten classes: 44,426 parameters for 1x28x28 images,
    62,006 for 3x32x32. Images need at least 16x16 pixels.
    Source: Li et al., Federated Learning on Non-IID Data Silos, ICDE 2022, arXiv:2102.02079.
    """
    channels, height, width = image("cnn", input_shape, least=16)
    spots = ((height - 4) // 2 - 4) // 2 * (((width - 4) // 2 - 4) // 2)
    layers: dict[str, nn.Module] = {
        "0": PooledConv2d(channels, 6, 5),
        "3": PooledConv2d(6, 16, 5),
        "6": nn.Flatten(),
        "7": nn.Linear(16 * spots, 120),
        "8": nn.ReLU(),
        "9": nn.Linear(120, 84),
        "10": nn.ReLU(),
    }
    body = nn.Sequential(OrderedDict(layers))
    return Split(body, nn.Linear(84, num_classes))

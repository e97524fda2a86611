"""A four-layer convolutional network with batch normalisation, for quick runs."""

from torch import nn

from fedloom.models.parts import Split, image


def build(input_shape: tuple[int, ...], num_classes: int) -> Split:
    """Four blocks of 3x3 convolution (64 channels), batch normalisation, max-pooling and ReLU.

    Normalisation keeps no running statistics: the batch's own are used in evaluation too, so a
    prediction depends on the rest of its batch. PyTorch's default start. 115,658 parameters for
    3x32x32 images and ten classes. Images need at least 16x16 pixels.
    Source: Oh et al., FedBABU, ICLR 2022, arXiv:2106.06042 (code).
    """
    channels, height, width = image("cnn4", input_shape, least=16)
    layers: list[nn.Module] = []
    for into in (channels, 64, 64, 64):
        layers += [
            nn.Conv2d(into, 64, 3, padding=1),
            nn.BatchNorm2d(64, track_running_stats=False),
            nn.MaxPool2d(2),
            nn.ReLU(),
        ]
    body = nn.Sequential(*layers, nn.Flatten())
    return Split(body, nn.Linear(64 * (height // 16) * (width // 16), num_classes))

"""The benchmark's small convolutional network."""

from torch import nn

from fedloom.models.parts import Split, image


def build(input_shape: tuple[int, ...], num_classes: int) -> Split:
    """Two 5x5 convolutions (6 and 16 channels) with max-pooling, then linear layers 120, 84.

    Pooling comes before ReLU: both are monotone, so the result is the same and ReLU has a quarter
    of the work. PyTorch's default start. With ten classes: 44,426 parameters for 1x28x28 images,
    62,006 for 3x32x32. Images need at least 16x16 pixels.
    Source: Li et al., Federated Learning on Non-IID Data Silos, ICDE 2022, arXiv:2102.02079.
    """
    channels, height, width = image("cnn", input_shape, least=16)
    spots = ((height - 4) // 2 - 4) // 2 * (((width - 4) // 2 - 4) // 2)
    body = nn.Sequential(
        nn.Conv2d(channels, 6, 5),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Conv2d(6, 16, 5),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(16 * spots, 120),
        nn.ReLU(),
        nn.Linear(120, 84),
        nn.ReLU(),
    )
    return Split(body, nn.Linear(84, num_classes))

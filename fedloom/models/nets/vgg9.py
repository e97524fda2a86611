"""VGG-9."""

from torch import nn

from fedloom.models.parts import Rate, Split, image


def build(
    input_shape: tuple[int, ...],
    num_classes: int,
    *,
    channel_dropout: Rate = 0.05,
    dropout: Rate = 0.1,
) -> Split:
    """Six 3x3 convolutions (32-64-128-128-256-256), pooled after each pair; linear 512, 512.

    Channel dropout follows the second pooling; dropout comes before the first linear layer and
    before the head. PyTorch's default start. 3,491,530 parameters for 3x32x32 images and ten
    classes. Images need at least 8x8 pixels.
    Source: Li et al., Federated Learning on Non-IID Data Silos, ICDE 2022, arXiv:2102.02079.
    """
    channels, height, width = image("vgg9", input_shape, least=8)
    pairs = ((channels, 32, 64), (64, 128, 128), (128, 256, 256))
    layers: list[nn.Module] = []
    for place, (into, middle, out) in enumerate(pairs):
        layers += [
            nn.Conv2d(into, middle, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(middle, out, 3, padding=1),
            nn.MaxPool2d(2),
            nn.ReLU(),
        ]
        if place == 1:
            layers.append(nn.Dropout2d(channel_dropout))
    body = nn.Sequential(
        *layers,
        nn.Flatten(),
        nn.Dropout(dropout),
        nn.Linear(256 * (height // 8) * (width // 8), 512),
        nn.ReLU(),
        nn.Linear(512, 512),
        nn.ReLU(),
        nn.Dropout(dropout),
    )
    return Split(body, nn.Linear(512, num_classes))

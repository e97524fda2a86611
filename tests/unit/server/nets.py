"""Networks of a user's own, as the tests name them by their dotted path."""

from torch import Tensor, nn


class Normed(nn.Module):
    """Two layers with batch normalisation between them."""

    def __init__(self, input_shape: tuple[int, ...], num_classes: int) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(input_shape[0], 8), nn.BatchNorm1d(8), nn.Tanh())
        self.head = nn.Linear(8, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(x))


class Dropping(Normed):
    """The same with dropout before the head."""

    def __init__(self, input_shape: tuple[int, ...], num_classes: int) -> None:
        super().__init__(input_shape, num_classes)
        self.body.append(nn.Dropout(0.3))

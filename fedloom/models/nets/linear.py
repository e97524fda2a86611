"""A single linear layer."""

import math

from torch import nn

from fedloom.models.parts import Split


def build(input_shape: tuple[int, ...], num_classes: int) -> Split:
    """One linear layer on the flattened input, PyTorch's default start.

    8 parameters for 3 features and 2 classes (FCUBE). The body has none: features are the input.
    Source: Li et al., Federated Learning on Non-IID Data Silos, ICDE 2022, arXiv:2102.02079 (code).
    """
    return Split(nn.Flatten(), nn.Linear(math.prod(input_shape), num_classes))

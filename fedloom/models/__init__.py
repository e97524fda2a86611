"""Networks: a body that gives features and a head that gives logits, built-in or the user's own."""

from fedloom.models.flops import forward_flops, training_flops
from fedloom.models.model import Model
from fedloom.models.registry import default, initialise, make, names, parse
from fedloom.models.surgery import groupnorm, min_batch

__all__ = [
    "Model",
    "default",
    "forward_flops",
    "groupnorm",
    "initialise",
    "make",
    "min_batch",
    "names",
    "parse",
    "training_flops",
]

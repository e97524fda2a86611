"""Floating-point operations, counted by running the network once."""

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode


def forward_flops(net: nn.Module, input_shape: tuple[int, ...]) -> int:
    """Operations of one example's forward pass: two for each multiply-add.

    Matrix products and convolutions are counted; additions of biases, activations, pooling and
    normalisation are not.
    """
    counter = FlopCounterMode(display=False)
    training = net.training
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]), counter:
            net.eval()(torch.zeros(2, *input_shape))
    finally:
        net.train(training)
    return counter.get_total_flops() // 2


def training_flops(net: nn.Module, input_shape: tuple[int, ...]) -> int:
    """Operations of one example's training step: three forward passes.

    The backward pass costs two: one product for the weights' gradients and one for the inputs'.
    """
    return 3 * forward_flops(net, input_shape)

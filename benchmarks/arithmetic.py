"""The arithmetic of a round, and how fast this machine multiplies matrices."""

import time

import torch
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.work import Work, network

SIDE = 2048


def product_rate(repeats: int) -> float:
    """Operations a second of the fastest of `repeats` float32 products, on one thread.

    Two operations for each multiply-add, 2 * 2048^3 a product.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        draw = torch.Generator().manual_seed(0)
        a, b = (torch.randn(SIDE, SIDE, generator=draw) for _ in range(2))
        out = torch.empty(SIDE, SIDE)
        times = []
        for _ in range(repeats + 1):
            began = time.perf_counter()
            torch.mm(a, b, out=out)
            times.append(time.perf_counter() - began)
    finally:
        torch.set_num_threads(threads)
    return 2 * SIDE**3 / min(times[1:])


def round_flops(work: Work) -> int:
    """Operations of all clients in one round: products and convolutions, forward and backward.

    Counted by running one step, so the gradient of the input, which nobody computes, isn't in it;
    fedloom.models.training_flops and the field `flops` of the record take three forward passes.
    """
    net = network(work)
    x, y = torch.zeros(2, *work.shape), torch.zeros(2, dtype=torch.int64)
    with FlopCounterMode(display=False) as counter:
        F.cross_entropy(net(x), y).backward()
    return counter.get_total_flops() // 2 * work.examples

"""Changes to the normalisation of a finished network."""

import math

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from fedloom.models.norm import BatchNorm


def groupnorm(net: nn.Module, groups: int = 2) -> tuple[str, ...]:
    """Put group normalisation in place of every batch normalisation, in place; give notes.

    Names and values of the weights stay. The number of groups is `groups`, or the largest number
    below it that divides the channels and leaves at least two to a group; each such layer is noted.
    Two groups: Reddi et al., Adaptive Federated Optimization, ICLR 2021, arXiv:2003.00295.
    """
    notes = []
    for path, module in list(net.named_modules()):
        assert not isinstance(module, BatchNorm), "groupnorm comes before a task is made"
        if not isinstance(module, _BatchNorm):
            continue
        channels = module.num_features
        fitting = (g for g in range(groups, 0, -1) if channels % g == 0 and 2 * g <= channels)
        count = next(fitting, 1)
        if count != groups:
            notes.append(
                f"Layer {path!r} has {count} groups, not {groups}, of {channels} channels."
            )
        new = nn.GroupNorm(count, channels, module.eps, affine=module.weight is not None)
        new.train(module.training)
        if module.weight is not None:
            new.weight, new.bias = module.weight, module.bias
        parent_path, _, name = path.rpartition(".")
        setattr(net.get_submodule(parent_path), name, new)
    return tuple(notes)


def min_batch(net: nn.Module, input_shape: tuple[int, ...]) -> int:
    """The smallest batch that `net` can be trained on: 2 or 1.

    It is 2 if some batch normalisation sees one value a channel for a batch of one, whose variance
    is then undefined.
    """
    values: list[float] = []
    hooks = [
        module.register_forward_pre_hook(
            lambda _, args: values.append(args[0].numel() / args[0].shape[1] / 2)
        )
        for module in net.modules()
        if isinstance(module, BatchNorm | _BatchNorm)
    ]
    training = net.training
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            net.eval()(torch.zeros(2, *input_shape))
    finally:
        net.train(training)
        for hook in hooks:
            hook.remove()
    return 2 if min(values, default=math.inf) <= 1 else 1

"""Group normalisation in place of batch normalisation, and the smallest batch to train on."""

import pytest
import torch
from torch import nn

from fedloom.models import groupnorm, make, min_batch
from fedloom.models.norm import convert


def test_groupnorm_keeps_names_and_values_and_leaves_no_statistics():
    model = make("cnn4", input_shape=(3, 32, 32), num_classes=10)
    before = {name: leaf.clone() for name, leaf in model.net.named_parameters()}
    assert groupnorm(model.net) == ()
    after = dict(model.net.named_parameters())
    assert list(before) == list(after)
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert not list(model.net.buffers())
    assert not any(isinstance(m, nn.BatchNorm2d) for m in model.net.modules())


def test_under_groupnorm_an_example_does_not_see_the_rest_of_its_batch():
    net = make("cnn4", input_shape=(3, 32, 32), num_classes=10).net
    x = torch.rand(4, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    assert not torch.allclose(net(x)[:2], net(x[:2]), atol=1e-3)
    groupnorm(net)
    assert torch.allclose(net(x)[:2], net(x[:2]), atol=1e-6)


def test_a_number_of_groups_that_does_not_fit_is_replaced_and_noted():
    net = nn.Sequential(nn.BatchNorm1d(9), nn.BatchNorm1d(8, affine=False), nn.BatchNorm1d(4))
    notes = groupnorm(net, groups=4)
    assert [layer.num_groups for layer in net] == [3, 4, 2]
    assert not list(net[1].parameters())
    assert notes == (
        "Layer '0' has 3 groups, not 4, of 9 channels.",
        "Layer '2' has 2 groups, not 4, of 4 channels.",
    )


PER_CHANNEL = [
    (nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)), (3,), 2),
    (nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4, track_running_stats=False)), (3,), 2),
    (nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4)), (1, 3, 3), 2),
    (nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4)), (1, 4, 3), 1),
    (nn.Sequential(nn.BatchNorm2d(1), nn.Conv2d(1, 4, 3)), (1, 3, 3), 1),
    (nn.Sequential(nn.Linear(3, 4), nn.GroupNorm(2, 4)), (3,), 1),
    (nn.Linear(3, 4), (3,), 1),
]


@pytest.mark.parametrize(("net", "shape", "least"), PER_CHANNEL)
def test_the_smallest_batch_is_the_smallest_that_torch_trains_on(net, shape, least):
    assert min_batch(net, shape) == least
    assert net.training
    if least == 1:
        net(torch.rand(1, *shape))
    else:
        with pytest.raises(ValueError, match="more than 1 value per channel"):
            net(torch.rand(1, *shape))
    net(torch.rand(least, *shape))
    assert min_batch(convert(net), shape) == least


def test_looking_for_the_smallest_batch_changes_no_statistics():
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout())
    before = {name: leaf.clone() for name, leaf in net.state_dict().items()}
    generator = torch.get_rng_state()
    min_batch(net, (3,))
    assert all(torch.equal(before[name], leaf) for name, leaf in net.state_dict().items())
    assert torch.equal(torch.get_rng_state(), generator)

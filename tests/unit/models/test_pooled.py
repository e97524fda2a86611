"""Convolution, pooling and ReLU in one layer: PyTorch's values and gradients, wherever it runs."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, grad_and_value, vmap
from torch.fx.experimental.proxy_tensor import make_fx

from fedloom.models import pooled
from fedloom.models.pooled import PooledConv2d

SHAPES = [(5, 1, 12, 12), (1, 3, 13, 16), (3, 2, 9, 10), (4, 6, 8, 15)]


def layer(channels, out=4, kernel=5, dtype=torch.float64):
    torch.manual_seed(channels)
    return PooledConv2d(channels, out, kernel).to(dtype)


def noise(*shape, dtype=torch.float64):
    """The same numbers in every type, up to rounding."""
    generator = torch.Generator().manual_seed(0)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)


def textbook(net, x):
    return F.max_pool2d(F.relu(F.conv2d(x, net.weight, net.bias)), 2)


def gradients(output, inputs):
    weight = noise(*output.shape, dtype=output.dtype)
    return torch.autograd.grad((output * weight).sum(), inputs)


@pytest.fixture(params=["product", "convolution"])
def way(request, monkeypatch):
    """Both ways of getting the candidates, whatever the size."""
    monkeypatch.setattr(pooled, "IN_CACHE", 1 << 40 if request.param == "product" else 0)
    return request.param


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kernel", [2, 5])
def test_values_and_gradients_are_those_of_pytorchs_layers(shape, kernel, way):
    net, x = layer(shape[1], kernel=kernel), noise(*shape)
    ours, theirs = net(x), textbook(net, x)
    assert ours.shape == theirs.shape
    torch.testing.assert_close(ours, theirs)
    for a, b in zip(
        gradients(ours, (net.weight, net.bias)),
        gradients(theirs, (net.weight, net.bias)),
        strict=True,
    ):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kernel", [2, 5])
def test_an_input_that_needs_a_gradient_gets_it(shape, kernel):
    net, x = layer(shape[1], kernel=kernel), noise(*shape).requires_grad_()
    ours, theirs = (gradients(f, x)[0] for f in (net(x), textbook(net, x)))
    torch.testing.assert_close(ours, theirs)


def test_of_equal_candidates_the_first_in_scanning_order_gets_the_gradient(way):
    """Images and kernels of small integers: sums are exact, ties are many."""
    net = layer(2, out=8, kernel=3)
    with torch.no_grad():
        net.weight.copy_(torch.randint(-1, 2, net.weight.shape))
        net.bias.fill_(2.0)
    x = (noise(16, 2, 14, 14) > 0.5).double()
    spots = F.conv2d(x, net.weight, net.bias).unfold(2, 2, 2).unfold(3, 2, 2).flatten(4)
    assert ((spots == spots.amax(-1, keepdim=True)).sum(-1) > 1).double().mean() > 0.2
    ours, theirs = net(x), textbook(net, x)
    assert torch.equal(ours, theirs)
    leaves = (net.weight, net.bias)
    for a, b in zip(gradients(ours, leaves), gradients(theirs, leaves), strict=True):
        torch.testing.assert_close(a, b)


def test_in_float32_it_is_pytorch_up_to_rounding_whatever_the_memory_format(way):
    net, x = layer(3, out=6, dtype=torch.float32), noise(64, 3, 32, 32, dtype=torch.float32)
    leaves = (net.weight, net.bias)
    double = layer(3, out=6)
    expected = gradients(textbook(double, x.double()), tuple(double.parameters()))
    for form in (torch.contiguous_format, torch.channels_last):
        ours = gradients(net(x.contiguous(memory_format=form)), leaves)
        for a, b in zip(ours, expected, strict=True):
            assert (a - b).norm() < 1e-5 * b.norm()


def test_evaluation_and_autocasting_are_pytorchs_own_layers():
    net, x = layer(3, dtype=torch.float32), noise(4, 3, 12, 12, dtype=torch.float32)
    assert torch.equal(net.eval()(x), textbook(net, x))
    net.train()
    with torch.autocast("cpu", torch.bfloat16):
        ours, theirs = net(x), textbook(net, x)
    assert ours.dtype == torch.bfloat16
    assert torch.equal(ours, theirs)
    assert net.weight.grad is None
    ours.sum().backward()
    assert net.weight.grad.dtype == torch.float32


def test_second_derivatives_are_right(way):
    net, x = layer(2, out=3, kernel=3), noise(2, 2, 7, 6)

    def function(weight, bias):
        return functional_call(net, {"weight": weight, "bias": bias}, (x,)).square()

    assert torch.autograd.gradcheck(function, (net.weight, net.bias))
    assert torch.autograd.gradgradcheck(function, (net.weight, net.bias))


def test_second_derivatives_through_a_layer_below_are_right():
    nets = nn.Sequential(layer(1, out=2, kernel=2), layer(2, out=3, kernel=2))
    x = noise(2, 1, 9, 8).requires_grad_()

    def function(x, *leaves):
        named = dict(zip(dict(nets.named_parameters()), leaves, strict=True))
        return functional_call(nets, named, (x,)).square()

    assert torch.autograd.gradcheck(function, (x, *nets.parameters()))
    assert torch.autograd.gradgradcheck(function, (x, *nets.parameters()))


def two_layers(x):
    torch.manual_seed(2)
    net = nn.Sequential(layer(x.shape[2]), layer(4, out=3, kernel=3), nn.Flatten()).double()
    leaves = {name: leaf.detach() for name, leaf in net.named_parameters()}
    stacked = {name: leaf + 0.1 * noise(len(x), *leaf.shape) for name, leaf in leaves.items()}
    return net, stacked


def loss(net, leaves, x):
    return functional_call(net, leaves, (x,)).square().mean()


@pytest.mark.parametrize("traced", [False, True])
def test_mapped_over_lanes_it_is_each_lane_by_itself(way, traced):
    x = noise(3, 5, 2, 16, 15)
    net, stacked = two_layers(x)
    call = vmap(lambda leaves, x: grad_and_value(lambda p: loss(net, p, x))(leaves))
    if traced:
        call = make_fx(call, tracing_mode="fake")(stacked, x)
    grads, values = call(stacked, x)
    for lane in range(3):
        leaves = {name: leaf[lane].clone().requires_grad_() for name, leaf in stacked.items()}
        value = loss(net, leaves, x[lane])
        torch.testing.assert_close(values[lane], value)
        expected = torch.autograd.grad(value, list(leaves.values()))
        for name, grad in zip(leaves, expected, strict=True):
            torch.testing.assert_close(grads[name][lane], grad)


def test_a_recorded_step_gives_the_same_bits(way):
    x = noise(1, 5, 2, 16, 16)
    net, stacked = two_layers(x)
    leaves = {name: leaf[0] for name, leaf in stacked.items()}

    def step(leaves, x):
        fresh = {name: leaf.detach().requires_grad_() for name, leaf in leaves.items()}
        with torch.enable_grad():
            return torch.autograd.grad(loss(net, fresh, x), list(fresh.values()))

    recorded = make_fx(step, tracing_mode="fake")(leaves, x[0])
    other = {name: leaf + 0.01 for name, leaf in leaves.items()}
    again = zip(recorded(other, x[0] + 1), step(other, x[0] + 1), strict=True)
    assert all(torch.equal(a, b) for a, b in again)


def test_leaves_and_start_are_those_of_a_convolution():
    torch.manual_seed(0)
    ours = PooledConv2d(3, 6, 5).state_dict()
    torch.manual_seed(0)
    theirs = nn.Conv2d(3, 6, 5).state_dict()
    assert list(ours) == list(theirs)
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)

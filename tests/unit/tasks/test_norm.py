"""Batch normalisation as a pure function, against PyTorch's own modules."""

import copy

import pytest
import torch
from torch import nn

from fedloom.models.norm import BatchNorm, Pass, convert, during
from tests.problems import gap

CASES = {
    "table": (lambda **o: nn.BatchNorm1d(3, **o), (7, 3)),
    "series": (lambda **o: nn.BatchNorm1d(3, **o), (7, 3, 4)),
    "image": (lambda **o: nn.BatchNorm2d(3, **o), (5, 3, 4, 2)),
}
OPTIONS = [{}, {"affine": False}, {"momentum": None}, {"eps": 0.1, "momentum": 0.3}]


@pytest.fixture(params=CASES)
def make(request):
    """(options) -> PyTorch's layer inside a network with statistics of its own, and ours."""
    build, shape = CASES[request.param]

    def both(**options):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            theirs = nn.Sequential(build(**options)).double()
            for leaf in theirs.parameters():
                nn.init.normal_(leaf)
            for name, leaf in theirs.named_buffers():
                if leaf.is_floating_point():
                    leaf.copy_(torch.rand_like(leaf) + ("var" in name))
            ours = convert(copy.deepcopy(theirs))
            batches = [torch.randn(shape, dtype=torch.float64) * 3 + 1 for _ in range(3)]
        return theirs, ours, batches

    return both


def forward(net, x, *, train, mask=None, params=None, buffers=None):
    """(output, buffers after the pass)."""
    buffers = dict(net.named_buffers()) if buffers is None else buffers
    leaves = {**(dict(net.named_parameters()) if params is None else params), **buffers}
    with during(Pass(train, mask)) as current:
        out = torch.func.functional_call(net, leaves, (x,))
    return out, {**buffers, **current.updates}


@pytest.mark.parametrize("options", OPTIONS)
def test_training_gives_pytorchs_output_and_running_statistics(make, options):
    theirs, ours, batches = make(**options)
    buffers = dict(ours.named_buffers())
    for x in batches:
        out, buffers = forward(ours, x, train=True, buffers=buffers)
        assert gap(out, theirs(x)) < 1e-12
    assert gap(buffers, dict(theirs.named_buffers())) < 1e-12


@pytest.mark.parametrize("options", [*OPTIONS, {"track_running_stats": False}])
def test_evaluation_gives_pytorchs_output_and_changes_nothing(make, options):
    theirs, ours, batches = make(**options)
    before = {name: leaf.clone() for name, leaf in ours.named_buffers()}
    out, after = forward(ours, batches[0], train=False)
    assert gap(out, theirs.eval()(batches[0])) < 1e-12
    assert gap(before, after) == 0


def test_a_pass_writes_no_buffer_in_place(make):
    _, ours, batches = make()
    before = {name: leaf.clone() for name, leaf in ours.named_buffers()}
    forward(ours, batches[0], train=True)
    assert gap(before, dict(ours.named_buffers())) == 0


def padded(x):
    """x with two rows of padding, and the mask that says so."""
    rows = torch.cat([x, torch.full_like(x[:2], 1e3)])
    return rows, torch.cat([torch.ones(len(x)), torch.zeros(2)]).to(x.dtype)


@pytest.mark.parametrize("options", OPTIONS)
def test_padding_takes_no_part(make, options):
    _, ours, (x, *_) = make(**options)
    rows, mask = padded(x)
    with_padding, masked = forward(ours, rows, train=True, mask=mask)
    without, plain = forward(ours, x, train=True)
    assert gap(with_padding[: len(x)], without) < 1e-12
    assert gap(masked, plain) < 1e-12


def test_gradients_through_a_padded_batch_are_pytorchs(make):
    theirs, ours, (x, *_) = make()
    rows, mask = padded(x)
    rows.requires_grad_()
    x.requires_grad_()
    weight = torch.linspace(-1, 1, x.numel(), dtype=x.dtype).view(x.shape)
    out, _ = forward(ours, rows, train=True, mask=mask)
    (out[: len(x)] * weight).sum().backward()
    (theirs(x) * weight).sum().backward()
    assert gap(rows.grad[: len(x)], x.grad) < 1e-12
    assert float(rows.grad[len(x) :].abs().max()) == 0
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert gap(mine.grad, other.grad) < 1e-12


def test_lanes_give_what_each_client_would_alone(make):
    _, ours, batches = make()
    mask = torch.ones(3, len(batches[0]), dtype=torch.float64)
    mask[1, 3:] = 0
    params = dict(ours.named_parameters())
    buffers = dict(ours.named_buffers())

    def one(x, mask):
        return forward(ours, x, train=True, mask=mask, params=params, buffers=buffers)

    stacked = torch.func.vmap(one)(torch.stack(batches), mask)
    for lane, x in enumerate(batches):
        out, after = one(x, mask[lane])
        assert gap(stacked[0][lane], out) < 1e-12
        assert gap({name: leaf[lane] for name, leaf in stacked[1].items()}, after) < 1e-12


def test_the_counter_stays_a_whole_number_without_axes(make):
    _, ours, batches = make()
    _, after = forward(ours, batches[0], train=True)
    counter = after["0.num_batches_tracked"]
    assert (counter.dtype, counter.shape, int(counter)) == (torch.int64, (), 1)


def test_conversion_keeps_names_values_and_nesting():
    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm2d(4)
            self.deep = nn.ModuleDict({"a": nn.Sequential(nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4))})

    net = Inner()
    before = {name: leaf.clone() for name, leaf in net.state_dict().items()}
    convert(net)
    after = net.state_dict()
    assert gap({n: leaf.double() for n, leaf in before.items()}, after) == 0
    paths = {p: m.path for p, m in net.named_modules() if isinstance(m, BatchNorm)}
    assert paths == {"norm": "norm", "deep.a.1": "deep.a.1"}

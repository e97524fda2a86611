"""The built-in networks: sizes, shapes, starts, and what they refuse."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from fedloom.errors import ConfigError
from fedloom.models import default, forward_flops, make, names, training_flops
from fedloom.models.parts import Split

GREY, COLOUR = (1, 28, 28), (3, 32, 32)

SIZES = [
    ("cnn", GREY, 10, 156 + 2_416 + 30_840 + 10_164 + 850),
    ("cnn", COLOUR, 10, 456 + 2_416 + 48_120 + 10_164 + 850),
    ("mlp", (123,), 2, 3_968 + 528 + 136 + 18),
    ("mlp", (47_236,), 2, 1_511_584 + 528 + 136 + 18),
    ("mlp", (54,), 2, 1_760 + 528 + 136 + 18),
    ("mlp", (3,), 2, 810),
    ("linear", (3,), 2, 8),
    ("cnn4", COLOUR, 10, 115_658),
    ("vgg9", COLOUR, 10, 3_491_530),
    ("vgg11", COLOUR, 10, 9_750_922),
    ("vgg11", COLOUR, 100, 9_797_092),
    ("resnet50", COLOUR, 10, 23_520_842),
    ("resnet50(outputs=1000)", COLOUR, 10, 25_549_352),
]

SMALL = [row for row in SIZES if not row[0].startswith(("resnet", "vgg11"))]


@pytest.mark.parametrize(("name", "shape", "classes", "count"), SIZES)
def test_a_network_has_the_published_number_of_parameters(name, shape, classes, count):
    model = make(name, input_shape=shape, num_classes=classes)
    assert model.num_parameters == count
    assert sum(p.numel() * p.element_size() for p in model.net.parameters()) == 4 * count
    assert model.num_buffer_elements == (53_173 if name.startswith("resnet50") else 0)
    assert model.body_is_separate
    assert model.head == ("head.weight", "head.bias")
    assert model.head_module == "head"
    assert all(leaf.startswith(("body.", "head.")) for leaf, _ in model.net.named_parameters())


def test_every_network_in_the_folder_has_its_size_tested_and_a_line_with_its_source():
    assert set(names()) == {name.partition("(")[0] for name, *_ in SIZES}
    for line in names().values():
        assert "Options: " in line
        assert "arXiv:" in line


@pytest.mark.parametrize(("name", "shape", "classes", "count"), SMALL)
def test_logits_are_the_head_on_the_features(name, shape, classes, count):
    net = make(name, input_shape=shape, num_classes=classes).net.eval()
    x = torch.rand(3, *shape, generator=torch.Generator().manual_seed(0))
    features = net.body(x)  # [B, d]
    assert features.shape == (3, net.head.in_features)
    assert torch.equal(net(x), net.head(features))
    assert net(x).shape == (3, classes)
    if name != "linear":
        assert (features >= 0).all()


@pytest.mark.parametrize("side", [16, 17, 28, 33, 64])
def test_the_convolutional_networks_take_any_image_of_16_pixels_or_more(side):
    for name in ("cnn", "cnn4", "vgg9"):
        net = make(name, input_shape=(2, side, side + 3), num_classes=4).net
        assert net(torch.rand(2, 2, side, side + 3)).shape == (2, 4)


@pytest.mark.parametrize(
    ("name", "shape", "words"),
    [
        ("cnn", (1, 8, 8), "at least 16 x 16 pixels, but these are 8 x 8; use mlp"),
        ("vgg11", (3, 28, 28), "at least 32 x 32"),
        ("resnet50", (123,), "an example of this data is 123; use mlp"),
    ],
)
def test_data_that_does_not_fit_is_refused_with_what_to_use(name, shape, words):
    with pytest.raises(ConfigError, match=words):
        make(name, input_shape=shape, num_classes=10)


def test_auto_is_a_cnn_for_images_large_enough_and_an_mlp_for_the_rest():
    assert default(COLOUR) == "cnn"
    assert default((1, 8, 8)) == default((1, 8, 40)) == default((123,)) == "mlp"
    model = make("auto", input_shape=(1, 8, 8), num_classes=10)
    assert model.name == "mlp"
    assert model.notes == ("Model auto is mlp for this data.",)
    assert model.net(torch.rand(5, 1, 8, 8)).shape == (5, 10)


@pytest.mark.parametrize("shape", [GREY, COLOUR])
def test_the_cnn_has_the_names_values_and_gradients_of_a_sequence_of_pytorchs_layers(shape):
    net = make("cnn", input_shape=shape, num_classes=10).net.train()
    body = nn.Sequential(
        *[nn.Conv2d(shape[0], 6, 5), nn.MaxPool2d(2), nn.ReLU()],
        *[nn.Conv2d(6, 16, 5), nn.MaxPool2d(2), nn.ReLU()],
        *[nn.Flatten(), nn.Linear(16 * ((shape[1] - 4) // 2 - 4) ** 2 // 4, 120), nn.ReLU()],
        *[nn.Linear(120, 84), nn.ReLU()],
    )
    textbook = Split(body, nn.Linear(84, 10))
    textbook.load_state_dict(net.state_dict())
    x = torch.randn(64, *shape, generator=torch.Generator().manual_seed(1))
    y = torch.arange(64) % 10
    ours, theirs = net(x), textbook(x)
    torch.testing.assert_close(ours, theirs)
    assert torch.equal(net.eval()(x), theirs)
    gradients = [
        torch.autograd.grad(F.cross_entropy(logits, y), tuple(each.parameters()))
        for each, logits in ((net, ours), (textbook, theirs))
    ]
    for a, b in zip(*gradients, strict=True):
        assert (a - b).norm() < 1e-5 * b.norm()


def test_the_mlp_starts_as_in_the_benchmark():
    net = make("mlp", input_shape=(2_000,), num_classes=2).net
    leaves = dict(net.named_parameters())
    assert all((leaves[name] == 0.1).all() for name in leaves if name.endswith("bias"))
    first = leaves["body.1.weight"]
    # 64,000 draws: five standard errors, a false alarm in two million.
    assert abs(first.mean().item()) < 5 * 0.1 / math.sqrt(first.numel())
    assert abs(first.std().item() - 0.1) < 5 * 0.1 / math.sqrt(2 * first.numel())


def test_the_mlp_takes_widths_and_the_default_start():
    net = make("mlp(hidden=[7], init=default)", input_shape=(5,), num_classes=3).net
    shapes = [tuple(leaf.shape) for leaf in net.parameters()]
    assert shapes == [(7, 5), (7,), (3, 7), (3,)]
    assert net.body[1].weight.abs().max() <= 1 / math.sqrt(5)
    assert net.body[1].bias.unique().numel() == 7


def test_the_convolutions_of_vgg11_start_from_their_fan_out():
    net = make("vgg11", input_shape=COLOUR, num_classes=10).net
    last = [layer for layer in net.body if isinstance(layer, nn.Conv2d)][-1]
    assert (last.bias == 0).all()
    assert last.weight.std().item() == pytest.approx(math.sqrt(2 / (9 * 512)), rel=0.01)


def test_dropout_of_vgg9_can_be_turned_off():
    x = torch.rand(4, *COLOUR, generator=torch.Generator().manual_seed(0))
    with torch.random.fork_rng(devices=[]):
        noisy = make("vgg9", input_shape=COLOUR, num_classes=10).net.train()
        assert not torch.equal(noisy(x), noisy(x))
        still = make("vgg9(dropout=0, channel_dropout=0)", input_shape=COLOUR, num_classes=10).net
        assert torch.equal(still.train()(x), noisy.eval()(x))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nmlp", "unknown model 'nmlp'; did you mean 'mlp'?"),
        ("mlp(hiden=[3])", "no option 'hiden'; did you mean 'hidden'?"),
        ("cnn(width=3)", "no option 'width'; it takes none"),
        ("mlp(hidden=3)", "hidden is 3"),
        ("mlp(hidden=[0])", r"hidden.0 is 0; input should be greater than or equal to 1"),
        ("mlp(init=ones)", "init is 'ones'"),
        ("vgg9(dropout=1.0)", "dropout is 1.0; input should be less than 1"),
        ("resnet50(outputs=3)", r"logits of shape \[batch, 10\]"),
    ],
)
def test_a_wrong_name_or_option_is_refused(text, words):
    with pytest.raises(ConfigError, match=words):
        make(text, input_shape=COLOUR, num_classes=10)


def test_flops_are_two_for_each_multiply_add_and_training_costs_three_passes():
    cnn = make("cnn", input_shape=GREY, num_classes=10).net.train()
    convolutions = 24 * 24 * 6 * 25 + 8 * 8 * 16 * 150
    products = 256 * 120 + 120 * 84 + 84 * 10
    assert forward_flops(cnn, GREY) == 2 * (convolutions + products)
    assert training_flops(cnn, GREY) == 6 * (convolutions + products)
    assert cnn.training
    mlp = make("mlp", input_shape=(123,), num_classes=2).net
    assert forward_flops(mlp, (123,)) == 2 * (123 * 32 + 32 * 16 + 16 * 8 + 8 * 2)

"""Networks of the user's own, by dotted path."""

import sys
import textwrap

import pytest
import torch

from fedloom.errors import ConfigError
from fedloom.models import initialise, make
from fedloom.spec import parse

SOURCE = """
import torch
from torch import nn

class OutNet(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.out = nn.Linear(width, 3)
        self.inner = nn.Linear(5, width)
    def forward(self, x):
        return self.out(self.inner(x).relu())

class TwoLayerHead(nn.Module):
    def __init__(self, num_classes, input_shape):
        super().__init__()
        self.trunk = nn.Linear(input_shape[0], 6)
        self.fc1 = nn.Linear(6, 6)
        self.fc2 = nn.Linear(6, num_classes)
        self.spare = nn.Linear(2, 2)
        nn.init.constant_(self.trunk.weight, 0.25)
    def forward(self, x):
        return self.fc2(self.fc1(self.trunk(x).relu()).relu())

class Lazy(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        self.inner, self.fc = nn.LazyLinear(6), nn.Linear(6, num_classes)
    def forward(self, x):
        return self.fc(self.inner(x))

class NoLinear(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(5, 3))
        self.act = nn.PReLU()
    def forward(self, x):
        return self.act(x @ self.weight)

class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(5, 5, bias=False), nn.Linear(5, 5, bias=False)
        self.b.weight = self.a.weight
    def forward(self, x):
        return self.b(self.a(x))

class Pair(OutNet):
    def forward(self, x):
        return x, x

class Fails(nn.Module):
    def __init__(self, size):
        raise RuntimeError("no such size")

def small(width=2, **more):
    return OutNet(width)

def nothing():
    return None

ready = OutNet()
number = 3
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    (tmp_path / "my_nets.py").write_text(textwrap.dedent(SOURCE))
    (tmp_path / "broken_nets.py").write_text("import nothing_of_this_name\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p])
    yield tmp_path
    sys.modules.pop("my_nets", None)


def model(text, head=None, **more):
    return make(text, input_shape=(5,), num_classes=3, head=head, **more)


@pytest.mark.parametrize("text", ["my_nets:OutNet(width=8)", "my_nets.OutNet(width=8)"])
def test_a_class_in_the_current_directory_is_found_with_its_options(text):
    found = model(text)
    assert found.net.inner.out_features == 8
    assert found.net(torch.zeros(2, 5)).shape == (2, 3)
    assert found.name == text.replace("(width=8)", "(width=8)")
    assert not found.body_is_separate


def test_the_last_linear_layer_called_is_the_head_and_this_is_noted():
    found = model("my_nets:OutNet")
    assert found.head == ("out.weight", "out.bias")
    assert found.head_module == "out"
    assert found.notes == (
        "The head is 'out', the last nn.Linear that model my_nets:OutNet calls.",
    )


def test_a_head_may_have_two_layers_and_its_features_enter_the_first():
    found = model("my_nets:TwoLayerHead", head="fc2, fc1")
    assert found.head == ("fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias")
    assert found.head_module == "fc1"


def test_the_shape_and_the_classes_are_passed_on_to_a_class_that_asks():
    found = model("my_nets:TwoLayerHead")
    assert found.net.trunk.in_features == 5
    assert found.net.fc2.out_features == 3
    assert found.notes[:2] == (
        "Model my_nets:TwoLayerHead was given input_shape=(5,).",
        "Model my_nets:TwoLayerHead was given num_classes=3.",
    )
    wide = model("my_nets:TwoLayerHead(num_classes=4)")
    assert wide.net.fc2.out_features == 4
    assert "Model my_nets:TwoLayerHead(num_classes=4) has 4 outputs for 3 classes." in wide.notes


def test_a_start_set_in_the_constructor_is_kept_and_the_rest_follows_the_seed():
    one, again, two = (model("my_nets:TwoLayerHead", seed=s) for s in (1, 1, 2))
    assert (one.net.trunk.weight == 0.25).all()
    assert torch.equal(one.net.fc1.weight, again.net.fc1.weight)
    assert not torch.equal(one.net.fc1.weight, two.net.fc1.weight)
    initialise(two, 1)
    assert torch.equal(one.net.fc2.bias, two.net.fc2.bias)


def test_layers_that_wait_for_their_first_input_get_one():
    one, again = model("my_nets:Lazy"), model("my_nets:Lazy")
    assert one.net.inner.in_features == 5
    assert torch.equal(one.net.inner.weight, again.net.inner.weight)


def test_a_function_that_makes_a_network_will_do_with_any_options_it_takes():
    assert model("my_nets:small(width=6, colour=red)").net.inner.out_features == 6


def test_a_specification_read_elsewhere_in_lower_case_still_finds_its_class():
    assert model(parse("my_nets:OutNet(width=8)")).net.inner.out_features == 8


def test_a_built_in_network_takes_a_head_of_two_layers():
    found = model("mlp", head="body.5,head")
    assert found.head == ("body.5.weight", "body.5.bias", "head.weight", "head.bias")
    assert found.head_module == "body.5"


@pytest.mark.parametrize(
    ("text", "head", "words"),
    [
        ("my_nets:OutNet", "fc", r"no layer 'fc'; name its head with head=LAYER .* out, inner$"),
        ("my_nets:TwoLayerHead", "spare", "'spare' .* is never called"),
        ("my_nets:NoLinear", None, "calls no nn.Linear; name its head with head=LAYER"),
        ("my_nets:Tied", "b", "shares all its weights"),
        ("my_nets:OutNte", None, "has no 'OutNte'; did you mean 'OutNet'"),
        ("my_nets:OutNet(wdith=3)", None, "no option 'wdith'; did you mean 'width'"),
        ("my_nets:Pair", None, "it gives tuple"),
        ("my_nets:Fails", None, r"needs a value for size; write my_nets:Fails\(size=...\)"),
        ("my_nets:Fails(size=3)", None, "can't be made: RuntimeError: no such size"),
        ("my_nets:nothing", None, "must give a torch.nn.Module, but gives NoneType"),
        ("my_nets:ready", None, "object of type OutNet; name its class"),
        ("my_nets:number", None, "object of type int"),
        ("my_nets:", None, "write package.module:Class"),
        ("no_such_nets:Net", None, "can't import 'no_such_nets' .* run from the folder"),
        ("broken_nets:Net", None, "No module named 'nothing_of_this_name'"),
    ],
)
def test_what_can_not_be_used_is_refused_with_what_to_do(text, head, words):
    with pytest.raises(ConfigError, match=words):
        model(text, head)


def test_a_network_that_does_not_take_the_data_is_refused_with_the_shape():
    with pytest.raises(ConfigError, match=r"fails on a float32 batch of shape \(2, 7\)"):
        make("my_nets:OutNet", input_shape=(7,), num_classes=3)
    with pytest.raises(ConfigError, match=r"must give logits of shape \[batch, 9\]"):
        make("my_nets:OutNet", input_shape=(5,), num_classes=9)


def test_a_file_in_the_current_directory_can_not_take_the_place_of_an_installed_module(folder):
    (folder / "json.py").write_text("raise SystemExit")
    with pytest.raises(ConfigError, match="json has no 'Net'"):
        model("json:Net")
    assert sys.path[-1] == str(folder)

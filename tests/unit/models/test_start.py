"""Initial weights: a function of the seed, with streams of their own for body and head."""

import pickle

import pytest
import torch

from fedloom.models import groupnorm, initialise, make

GREY = (1, 28, 28)


def leaves(model, prefix):
    return {k: v for k, v in model.net.state_dict().items() if k.startswith(prefix)}


def same(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize("name", ["linear", "mlp", "cnn", "cnn4"])
def test_a_seed_gives_the_same_weights_and_another_seed_others(name):
    first, again, other = (make(name, input_shape=GREY, num_classes=10, seed=s) for s in (3, 3, 4))
    assert same(leaves(first, ""), leaves(again, ""))
    assert not torch.equal(first.net.head.weight, other.net.head.weight)
    initialise(other, 3)
    assert same(leaves(first, ""), leaves(other, ""))


@pytest.mark.parametrize("name", ["mlp", "cnn", "cnn4", "vgg9", "vgg11", "resnet50"])
def test_another_head_leaves_the_start_of_the_body_alone(name):
    shape = (3, 32, 32)
    ten, seven = (make(name, input_shape=shape, num_classes=c, seed=1) for c in (10, 7))
    assert leaves(ten, "body.")
    assert same(leaves(ten, "body."), leaves(seven, "body."))


def test_body_and_head_do_not_share_a_stream():
    model = make("mlp(hidden=[784])", input_shape=GREY, num_classes=784)
    assert not torch.equal(model.net.body[1].weight, model.net.head.weight)


def test_making_a_model_leaves_the_global_generator_alone():
    before = torch.get_rng_state()
    model = make("cnn", input_shape=GREY, num_classes=10)
    initialise(model, 9)
    assert torch.equal(torch.get_rng_state(), before)


def test_the_global_generator_does_not_move_a_start():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        first = make("cnn", input_shape=GREY, num_classes=10)
        torch.manual_seed(2)
        second = make("cnn", input_shape=GREY, num_classes=10)
    assert same(leaves(first, ""), leaves(second, ""))


def test_a_model_can_be_started_anew_after_surgery():
    model = make("resnet50", input_shape=(3, 8, 8), num_classes=3, seed=1)
    before = {name: leaf.clone() for name, leaf in model.net.named_parameters()}
    groupnorm(model.net)
    initialise(model, 2)
    initialise(model, 1)
    assert same(before, dict(model.net.named_parameters()))


def test_a_model_survives_being_sent_to_another_process():
    model = make("mlp(hidden=[4])", input_shape=(3,), num_classes=2)
    copy = pickle.loads(pickle.dumps(model))
    assert same(leaves(model, ""), leaves(copy, ""))
    initialise(copy, 5)
    initialise(model, 5)
    assert same(leaves(model, ""), leaves(copy, ""))

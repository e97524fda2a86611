"""A model as a function of its parameters."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.problems import CLASSES, FEATURES, Net, gap, task_of


def batch(rows=5, padding=0):
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(rows + padding, FEATURES, generator=draw, dtype=torch.float64)
    y = torch.randint(CLASSES, (rows + padding,), generator=draw)
    return {"x": x, "y": y, "mask": (torch.arange(rows + padding) < rows).double()}


@pytest.fixture(params=[False, True], ids=["plain", "normalised"])
def case(request):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        task = task_of(Net(request.param).double())
    return task, *task.initial()


def test_the_head_of_the_features_gives_the_logits(case):
    task, params, buffers = case
    features, logits = task.bind(buffers, training=False).outputs(params, batch())
    again = F.linear(features, params["head.weight"], params["head.bias"])
    assert gap(logits, again) < 1e-12
    assert features.shape == (5, 8)


def test_the_loss_is_the_mean_cross_entropy_of_what_is_no_padding(case):
    task, params, buffers = case
    bound = task.bind(buffers, training=False)
    full, short = batch(5, padding=3), batch(5, padding=3)
    short = {key: leaf[:5] for key, leaf in short.items()}
    expected = F.cross_entropy(bound.logits(params, short), short["y"])
    assert gap(bound.loss(params, full), expected) < 1e-12
    assert gap(bound.loss(params, short), expected) < 1e-12


@pytest.mark.parametrize("training", [False, True])
def test_a_padded_batch_has_the_loss_gradients_and_statistics_of_the_short_one(case, training):
    task, params, buffers = case
    padded = batch(5, padding=3)
    found = []
    for rows in (padded, {key: leaf[:5] for key, leaf in padded.items()}):
        bound = task.bind(buffers, training=training)
        grads, loss = torch.func.grad_and_value(_with_statistics(bound), has_aux=True)(params, rows)
        found.append((loss[0], tuple(grads.values()), loss[1]))
    assert gap(*found) < 1e-12
    assert bool(found[0][2]) == (training and task.has_batch_norm)


def _with_statistics(bound):
    return lambda params, rows: (
        bound.loss(params, rows),
        {name: leaf.detach() for name, leaf in bound.updates.items()},
    )


def test_binding_changes_nothing_but_the_copy(case):
    task, params, buffers = case
    other = {name: leaf + 1 for name, leaf in buffers.items()}
    bound = task.bind(other, training=True)
    bound.loss(params, batch())
    assert task.buffers == {}
    assert task.updates == {}
    assert gap(other, {name: leaf + 1 for name, leaf in buffers.items()}) == 0
    assert bool(bound.updates) == task.has_batch_norm


def test_initial_values_are_copies_of_the_networks(case):
    task, params, _ = case
    for leaf in params.values():
        leaf.add_(1)
    again, _ = task.initial()
    assert gap(again, {name: leaf - 1 for name, leaf in params.items()}) < 1e-12


def test_a_teacher_neither_drops_nor_tracks():
    class Dropping(Net):
        def __init__(self):
            super().__init__(norm=True)
            self.body = nn.Sequential(self.body, nn.Dropout(0.5))

    task = task_of(Dropping().double())
    assert task.has_dropout
    params, buffers = task.initial()
    student = task.bind(buffers, training=True)
    teacher = student.teacher()
    first, second = (teacher.logits(params, batch()) for _ in range(2))
    assert gap(first, second) == 0
    assert teacher.updates == {}
    assert student.training
    assert gap(student.logits(params, batch()), first) > 0


def test_moments_of_a_batch_are_its_mean_and_unbiased_variance():
    class Normed(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm1d(FEATURES)
            self.head = nn.Linear(FEATURES, CLASSES)

        def forward(self, x):
            return self.head(self.norm(x))

    task = task_of(Normed().double())
    params, buffers = task.initial()
    rows = batch(9)
    found = task.bind(buffers, training=False).moments(params, rows)
    assert gap(found["norm.running_mean"], rows["x"].mean(0)) < 1e-12
    assert gap(found["norm.running_var"], rows["x"].var(0)) < 1e-12


def test_leaves_are_split_into_body_and_head(case):
    task, params, _ = case
    body, head = task.body_leaves(params), task.head_leaves(params)
    assert head == ("head.weight", "head.bias")
    assert sorted(body + head) == sorted(params)

"""Scores of a model on rows."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score, recall_score

from fedloom.clients.examples import Examples
from fedloom.server.evaluate import evaluate
from tests.problems import FEATURES, Net, same_bits, task_of

BATCHES = (1, 4, 5, 64)


class Told:
    """A task whose logits are the inputs."""

    def __init__(self, num_classes):
        self.num_classes = num_classes

    def bind(self, buffers, *, training):
        assert not training
        return SimpleNamespace(logits=lambda params, batch: batch["x"])


def scored(logits, y, batch=3):
    logits = np.asarray(logits, np.float32)
    examples = Examples(logits, np.asarray(y, np.int64))
    return evaluate(Told(logits.shape[1]), {}, {}, examples, torch.arange(len(y)), batch)


def saying(predicted, num_classes):
    return np.eye(num_classes, dtype=np.float32)[predicted] * 5


@pytest.mark.parametrize("batch", BATCHES)
def test_a_partial_last_batch_counts_by_its_rows(batch):
    """Five rows, the first four wrong: 0.2 (batch means would give 0.5, dropping 0.0)."""
    scores = scored(saying([1, 1, 1, 1, 0], 2), [0] * 5, batch)
    assert scores.accuracy == 0.2
    assert scores.num_examples == 5


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40),
    st.sampled_from(BATCHES),
)
def test_scores_are_scikit_learns(pairs, batch):
    y, predicted = map(list, zip(*pairs, strict=True))
    scores = scored(saying(predicted, 4), y, batch)
    assert scores.accuracy == pytest.approx(np.mean(np.equal(y, predicted)))
    present = sorted(set(y))
    assert scores.macro_f1 == pytest.approx(
        f1_score(y, predicted, labels=present, average="macro", zero_division=0)
    )
    recalls = recall_score(y, predicted, labels=present, average="macro", zero_division=0)
    assert scores.balanced_accuracy == pytest.approx(recalls)


def test_the_loss_is_the_mean_over_rows_for_every_batch_size():
    logits = np.random.RandomState(0).randn(23, 5).astype(np.float32)
    y = np.arange(23) % 5
    expected = float(F.cross_entropy(torch.from_numpy(logits).double(), torch.from_numpy(y)))
    for batch in BATCHES:
        assert scored(logits, y, batch).loss == pytest.approx(expected, abs=1e-12)


def test_a_class_without_rows_is_missing_and_counts_nowhere():
    """Right on 8 of 10 of class 0 and 5 of 10 of class 1, none of class 2: macro mean 0.65."""
    predicted = [0] * 8 + [2] * 2 + [1] * 5 + [2] * 5
    scores = scored(saying(predicted, 3), [0] * 10 + [1] * 10)
    event = scores.as_event(("a", "b", "c"))
    assert event["per_class_accuracy"] == [0.8, 0.5, None]
    assert event["num_classes_scored"] == 2
    assert event["balanced_accuracy"] == pytest.approx(0.65)
    assert event["accuracy"] == pytest.approx(0.65)


def test_no_rows_have_no_scores():
    scores = scored(np.zeros((0, 3)), [])
    assert scores.accuracy is None
    assert scores.balanced_accuracy is None
    assert scores.macro_f1 is None
    assert scores.per_class == [None] * 3


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_one_logit_that_is_not_finite_marks_the_scores(bad):
    logits = saying([0, 1, 1], 2)
    assert scored(logits, [0, 1, 1]).finite
    logits[1, 0] = bad
    scores = scored(logits, [0, 1, 1])
    assert not scores.finite
    assert scores.as_event(("a", "b"))["diverged"] is True
    assert scores.num_examples == 3


def test_rows_of_nothing_but_nan_count_as_class_0():
    logits = np.full((6, 3), math.nan)
    scores = scored(logits, [0, 0, 1, 1, 2, 2])
    assert scores.accuracy == pytest.approx(1 / 3)
    assert scores.as_event(("zero", "b", "c"))["constant_prediction"] == "zero"


@pytest.mark.parametrize(("ones", "constant"), [(0, "a"), (1, "a"), (2, None), (3, None)])
def test_one_class_for_more_than_99_percent_is_a_constant(ones, constant):
    predicted = np.zeros(200, int)
    predicted[:ones] = 1
    y = np.arange(200) % 2
    assert scored(saying(predicted, 2), y).as_event(("a", "b"))["constant_prediction"] == constant


def test_a_test_set_of_one_class_that_is_given_rightly_is_no_constant_prediction():
    scores = scored(saying([1] * 30, 2), [1] * 30)
    assert scores.accuracy == 1.0
    assert scores.constant_prediction is None


def test_scores_of_parts_add_up_to_those_of_the_whole():
    logits = np.random.RandomState(0).randn(40, 3)
    y = np.arange(40) % 3
    whole = scored(logits, y)
    parts = scored(logits[:13], y[:13]) + scored(logits[13:], y[13:])
    assert (parts.confusion == whole.confusion).all()
    assert parts.loss == pytest.approx(whole.loss, abs=1e-12)
    logits[3, 0] = math.nan
    assert not (scored(logits[:13], y[:13]) + scored(logits[13:], y[13:])).finite


def test_evaluation_changes_neither_the_model_nor_a_random_stream():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        task = task_of(Net(norm=True).double())
    params, buffers = task.initial()
    before = {n: leaf.clone() for n, leaf in (*params.items(), *buffers.items())}
    x = np.random.RandomState(0).randn(30, FEATURES)
    examples = Examples(x, np.arange(30) % 3)
    state = torch.random.get_rng_state()
    task.model.net.train()
    found = [evaluate(task, params, buffers, examples, torch.arange(30), b) for b in BATCHES]
    assert same_bits(before, {**params, **buffers})
    assert torch.equal(state, torch.random.get_rng_state())
    assert all((each.confusion == found[0].confusion).all() for each in found)
    assert max(abs(each.loss - found[0].loss) for each in found) < 1e-12

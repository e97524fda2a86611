"""Scores of a model on rows: sums over examples, so that no batch size can change them."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import add, itemgetter
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from fedloom import tree
from fedloom.clients.examples import Examples
from fedloom.engine.cohort import Engine
from fedloom.tasks.task import Task
from fedloom.types import Params

CONSTANT_SHARE = 0.99  # a model that gives one class to more of the rows predicts a constant

Shift = Callable[[int, Tensor], Tensor]
"""(first row of the block, x) -> x with noise added."""


@dataclass(frozen=True)
class Scores:
    """What a model scored on `num_examples` rows. Classes without rows count nowhere."""

    confusion: np.ndarray
    """int64 [C, C], rows are true classes."""
    loss: float
    """Mean cross-entropy in nats."""
    finite: bool
    """Whether every logit was."""

    @property
    def num_examples(self) -> int:
        """Rows scored."""
        return int(self.confusion.sum())

    @property
    def accuracy(self) -> float | None:
        """Share of rows predicted right; None without rows."""
        total = self.num_examples
        return float(np.trace(self.confusion)) / total if total else None

    @property
    def per_class(self) -> list[float | None]:
        """Accuracy within each true class; None for a class without rows."""
        rows = self.confusion.sum(1)
        hits = np.diag(self.confusion)
        return [float(h) / int(n) if n else None for h, n in zip(hits, rows, strict=True)]

    @property
    def balanced_accuracy(self) -> float | None:
        """Mean of `per_class` over the classes that have rows."""
        defined = [value for value in self.per_class if value is not None]
        return float(np.mean(defined)) if defined else None

    @property
    def macro_f1(self) -> float | None:
        """Mean F1 over the classes that have rows."""
        true, predicted = self.confusion.sum(1), self.confusion.sum(0)
        hits = np.diag(self.confusion)
        f1 = [2.0 * h / (t + p) for h, t, p in zip(hits, true, predicted, strict=True) if t]
        return float(np.mean(f1)) if f1 else None

    @property
    def constant_prediction(self) -> int | None:
        """The class given to more than 99 % of the rows, if there is one and it isn't right."""
        predicted = self.confusion.sum(0)
        top = int(predicted.argmax())
        share = predicted[top] / max(1, self.num_examples)
        right = self.confusion[top, top] / max(1, self.num_examples)
        return top if share > CONSTANT_SHARE and right < CONSTANT_SHARE else None

    def __add__(self, other: "Scores") -> "Scores":
        total = self.num_examples + other.num_examples
        loss = (self.loss * self.num_examples + other.loss * other.num_examples) / max(1, total)
        return Scores(self.confusion + other.confusion, loss, self.finite and other.finite)

    def as_event(self, classes: tuple[str, ...]) -> dict[str, Any]:
        """The fields of an `eval` line of the record."""
        constant = self.constant_prediction
        return {
            "accuracy": self.accuracy,
            "balanced_accuracy": self.balanced_accuracy,
            "macro_f1": self.macro_f1,
            "loss": self.loss,
            "per_class_accuracy": self.per_class,
            "num_classes_scored": sum(value is not None for value in self.per_class),
            "num_examples": self.num_examples,
            "diverged": not self.finite,
            "constant_prediction": None if constant is None else classes[constant],
        }


class Share(NamedTuple):
    """A part of an evaluation that one process does."""

    number: int
    params: Params | None
    """None: those that all shares have in common."""
    buffers: Params | None
    rows: Tensor
    """int64 [n] of the examples."""


class Model(NamedTuple):
    """What the shares of an evaluation have in common."""

    params: Params
    buffers: Params
    training_rows: bool
    """Whether rows are of the training examples, not of the test set."""
    batch_size: int


def score(engine: Engine, model: Model, shares: Iterable[Share]) -> list[Scores]:
    """The scores of every share, in order; in the engine's workers if it has some."""
    return [scores for _, scores in sorted(engine.run(_score, model, shares), key=itemgetter(0))]


def score_together(engine: Engine, model: Model, rows: Tensor) -> Scores:
    """The scores of one model on rows that are shared out among the workers by batches."""
    parts = [rows] if not len(rows) else rows.split(model.batch_size)
    shares = (Share(number, None, None, part) for number, part in enumerate(parts))
    return reduce(add, score(engine, model, shares))


def _score(engine: Engine, model: Model, share: Share) -> Iterator[tuple[int, Scores]]:
    examples = engine.trainer.examples if model.training_rows else engine.test
    assert examples is not None
    params = model.params if share.params is None else share.params
    buffers = model.buffers if share.buffers is None else share.buffers
    task, size = engine.trainer.task, model.batch_size
    yield share.number, evaluate(task, params, buffers, examples, share.rows, size)


def evaluate(
    task: Task,
    params: Params,
    buffers: Params,
    examples: Examples,
    rows: Tensor,
    batch_size: int,
    shift: Shift | None = None,
) -> Scores:
    """Score a model in evaluation mode; nothing of it, or of any random stream, is changed.

    A non-finite logit counts as a prediction of class 0 (argmax of NaN) and clears `finite`.
    """
    here, size = examples.y.device, task.num_classes
    bound = task.bind(tree.to(buffers, here), training=False)
    params, rows = tree.to(params, here), rows.to(here)
    counts = torch.zeros(size * size, dtype=torch.int64, device=here)
    loss = torch.zeros((), dtype=torch.float64, device=here)
    finite, first = torch.ones((), dtype=torch.bool, device=here), 0
    with torch.no_grad():
        for part in rows.split(batch_size):
            x, y = examples.take(part)
            if shift is not None:
                x = shift(first, x)
            first += len(part)
            mask = torch.ones(len(y), device=here)
            logits = bound.logits(params, {"x": x, "y": y, "mask": mask})
            loss += F.cross_entropy(logits.double(), y, reduction="sum")
            finite &= torch.isfinite(logits).all()
            predicted = torch.where(logits.isnan(), torch.inf, logits).argmax(-1)
            counts += torch.bincount(y * size + predicted, minlength=size * size)
    confusion = counts.cpu().numpy().reshape(size, size)
    return Scores(confusion, float(loss) / max(1, int(confusion.sum())), bool(finite))

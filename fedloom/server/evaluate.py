"""Scores of a model on rows: sums over examples, so that no batch size can change them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from fedloom.clients.examples import Examples
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
    bound = task.bind(buffers, training=False)
    size = task.num_classes
    counts = np.zeros(size * size, np.int64)
    loss, finite, first = 0.0, True, 0
    with torch.no_grad():
        for part in rows.split(batch_size):
            x, y = examples.take(part)
            if shift is not None:
                x = shift(first, x)
            first += len(part)
            logits = bound.logits(params, {"x": x, "y": y, "mask": torch.ones(len(y))})
            loss += float(F.cross_entropy(logits.double(), y, reduction="sum"))
            finite = finite and bool(torch.isfinite(logits).all())
            predicted = torch.where(logits.isnan(), torch.inf, logits).argmax(-1)
            counts += np.bincount((y * size + predicted).numpy(), minlength=size * size)
    total = max(1, int(counts.sum()))
    return Scores(counts.reshape(size, size), loss / total, finite)

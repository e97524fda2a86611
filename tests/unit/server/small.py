"""Runs small enough for a test: a table of a few hundred rows, and what they leave on disk."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from fedloom.config import RunConfig
from fedloom.server.run import run

TRAIN, TEST, FEATURES, CLASSES = 150, 60, 4, 3
TIMES = ("time", "seconds", "server_seconds", "evaluation_seconds")
HERE = "tests.unit.server.nets"
NORMED, DROPPING = f"{HERE}:Normed", f"{HERE}:Dropping"


def arrays(seed: int = 0) -> dict[str, np.ndarray]:
    """Three overlapping classes in four dimensions, and who of five clients holds each row."""
    draw = np.random.RandomState(seed)
    centres = draw.randn(CLASSES, FEATURES)

    def part(rows: int) -> tuple[np.ndarray, np.ndarray]:
        y = np.arange(rows) % CLASSES
        return (centres[y] + 0.7 * draw.randn(rows, FEATURES)).astype(np.float32), y

    (x_train, y_train), (x_test, y_test) = part(TRAIN), part(TEST)
    return {
        "x_train": x_train,
        "y_train": y_train,
        "x_test": x_test,
        "y_test": y_test,
        "who_train": draw.permutation(np.arange(TRAIN) % 5),
        "who_test": np.arange(TEST) % 5,
    }


def table(path: Path, **changes: Any) -> str:
    """A data file; `changes` replace arrays."""
    np.savez(path, **{**arrays(), **changes})
    return str(path)


def config(data: str, **changes: Any) -> RunConfig:
    """A run of a few rounds of a few clients."""
    settings: dict[str, Any] = {
        "data": data,
        "partition": "label_dirichlet(alpha=1.0, min_size=2)",
        "clients": 6,
        "model": "mlp(hidden=[6], init='default')",
        "local_epochs": 2,
        "batch_size": 8,
        "lr": 0.05,
        "rounds": 4,
    }
    return RunConfig(**{**settings, **changes})


def events(folder: Path, kind: str | None = None) -> list[dict[str, Any]]:
    """The record's lines without time and without where work began and ended."""
    lines = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    wanted = [each for each in lines if each["event"] not in ("start", "end")]
    return [timeless(each) for each in wanted if kind in (None, each["event"])]


def timeless(fields: dict[str, Any]) -> dict[str, Any]:
    """Without the only fields in which a resumed run may differ from an unbroken one."""
    return {key: value for key, value in fields.items() if key not in TIMES}


def left(folder: Path) -> tuple[bytes, list[dict[str, Any]], dict[str, Any]]:
    """(bytes of the final model, record, result): all that two equal runs share."""
    result = json.loads((folder / "result.json").read_text())
    return (folder / "model.safetensors").read_bytes(), events(folder), timeless(result)


class StopAfter:
    """Interrupts a run when a round is done, as Ctrl-C would."""

    def __init__(self, round: int) -> None:
        self.round, self.done = round, -1

    def start(self, total_rounds: int, label: str) -> None:
        pass

    def advance(self, round: int, info: Any) -> None:
        self.done = max(self.done, round)
        if info and round >= self.round:
            raise KeyboardInterrupt

    def close(self) -> None:
        pass


def broken(asked: RunConfig, out: Path, *, at: int, resume: bool = False) -> None:
    """A run that is interrupted after round `at`."""
    try:
        run(asked, out, resume=resume, progress=StopAfter(at))
    except KeyboardInterrupt:
        return
    raise AssertionError("the run was not interrupted")

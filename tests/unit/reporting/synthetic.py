"""Run directories as a real run leaves them, made in milliseconds from a formula."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from fedloom.record import jsonio

CLASSES = ("0", "1", "2", "3", "4")


def write_run(
    path: Path,
    method: str = "fedavg",
    *,
    seed: int = 0,
    accuracy: list[float | None] | None = None,
    rounds: int = 20,
    final: float = 0.9,
    eval_every: int = 1,
    traffic: int = 1_000_000,
    seconds: float = 1.5,
    status: str = "finished",
    result: dict[str, Any] | None = None,
    config: dict[str, Any] | None = None,
    card: dict[str, Any] | None = None,
    refused: dict[int, list[dict[str, Any]]] | None = None,
) -> Path:
    """One run; `accuracy` lists the evaluated values, else a curve that saturates at `final`."""
    path.mkdir(parents=True)
    noise = np.random.RandomState(seed + sum(map(ord, method)))
    places = range(eval_every, rounds + 1, eval_every)
    if accuracy is None:
        wobble = noise.normal(0, 0.004, rounds + 1)
        accuracy = [
            round(final - 0.7 * np.exp(-r / 5) + (wobble[r] if r < rounds else 0), 6)
            for r in places
        ]
    lines: list[dict[str, Any]] = [
        {"event": "start", "time": "2026-01-01T00:00:00Z", "fedloom": "0.1.0", "notes": []}
    ]
    measured = dict(zip(places, accuracy, strict=False))
    for r in range(1, max(measured, default=0) + 1):
        lines.append(
            {
                "event": "round",
                "round": r,
                "lr": 0.01,
                "cohort": [0, 1, 2, 3],
                "train_loss": 2.0 / r,
                "steps": 40,
                "examples": 2560,
                "bytes_up": traffic // 2,
                "bytes_down": traffic // 2,
                "flops": 10**9,
                "seconds": seconds,
                "server_seconds": 0.0,
                "refused": (refused or {}).get(r, []),
            }
        )
        if r in measured:
            lines.append(evaluation(r, measured[r]))
    lines.append({"event": "end", "status": status, "round": rounds})
    settings = {
        "data": "adult",
        "partition": "label_dirichlet(alpha=0.5)",
        "clients": 4,
        "method": method,
        "seed": seed,
        "lr": 0.01,
        "rounds": rounds,
        "local_epochs": 10,
        "model": "mlp",
        "preset": None,
        "deviations": [],
        **(config or {}),
    }
    values = [value for value in accuracy if value is not None]
    summary = {
        "status": status,
        "label": method,
        "method": method,
        "role": "method",
        **{key: settings[key] for key in ("data", "partition", "clients", "rounds", "seed")},
        "final": {**metrics(accuracy[-1] if accuracy else None), "round": rounds},
        "best": {"round": 1, "accuracy": max(values, default=None)},
        "constant_baseline": 0.3,
        "diverged": status == "diverged",
        "diverged_round": None,
        "constant_prediction": None,
        "bytes_up": traffic * rounds // 2,
        "bytes_down": traffic * rounds // 2,
        "niid_equivalent_bytes": traffic * rounds,
        "flops": rounds * 10**9,
        "steps": 40 * rounds,
        "seconds": seconds * rounds,
        "evaluation_seconds": 2.0,
        "examples": 2560 * rounds,
        "num_parameters": 1234,
        "reported_split": "test",
        **(result or {}),
    }
    jsonio.write(path / "config.json", settings)
    jsonio.write(path / "environment.json", {"fedloom": "0.1.0", "python": "3.12.1", "threads": 1})
    if card is not None:
        jsonio.write(path / "card.json", card)
    text = "".join(json.dumps(line, allow_nan=False) + "\n" for line in lines)
    (path / "events.jsonl").write_text(text, "utf-8")
    if status != "interrupted":
        jsonio.write(path / "result.json", summary)
    return path


def metrics(accuracy: float | None) -> dict[str, Any]:
    """Metrics that go with an accuracy."""
    lower = None if accuracy is None else round(accuracy - 0.05, 6)
    loss = None if accuracy is None else round(1 - accuracy, 6)
    return {"accuracy": accuracy, "balanced_accuracy": lower, "macro_f1": lower, "loss": loss}


def evaluation(place: int, accuracy: float | None) -> dict[str, Any]:
    """An `eval` line; the last class has no test rows."""
    classes = [accuracy] * (len(CLASSES) - 1) + [None]
    return {
        "event": "eval",
        "round": place,
        "split": "test",
        **metrics(accuracy),
        "per_class_accuracy": classes,
        "num_examples": 1000,
        "seconds": 0.1,
        "diverged": accuracy is None,
        "constant_prediction": None,
    }


def write_local(path: Path, accuracies: list[float | None], *, seed: int = 0) -> Path:
    """The reference of clients that train alone; one own model for each value."""
    alone = {"role": "local", "label": "local", "constant_prediction": "0"}
    folder = write_run(path, "fedavg", seed=seed, result=alone)
    known = [value for value in accuracies if value is not None]
    line = {
        "event": "personal",
        "round": 20,
        "accuracy_mean": float(np.mean(known)),
        "accuracy_weighted": 0.5,
        "std": float(np.std(known, ddof=1)),
        "num_clients": len(known),
        "per_client": accuracies,
    }
    with (folder / "events.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
    return folder


def write_compare(
    path: Path, finals: dict[str, list[float]], *, local: bool = True, **options: Any
) -> Path:
    """A comparison: every method with one trial for each of its final accuracies."""
    names = []
    for method, values in finals.items():
        folder = method.partition("(")[0]
        for seed, value in enumerate(values):
            cost = 2 if folder == "scaffold" else 1
            names.append(f"{folder}/trial-{seed}")
            write_run(
                path / names[-1],
                method,
                seed=seed,
                final=value,
                traffic=cost * 1_000_000,
                seconds=1.5 + 0.3 * cost,
                **options,
            )
    count = len(next(iter(finals.values())))
    for seed in range(count if local else 0):
        names.append(f"centralised/trial-{seed}")
        write_run(
            path / names[-1],
            seed=seed,
            final=0.93 + 0.002 * seed,
            traffic=0,
            result={"role": "centralised", "label": "centralised"},
            config={"partition": "iid", "clients": 1},
        )
        names.append(f"local/trial-{seed}")
        write_local(path / names[-1], [0.5, 0.6, 0.7 + 0.01 * seed], seed=seed)
    jsonio.write(path / "compare.json", {"config": {}, "runs": names, "tuning": []})
    return path

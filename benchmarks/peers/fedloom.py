"""FedLoom through its public road: a file of rows, a configuration, a run directory."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

import fedloom
from benchmarks.job import Job, Outcome
from benchmarks.work import SEED, Work, client, held_out
from fedloom import models
from fedloom.rng import stream

PACKAGE = "fedloom"


def run(job: Job) -> Outcome:
    """Train; seconds are those of the record: local training and the server's part."""
    out = job.path / "run"
    result = fedloom.run(configuration(job), out=out)
    processes = job.processes if "workers" in fedloom.RunConfig.model_fields else 1
    return Outcome(round_seconds(out), in_order(job.work, result.model), processes)


def round_seconds(out: Path) -> list[float]:
    """Seconds of every round in a run's record."""
    lines = [json.loads(line) for line in (out / "events.jsonl").read_text().splitlines()]
    rounds = [line for line in lines if line["event"] == "round"]
    return [line["seconds"] + line["server_seconds"] for line in rounds]


def configuration(job: Job) -> fedloom.RunConfig:
    """The workload as settings; writes its rows to a file in the job's folder.

    `job.options` are laid over them; `{processes}` in a value stands for the number of processes.
    """
    work = job.work
    settings: dict[str, Any] = {
        "data": str(write(job)),
        "client": "client",
        "partition": "by_group",
        "model": work.model,
        "augment": "none",
        "local_epochs": work.epochs,
        "batch_size": work.batch,
        "lr": work.lr,
        "momentum": work.momentum,
        "weight_decay": 0.0,
        "rounds": job.rounds,
        "eval_every": job.rounds,
        "checkpoint_every": job.rounds,
        "seed": SEED,
    }
    if "workers" in fedloom.RunConfig.model_fields:
        settings["workers"] = job.processes
    more = {key: value.format(processes=job.processes) for key, value in job.options.items()}
    return fedloom.RunConfig(**{**settings, **more})


def write(job: Job) -> Path:
    """An NPZ file with the rows of all clients, who holds them, and a few rows for the test."""
    work = job.work
    parts = [client(work, number) for number in range(work.clients)]
    # FedLoom draws the order of rows by their place in the file, so another file is another order
    order = stream(job.seed, "benchmark", "file").permutation(work.clients * work.rows)
    x, y = (torch.cat(each).numpy() for each in zip(*parts, strict=True))
    x_test, y_test = held_out(work)
    path = job.path / f"{work.name}.npz"
    holders = np.repeat(np.arange(work.clients), work.rows)
    np.savez(
        path,
        x_train=x[order],
        y_train=y[order],
        client_train=holders[order],
        x_test=x_test.numpy(),
        y_test=y_test.numpy(),
        client_test=np.arange(len(y_test)) % work.clients,
    )
    return path


def in_order(work: Work, found: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    """Parameters by name -> in the network's order."""
    net = models.make(work.model, input_shape=work.shape, num_classes=work.classes).net
    return [found[name] for name, _ in net.named_parameters()]

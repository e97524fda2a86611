"""fluke: its centralised algorithm, which trains clients one after the other in one process."""

import time
from typing import Any

from benchmarks.peers import _torchvision  # noqa: F401

# isort: split
from fluke import DDict, FlukeENV
from fluke.algorithms.fedavg import FedAVG
from fluke.data import DataSplitter, DummyDataContainer, FastDataLoader
from fluke.utils import FederationObserver

from benchmarks.job import Job, Outcome, laps
from benchmarks.work import client, network

PACKAGE = "fluke-fl"


class Clock(FederationObserver):
    """Notes when the first round begins and when each one ends."""

    def __init__(self) -> None:
        self.stamps: list[float] = []

    def start_round(self, round: int, global_model: Any) -> None:
        """The first round begins."""
        if not self.stamps:
            self.stamps.append(time.perf_counter())

    def end_round(self, round: int) -> None:
        """A round ends."""
        self.stamps.append(time.perf_counter())


def run(job: Job) -> Outcome:
    """Train with fluke's fast loader; clients forget model and momentum after each round."""
    work, net, clock = job.work, network(job.work), Clock()
    environment = FlukeENV()
    environment.set_seed(job.seed)
    environment.set_device("cpu")
    environment.set_eval_cfg(server=False, locals=False, pre_fit=False, post_fit=False)
    loaders = [
        FastDataLoader(
            *client(work, number), num_labels=work.classes, batch_size=work.batch, shuffle=True
        )
        for number in range(work.clients)
    ]
    rows = DummyDataContainer(loaders, [None] * work.clients, None, work.classes)
    settings = DDict(
        client={
            "batch_size": work.batch,
            "local_epochs": work.epochs,
            "loss": "CrossEntropyLoss",
            "optimizer": {"name": "SGD", "lr": work.lr, "momentum": work.momentum},
            "scheduler": {"name": "StepLR", "step_size": 1, "gamma": 1},
            "persistency": False,
        },
        server={"weighted": True},
        model=net,
    )
    federation = FedAVG(work.clients, DataSplitter(rows), settings)
    federation.set_callbacks(clock)
    federation.run(job.rounds, 1.0)
    return Outcome(laps(clock.stamps), list(federation.server.model.parameters()))

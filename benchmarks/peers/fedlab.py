"""FedLab: its standalone pipeline, or its server and client managers over gloo."""

import multiprocessing
import socket
import time
from typing import Any

from benchmarks.peers import _torchvision  # noqa: F401

# isort: split
import torch
from fedlab.contrib.algorithm.basic_client import SGDSerialClientTrainer
from fedlab.contrib.algorithm.basic_server import SyncServerHandler
from fedlab.contrib.dataset.basic_dataset import FedDataset
from fedlab.core.client.manager import PassiveClientManager
from fedlab.core.network import DistNetwork
from fedlab.core.server.manager import SynchronousServerManager
from fedlab.core.standalone import StandalonePipeline
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.job import Job, Outcome, laps
from benchmarks.work import Work, client, network

PACKAGE = "fedlab"


class Clients(FedDataset):
    """Rows of all clients; FedLab leaves the loader to its user, and its own are DataLoaders."""

    def __init__(self, work: Work) -> None:
        super().__init__()
        self.work, self.num = work, work.clients

    def get_dataloader(self, id: int, batch_size: int, type: str = "train") -> Any:
        """Shuffled batches of one client."""
        return DataLoader(TensorDataset(*client(self.work, id)), batch_size, shuffle=True)


class Trainer(SGDSerialClientTrainer):
    """FedLab's SGD clients with momentum, which starts from zero in each round."""

    def __init__(self, work: Work, num_clients: int) -> None:
        super().__init__(network(work), num_clients)
        self.work = work
        self.setup_dataset(Clients(work))
        self.setup_optim(work.epochs, work.batch, work.lr)

    def train(self, model_parameters: Tensor, train_loader: Any) -> list[Tensor]:
        """One client's round with an optimizer of its own."""
        self.optimizer = torch.optim.SGD(
            self.model.parameters(), lr=self.work.lr, momentum=self.work.momentum
        )
        trained: list[Tensor] = super().train(model_parameters, train_loader)
        return trained


class Server(SyncServerHandler):
    """FedLab's synchronous server that notes when a round begins and ends; equal weights."""

    def __init__(self, job: Job) -> None:
        super().__init__(network(job.work), global_round=job.rounds, sample_ratio=1.0)
        self.stamps: list[float] = []

    def sample_clients(self) -> list[int]:
        """All clients; the first call begins the first round."""
        if not self.stamps:
            self.stamps.append(time.perf_counter())
        chosen: list[int] = super().sample_clients()
        return chosen

    def global_update(self, buffer: list[Any]) -> None:
        """Average, and with it the round ends."""
        super().global_update(buffer)
        self.stamps.append(time.perf_counter())


class Quiet(StandalonePipeline):
    """Without the example's evaluation."""

    def evaluate(self) -> None:
        """Nothing: no system is scored within its rounds."""


def run(job: Job) -> Outcome:
    """Train; with several processes one more is the server, which mostly waits."""
    server = Server(job)
    if job.processes == 1:
        Quiet(server, Trainer(job.work, job.work.clients)).main()
    else:
        _across_processes(job, server)
    return Outcome(laps(server.stamps), list(server.model.parameters()), job.processes)


def _across_processes(job: Job, server: Server) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    spawn = multiprocessing.get_context("spawn")
    others = [
        spawn.Process(target=_serve_clients, args=(job, rank, port))
        for rank in range(1, job.processes + 1)
    ]
    for other in others:
        other.start()
    network = DistNetwork(("127.0.0.1", port), job.processes + 1, rank=0)
    SynchronousServerManager(network, server, mode="GLOBAL").run()
    for other in others:
        other.join()


def _serve_clients(job: Job, rank: int, port: str) -> None:
    """A process that trains its share of the clients."""
    torch.set_num_threads(1)
    torch.manual_seed(1000 * job.seed + rank)
    mine = len(range(rank - 1, job.work.clients, job.processes))
    network = DistNetwork(("127.0.0.1", port), job.processes + 1, rank=rank)
    PassiveClientManager(network, Trainer(job.work, mine)).run()

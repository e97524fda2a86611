"""Flower's simulation: one virtual node a client, one Ray actor a process."""

import time
from typing import Any

import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation

from benchmarks.job import Job, Outcome, laps
from benchmarks.local import train
from benchmarks.peers.plain import batches
from benchmarks.work import network

PACKAGE = "flwr"


class Timed(FedAvg):
    """FedAvg that notes when each round begins and when the last one was aggregated."""

    def __init__(self, clients: int) -> None:
        super().__init__(
            fraction_train=1.0,
            fraction_evaluate=0.0,
            min_train_nodes=clients,
            min_available_nodes=clients,
        )
        self.began: list[float] = []
        self.ended = 0.0

    def configure_train(self, *given: Any, **named: Any) -> Any:
        """A round begins."""
        self.began.append(time.perf_counter())
        return super().configure_train(*given, **named)

    def aggregate_train(self, *given: Any, **named: Any) -> Any:
        """A round ends."""
        made = super().aggregate_train(*given, **named)
        self.ended = time.perf_counter()
        return made


def run(job: Job) -> Outcome:
    """Train with as many actors as processes; rows stay in the actors from the first round on."""
    found: list[Outcome] = []
    server = ServerApp()

    @server.main()
    def main(grid: Grid, context: Context) -> None:
        strategy, net = Timed(job.work.clients), network(job.work)
        result = strategy.start(
            grid=grid, initial_arrays=ArrayRecord(net.state_dict()), num_rounds=job.rounds
        )
        net.load_state_dict(result.arrays.to_torch_state_dict())
        seconds = laps([*strategy.began, strategy.ended])
        found.append(Outcome(seconds, list(net.parameters()), job.processes))

    run_simulation(
        server,
        _client_app(job),
        num_supernodes=job.work.clients,
        backend_config={
            "init_args": {"num_cpus": job.processes, "include_dashboard": False},
            "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
        },
    )
    return found[0]


def _client_app(job: Job) -> ClientApp:
    app = ClientApp()

    @app.train()
    def one_round(message: Message, context: Context) -> Message:
        torch.set_num_threads(1)
        net = network(job.work)
        net.load_state_dict(message.content["arrays"].to_torch_state_dict())
        number = int(context.node_config["partition-id"])
        round = int(message.content["config"]["server-round"])
        train(net, job, batches, round, number)
        content = RecordDict(
            {
                "arrays": ArrayRecord(net.state_dict()),
                "metrics": MetricRecord({"num-examples": job.work.rows}),
            }
        )
        return Message(content, reply_to=message)

    return app

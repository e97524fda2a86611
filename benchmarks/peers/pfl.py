"""pfl-research: its simulated backend, under torchrun where several processes are asked for."""

import os
import sys
import time
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from benchmarks.job import Job, Outcome, laps
from benchmarks.work import client, network
from fedloom.rng import torch_stream

PACKAGE = "pfl"


def run(job: Job) -> Outcome:
    """Train; each process takes its share of every cohort and the sums are reduced."""
    if job.processes > 1 and "RANK" not in os.environ:
        _again_under_torchrun(job.processes)
    # imported here: the import joins the group of processes
    from pfl.aggregate.simulate import SimulatedBackend
    from pfl.aggregate.weighting import WeightByDatapoints
    from pfl.algorithm.base import NNAlgorithmParams
    from pfl.algorithm.federated_averaging import FederatedAveraging
    from pfl.callback.base import TrainingProcessCallback
    from pfl.data.dataset import Dataset
    from pfl.data.federated_dataset import FederatedDataset
    from pfl.data.sampling import get_user_sampler
    from pfl.hyperparam import NNTrainHyperParams
    from pfl.metrics import Metrics
    from pfl.model.pytorch import PyTorchModel

    stamps: list[float] = []

    class Clock(TrainingProcessCallback):
        def on_train_begin(self, *, model: Any) -> Any:
            stamps.append(time.perf_counter())
            return super().on_train_begin(model=model)

        def after_central_iteration(self, *given: Any, **named: Any) -> tuple[bool, Any]:
            stamps.append(time.perf_counter())
            return False, Metrics()

    def rows(number: int) -> Dataset:
        # its data sets have a fixed order, so a new one is drawn each round, not each epoch
        x, y = client(work, number)
        draw = torch_stream(job.seed, "benchmark", "order", len(stamps), number)
        order = torch.randperm(len(y), generator=draw)
        return Dataset(raw_data=[x[order], y[order]])

    work, net = job.work, _with_loss(job)
    model = PyTorchModel(
        model=net,
        local_optimizer_create=lambda leaves, lr: torch.optim.SGD(
            leaves, lr=lr, momentum=work.momentum
        ),
        central_optimizer=torch.optim.SGD(net.parameters(), 1.0),
    )
    sampler = get_user_sampler("minimize_reuse", list(range(work.clients)))
    backend = SimulatedBackend(
        training_data=FederatedDataset(rows, sampler),
        val_data=None,
        postprocessors=[WeightByDatapoints()],
    )
    FederatedAveraging().run(
        algorithm_params=NNAlgorithmParams(
            central_num_iterations=job.rounds,
            evaluation_frequency=job.rounds + 1,
            train_cohort_size=work.clients,
            val_cohort_size=0,
        ),
        backend=backend,
        model=model,
        model_train_params=NNTrainHyperParams(
            local_learning_rate=work.lr,
            local_num_epochs=work.epochs,
            local_batch_size=work.batch,
        ),
        model_eval_params=None,
        callbacks=[Clock()],
    )
    return Outcome(laps(stamps), list(net.parameters()), job.processes)


def _with_loss(job: Job) -> torch.nn.Module:
    """The network with the two methods that pfl calls."""
    net = network(job.work)

    def loss(self: torch.nn.Module, x: Tensor, y: Tensor, eval: bool = False) -> Tensor:
        return F.cross_entropy(self(x), y)

    def metrics(self: torch.nn.Module, x: Tensor, y: Tensor, eval: bool = False) -> dict[str, Any]:
        return {}

    net.__class__ = type("WithLoss", (type(net),), {"loss": loss, "metrics": metrics})
    return net


def _again_under_torchrun(processes: int) -> None:
    """Replace this process by torchrun with the same worker in every rank."""
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    os.execv(sys.executable, [sys.executable, *launcher, "-m", "benchmarks.worker", *sys.argv[1:]])

"""From a configuration to everything that a run needs; what can be refused is refused here."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from fedloom import data, methods, models, partition
from fedloom.clients import sampler
from fedloom.clients.batches import LocalWork
from fedloom.clients.examples import Augment, Examples
from fedloom.clients.noise import Noise
from fedloom.clients.sampler import Population
from fedloom.clients.validation import hold_out
from fedloom.config import RunConfig
from fedloom.data import Dataset
from fedloom.engine.cohort import Engine
from fedloom.engine.optimizer import Sgd
from fedloom.engine.statistics import RECALIBRATION_ROWS
from fedloom.engine.trace import WARM_CALLS, WARM_LOOP, Replay
from fedloom.engine.trainer import Trainer
from fedloom.errors import ConfigError, PartitionError
from fedloom.method import Method
from fedloom.models import surgery
from fedloom.models.flops import training_flops
from fedloom.partition import Partition, feature
from fedloom.rng import stream
from fedloom.server import choice, schedule
from fedloom.server.choice import Choice
from fedloom.tasks.task import Task
from fedloom.types import Params

AUGMENTED = ("cifar10", "cifar100")


@dataclass(frozen=True)
class Setup:
    """The parts of one run; nothing here changes while it runs."""

    config: RunConfig
    dataset: Dataset
    partition: Partition
    method: Method
    task: Task
    params: Params
    """The initial global model."""
    buffers: Params
    engine: Engine
    choice: Choice
    """How it is trained on this machine."""
    test: Examples
    validation_rows: np.ndarray
    """Training rows that no client trains on, of all clients together."""
    population: Population
    cohort_size: int
    notes: tuple[str, ...]

    @cached_property
    def recalibration_rows(self) -> Tensor:
        """int64, the training rows that running statistics are estimated on; drawn once."""
        training = np.concatenate(list(self.engine.rows))
        order = stream(self.config.seed, "recalibrate").permutation(len(training))
        return torch.from_numpy(training[order[:RECALIBRATION_ROWS]])

    @property
    def sizes(self) -> np.ndarray:
        """int64 [N], training rows of each client."""
        return self.population.sizes

    @cached_property
    def total_examples(self) -> int:
        """Training rows of all clients together."""
        return int(self.sizes.sum())

    @property
    def noise_split(self) -> bool:
        """Whether the model is also scored on one noisy copy of the test rows per client."""
        return self.engine.trainer.noise.active and self.config.test_noise != "clean"

    @property
    def reported_split(self) -> Literal["test", "test_noise"]:
        """The rows that the reported numbers are measured on."""
        only_noisy = self.noise_split and self.config.test_noise == "party_union"
        return "test_noise" if only_noisy else "test"

    def lr(self, round: int) -> float:
        """The learning rate of a round, counted from 1."""
        factor = schedule.make(self.config.schedule)(round, self.config.rounds)
        return self.config.learning_rate * factor

    def cohort(self, round: int) -> np.ndarray:
        """Sorted ids of the clients that take part in a round."""
        draw = sampler.make(self.config.sampler)
        return draw(self.population, round, self.cohort_size)


def prepare(config: RunConfig, so_far: Choice | None = None) -> Setup:
    """Load, split and build; `so_far` is how a run that is resumed was trained.

    Raises ConfigError, DataError or PartitionError before training.
    """
    method = methods.make(config.method)
    schedule.make(config.schedule)
    sampler.make(config.sampler)
    dataset = data.load(
        config.data, data_dir=config.data_dir, seed=config.data_seed, **config.data_options
    )
    split = make_partition(config, dataset)
    rows, validation_rows, notes = hold_out(
        split.indices, dataset.y_train, config.validation, config.seed
    )
    sizes = rows.sizes
    population = Population(config.seed, sizes)
    task, min_batch, model_notes = make_task(config, dataset)
    params, buffers = task.initial()
    _refuse_single(sizes, min_batch, config)
    noise = _noise(config, dataset, sizes)
    device = choice.device(config)
    examples = Examples(dataset.x_train, dataset.y_train).to(device)
    test = Examples(dataset.x_test, dataset.y_test).to(device)
    trainer = Trainer(
        task=task,
        examples=examples,
        optimizer=Sgd(config.momentum, config.weight_decay),
        work=LocalWork(config.local_epochs, config.local_steps, config.batch_size),
        seed=config.seed,
        lanes=config.lanes,
        augment=_augment(config, dataset),
        noise=noise,
        min_batch=min_batch,
        device=device,
    )
    size = sampler.cohort_size(split.num_clients, config.participation, config.cohort)
    cohort_size = _cohort_size(size, len(population.eligible), config)
    chosen = _chosen(config, trainer, dataset, sizes, cohort_size, so_far)
    ours = task.is_known and type(method).__module__.startswith("fedloom.")
    warm_calls = WARM_CALLS if chosen.executor == "mapped" else WARM_LOOP
    replay = Replay(chosen.compiled, warm_calls, trusted=ours)
    trainer = replace(trainer, executor=chosen.executor, pads=chosen.compiled, replay=replay)
    return Setup(
        config=config,
        dataset=dataset,
        partition=split,
        method=method,
        task=task,
        params=params,
        buffers=buffers,
        engine=Engine(trainer, rows, chosen.workers, test),
        choice=chosen,
        test=test,
        validation_rows=validation_rows,
        population=population,
        cohort_size=cohort_size,
        notes=(
            *dataset.notes,
            *split.warnings,
            *notes,
            *model_notes,
            *_empty_note(sizes),
        ),
    )


def make_partition(config: RunConfig, dataset: Dataset) -> Partition:
    """Who holds what, from the partition's own seed."""
    named = partition.resolve(
        config.partition,
        has_groups=dataset.groups_train is not None,
        has_points=dataset.input_shape == (3,),
    )[2]
    clients = config.num_clients if config.clients is not None or named is None else None
    seed = config.seed if config.partition_seed is None else config.partition_seed
    return partition.make(
        config.partition,
        dataset.y_train,
        clients,
        seed=seed,
        groups=dataset.groups_train,
        x=dataset.x_train if dataset.input_shape == (3,) else None,
        rng=config.partition_rng,
    )


def make_task(config: RunConfig, dataset: Dataset) -> tuple[Task, int, tuple[str, ...]]:
    """(task, smallest batch it can train on, notes)."""
    model = models.make(
        config.model,
        input_shape=dataset.input_shape,
        num_classes=dataset.num_classes,
        head=config.head,
        seed=config.seed,
    )
    notes = list(model.notes)
    if config.bn == "groupnorm":
        notes += surgery.groupnorm(model.net)
    min_batch = surgery.min_batch(model.net, dataset.input_shape)
    task = Task(model, _num_outputs(model.net, dataset), config.precision)
    if config.bn not in ("average", "groupnorm") and not task.has_batch_norm:
        notes.append(f"bn={config.bn} has nothing to do: model {model.name} has no BatchNorm.")
    if task.frozen:
        notes.append(f"Not trained, as the model says: {', '.join(task.frozen)}.")
    return task, min_batch, tuple(notes)


def _num_outputs(net: nn.Module, dataset: Dataset) -> int:
    training = net.training
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        width = net.eval()(torch.zeros(2, *dataset.input_shape)).shape[-1]
    net.train(training)
    return int(width)


def _chosen(
    config: RunConfig,
    trainer: Trainer,
    dataset: Dataset,
    sizes: np.ndarray,
    cohort: int,
    so_far: Choice | None,
) -> Choice:
    """Executor, workers and compiling, for a run of this size."""
    task = trainer.task
    params, buffers = task.initial()
    flops = training_flops(task.model.net, dataset.input_shape)
    mean_size = int(np.ceil(sizes[sizes > 0].mean())) if (sizes > 0).any() else 0
    steps = trainer.steps(mean_size) * cohort * config.rounds
    seconds = choice.guessed_seconds(steps, steps * min(config.batch_size, mean_size), flops)
    workers = choice.workers(config, cohort, seconds)
    lanes = max(1, min(config.lanes, -(-cohort // workers)))
    shape = dataset.input_shape
    if so_far is not None and config.executor == "auto":  # other choices have other last bits
        executor, reason = so_far.executor, so_far.reason
    else:
        executor, reason = choice.executor(config, trainer, params, buffers, shape, lanes)
    if so_far is not None and config.compiled is None:
        compiled = so_far.compiled
    else:
        heavy = flops * config.batch_size > choice.ARITHMETIC
        worth = executor == "mapped" and not heavy  # in the loop some networks lose by it
        compiled = choice.compiles(config, steps / lanes / workers if worth else 0)
    return Choice(executor, workers, compiled, reason)


def _augment(config: RunConfig, dataset: Dataset) -> Augment:
    choice = config.augment
    if choice == "auto":
        choice = "crop_flip" if dataset.name in AUGMENTED else "none"
    if choice != "none" and dataset.kind != "image":
        raise ConfigError(f"augment={choice} needs images; {dataset.name} is a table")
    return Augment(flip=choice != "none", crop=choice == "crop_flip")


def _noise(config: RunConfig, dataset: Dataset, sizes: np.ndarray) -> Noise:
    if config.noise and dataset.is_sparse:
        raise ConfigError(f"noise={config.noise}: {dataset.name} is sparse; noise would fill it")
    std = feature.noise_std(config.noise_rule, config.noise, len(sizes))
    return Noise(std, sizes, config.seed, config.noise_refresh)


def _cohort_size(size: int, occupied: int, config: RunConfig) -> int:
    if config.cohort is not None and size > occupied:
        raise ConfigError(
            f"cohort={size} is more than the {occupied} clients that hold data; lower it"
        )
    return min(size, occupied)


def _refuse_single(sizes: np.ndarray, min_batch: int, config: RunConfig) -> None:
    if config.batch_size < min_batch:
        raise ConfigError(
            f"batch_size={config.batch_size}: this model's batch normalisation needs batches of at "
            f"least {min_batch}; raise it, or use bn=groupnorm"
        )
    single = np.flatnonzero((sizes > 0) & (sizes < min_batch))
    if len(single):
        raise PartitionError(
            f"clients {single[:10].tolist()} hold one example each, which this model's batch "
            "normalisation can't be trained on; raise the partition's min_size, or use bn=groupnorm"
        )


def _empty_note(sizes: np.ndarray) -> list[str]:
    empty = np.flatnonzero(sizes == 0)
    if not len(empty):
        return []
    shown = ", ".join(map(str, empty[:10])) + (" ..." if len(empty) > 10 else "")
    return [f"{len(empty)} clients hold no data and never take part: {shown}."]


def all_rows(examples: Examples) -> Tensor:
    """Every row number, in order."""
    return torch.arange(len(examples))

"""From a configuration to everything that a run needs; what can be refused is refused here."""

from dataclasses import dataclass
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
from fedloom.clients.validation import hold_out
from fedloom.config import RunConfig
from fedloom.data import Dataset
from fedloom.engine.cohort import Engine, Executor
from fedloom.engine.lanes import mapping_problem
from fedloom.engine.optimizer import Sgd
from fedloom.errors import ConfigError, PartitionError
from fedloom.method import Method
from fedloom.models import surgery
from fedloom.partition import Partition, feature
from fedloom.server import schedule
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
    test: Examples
    validation_rows: np.ndarray
    """Training rows that no client trains on, of all clients together."""
    cohort_size: int
    notes: tuple[str, ...]

    @cached_property
    def sizes(self) -> np.ndarray:
        """int64 [N], training rows of each client."""
        return np.array([len(rows) for rows in self.engine.rows], np.int64)

    @property
    def noise_split(self) -> bool:
        """Whether the model is also scored on one noisy copy of the test rows per client."""
        return self.engine.noise.active and self.config.test_noise != "clean"

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
        return draw(self.config.seed, round, self.sizes, self.cohort_size)


def prepare(config: RunConfig) -> Setup:
    """Load, split and build. Raises ConfigError, DataError or PartitionError before training."""
    method = methods.make(config.method)
    schedule.make(config.schedule)
    sampler.make(config.sampler)
    dataset = data.load(
        config.data, data_dir=config.data_dir, seed=config.data_seed, **config.data_options
    )
    split = make_partition(config, dataset)
    rows, validation_rows, notes = hold_out(
        [split.rows(i) for i in range(split.num_clients)],
        dataset.y_train,
        config.validation,
        config.seed,
    )
    task, min_batch, model_notes = make_task(config, dataset)
    params, buffers = task.initial()
    executor, executor_notes = choose_executor(config, task, dataset.input_shape)
    _refuse_single(rows, min_batch, config)
    noise = _noise(config, dataset, split, [len(part) for part in rows])
    examples = Examples(dataset.x_train, dataset.y_train)
    engine = Engine(
        task=task,
        examples=examples,
        rows=rows,
        optimizer=Sgd(config.momentum, config.weight_decay),
        work=LocalWork(config.local_epochs, config.local_steps, config.batch_size),
        seed=config.seed,
        executor=executor,
        lanes=config.lanes,
        augment=_augment(config, dataset),
        noise=noise,
        min_batch=min_batch,
    )
    occupied = sum(len(part) > 0 for part in rows)
    size = sampler.cohort_size(split.num_clients, config.participation, config.cohort)
    return Setup(
        config=config,
        dataset=dataset,
        partition=split,
        method=method,
        task=task,
        params=params,
        buffers=buffers,
        engine=engine,
        test=Examples(dataset.x_test, dataset.y_test),
        validation_rows=validation_rows,
        cohort_size=_cohort_size(size, occupied, config),
        notes=(
            *dataset.notes,
            *split.warnings,
            *notes,
            *model_notes,
            *executor_notes,
            *_empty_note(rows),
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
    task = Task(model, _num_outputs(model.net, dataset))
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


def choose_executor(
    config: RunConfig, task: Task, input_shape: tuple[int, ...]
) -> tuple[Executor, list[str]]:
    """(executor, notes). Lanes pay where a step's arithmetic is small: without convolutions."""
    convolves = any(
        isinstance(module, nn.modules.conv._ConvNd) for module in task.model.net.modules()
    )
    if config.executor == "loop" or (config.executor == "auto" and (convolves or task.has_dropout)):
        return "loop", []
    problem = mapping_problem(task, input_shape)
    if problem is None:
        return "mapped", []
    if config.executor == "mapped":
        raise ConfigError(
            f"executor=mapped: model {task.model.name} can't be mapped over clients ({problem}); "
            "use executor=loop"
        )
    return "loop", [f"Model {task.model.name} can't be mapped over clients, so they take turns."]


def _augment(config: RunConfig, dataset: Dataset) -> Augment:
    choice = config.augment
    if choice == "auto":
        choice = "crop_flip" if dataset.name in AUGMENTED else "none"
    if choice != "none" and dataset.kind != "image":
        raise ConfigError(f"augment={choice} needs images; {dataset.name} is a table")
    return Augment(flip=choice != "none", crop=choice == "crop_flip")


def _noise(config: RunConfig, dataset: Dataset, split: Partition, sizes: list[int]) -> Noise:
    if config.noise and dataset.is_sparse:
        raise ConfigError(f"noise={config.noise}: {dataset.name} is sparse; noise would fill it")
    std = feature.noise_std(config.noise_rule, config.noise, split.num_clients)
    return Noise(std, sizes, config.seed, config.noise_refresh)


def _cohort_size(size: int, occupied: int, config: RunConfig) -> int:
    if config.cohort is not None and size > occupied:
        raise ConfigError(
            f"cohort={size} is more than the {occupied} clients that hold data; lower it"
        )
    return min(size, occupied)


def _refuse_single(rows: list[np.ndarray], min_batch: int, config: RunConfig) -> None:
    if config.batch_size < min_batch:
        raise ConfigError(
            f"batch_size={config.batch_size}: this model's batch normalisation needs batches of at "
            f"least {min_batch}; raise it, or use bn=groupnorm"
        )
    single = [client for client, part in enumerate(rows) if 0 < len(part) < min_batch]
    if single:
        raise PartitionError(
            f"clients {single[:10]} hold one example each, which this model's batch normalisation "
            "can't be trained on; raise the partition's min_size, or use bn=groupnorm"
        )


def _empty_note(rows: list[np.ndarray]) -> list[str]:
    empty = [client for client, part in enumerate(rows) if len(part) == 0]
    if not empty:
        return []
    shown = ", ".join(map(str, empty[:10])) + (" ..." if len(empty) > 10 else "")
    return [f"{len(empty)} clients hold no data and never take part: {shown}."]


def all_rows(examples: Examples) -> Tensor:
    """Every row number, in order."""
    return torch.arange(len(examples))

"""One run: rounds, evaluation, checkpoints, and a record from which it can be resumed."""

import multiprocessing
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch

from fedloom import partition
from fedloom.config import RunConfig
from fedloom.engine.allocator import keep_freed_memory
from fedloom.errors import ConfigError, DivergedError, FedloomError, RunDirectoryError
from fedloom.models.flops import training_flops
from fedloom.presets import deviations
from fedloom.record import environment, jsonio
from fedloom.record.changes import MAY_CHANGE
from fedloom.record.rundir import RunDir
from fedloom.server import checkpoint
from fedloom.server.choice import Choice
from fedloom.server.memory import Memories
from fedloom.server.round import FILES, RunState, begin, run_round
from fedloom.server.scoring import has_personal, score_personal, score_round
from fedloom.server.setup import Setup, prepare
from fedloom.server.summary import summarise

NO_GUARD = (
    "worker processes import the script that starts them; put its calls under "
    'if __name__ == "__main__":, or use jobs=1'
)


class Progress(Protocol):
    """Something that shows how far a run is."""

    def start(self, total_rounds: int, label: str) -> None:
        """A run of so many rounds begins."""

    def advance(self, round: int, info: Mapping[str, Any]) -> None:
        """A round is done, and `info` may say how well."""

    def close(self) -> None:
        """The run is over."""


@dataclass(frozen=True)
class RunResult:
    """A finished or diverged run."""

    path: Path
    config: RunConfig
    result: dict[str, Any]

    @property
    def status(self) -> str:
        """`finished` or `diverged`."""
        return str(self.result["status"])

    @property
    def accuracy(self) -> float | None:
        """Accuracy of the final round on the reported split; for local models the clients' mean."""
        if self.result["role"] == "local" and self.result["personal"]:
            value = self.result["personal"]["accuracy_mean"]
        else:
            value = (self.result["final"] or {}).get("accuracy")
        return None if value is None else float(value)

    @property
    def model(self) -> dict[str, torch.Tensor]:
        """The final global model: parameters and buffers by name."""
        return checkpoint.load_model(self.path / "model.safetensors")[0]


def run(
    config: RunConfig,
    out: str | Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
    label: str | None = None,
    role: str = "method",
) -> RunResult:
    """Run one configuration into the directory `out`, or go on with the run it holds.

    A diverged run ends with status `diverged`, its last good model on disk.
    Raises ConfigError, DataError, PartitionError or RunDirectoryError before any work.
    """
    refuse_reimport()
    torch.set_num_threads(config.threads)
    keep_freed_memory()
    setup = prepare(config, _choice_so_far(out) if resume else None)
    described = {
        **config.model_dump(),
        "deviations": deviations(config),
        "data_digest": setup.dataset.digest,
        "partition_digest": setup.partition.digest,
    }
    may_change = MAY_CHANGE - ({"rounds"} if config.depends_on_rounds else set())
    name = label or setup.config.method
    with RunDir.create(
        out, config=described, resume=resume, overwrite=overwrite, may_change=may_change
    ) as folder:
        if folder.result is not None:
            return RunResult(folder.path, config, folder.result)
        state, done = _opened(setup, folder)
        if progress is not None:
            progress.start(config.rounds, name)
            progress.advance(done, {})
        status, reason = "finished", None
        opened = state
        try:
            state = _rounds(setup, folder, state, done, progress)
        except _Stopped as stopped:
            state, status, reason = stopped.state, "diverged", str(stopped)
        finally:
            setup.engine.close()
            opened.close()
            if progress is not None:
                progress.close()
        checkpoint.save_model(
            folder.path / "model.safetensors",
            {**state.server["params"], **state.buffers},
            {"method": config.method, "model": setup.task.model.name, "status": status},
        )
        events = list(folder.events().events)
        result = summarise(setup, events, status=status, label=name, role=role, reason=reason)
        folder.finish(result)
    return RunResult(Path(out), config, result)


def _choice_so_far(out: str | Path) -> Choice | None:
    """How the run in this directory was trained, unless it holds none or doesn't say."""
    try:
        found = jsonio.read(Path(out) / "environment.json")["training"]
        return Choice(**found)
    except (OSError, FedloomError, KeyError, TypeError):
        return None


def refuse_reimport() -> None:
    """Stop a script that starts runs while a worker process of its own imports it."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise ConfigError(NO_GUARD)


class _Stopped(Exception):
    """A run that can't go on, with the last state that was good."""

    def __init__(self, state: RunState, reason: str) -> None:
        super().__init__(reason)
        self.state = state


def _opened(setup: Setup, folder: RunDir) -> tuple[RunState, int]:
    """(state to go on from, rounds already done); writes what describes the run."""
    state, done = begin(setup, folder.checkpoints), -1
    latest = checkpoint.load_latest(folder.checkpoints) if folder.resumed else None
    notes = list(setup.notes)
    if latest is not None:
        state, done = _restored(setup, folder, latest, state), latest.round
        notes += latest.notes
    elif any(event["event"] == "round" for event in folder.events().events):
        raise RunDirectoryError(
            f"{folder.path} holds rounds but no checkpoint to go on from; run it anew (overwrite)"
        )
    folder.truncate_after(done)
    training = {"training": setup.choice.as_record()}
    folder.write_json("environment.json", {**environment.collect(), **training})
    setup.partition.save(folder.path / "partition")
    names = partition.client_names(setup.partition, setup.dataset.groups)
    batch_size = setup.config.batch_size
    card = partition.card(setup.partition, setup.dataset.classes, names, batch_size=batch_size)
    folder.write_json("card.json", {**card, "test_rule": setup.dataset.test_rule})
    folder.start(resumed_from=done if latest is not None else None, notes=notes)
    return state, done


def _restored(
    setup: Setup, folder: RunDir, latest: checkpoint.Checkpoint, expected: RunState
) -> RunState:
    """The state of a checkpoint; one that lacks something is refused, never filled up."""
    found = latest.state
    if set(found) != set(vars(expected)):
        raise RunDirectoryError(f"the checkpoint of round {latest.round} lacks part of the state")
    checkpoint.check_like(
        {"server": found["server"], "buffers": found["buffers"]},
        {"server": expected.server, "buffers": expected.buffers},
    )
    fresh = setup.method.init_client(expected.server)
    budget = setup.config.memory_budget * 2**20
    memories, own = (folder.checkpoints / name for name in FILES)
    return RunState(
        found["server"],
        found["buffers"],
        Memories.restore(found["memories"], fresh, memories, budget),
        Memories.restore(found["own_buffers"], setup.buffers, own, budget),
    )


def _rounds(
    setup: Setup, folder: RunDir, state: RunState, done: int, progress: Progress | None
) -> RunState:
    config = setup.config
    per_example = training_flops(setup.task.model.net, setup.dataset.input_shape)
    for round in range(done + 1, config.rounds + 1):
        fields: dict[str, Any] = {}
        if round > 0:
            try:
                state, fields = run_round(setup, state, round)
            except DivergedError as error:
                raise _Stopped(state, str(error)) from error
            folder.event("round", round=round, **fields, flops=per_example * fields["examples"])
        last = round == config.rounds
        info: dict[str, Any] = {k: fields[k] for k in ("train_loss", "lr") if k in fields}
        if last or round % config.eval_every == 0:
            info["accuracy"] = _scored(setup, folder, state, round)
        if last and has_personal(setup.method):
            folder.event("personal", **score_personal(setup, state, round))
        if last or round % config.checkpoint_every == 0:
            folder.sync()
            checkpoint.save(folder.checkpoints, round, state.saved(), {"method": config.method})
        if progress is not None:
            progress.advance(round, info)
    return state


def _scored(setup: Setup, folder: RunDir, state: RunState, round: int) -> float | None:
    """Record the scores of a round; gives the accuracy on the reported rows."""
    accuracy = None
    for line in score_round(setup, state, round):
        folder.event("eval", **line)
        if line["diverged"] and setup.config.on_nonfinite != "ignore":
            split = line["split"]
            raise _Stopped(state, f"round {round}: outputs on the {split} rows are not finite")
        if line["split"] == setup.reported_split:
            accuracy = line["accuracy"]
    return accuracy

"""Models and methods of the user's own: what is taken as it says, and what is refused by name."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import nn

from fedloom.config import RunConfig
from fedloom.errors import ConfigError, FedloomError
from fedloom.method import Method
from fedloom.methods import make
from fedloom.server.run import run
from fedloom.server.setup import prepare

TINY = {"data": "fcube", "clients": 4, "rounds": 1, "local_steps": 2, "batch_size": 8}
ROOT = Path(__file__).parents[3]


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 4), nn.Linear(4, 2)

    def forward(self, x):
        return self.b(self.a(x).relu())


class Frozen(Small):
    def __init__(self):
        super().__init__()
        self.a.weight.requires_grad_(False)


class Branching(Small):
    def forward(self, x):
        hidden = self.a(x)
        return self.b(hidden if float(hidden.sum()) > 0 else hidden.relu())


class Overflowing(Small):
    def forward(self, x):
        return self.b(self.a(x).relu()) * (1.0 if self.training else torch.inf)


@pytest.mark.parametrize("executor", ["loop", "mapped"])
def test_what_a_model_freezes_stays_as_it_was(tmp_path, executor):
    config = RunConfig(**TINY, model=f"{__name__}:Frozen", executor=executor, weight_decay=0.5)
    initial = prepare(config).params
    result = run(config, tmp_path / "run")
    assert torch.equal(result.model["a.weight"], initial["a.weight"])
    assert not torch.equal(result.model["a.bias"], initial["a.bias"])
    assert any("a.weight" in note for note in result.result["notes"])


def test_a_model_that_cannot_be_mapped_takes_turns_unless_mapping_was_asked_for():
    config = RunConfig(**TINY, model=f"{__name__}:Branching")
    setup = prepare(config)
    assert setup.engine.trainer.executor == "loop"
    assert "can't be mapped" in setup.choice.reason
    with pytest.raises(ConfigError, match=r"Branching can't be mapped .* use executor=loop"):
        prepare(config.replace(executor="mapped"))


def test_outputs_that_are_not_finite_end_a_run_as_diverged(tmp_path):
    config = RunConfig(**TINY, model=f"{__name__}:Overflowing")
    result = run(config, tmp_path / "run")
    assert result.status == "diverged"
    assert "not finite" in result.result["reason"]
    assert result.accuracy is None


class Misspelt(Method):
    def agregate(self, server, reports, cohort):
        return server


class Undecorated(Method):
    strength: float = 1.0


@dataclass(frozen=True)
class Layered(Method):
    layers: tuple[int, ...] = ()


class Wrong(Method):
    def report(self, task, params, data, ctx):
        return {"delta": 3}, {}


class Failing(Method):
    def correct(self, grads, params, ctx):
        return grads["no such leaf"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Misspelt", "'agregate', which nothing calls; did you mean 'aggregate'"),
        ("Undecorated", "strength can't be set; put @dataclass"),
    ],
)
def test_a_class_that_would_be_fedavg_in_silence_is_refused(name, message):
    with pytest.raises(ConfigError, match=message):
        make(f"{__name__}:{name}")


def test_a_tuple_is_an_option():
    assert make(f"{__name__}:Layered(layers=[1, 2])").layers == (1, 2)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Wrong", r"Wrong\.report: TypeError: what is sent, 'delta' is a int; expected a tensor"),
        ("Failing", r"Failing\.correct: KeyError: 'no such leaf'"),
    ],
)
def test_an_error_in_a_hook_names_method_and_hook(tmp_path, name, message):
    with pytest.raises(FedloomError, match=message):
        run(RunConfig(**TINY, method=f"{__name__}:{name}"), tmp_path / "run")


def script(folder, text):
    path = folder / "script.py"
    path.write_text(text)
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return [sys.executable, str(path)], {"cwd": folder, "env": env}


COMPARE = (
    "fedloom.compare(methods=['fedavg', 'fedprox'], trials=1, jobs=2, out='c', reference=False, "
    "data='fcube', rounds={rounds}, local_steps=2)"
)


@pytest.mark.slow
def test_a_script_without_a_main_guard_is_told_so(tmp_path):
    command, options = script(tmp_path, "import fedloom\n" + COMPARE.format(rounds=1))
    ended = subprocess.run(command, **options, capture_output=True, text=True, timeout=120)
    assert ended.returncode != 0
    assert 'if __name__ == "__main__":' in ended.stderr


@pytest.mark.slow
def test_workers_end_with_a_parent_that_is_killed(tmp_path):
    guarded = f"import fedloom\nif __name__ == '__main__':\n    {COMPARE.format(rounds=100000)}"
    command, options = script(tmp_path, guarded)
    parent = subprocess.Popen(command, **options, start_new_session=True)
    deadline = time.monotonic() + 100
    while not list((tmp_path / "c").glob("*/trial-0/checkpoints/*")):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    while members(parent.pid):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def members(session):
    """Processes that are still in a session."""
    listed = subprocess.run(
        ["ps", "-o", "pid=,stat=", "-s", str(session)],
        capture_output=True,
        text=True,
        check=False,
    )
    return [line for line in listed.stdout.splitlines() if "Z" not in line]

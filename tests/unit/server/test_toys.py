"""The orderings and collapses of the shipped toy configurations, on fewer rounds."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from fedloom import config_file
from fedloom.config import RunConfig
from fedloom.methods.scaffold import Scaffold
from fedloom.server.run import run
from tests.problems import gap
from tests.unit.server.small import events

TOYS = Path(__file__).parents[3] / "examples" / "toy"
PUBLISHED = "scaffold(control_init='network', c_weights='uniform', divisor='cohort')"
UNIFORM = "scaffold(c_weights='uniform')"
QUICK = {"local_epochs": 2, "lr": 0.05}
"""The drift of the shipped ten epochs at a rate of 0.01, in a fifth of the time."""
LOOP = {"executor": "loop"}
"""Lanes don't pay where one client holds nearly everything."""


def play(name, method, folder, **changes):
    """One method of a toy; its name must be one that the toy lists, unless a class of ours."""
    settings = config_file.read(TOYS / f"{name}.toml")
    listed = settings.pop("compare")["methods"]
    assert method in listed or ":" in method or "gradient" in method
    asked = RunConfig(**settings).replace(method=method, **{"eval_every": 1000, **changes})
    return run(asked, folder / f"{name} {method}".replace(":", " "))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "rounds"), [("partial_participation", 60), ("partial_participation_skewed", 50)]
)
def test_random_controls_divided_by_the_cohort_collapse(tmp_path, name, rounds):
    result = play(name, PUBLISHED, tmp_path, rounds=rounds, **QUICK)
    assert result.result["diverged"] or result.accuracy < 0.45


@pytest.mark.slow
def test_controls_from_zero_beat_fedavg_under_partial_participation(tmp_path):
    ours, plain = (
        play("partial_participation", m, tmp_path, rounds=40, **QUICK).accuracy
        for m in ("scaffold", "fedavg")
    )
    assert ours > 0.9
    assert ours > plain - 0.005


def test_under_full_participation_it_does_not_matter_where_controls_start(tmp_path):
    zero, network = (
        play("full_participation", m, tmp_path, rounds=2, **QUICK)
        for m in (UNIFORM, "scaffold(c_weights='uniform', control_init='network')")
    )
    assert gap(zero.model, network.model) < 1e-3
    assert zero.accuracy == pytest.approx(network.accuracy, abs=0.003)
    assert zero.accuracy > 0.5


@dataclass(frozen=True)
class Mixed(Scaffold):
    """The two corrections mixed: inside the gradient, but divided by K lr."""

    def report(self, task, params, data, ctx):
        return super().report(task, params, data, ctx._replace(travel=ctx.num_steps * ctx.lr))


def test_a_correction_in_the_gradient_needs_the_travel_as_its_divisor(tmp_path):
    changes = {"rounds": 6, "partition": "quantity_dirichlet(alpha=0.5)", **QUICK, **LOOP}
    mixed = play(
        "full_participation", f"{__name__}:Mixed(correction='gradient')", tmp_path, **changes
    )
    sound = play("full_participation", "scaffold(correction='gradient')", tmp_path, **changes)
    assert sound.accuracy > 0.9
    assert mixed.result["diverged"] or mixed.accuracy < 0.4


@pytest.mark.slow
def test_fednova_collapses_under_quantity_skew_and_fedavg_does_not(tmp_path):
    """W is 5.3 for the shipped ten epochs; the collapse needs no more than one."""
    found = {
        method: play("quantity_skew", method, tmp_path, rounds=6, local_epochs=1, **LOOP)
        for method in ("fedavg", "fednova", "fednova(normalise_W=True)")
    }
    assert found["fedavg"].accuracy > 0.95
    assert found["fednova"].accuracy < 0.6
    assert found["fednova(normalise_W=True)"].accuracy > found["fednova"].accuracy + 0.2


@pytest.mark.slow
def test_unlike_weights_of_model_and_controls_push_scaffold_off(tmp_path):
    """Larger batches at a larger rate: the shipped twenty rounds in nine."""
    changes = {"rounds": 9, "local_epochs": 5, "batch_size": 256, "lr": 0.4, "eval_every": 1}
    worst = {}
    for method in ("scaffold", UNIFORM):
        result = play("quantity_skew", method, tmp_path, **changes, **LOOP)
        scores = [line["accuracy"] for line in events(result.path, "eval")]
        worst[method] = min(scores[4:])
    assert worst["scaffold"] > 0.9
    assert worst[UNIFORM] < 0.8

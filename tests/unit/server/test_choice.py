"""How a run is trained where its configuration leaves it open."""

import json

import pytest

from fedloom.config import RunConfig
from fedloom.errors import ConfigError
from fedloom.record import jsonio
from fedloom.server import choice
from fedloom.server.run import run
from fedloom.server.setup import prepare

SMALL = {"data": "fcube", "rounds": 2, "local_epochs": 1}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDLOOM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "calibration.json"


def test_a_measurement_is_made_once_and_read_again(cache):
    first = prepare(RunConfig(**SMALL)).choice
    (speed,) = json.loads(cache.read_text()).values()
    assert speed["loop"] > 0
    assert "ms in the loop" in first.reason
    (key,) = json.loads(cache.read_text())
    for faster, loop in (("loop", 0.001), ("mapped", 1.0)):
        cache.write_text(json.dumps({key: {"loop": loop, "mapped": 0.01}}))
        assert prepare(RunConfig(**SMALL)).choice.executor == faster


@pytest.mark.parametrize("damage", ["", "[]", '{"x": 1}', '{"x": {"loop": "fast"}}', "\0"])
def test_a_damaged_cache_costs_one_measurement(cache, damage):
    cache.parent.mkdir()
    cache.write_text(damage)
    assert prepare(RunConfig(**SMALL)).choice.executor in ("loop", "mapped")
    assert len(json.loads(cache.read_text())) == 1


def test_another_batch_is_measured_anew(cache):
    for size in (64, 32):
        prepare(RunConfig(**SMALL, batch_size=size))
    assert len(json.loads(cache.read_text())) == 2


def test_what_is_asked_for_is_not_measured(cache):
    for executor in ("loop", "mapped"):
        made = prepare(RunConfig(**SMALL, executor=executor, workers=3, compiled=False)).choice
        assert (made.executor, made.workers, made.compiled) == (executor, 3, False)
    assert not cache.exists()


def test_long_steps_stay_in_the_loop_without_trying_lanes():
    made = prepare(RunConfig(data="digits", model="mlp(hidden=[1500, 1500])", batch_size=512))
    assert (made.choice.executor, "too long for lanes" in made.choice.reason) == ("loop", True)


def test_workers_follow_the_length_of_a_run_and_the_cohort():
    config = RunConfig(**SMALL)
    assert choice.workers(config, 4, choice.WORTH_WORKERS - 1) == 1
    assert 1 <= choice.workers(config, 4, choice.WORTH_WORKERS) <= 4
    assert choice.workers(config.replace(workers=8), 4, 0.0) == 4


@pytest.mark.parametrize("device", ["gpu", "meta:x", "cuda:77"])
def test_a_device_that_is_not_there_is_refused(device):
    with pytest.raises(ConfigError, match=f"device={device} can't be used here"):
        prepare(RunConfig(**SMALL, device=device))


def test_several_processes_train_on_the_cpu_only():
    with pytest.raises(ConfigError, match="on the CPU only"):
        choice.workers(RunConfig(**SMALL, device="cuda", workers=2), 4, 0.0)


def test_compiling_needs_a_compiler(monkeypatch):
    config = RunConfig(**SMALL)
    assert not choice.compiles(config, choice.WORTH_COMPILING - 1)
    monkeypatch.setenv("PATH", "")
    assert not choice.compiles(config, 1e9)
    with pytest.raises(ConfigError, match="C\\+\\+ compiler"):
        choice.compiles(config.replace(compiled=True), 0)


def test_a_resumed_run_goes_on_as_it_began(tmp_path, cache):
    config = RunConfig(**SMALL)
    run(config, tmp_path / "run")
    before = jsonio.read(tmp_path / "run" / "environment.json")["training"]
    other = {"loop": "mapped", "mapped": "loop"}[before["executor"]]
    forced = {"loop": 1.0, "mapped": 2.0} if other == "loop" else {"loop": 2.0, "mapped": 1.0}
    (key,) = json.loads(cache.read_text())
    cache.write_text(json.dumps({key: forced}))
    assert prepare(config).choice.executor == other
    result = run(config.replace(rounds=3), tmp_path / "run", resume=True).result
    assert result["effective"]["executor"] == before["executor"]
    assert result["effective"]["reason"] == before["reason"]


def test_compiled_training_agrees_with_plain(tmp_path):
    models = []
    for extra in ({}, {"compiled": True}, {"compiled": True, "executor": "mapped"}):
        config = RunConfig(**SMALL, model="linear", **{"executor": "loop", "workers": 1, **extra})
        found = run(config, tmp_path / str(len(models)))
        lines = (found.path / "events.jsonl").read_text().splitlines()
        rounds = [json.loads(line) for line in lines]
        assert not any("engine_notes" in event for event in rounds)
        models.append(found.model)
    for other in models[1:]:
        for name, leaf in models[0].items():
            assert leaf.allclose(other[name], atol=1e-5)


def test_bfloat16_trains_and_scores_in_float32(tmp_path):
    made = {
        precision: run(RunConfig(**SMALL, precision=precision, workers=1), tmp_path / precision)
        for precision in ("float32", "bfloat16")
    }
    full, half = (made[name].model for name in ("float32", "bfloat16"))
    gaps = [float((full[name] - half[name]).abs().max()) for name in full]
    assert all(leaf.dtype == full[name].dtype for name, leaf in half.items())
    assert 0 < max(gaps) < 0.05

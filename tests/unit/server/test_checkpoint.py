import math
import multiprocessing
import os
import random
import resource
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from fedloom.errors import RunDirectoryError
from fedloom.server import checkpoint
from fedloom.types import State

fork = multiprocessing.get_context("fork")

STATE: State = {
    "server": {"params": {"body.0.weight": torch.arange(6.0).reshape(2, 3)}, "control": {}},
    "clients": {3: {"control": {"w": torch.ones(2)}}, 0: {}, 12: {"seen": torch.tensor(5)}},
    "empty": {},
}


def equal(a: Any, b: Any) -> bool:
    """Same keys of the same type in the same order; tensors equal to the bit."""
    if isinstance(a, dict) and isinstance(b, dict):
        same = [(key, type(key)) for key in a] == [(key, type(key)) for key in b]
        return same and all(equal(a[key], b[key]) for key in a)
    return (
        isinstance(a, Tensor)
        and isinstance(b, Tensor)
        and (a.dtype, a.shape) == (b.dtype, b.shape)
        and a.numpy().tobytes() == b.numpy().tobytes()
    )


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_state_comes_back_as_it_was(tmp_path: Path) -> None:
    meta = {"best": float("nan"), "loss": math.inf, "bytes_up": np.int64(2**60), "x": [0.1, None]}
    path = checkpoint.save(tmp_path / "checkpoints", 10, STATE, meta)
    assert path.name == "round-000010.safetensors"
    found = checkpoint.load_latest(tmp_path / "checkpoints")
    assert found is not None
    assert found.round == 10
    assert equal(found.state, STATE)
    assert math.isnan(found.meta.pop("best"))
    assert found.meta == {"loss": math.inf, "bytes_up": 2**60, "x": [0.1, None]}
    assert found.notes == ()


arrays = st.builds(
    lambda shape, dtype, seed: (
        torch.randn(shape, generator=torch.Generator().manual_seed(seed)).mul(100).to(dtype)
    ),
    st.lists(st.integers(0, 3), max_size=3),
    st.sampled_from([torch.float32, torch.float64, torch.int64, torch.bool, torch.uint8]),
    st.integers(0, 99),
)
keys = (
    st.integers(-5, 2**40)
    | st.text(max_size=6)
    | st.text("~012/_", max_size=4)
    | st.sampled_from(["__metadata__", "1", "-1", "~", "/", "", "a/b"])
)
states = st.dictionaries(
    keys,
    st.recursive(arrays, lambda inner: st.dictionaries(keys, inner, max_size=3), max_leaves=8),
    max_size=4,
)


@settings(max_examples=40, deadline=None)
@given(states)
def test_any_nested_state_comes_back(
    tmp_path_factory: pytest.TempPathFactory, state: State
) -> None:
    folder = tmp_path_factory.mktemp("state")
    checkpoint.save(folder, 1, state, {})
    found = checkpoint.load_latest(folder)
    assert found is not None
    assert equal(found.state, state)
    checkpoint.check_like(found.state, state)


def test_client_ids_of_numpy_come_back_as_plain_numbers(tmp_path: Path) -> None:
    checkpoint.save(tmp_path, 1, {"clients": {np.int64(4): {"w": torch.ones(1)}}}, {})
    found = checkpoint.load_latest(tmp_path)
    assert found is not None
    assert equal(found.state, {"clients": {4: {"w": torch.ones(1)}}})


@pytest.mark.parametrize(
    ("state", "named"),
    [
        ({"server": {"step": 3}}, "'server/step' is a int"),
        ({"a": None}, "'a' is a NoneType"),
        ({True: {}}, "the key True"),
        ({("a", 1): {}}, "expected text or a whole number"),
    ],
)
def test_a_state_of_anything_but_tensors_is_refused(
    tmp_path: Path, state: State, named: str
) -> None:
    with pytest.raises(TypeError, match=named):
        checkpoint.save(tmp_path, 1, state, {})
    assert names(tmp_path) == []


@pytest.mark.parametrize("meta", [{"a": {1: 2}}, {"a": object()}, {"a": [torch.ones(2)]}])
def test_meta_that_would_come_back_changed_is_refused(tmp_path: Path, meta: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=r"meta\.a"):
        checkpoint.save(tmp_path, 1, {}, meta)


def test_the_newest_two_stay(tmp_path: Path) -> None:
    for r in (1, 2, 3, 1_000_000):
        checkpoint.save(tmp_path, r, STATE, {})
    assert names(tmp_path) == ["round-000003.safetensors", "round-1000000.safetensors"]
    found = checkpoint.load_latest(tmp_path)
    assert found is not None
    assert found.round == 1_000_000
    checkpoint.save(tmp_path, 1_000_001, STATE, {}, keep=1)
    assert names(tmp_path) == ["round-1000001.safetensors"]
    with pytest.raises(ValueError, match="keep is 0"):
        checkpoint.save(tmp_path, 1, STATE, {}, keep=0)


def test_rounds_that_are_done_again_replace_the_later_files(tmp_path: Path) -> None:
    for r in (4, 8):
        checkpoint.save(tmp_path, r, STATE, {})
    checkpoint.save(tmp_path, 5, STATE, {})
    assert names(tmp_path) == ["round-000004.safetensors", "round-000005.safetensors"]


def test_nothing_saved_is_nothing_to_load(tmp_path: Path) -> None:
    assert checkpoint.load_latest(tmp_path / "none") is None
    assert checkpoint.load_latest(tmp_path) is None
    (tmp_path / ".fedloom-00.part").write_bytes(b"half")
    assert checkpoint.load_latest(tmp_path) is None
    checkpoint.save(tmp_path, 1, STATE, {})
    assert names(tmp_path) == ["round-000001.safetensors"]


def halve(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def test_a_halved_newest_file_is_named_and_the_one_before_is_used(tmp_path: Path) -> None:
    for r in (1, 2):
        checkpoint.save(tmp_path, r, STATE, {"round": r})
    halve(tmp_path / "round-000002.safetensors")
    found = checkpoint.load_latest(tmp_path)
    assert found is not None
    assert (found.round, found.meta) == (1, {"round": 1})
    assert len(found.notes) == 1
    assert "round-000002.safetensors is damaged" in found.notes[0]
    assert equal(found.state, STATE)


def test_with_no_whole_file_there_is_no_silent_start(tmp_path: Path) -> None:
    for r in (1, 2):
        halve(checkpoint.save(tmp_path, r, STATE, {}))
    with pytest.raises(RunDirectoryError, match=r"round-000002.*round-000001.*restore one"):
        checkpoint.load_latest(tmp_path)


def test_files_under_other_names_are_no_silent_start(tmp_path: Path) -> None:
    checkpoint.save(tmp_path, 1, STATE, {}).rename(tmp_path / "backup.safetensors")
    with pytest.raises(RunDirectoryError, match=r"found backup\.safetensors"):
        checkpoint.load_latest(tmp_path)


def test_a_renamed_checkpoint_and_a_model_are_not_taken(tmp_path: Path) -> None:
    checkpoint.save(tmp_path, 1, STATE, {}).rename(tmp_path / "round-000009.safetensors")
    with pytest.raises(RunDirectoryError, match="of round 1, not the round in its name"):
        checkpoint.load_latest(tmp_path)
    checkpoint.save_model(tmp_path / "round-000009.safetensors", {"w": torch.ones(1)})
    with pytest.raises(RunDirectoryError, match="not a checkpoint of this version"):
        checkpoint.load_latest(tmp_path)


class Marker:
    """Creates a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[Path]]:
        return Path.touch, (self.path,)


def test_a_pickle_in_the_place_of_a_checkpoint_is_refused_and_nothing_runs(tmp_path: Path) -> None:
    folder, marker = tmp_path / "checkpoints", tmp_path / "marker"
    checkpoint.save(folder, 1, STATE, {})
    torch.save(Marker(marker), folder / "round-000002.safetensors")
    with pytest.raises(RunDirectoryError, match=r"round-000002\.safetensors is refused"):
        checkpoint.load_latest(folder)
    torch.save(Marker(marker), tmp_path / "model.pt")
    with pytest.raises(RunDirectoryError, match=r"model\.pt is refused: it is a pickle"):
        checkpoint.load_model(tmp_path / "model.pt")
    assert not marker.exists()


def save_forever(folder: Path) -> None:
    for r in range(1, 1_000_000):
        state = {"clients": {r: {"w": torch.full((200_000,), float(r))}}, "r": torch.tensor(r)}
        checkpoint.save(folder, r, state, {"round": r})


def test_after_a_kill_at_any_moment_there_is_a_whole_checkpoint(tmp_path: Path) -> None:
    moments = random.Random(0)
    checkpoint.save(tmp_path, 0, {}, {"round": 0})
    for _ in range(20):
        process = fork.Process(target=save_forever, args=(tmp_path,))
        process.start()
        time.sleep(0.02 + moments.random() / 10)
        os.kill(process.pid or 0, signal.SIGKILL)
        process.join()
        found = checkpoint.load_latest(tmp_path)
        assert found is not None
        assert found.notes == ()
        assert found.meta == {"round": found.round}
        if found.round:
            expected = {
                "clients": {found.round: {"w": torch.full((200_000,), float(found.round))}},
                "r": torch.tensor(found.round),
            }
            assert equal(found.state, expected)


def test_no_room_for_a_checkpoint_keeps_the_last_one(tmp_path: Path) -> None:
    checkpoint.save(tmp_path, 1, STATE, {})
    large = {"w": torch.zeros(500_000)}
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, hard))
    try:
        with pytest.raises(RunDirectoryError, match=r"round-000002\.safetensors.*2000\d\d\d bytes"):
            checkpoint.save(tmp_path, 2, large, {})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert names(tmp_path) == ["round-000001.safetensors"]
    found = checkpoint.load_latest(tmp_path)
    assert found is not None
    assert equal(found.state, STATE)
    checkpoint.save(tmp_path, 2, large, {})
    found = checkpoint.load_latest(tmp_path)
    assert found is not None
    assert found.round == 2


def test_size_and_descriptors_stay_the_same_from_round_to_round(tmp_path: Path) -> None:
    sizes, opened = set(), set()
    for r in range(1, 30):
        sizes.add(checkpoint.save(tmp_path, 100 + r, STATE, {"r": 100 + r}).stat().st_size)
        assert checkpoint.load_latest(tmp_path) is not None
        opened.add(len(os.listdir("/dev/fd")))
    assert len(sizes) == 1
    assert len(opened) == 1

from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from fedloom.errors import RunDirectoryError
from fedloom.server import checkpoint


def test_a_model_keeps_its_names_and_metadata(tmp_path: Path) -> None:
    params = {"body.0.weight": torch.randn(3, 2), "head/bias": torch.zeros(()), "1": torch.ones(1)}
    path = tmp_path / "out" / "model.safetensors"
    checkpoint.save_model(path, params, {"classes": ["Ä", "b"], "round": 3})
    found, metadata = checkpoint.load_model(path)
    assert list(found) == list(params)
    assert all(torch.equal(found[name], leaf) for name, leaf in params.items())
    assert metadata == {"classes": ["Ä", "b"], "round": 3}


def test_a_model_of_another_program_has_no_metadata(tmp_path: Path) -> None:
    safetensors.torch.save_file({"w": torch.ones(2)}, tmp_path / "a.safetensors", {"by": "x"})
    found, metadata = checkpoint.load_model(tmp_path / "a.safetensors")
    assert found["w"].tolist() == [1.0, 1.0]
    assert metadata == {}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda p: p.pop("w"), "lacks 'w'"),
        (lambda p: p.update(extra=torch.ones(1)), "has 'extra'"),
        (lambda p: p.update(w=torch.ones(1)), r"'w' is float32 \[1\], expected float32 \[64\]"),
        (lambda p: p.update(w=torch.ones(64).double()), "'w' is float64"),
        (lambda p: p.update(w=torch.ones(64).long()), "'w' is int64"),
        (lambda p: p.update(memory={}), "other empty dictionaries"),
    ],
)
def test_a_state_unlike_the_reference_is_refused_with_the_tensor(change: Any, named: str) -> None:
    reference = {"w": torch.zeros(64), "b": torch.zeros(())}
    params = {"b": torch.ones(()), "w": torch.ones(64)}
    checkpoint.check_like(params, reference)
    change(params)
    with pytest.raises(RunDirectoryError, match=named):
        checkpoint.check_like(params, reference, "a.safetensors")


def test_a_checkpoint_without_method_state_is_refused() -> None:
    with pytest.raises(RunDirectoryError, match="lacks 'server/control/w'"):
        checkpoint.check_like(
            {"server": {"params": {"w": torch.ones(1)}, "control": {}}},
            {"server": {"params": {"w": torch.ones(1)}, "control": {"w": torch.ones(1)}}},
        )

import json
import math
from dataclasses import dataclass
from datetime import date
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedloom.errors import RunDirectoryError
from fedloom.record import jsonio
from fedloom.spec import parse


class Colour(Enum):
    RED = "red"


@dataclass
class Point:
    x: float
    y: Any


def test_everything_a_run_measures_becomes_json() -> None:
    value = {
        "float32": np.float32(0.1),
        "int64": np.int64(2**60),
        "bool": np.bool_(True),
        "scalar": torch.tensor(3),
        "row": torch.tensor([1.0, float("inf")]),
        "array": np.array([[1.5, np.nan]]),
        "path": Path("a/b"),
        "colour": Colour.RED,
        "day": date(2024, 1, 2),
        "spec": parse("fedprox(mu=0.1)"),
        "point": Point(1.0, (None, True)),
        7: -math.inf,
    }
    assert json.loads(jsonio.dumps(value)) == {
        "float32": float(np.float32(0.1)),
        "int64": 2**60,
        "bool": True,
        "scalar": 3,
        "row": [1.0, None],
        "array": [[1.5, None]],
        "path": "a/b",
        "colour": "red",
        "day": "2024-01-02",
        "spec": "fedprox(mu=0.1)",
        "point": {"x": 1.0, "y": [None, True]},
        "7": None,
    }


@given(st.floats())
def test_a_float_comes_back_to_the_bit_or_as_null(number: float) -> None:
    back = jsonio.loads(jsonio.dumps(number))
    assert back == number if math.isfinite(number) else back is None


texts = st.text(st.characters(codec=None), max_size=20)
keys = st.text(max_size=20)
trees = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=20,
)


@given(trees)
def test_whatever_is_written_a_strict_reader_takes(value: Any) -> None:
    text = jsonio.dumps(value)
    assert jsonio.loads(text.encode("utf-8")) == jsonio.plain(value)


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ({"a": {1, 2}}, "value.a is a set"),
        ({"a": [b"x"]}, r"value.a\[0\] is a bytes"),
        ({"a": 1j}, "value.a is a complex"),
        ({"a": np.complex64(1)}, "value.a is a complex64"),
        ({1: 0, "1": 0}, "two keys that read '1'"),
        ({None: 0}, "the key None"),
        ({"model": torch.nn.Linear(1, 1)}, "value.model is a Linear"),
    ],
)
def test_what_json_cannot_hold_is_named(value: Any, named: str) -> None:
    with pytest.raises(TypeError, match=named):
        jsonio.dumps(value)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b'{"a": NaN}',
        b"[Infinity]",
        b"[-Infinity]",
        b"[1e999]",
        b'{"a": 1, "a": 2}',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"a": 1} x',
    ],
)
def test_damaged_json_is_refused_with_the_file(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "result.json"
    path.write_bytes(text)
    with pytest.raises(RunDirectoryError, match=r"result\.json is damaged"):
        jsonio.read(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match=r"config\.json"):
        jsonio.read(tmp_path / "config.json")


def test_an_object_is_asked_for_and_a_list_refused(tmp_path: Path) -> None:
    jsonio.write(tmp_path / "a.json", [1])
    with pytest.raises(RunDirectoryError, match="expected a JSON object, got list"):
        jsonio.read_object(tmp_path / "a.json")


def test_files_are_utf8_whatever_the_locale(tmp_path: Path) -> None:
    jsonio.write(tmp_path / "a.json", {"Klasse": "Äpfel 漢字"})
    assert "Äpfel 漢字" in (tmp_path / "a.json").read_text(encoding="utf-8")
    assert jsonio.read(tmp_path / "a.json") == {"Klasse": "Äpfel 漢字"}


def test_a_value_that_cannot_be_written_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    jsonio.write(path, 1)
    with pytest.raises(TypeError):
        jsonio.write(path, {"bad": object()})
    assert jsonio.read(path) == 1

"""State to disk and back to the same bits: rounds to resume from, and final models."""

import json
import math
import re
from collections.abc import Iterable
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from fedloom import files
from fedloom.errors import RunDirectoryError
from fedloom.server import tensorfile
from fedloom.types import Params, State

CHECKPOINT, MODEL = "fedloom checkpoint 1", "fedloom model 1"
KEEP = 2
"""Checkpoints that stay, so that a damaged one has another behind it."""
RECORDS = ".bin"
"""How the files of clients' memories end, which lie beside the checkpoints."""
NAME = re.compile(r"round-(\d{6,})\.safetensors")

Outline = list[list[Any]]
"""The keys of a state in order: `[key, None]` for a tensor, `[key, outline]` for a dictionary."""


class Checkpoint(NamedTuple):
    """What a run goes on from."""

    round: int
    state: State
    meta: dict[str, Any]
    notes: tuple[str, ...]
    """A sentence for each newer file that is damaged and so was passed over."""


def save(folder: Path, round: int, state: State, meta: dict[str, Any], *, keep: int = KEEP) -> Path:
    """Write `round-000010.safetensors`, whole or not at all; the newest `keep` files stay.

    `state` nests dictionaries whose keys are text or whole numbers (client ids) and whose leaves
    are tensors; `meta` is whatever JSON can hold, and its floats may be infinite or NaN. Files of
    later rounds are deleted: they belong to work that is now being done again. `folder` must have
    no other writer.

    Raises RunDirectoryError when there is no room; all earlier files are then unharmed.
    """
    if keep < 1 or round < 0:
        raise ValueError(f"keep is {keep} and round {round}; expected at least 1 and 0")
    folder.mkdir(parents=True, exist_ok=True)
    files.remove_leftovers(folder)
    path = folder / f"round-{round:06d}.safetensors"
    tensors, outline = flatten(state)
    info = {
        "kind": CHECKPOINT,
        "round": str(round),
        "outline": json.dumps(outline),
        "meta": json.dumps(_exact(meta, "meta")),
    }
    tensorfile.write(path, tensors, info)
    saved = _saved(folder)
    current = [number for number in saved if number <= round]
    for number in saved:
        if number not in current[:keep]:
            saved[number].unlink()
    files.sync_folder(folder)
    return path


def load_latest(folder: Path) -> Checkpoint | None:
    """The newest checkpoint that is whole, None when none was ever saved; tensors are on the CPU.

    Raises RunDirectoryError when there are files but none can be used: a run never starts again
    from round 1 in silence. A pickle is never opened: under a checkpoint's name it is an error.
    """
    if not folder.is_dir():
        return None
    notes: list[str] = []
    for number, path in _saved(folder).items():
        try:
            return _load(path, number)._replace(notes=tuple(notes))
        except RunDirectoryError as error:
            if _begins_as_pickle(path):
                raise
            notes.append(f"{error}; the checkpoint before it is used")
    others = [path.name for path in sorted(folder.iterdir()) if _foreign(path)]
    if not others:
        return None
    reasons = [note.partition("; the checkpoint")[0] for note in notes] or [
        f"expected round-NNNNNN.safetensors, found {', '.join(others[:5])}"
    ]
    raise RunDirectoryError(
        f"no checkpoint in {folder} can be used: {'; '.join(reasons)}; restore one, or start "
        "the run again in another folder"
    )


def _foreign(path: Path) -> bool:
    return not path.name.startswith(".") and path.suffix != RECORDS


def _begins_as_pickle(path: Path) -> bool:
    with open(path, "rb") as handle:
        return tensorfile.is_pickle(handle.read(9))


def _saved(folder: Path) -> dict[int, Path]:
    """Checkpoint files by round, newest first."""
    matches = [(NAME.fullmatch(path.name), path) for path in folder.iterdir() if path.is_file()]
    found = {int(match[1]): path for match, path in matches if match}
    return dict(sorted(found.items(), reverse=True))


def _load(path: Path, number: int) -> Checkpoint:
    content = tensorfile.read(path)
    if content.info.get("kind") != CHECKPOINT:
        raise RunDirectoryError(
            f"{path} is not a checkpoint of this version: expected {CHECKPOINT!r}, "
            f"got {content.info.get('kind')!r}"
        )
    if content.info["round"] != str(number):
        raise RunDirectoryError(
            f"{path} is of round {content.info['round']}, not the round in its name"
        )
    try:
        state = restore(content.tensors, json.loads(content.info["outline"]))
        meta = json.loads(content.info["meta"])
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise RunDirectoryError(f"{path} is damaged: its outline can't be read ({error})") from None
    return Checkpoint(number, state, meta, ())


def flatten(state: State) -> tuple[Params, Outline]:
    """A nested state -> its tensors under `outer/inner` names, and the outline that rebuilds it.

    >>> import torch
    >>> flatten({"clients": {7: {}, 9: {"w": torch.zeros(2)}}})
    ({'clients/9/w': tensor([0., 0.])}, [['clients', [[7, []], [9, [['w', None]]]]]])
    """
    tensors: Params = {}

    def visit(node: State, prefix: str) -> Outline:
        outline: Outline = []
        for key, value in node.items():
            path = prefix + _escape(key)
            if isinstance(value, dict):
                outline.append([_plain(key), visit(value, f"{path}/")])
            elif isinstance(value, Tensor):
                tensors[path] = value
                outline.append([_plain(key), None])
            else:
                raise TypeError(f"state {path!r} is a {type(value).__name__}; expected a tensor")
        return outline

    return tensors, visit(state, "")


def restore(tensors: Params, outline: Outline, prefix: str = "") -> State:
    """What `flatten` took apart, with the same keys in the same order."""
    return {
        key: tensors[prefix + _escape(key)]
        if inner is None
        else restore(tensors, inner, f"{prefix}{_escape(key)}/")
        for key, inner in outline
    }


def _plain(key: Any) -> str | int:
    if isinstance(key, bool) or not isinstance(key, str | Integral):
        raise TypeError(f"state has the key {key!r}; expected text or a whole number")
    return key if isinstance(key, str) else int(key)


def _escape(key: str | int) -> str:
    """One name for each key: text that holds `/`, reads as a number or is reserved gets a mark."""
    key = _plain(key)
    if isinstance(key, int):
        return str(key)
    text = key.replace("~", "~0").replace("/", "~1")
    clear = not re.fullmatch(r"-?\d+", text) and text != tensorfile.RESERVED
    return text if clear else f"~2{text}"


def _exact(value: Any, where: str) -> Any:
    """`value`, if JSON gives it back as it is; NumPy and torch scalars become numbers first."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_exact(item, f"{where}[{i}]") for i, item in enumerate(value)]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: _exact(item, f"{where}.{key}") for key, item in value.items()}
    if hasattr(value, "item") and math.prod(value.shape) == 1:
        return value.item()
    raise TypeError(f"{where} is {value!r}; expected text, numbers, lists, objects with text keys")


def save_model(path: Path, params: Params, metadata: dict[str, Any] | None = None) -> None:
    """Write a model's tensors under their own names, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    info = {"kind": MODEL, "meta": json.dumps(_exact(metadata or {}, "metadata"))}
    tensorfile.write(path, params, info)


def load_model(path: Path) -> tuple[Params, dict[str, Any]]:
    """Tensors and metadata of `save_model`, or the tensors of any safetensors file and `{}`.

    Raises RunDirectoryError for a damaged file, and for a pickle, which is never opened.
    """
    content = tensorfile.read(path)
    if content.info.get("kind") != MODEL:
        return content.tensors, {}
    return content.tensors, json.loads(content.info["meta"])


def check_like(state: State, reference: State, what: str = "checkpoint") -> None:
    """Refuse a state that differs from `reference` in a name, shape or dtype, whatever the values.

    Raises RunDirectoryError that names the tensors. Nothing is filled in, left out or broadcast.
    """
    tensors, outline = flatten(state)
    expected, expected_outline = flatten(reference)
    if missing := [name for name in expected if name not in tensors]:
        raise RunDirectoryError(
            f"{what} lacks {_listed(missing)}; expected {len(expected)} tensors"
        )
    if extra := [name for name in tensors if name not in expected]:
        raise RunDirectoryError(
            f"{what} has {_listed(extra)}, which the model or method doesn't know"
        )
    for name, leaf in expected.items():
        if tensors[name].shape != leaf.shape or tensors[name].dtype != leaf.dtype:
            raise RunDirectoryError(
                f"{what}: {name!r} is {_described(tensors[name])}, expected {_described(leaf)}"
            )
    if _unordered(outline) != _unordered(expected_outline):
        raise RunDirectoryError(f"{what} has the right tensors, but other empty dictionaries")


def _unordered(outline: Outline | None) -> dict[Any, Any] | None:
    return None if outline is None else {key: _unordered(inner) for key, inner in outline}


def _listed(names: Iterable[str]) -> str:
    shown = [repr(name) for name in names]
    return ", ".join(shown[:5]) + (f" and {len(shown) - 5} more" if len(shown) > 5 else "")


def _described(leaf: Tensor) -> str:
    return f"{str(leaf.dtype).removeprefix('torch.')} {list(leaf.shape)}"

"""Who may import whom, read from the source, and what importing is allowed to do."""

import ast
import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "fedloom"

BASE = (
    "errors",
    "files",
    "foreign",
    "method",
    "rng",
    "spec",
    "testing",
    "tree",
    "types",
    "version",
)
"""Modules that every package may import, and that import only each other."""

SETTINGS = ("config", "config_checks", "config_file", "config_keys", "config_values", "presets")
"""What a run is told: imports no package, and is for the server and what comes after it."""

FLOW = (
    "data",
    "partition",
    "clients",
    "models",
    "tasks",
    "engine",
    "methods",
    "record",
    "server",
    "reporting",
)
"""The packages from upstream to downstream; all the rest stands on top of them."""

SOURCES = sorted(PACKAGE.rglob("*.py"))
NAMES = [path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".") for path in SOURCES]


def runtime_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node that runs: all but the blocks under `if TYPE_CHECKING`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        yield node
        yield from runtime_nodes(node)


def import_time_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node that runs when the module is imported: function bodies don't."""
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield node
            yield from import_time_nodes(node)


def imported(path: Path) -> set[str]:
    """First names below `fedloom` that a file imports."""
    found = set()
    for node in runtime_nodes(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            full = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            full = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        found |= {name.split(".")[1] for name in full if name.startswith("fedloom.")}
    return found


def home(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


@pytest.mark.parametrize("path", SOURCES, ids=NAMES)
def test_imports_point_upstream(path: Path) -> None:
    here = home(path)
    if here in FLOW:
        place = FLOW.index(here)
        told = SETTINGS if place >= FLOW.index("server") else ()
        allowed = {*BASE, *told, *FLOW[: place + 1]}
    elif here in SETTINGS:
        allowed = {*BASE, *SETTINGS}
    elif here in BASE:
        allowed = {*BASE}
    elif here in ("__main__", "cli"):
        return
    else:
        allowed = {home(each) for each in SOURCES} - {"cli"}
    below = sorted(imported(path) - allowed)
    assert not below, f"{here} may not import {below}: have it passed in"


@pytest.mark.parametrize("name", [name for name in NAMES if not name.endswith("__main__")])
def test_every_module_can_be_imported(name: str) -> None:
    importlib.import_module(name.removesuffix(".__init__"))


def test_importing_everything_draws_nothing_and_changes_no_setting() -> None:
    modules = [n.removesuffix(".__init__") for n in NAMES if not n.endswith("__main__")]
    program = f"""
import importlib, random, sys
import numpy as np
import torch
def state():
    kind, keys, *rest = np.random.get_state()
    return dict(
        python=random.getstate(), numpy=(kind, keys.tolist(), rest),
        torch=torch.get_rng_state().tolist(), threads=torch.get_num_threads(),
        dtype=torch.get_default_dtype(), grad=torch.is_grad_enabled(),
        exact=torch.are_deterministic_algorithms_enabled(), errors=np.geterr())
# A library that we import may draw (rich does): let all of them come first, then forget our own.
for name in {modules!r}:
    importlib.import_module(name)
for name in [name for name in sys.modules if name.split(".")[0] == "fedloom"]:
    del sys.modules[name]
before = state()
for name in {modules!r}:
    importlib.import_module(name)
    after = state()
    for key in before:
        assert after[key] == before[key], f"importing {{name}} changed {{key}}"
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", SOURCES, ids=NAMES)
def test_importing_reads_no_environment_and_silences_no_warning(path: Path) -> None:
    for node in import_time_nodes(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute):
            text = ast.unparse(node)
            assert text not in ("os.environ", "os.getenv"), f"line {node.lineno}"
            assert text not in ("warnings.filterwarnings", "warnings.simplefilter")


PIPES = "fedloom.engine.wire"  # speaks to processes that this one started, and reads no file


@pytest.mark.parametrize(
    "path", [path for path, name in zip(SOURCES, NAMES, strict=True) if name != PIPES]
)
def test_nothing_is_unpickled(path: Path) -> None:
    """A file from somebody else must not be able to run code."""
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [str(node.module)]
        loaders = {"pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
        assert not loaders & {name.split(".")[0] for name in names}, f"line {node.lineno}"
        if isinstance(node, ast.Attribute):
            assert ast.unparse(node) not in ("torch.load", "pd.read_pickle"), f"line {node.lineno}"
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            assert ast.unparse(node.value) == "False", f"line {node.lineno}"

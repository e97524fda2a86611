"""The version, the dependencies and the make targets agree with one another."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from fedloom.version import __version__

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PINS = dict(
    line.split("==")
    for line in (ROOT / "constraints.txt").read_text().splitlines()
    if line and not line.startswith("#")
)


def test_the_version_is_written_once() -> None:
    assert "version" not in PROJECT
    assert "version" in PROJECT["dynamic"]
    assert str(Version(__version__)) == __version__


def test_constraints_are_exact_versions_without_hashes_or_local_builds() -> None:
    for name, version in PINS.items():
        assert re.fullmatch(r"[A-Za-z0-9._-]+", name)
        assert Version(version).local is None, f"{name}: a local build exists on one machine only"


@pytest.mark.parametrize(
    "line", PROJECT["dependencies"] + PROJECT["optional-dependencies"]["dev"], ids=str
)
def test_every_constraint_lies_in_the_declared_range(line: str) -> None:
    wanted = Requirement(line)
    pins = {canonicalize_name(name): version for name, version in PINS.items()}
    assert wanted.specifier.contains(pins[canonicalize_name(wanted.name)])


def test_the_command_line_leaves_room_for_flower() -> None:
    ranges = {
        Requirement(line).name: Requirement(line).specifier for line in PROJECT["dependencies"]
    }
    assert ranges["typer"].contains("0.20.1")
    assert ranges["rich"].contains("14.3.4")


def test_every_make_target_is_declared_and_explained() -> None:
    text = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^([a-z]+):", text, re.MULTILINE)
    explained = re.findall(r"^([a-z]+):.*## \S", text, re.MULTILINE)
    declared = re.findall(r"^\.PHONY: (.*)$", text, re.MULTILINE)
    assert set(targets) == set(explained) == set(" ".join(declared).split())

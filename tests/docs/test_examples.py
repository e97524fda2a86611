"""Every example ends well, in an empty folder and without a download."""

import runpy
import sys
import tomllib

import pytest

from fedloom.cli import contest
from fedloom.reporting import plot
from tests.docs.pages import ROOT

SCRIPTS = sorted((ROOT / "examples").glob("*.py"))
TOYS = sorted((ROOT / "examples" / "toy").glob("*.toml"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_runs(script, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(script.parent))
    monkeypatch.delenv("FEDLOOM_DATA", raising=False)
    monkeypatch.setattr(plot, "FORMATS", ("svg",))
    runpy.run_path(str(script), run_name="__main__")
    sys.modules.pop(script.stem, None)
    assert capsys.readouterr().out.strip()


@pytest.mark.parametrize("path", TOYS, ids=lambda path: path.stem)
def test_a_toy_configuration_can_be_read(path):
    base = tomllib.loads(path.read_text(encoding="utf-8"))
    asked = contest.read(base=base, sets=None, flags={}, own={}, arguments=())
    assert asked.methods
    assert not asked.notes

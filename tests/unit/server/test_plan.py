"""What a plan foretells is what the run then takes."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fedloom.server import footprint

WATCHED = """
import sys
from fedloom.cli import main
try:
    main()
except SystemExit as stop:
    assert not stop.code
lines = open("/proc/self/status").read().splitlines()
print("peak", next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")))
"""
CASES = {
    "few parameters, lanes": {"data": "fcube", "executor": "mapped", "local_epochs": "1"},
    "a large memory for each client": {
        "data": "digits",
        "method": "scaffold",
        "model": "mlp(hidden=[800,800], init='default')",
        "executor": "loop",
        "local_steps": "4",
    },
}


def started(tmp_path: Path, settings: dict[str, str], *more: str) -> str:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({**settings, "rounds": 2}))
    command = [sys.executable, "-c", WATCHED, "run", "--config", str(config), *more]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.skipif(not footprint.STATUS.exists(), reason="memory is read from /proc")
@pytest.mark.parametrize("name", CASES)
def test_the_peak_of_memory_is_foretold_within_a_quarter(tmp_path, name):
    planned = started(tmp_path, CASES[name], "--dry-run")
    foretold = float(re.search(r"about ([\d,]+) MiB", planned)[1].replace(",", ""))
    ran = started(tmp_path, CASES[name], "--out", str(tmp_path / "run"), "--quiet")
    taken = float(re.search(r"peak ([\d.]+)", ran)[1])
    assert 0.75 * taken < foretold < 1.25 * taken


def test_what_a_process_held_before_counts_for_nothing():
    before = footprint.Resident(now=10, peak=100)
    assert footprint.reached(before, footprint.Resident(now=20, peak=100)) == 20
    assert footprint.reached(before, footprint.Resident(now=20, peak=120)) == 120


def test_the_memory_of_this_process_is_told_and_grows_with_it():
    import torch

    before = footprint.resident()
    assert before is not None
    assert 0 < before.now <= before.peak
    held = torch.ones(2**24)
    after = footprint.resident()
    assert after.peak - before.now > 0.9 * held.nbytes

"""The command as a process: start-up, signals, encodings."""

import json
import re
import signal
import subprocess
import sys
import time

import pytest

SMALL = ("--rounds", "1", "--local-epochs", "1", "--quiet")
HEAVY = ("torch", "numpy", "matplotlib", "pandas", "sklearn", "pyarrow")


def test_help_starts_without_the_heavy_packages(environment):
    code = (
        "import sys; from fedloom.cli import app; from typer.testing import CliRunner; "
        "assert CliRunner().invoke(app, ['run', '--help']).exit_code == 0; "
        f"heavy = set({HEAVY}) & set(sys.modules); "
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["Ctrl-C", "SIGTERM"]
)
def test_a_signal_stops_a_run_soon_and_leaves_it_resumable(spawn, tmp_path, number, code):
    flags = ("--rounds", "100000", "--out", "here")
    process = spawn("run", *flags)
    checkpoints = tmp_path / "here" / "checkpoints"
    deadline = time.monotonic() + 60
    while not list(checkpoints.glob("round-*.safetensors")) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(number)
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=20)
    assert process.returncode == code, stderr
    assert b"Traceback" not in stdout + stderr
    last = json.loads((tmp_path / "here" / "events.jsonl").read_text().splitlines()[-1])
    assert (last["event"], last["status"]) == ("end", "interrupted")
    assert list(checkpoints.glob("round-*.safetensors"))


def test_a_plain_ascii_terminal_and_an_odd_folder_name(spawn, tmp_path):
    out = "erg ebnisse/ü (1)"
    rows = "\n".join(f"{i},{i % 5},{('käse', 'brot')[i % 2]}" for i in range(40))
    (tmp_path / "töst.csv").write_text("x,z,küche\n" + rows + "\n", encoding="utf-8")
    process = spawn(
        *("compare", *SMALL, "--data", "töst.csv", "--label", "küche", "--clients", "2"),
        *("--methods", "fedavg", "--trials", "1", "--out", out),
        LC_ALL="C",
        PYTHONIOENCODING="ascii",
    )
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 0, stderr
    (stdout + stderr).decode("ascii")
    assert (tmp_path / out / "report.html").read_text(encoding="utf-8")


def test_errors_and_help_reach_a_plain_ascii_terminal(spawn):
    for arguments in (["run", "--help"], ["run", "--method", "fédavg"], ["--bogus"]):
        process = spawn(*arguments, LC_ALL="C", PYTHONIOENCODING="ascii")
        stdout, stderr = process.communicate(timeout=60)
        assert b"Traceback" not in stderr
        assert re.fullmatch(rb"[\x00-\x7f]*", stdout + stderr)

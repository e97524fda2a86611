import io

import pytest
from rich.console import Console

from fedloom.cli import progress
from fedloom.cli.bar import Bar


def drive(reporter, rounds=(1, 2, 3)):
    reporter.start(3, "fedavg")
    for number in rounds:
        reporter.advance(number, {"accuracy": number / 10, "train_loss": 1 / number})
    reporter.close()


def test_lines_tell_the_start_and_the_end_and_are_rare_between(capsys):
    drive(progress.Lines())
    assert capsys.readouterr().err.splitlines() == [
        "fedavg: 3 rounds",
        "fedavg: round 3/3  accuracy 30.00%  loss 0.3333",
    ]


def test_lines_tell_the_time_left(capsys):
    drive(progress.Lines(every=0.0))
    assert "left" in capsys.readouterr().err.splitlines()[1]


def test_quiet_says_nothing(capsys):
    drive(progress.reporter(quiet=True))
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_a_bar_is_drawn_on_any_terminal_and_may_be_used_again(encoding):
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    bar = Bar(Console(file=stream, force_terminal=True, width=120))
    drive(bar)
    drive(bar, rounds=(3,))
    bar.close()
    stream.flush()
    shown = stream.buffer.getvalue().decode(encoding)
    assert "3/3" in shown
    assert "30.00%" in shown


def test_missing_figures_are_left_out():
    assert progress.describe({"accuracy": None, "lr": 0.1}) == ""
    assert progress.describe({"loss": 2.0}) == "loss 2"

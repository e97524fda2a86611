"""The command `fedloom` and its subcommands."""

import contextlib
import sys
from typing import Annotated

import typer

from fedloom.cli.compare import register as compare
from fedloom.cli.data import register as data
from fedloom.cli.guard import say
from fedloom.cli.listing import register as listing
from fedloom.cli.partition import register as partition
from fedloom.cli.report import register as report
from fedloom.cli.run import register as run
from fedloom.version import __version__

app = typer.Typer(
    name="fedloom",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
    epilog="Start with [bold]fedloom compare --methods fedavg,scaffold[/bold] (needs no download), "
    "then [bold]fedloom list datasets[/bold]. Exit codes: 0 done, 2 settings, 3 data or partition, "
    "4 diverged, 5 run directory, 130 interrupted, 143 terminated, 1 anything else.",
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"fedloom {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Compare federated-learning methods on non-IID data, under identical conditions."""


for register in (run, compare, report, listing, data, partition):
    register(app)


def main() -> None:
    """Run the command line; a character that the terminal can't show is replaced, not fatal."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    try:
        app()
    except KeyboardInterrupt:
        say("interrupted", label="stopped")
        sys.exit(130)

"""`fedloom report`: pages and tables from runs that are there."""

from pathlib import Path
from typing import Annotated

import typer

from fedloom.cli import show
from fedloom.cli.guard import guarded
from fedloom.config_values import number
from fedloom.errors import ConfigError

EPILOG = """[bold]Examples[/bold]

fedloom report runs/study

fedloom report runs/a runs/b runs/c --out report --baseline fedavg --target 0.95
"""


def report(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Run or comparison directories.")
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Where to write (default: the first RUN)."),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option("--baseline", metavar="METHOD", help="What the others are compared with."),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option("--target", metavar="ACCURACY", help="Accuracy to reach, from 0 to 1."),
    ] = None,
) -> None:
    """Write one self-contained page, and the table as Markdown, CSV and LaTeX."""
    try:
        wanted = None if target is None else number(target)
    except ValueError:
        wanted = -1.0
    if wanted is not None and not 0 < wanted <= 1:
        raise ConfigError(f"target = {target!r}: expected a number, above 0, at most 1")
    for path in runs:
        if not path.is_dir():
            raise ConfigError(f"{path}: expected the directory of a run or a comparison")
    where = runs[0] if out is None else out
    from fedloom.reporting.write import write

    show.report(write(runs, where, baseline=baseline, target=wanted))


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog=EPILOG)(guarded(report))

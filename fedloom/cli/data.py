"""`fedloom data inspect`: what was understood of a file of your own, or why it is refused."""

from typing import Annotated, Any

import typer

from fedloom.cli import flags, show
from fedloom.config import RunConfig

EPILOG = """[bold]Examples[/bold]

fedloom data inspect patients.csv --label outcome --client hospital

fedloom data inspect train.tsv.gz --test test.tsv.gz --missing drop
"""

SETTINGS = (
    "label", "client", "test", "test_share", "missing", "separator", "decimal", "scale",
    "categorical", "ignore", "size", "bad_files", "data_dir", "data_seed",
)  # fmt: skip
"""The settings that say how data are read."""

group = typer.Typer(no_args_is_help=True, help="Look at data before training on them.")


def inspect_(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="File, image folder, or data set by name.")
    ],
    settings: dict[str, Any],
) -> None:
    """Show what was understood of a data file, or say why it is refused."""
    config = RunConfig(data=file, **settings)
    from fedloom import data

    found = data.inspect(
        config.data, data_dir=config.data_dir, seed=config.data_seed, **config.data_options
    )
    show.thing(found, title=file)


@group.callback()
def _group() -> None:
    """Look at data before training on them."""


def register(app: typer.Typer) -> None:
    """Add the group of commands."""
    others = [name for name in RunConfig.model_fields if name not in SETTINGS]
    group.command("inspect", epilog=EPILOG)(flags.with_settings(inspect_, leave_out=others))
    app.add_typer(group, name="data")

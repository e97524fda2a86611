"""`fedloom data inspect`: what was understood of a file of your own, or why it is refused."""

from typing import Annotated, Any

import typer

from fedloom.cli import flags, show
from fedloom.cli.settings import used
from fedloom.config import RunConfig
from fedloom.errors import ConfigError

EPILOG = """[bold]Examples[/bold]

fedloom data inspect patients.csv --label outcome --client hospital

fedloom data inspect train.tsv.gz --test test.tsv.gz --missing drop

fedloom data inspect --config patients.toml
"""

SETTINGS = (
    "label", "client", "test", "test_share", "missing", "separator", "decimal", "scale",
    "categorical", "ignore", "size", "bad_files", "data_dir", "data_seed",
)  # fmt: skip
"""The settings that say how data are read."""

group = typer.Typer(no_args_is_help=True, help="Look at data before training on them.")


def inspect_(
    settings: dict[str, Any],
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="[FILE]",
            help="File, image folder, or data set by name (else the data of --config).",
            show_default=False,
        ),
    ] = None,
    config: flags.Config = None,
) -> None:
    """Show what was understood of a data file, or say why it is refused."""
    values = used(config, ("data", *SETTINGS)) | settings
    if file is not None:
        values["data"] = file
    if "data" not in values:
        raise ConfigError("expected the name of a FILE, or a --config that sets data; found none")
    asked = RunConfig(**values)
    from fedloom import data

    found = data.inspect(
        asked.data, data_dir=asked.data_dir, seed=asked.data_seed, **asked.data_options
    )
    show.thing(found, title=asked.data)


@group.callback()
def _group() -> None:
    """Look at data before training on them."""


def register(app: typer.Typer) -> None:
    """Add the group of commands."""
    others = [name for name in RunConfig.model_fields if name not in SETTINGS]
    group.command("inspect", epilog=EPILOG)(flags.with_settings(inspect_, leave_out=others))
    app.add_typer(group, name="data")

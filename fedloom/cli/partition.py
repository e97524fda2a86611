"""`fedloom partition`: make a partition and look at its card, without training."""

from pathlib import Path
from typing import Annotated, Any

import typer

from fedloom.cli import data, flags, show
from fedloom.cli.settings import build, gather, used
from fedloom.config import RunConfig
from fedloom.errors import ConfigError

PICTURES = (".png", ".svg", ".pdf")

EPILOG = """[bold]Examples[/bold]

fedloom partition --data mnist --partition "label_dirichlet(alpha=0.5)" --clients 10

fedloom partition --data adult --partition "quantity_dirichlet(alpha=0.5)" --heatmap counts.png

fedloom partition --data fcube --partition fcube_octants --save splits/fcube

fedloom partition --config study.toml --seed 1
"""

SETTINGS = (
    "data",
    "partition",
    "clients",
    "partition_seed",
    "partition_rng",
    "seed",
    *data.SETTINGS,
)


def partition(
    ctx: typer.Context,
    settings: dict[str, Any],
    config: flags.Config = None,
    save: Annotated[
        Path | None,
        typer.Option("--save", metavar="PATH", help="Keep the partition (PATH.json, PATH.npz)."),
    ] = None,
    heatmap: Annotated[
        Path | None,
        typer.Option("--heatmap", metavar="FILE", help="Draw counts of class by client."),
    ] = None,
) -> None:
    """Divide a data set among clients and show how skewed the result is."""
    gathered = gather(
        # a preset is no flag here, but decides how the run of this file divides its rows
        base=used(config, (*SETTINGS, "preset")),
        sets=None,
        flags=settings,
        arguments=ctx.args,
        methods=lambda _: None,
    )
    asked, _ = build(gathered)
    show.notes(gathered.notes)
    _make(asked, save, heatmap)


def _make(config: RunConfig, save: Path | None, heatmap: Path | None) -> None:
    from fedloom import data, partition
    from fedloom.server.setup import make_partition

    if heatmap is not None:
        _make_room(heatmap)
    rows = data.load(
        config.data, data_dir=config.data_dir, seed=config.data_seed, **config.data_options
    )
    made = make_partition(config, rows)
    names = partition.client_names(made, rows.groups)
    card = partition.card(made, rows.classes, names)
    show.card(card, title=f"{config.partition} of {config.data} among {made.num_clients} clients")
    show.notes(made.warnings, label="warning")
    if save is not None:
        made.save(save)
        show.line(f"partition in {save}")
    if heatmap is not None:
        partition.heatmap(made, rows.classes, names).savefig(heatmap)
        show.line(f"heat map in {heatmap}")


def _make_room(picture: Path) -> None:
    """Refuse a picture that can't be written, before any work."""
    if picture.suffix not in PICTURES:
        raise ConfigError(f"--heatmap {picture}: expected a name in {', '.join(PICTURES)}")
    try:
        picture.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"--heatmap {picture}: {error.strerror}") from None


def register(app: typer.Typer) -> None:
    """Add the command."""
    others = [name for name in RunConfig.model_fields if name not in SETTINGS]
    command = flags.with_settings(partition, leave_out=others)
    app.command(context_settings=flags.LOOSE, epilog=EPILOG)(command)

"""`fedloom list`: what there is, each with its source."""

import dataclasses
import inspect
from collections.abc import Callable
from typing import Annotated

import typer

from fedloom.cli import complete, show
from fedloom.cli.guard import guarded
from fedloom.errors import ConfigError, nearest

EPILOG = """[bold]Examples[/bold]

fedloom list methods

fedloom list partitions
"""


def methods() -> dict[str, str]:
    """Every method: what it does, its options with their defaults, its source."""
    from fedloom import methods

    return {name: _method(methods.find(name)) for name in methods.names()}


def _method(cls: type) -> str:
    text = inspect.cleandoc(cls.__doc__ or "")
    options = ", ".join(
        f"{each.name}={each.default!r}" for each in dataclasses.fields(cls) if each.init
    )
    lines = [text.splitlines()[0], f"Options: {options}."]
    for paragraph in text.split("\n\n"):
        for field in ("Source:", "Equals:"):
            lines += [_field(paragraph, field)] if field in paragraph else []
    return "\n".join(lines)


def _field(paragraph: str, field: str) -> str:
    """`field` up to the next word with a colon at the start of a line."""
    kept: list[str] = []
    for line in paragraph[paragraph.index(field) :].splitlines():
        if kept and line.split(" ")[0].endswith(":"):
            break
        kept.append(line.strip())
    return " ".join(kept)


def _partitions() -> dict[str, str]:
    from fedloom import partition

    return partition.names()


def _datasets() -> dict[str, str]:
    from fedloom import data

    return data.names()


def _models() -> dict[str, str]:
    from fedloom import models

    return models.names()


def _samplers() -> dict[str, str]:
    from fedloom.clients import sampler

    return sampler.names()


def _schedules() -> dict[str, str]:
    from fedloom.server import schedule

    return schedule.names()


def _presets() -> dict[str, str]:
    from fedloom import presets

    return presets.names()


KINDS: dict[str, Callable[[], dict[str, str]]] = {
    "methods": methods,
    "partitions": _partitions,
    "datasets": _datasets,
    "models": _models,
    "samplers": _samplers,
    "schedules": _schedules,
    "presets": _presets,
}


def list_(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="|".join(KINDS),
            help="What to list.",
            autocompletion=complete.words(tuple(KINDS)),
            show_default=False,
        ),
    ],
) -> None:
    """List methods, partitions, data sets, models, ... with their options and sources."""
    word = kind.lower().replace("data_sets", "datasets").replace("data-sets", "datasets")
    plural = word if word.endswith("s") else word + "s"
    if plural not in KINDS:
        raise ConfigError(f"can't list {kind!r}; {nearest(plural, KINDS)}")
    show.named(plural, KINDS[plural]())


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("list", epilog=EPILOG)(guarded(list_))

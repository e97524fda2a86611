"""Command-line flags made from the fields of RunConfig: there is no second list of settings."""

import functools
import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic.fields import FieldInfo

from fedloom.cli import complete
from fedloom.cli.guard import guarded, with_parameters
from fedloom.config import RunConfig
from fedloom.config_keys import SPECS, base_type, choices, ranges

LOOSE = {
    "allow_extra_args": True,
    "ignore_unknown_options": True,
    "token_normalize_func": lambda name: name.replace("_", "-"),
}
"""`--local_epochs` is `--local-epochs`, and unknown flags are handed over: a method's options."""

METAVARS = {int: "WHOLE", float: "NUMBER", bool: "BOOLEAN", str: "TEXT"}

Config = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="Settings from a TOML file; flags win."),
]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Any setting by its key; repeat for more."),
]
Out = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR", help="Where results go (default: runs/NAME-NUMBER)."),
]
DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Print the plan: clients, steps, bytes, memory, time."),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on with the run in --out, to the same bits.")
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Delete the run that --out holds and start anew.")
]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress, only errors.")]


def with_settings(
    command: Callable[..., None], leave_out: Iterable[str] = ()
) -> Callable[..., None]:
    """The command with one flag for each setting; it gets those given as `settings`, still text."""
    names = [name for name in RunConfig.model_fields if name not in tuple(leave_out)]

    @functools.wraps(command)
    def wrapper(**values: Any) -> None:
        given = {name: values.pop(name) for name in names}
        command(
            **values, settings={key: value for key, value in given.items() if value is not None}
        )

    signature = inspect.signature(command)
    own = [each for each in signature.parameters.values() if each.name != "settings"]
    flags = {name: (_annotation(name, RunConfig.model_fields[name]), None) for name in names}
    return guarded(with_parameters(wrapper, signature.replace(parameters=own), flags))


def _annotation(name: str, field: FieldInfo) -> Any:
    """Every flag is read as text and checked by RunConfig, so that all problems come at once."""
    extra = field.json_schema_extra
    assert isinstance(extra, dict)
    words = choices(field.annotation)
    metavar = "SPEC" if name in SPECS else METAVARS.get(base_type(field.annotation), "WORD")
    option = typer.Option(
        f"--{name.replace('_', '-')}",
        help=_help(name, field),
        metavar=metavar,
        rich_help_panel=str(extra["panel"]),
        show_default=False,
        autocompletion=complete.words(words) if words else complete.FOR.get(name),
    )
    return Annotated[str | None, option]


def _help(name: str, field: FieldInfo) -> str:
    """Description, range and default, with brackets kept from being read as markup."""
    words = choices(field.annotation)
    bounds = " or ".join(words) if words else ", ".join(ranges(field))
    shown = f"; {bounds}" if bounds else ""
    default = "" if field.default is None else f" (default: {field.default})"
    return f"{field.description}{shown}{default}".replace("[", "\\[")

"""What commands print: tables on standard output, notes on standard error."""

import dataclasses
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedloom.cli.guard import line, say
from fedloom.cli.progress import duration

if TYPE_CHECKING:
    from rich.console import Console

    from fedloom.reporting import ReportFiles

WIDE = 200
"""Columns where the output is no terminal, so that a pipe gets whole lines."""


def console() -> "Console":
    """Standard output; wide where it is a file or a pipe."""
    from rich.console import Console

    found = Console(highlight=False)
    return found if found.is_terminal else Console(highlight=False, width=WIDE)


def notes(sentences: Iterable[str], label: str = "note") -> None:
    """One line each on standard error."""
    for sentence in sentences:
        say(sentence, label=label)


def thing(value: Any, title: str = "") -> None:
    """Print a renderable as it is, a dataclass or dictionary as a table, anything else as text."""
    if hasattr(value, "__rich__") or hasattr(value, "__rich_console__"):
        console().print(value)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        pairs(title, {each.name: getattr(value, each.name) for each in fields})
    elif isinstance(value, Mapping):
        pairs(title, value)
    else:
        line(str(value))


def pairs(title: str, values: Mapping[str, Any]) -> None:
    """A table of names and values; lists are cut to their first twenty entries."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title or None, show_header=False, title_justify="left")
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for key, value in values.items():
        if value is not None and value != () and value != []:
            table.add_row(Text(str(key).replace("_", " ")), Text(_short(value)))
    console().print(table)


CARD = ("params", "rng", "seed", "tries", "num_rows", "num_dropped", "sizes", "skew", "digest")
MOST_CLIENTS, MOST_CLASSES = 20, 12


def card(found: Mapping[str, Any], title: str) -> None:
    """A partition's card: its figures, then the rows of each class at each client."""
    from rich.table import Table
    from rich.text import Text

    pairs(title, {key: found[key] for key in CARD if found.get(key) not in ({}, None)})
    if found["count_matrix"] is None:
        line("too many clients and classes to list what each holds")
        return
    counts, classes = found["count_matrix"], found["classes"]
    table = Table(title="rows of each class at each client", title_justify="left")
    for name in ("client", *classes[:MOST_CLASSES], "all"):
        table.add_column(Text(str(name)), justify="right")
    names = [each["name"] for each in found["clients"] or ()] or [None] * len(counts)
    for client, row in enumerate(counts[:MOST_CLIENTS]):
        name = client if names[client] is None else names[client]
        table.add_row(*(Text(str(each)) for each in (name, *row[:MOST_CLASSES], sum(row))))
    console().print(table)
    hidden = max(0, len(counts) - MOST_CLIENTS), max(0, len(classes) - MOST_CLASSES)
    if any(hidden):
        line(f"not shown: {hidden[0]} clients, {hidden[1]} classes")


def named(title: str, rows: Mapping[str, str]) -> None:
    """A table of names, each with its sentence."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", show_header=False, show_lines=True)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, sentence in rows.items():
        table.add_row(Text(name), Text(sentence))
    console().print(table)


def result(out: Path) -> str:
    """Print the summary of a finished run; gives its status, "unfinished" where there is none."""
    path = out / "result.json"
    if not path.exists():
        return "unfinished"
    found = json.loads(path.read_text(encoding="utf-8"))
    pairs(f"{found.get('label') or found.get('method')}: {found['status']}", summary(found))
    line(f"results in {out}")
    return str(found["status"])


def report(files: "ReportFiles") -> None:
    """Print the tables and the verdict of a report, and where its page is."""
    from fedloom.reporting import build, terminal

    for comparison in files.comparisons:
        console().print(terminal(build(comparison)))
    for sentence in files.sentences:
        line(sentence)
    notes(files.notes)
    line(f"report in {files.html}")


def summary(found: Mapping[str, Any]) -> dict[str, str | None]:
    """The lines of a run's summary: the last round is the result, and the best is named as such."""
    final, best = found.get("final") or {}, found.get("best") or {}
    lines: dict[str, str | None] = {
        "accuracy": None,
        "balanced accuracy": percent(final.get("balanced_accuracy")),
        "macro F1": percent(final.get("macro_f1")),
        "best on the test set": None,
        "always the largest class": percent(found.get("constant_baseline")),
        "bytes": ", ".join(
            f"{found[f'bytes_{way}']:,} {way}"
            for way in ("up", "down")
            if found.get(f"bytes_{way}") is not None
        ),
        "training time": None,
    }
    if final.get("accuracy") is not None:
        lines["accuracy"] = (
            f"{percent(final['accuracy'])} after round {final.get('round')} (the result)"
        )
    if best.get("accuracy") is not None:
        lines["best on the test set"] = (
            f"{percent(best['accuracy'])} in round {best.get('round')} (optimistic: not the result)"
        )
    if found.get("seconds") is not None:
        lines["training time"] = duration(found["seconds"])
    if found.get("diverged"):
        lines["diverged"] = f"in round {found.get('diverged_round')}"
    if found.get("constant_prediction"):
        lines["warning"] = f"the model always answers {found['constant_prediction']!r}"
    return {key: value for key, value in lines.items() if value not in (None, "", "none")}


def percent(share: float | None) -> str:
    """A share as per cent, "none" where there is no number."""
    return "none" if share is None else f"{100 * share:.2f}%"


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, list | tuple):
        more = f", ... ({len(value)} in all)" if len(value) > 20 else ""
        return ", ".join(_short(each) for each in value[:20]) + more
    if isinstance(value, Mapping):
        return "; ".join(f"{key}: {_short(each)}" for key, each in value.items())
    return str(value)

"""Cells and columns of a table, before any format: text for the eye, a number to sort by."""

from dataclasses import dataclass

from fedloom.reporting import words
from fedloom.reporting.stats import Spread


@dataclass(frozen=True)
class Cell:
    """What is shown, and the number behind it: the sort key, and what the CSV keeps in full."""

    text: str
    value: float | None = None


@dataclass(frozen=True)
class Column:
    """A heading, what it means in a sentence, and whether it holds numbers."""

    title: str
    help: str = ""
    numeric: bool = True


@dataclass(frozen=True)
class Line:
    """One row of cells; references stand apart from methods."""

    cells: tuple[Cell, ...]
    reference: bool


@dataclass(frozen=True)
class Table:
    """Columns, lines and the sentences that say how to read them."""

    title: str
    columns: tuple[Column, ...]
    lines: tuple[Line, ...]
    notes: tuple[str, ...]


Made = tuple[Column, list[Cell]]
"""A column with its cells, top to bottom."""


def shares(title: str, spreads: list[Spread], help_: str = "") -> Made:
    """Shares as percentages, mean and sample deviation."""
    return Column(title, help_), [share(one) for one in spreads]


def share(one: Spread) -> Cell:
    """One share as a percentage, mean and sample deviation."""
    mean, std = (None if value is None else 100 * value for value in (one.mean, one.std))
    return Cell(words.spread(mean, std), mean)


def numbers(title: str, spreads: list[Spread], help_: str = "", digits: int | None = None) -> Made:
    """Means of a cost or loss, with as many decimals as its size calls for."""
    means = [one.mean for one in spreads]
    places = words.digits(means) if digits is None else digits
    return Column(title, help_), [Cell(words.fixed(mean, places), mean) for mean in means]


def scaled(title: str, spreads: list[Spread], help_: str = "") -> Made:
    """Means in one unit for the whole column; a `{}` in the title takes its prefix."""
    means = [one.mean for one in spreads]
    divisor, prefix = words.scale(means) if "{}" in title else (1.0, "")
    shown = [None if mean is None else mean / divisor for mean in means]
    places = words.digits(shown)
    cells = [Cell(words.fixed(v, places), m) for v, m in zip(shown, means, strict=True)]
    return Column(title.format(prefix).replace(" ()", ""), help_), cells

"""Figures in paper size: plain matplotlib objects, no window system, no global state changed."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fedloom.reporting import look, words
from fedloom.reporting.gather import number
from fedloom.reporting.series import METRICS, Limits, Line, gaps, limits, lines
from fedloom.reporting.summary import Comparison

SIZE = (5.5, 3.3)
MOST_NAMES = 30
"""Inches: the text width of a common single-column paper."""

FORMATS = ("png", "svg", "pdf")


def styled() -> AbstractContextManager[None]:
    """Settings of these figures, for a `with`: text is never read as mathematics."""
    return matplotlib.rc_context(
        {
            "font.family": list(look.families()),
            "font.size": 8,
            "text.parse_math": False,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.linewidth": 0.6,
            "axes.edgecolor": "#555555",
            "axes.labelcolor": "#222222",
            "axes.titlesize": 8.5,
            "axes.formatter.useoffset": False,
            "axes.unicode_minus": True,
            "axes.titlelocation": "left",
            "xtick.color": "#555555",
            "ytick.color": "#555555",
            "grid.color": "#e3e3e3",
            "grid.linewidth": 0.5,
            "legend.frameon": False,
            "svg.fonttype": "none",
            "svg.hashsalt": "fedloom",
            "pdf.fonttype": 42,
        }
    )


def save(figure: Figure, folder: Path, stem: str) -> tuple[Path, ...]:
    """Write PNG (300 dpi), SVG and PDF, without a time stamp; gives the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = tuple(folder / f"{stem}.{ending}" for ending in FORMATS)
    dates: dict[str, dict[str, None]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    with styled():
        for path, ending in zip(paths, FORMATS, strict=True):
            figure.savefig(path, dpi=300, metadata=dates.get(ending))
    return paths


def curves(comparison: Comparison, key: str = "accuracy", against: str = "rounds") -> Figure:
    """A metric against `rounds`, `bytes` or `seconds`: mean line, band over all trials.

    Trials that are not averaged are thin lines of their own; a cross marks where one diverged.
    """
    shown = lines(comparison, key, against)
    with styled():
        figure, axes = _figure()
        scale, prefix = 1.0, ""
        if against == "bytes":
            scale, prefix = words.scale([x for line in shown for x in _reach(line)])
        for line in shown:
            _draw(axes, line, 1 / scale)
        bounds = limits(shown, zoom=METRICS[key][0] == 100)
        _frame(axes, bounds)
        unit = {"rounds": "round", "seconds": "training time (s)"}
        axes.set_xlabel(unit.get(against, f"bytes up and down ({prefix}B)"))
        split = comparison.runs[0].split if comparison.runs else "test"
        axes.set_ylabel(METRICS[key][1].format(split=split))
        title = look.drawable(comparison.title, 90)
        axes.set_title(f"{title}\n{look.drawable(bounds.note, 90)}".strip())
        if all(line.empty for line in shown):
            _no_data(axes)
        else:
            _legend(axes, len(shown))
    return figure


def forest(comparison: Comparison) -> Figure:
    """Paired differences to the baseline with 95 % intervals, one method a line, zero marked."""
    rows = [row for row in comparison.rows if comparison.gap(row) is not None]
    with styled():
        figure, axes = _figure((SIZE[0], 1.1 + 0.32 * max(1, len(rows))))
        axes.axvline(0, color="#555555", linewidth=0.8)
        for height, row in enumerate(reversed(rows)):
            gap = comparison.gap(row)
            assert gap is not None
            colour = look.style(comparison.rows.index(row), False)[0]
            if gap.low is not None and gap.high is not None:
                span = [100 * gap.low, 100 * gap.high]
                axes.plot(span, [height, height], color=colour, linewidth=1.6)
            full = gap.contains_zero is False
            face = colour if full else "white"
            axes.plot([100 * gap.mean], [height], "o", color=colour, mfc=face, markersize=5)
        axes.set_yticks(range(len(rows)), [look.drawable(row.full) for row in reversed(rows)])
        axes.set_ylim(-0.7, max(1, len(rows)) - 0.3)
        axes.grid(axis="x")
        if rows and comparison.baseline is not None:
            name = look.drawable(comparison.baseline.full)
            axes.set_xlabel(f"final accuracy minus {name} (points, 95 % interval)")
        else:
            _no_data(axes)
    return figure


def heatmap(
    counts: Sequence[Sequence[int]],
    classes: Sequence[str],
    title: str,
    clients: Sequence[str] | None = None,
) -> Figure:
    """Rows of each class (down) at each client (across), shaded by the client's share.

    `clients` are the clients' names, drawn where there are at most 30; else their numbers stand.
    """
    table = np.array(counts, dtype=float).T  # [C, N]
    share = table / np.maximum(table.sum(0), 1)  # [C, N]
    with styled():
        named = [look.drawable(name, 20) for name in clients or ()]
        named = named if len(named) <= MOST_NAMES else []
        longest = max(map(len, named), default=0)
        slanted = longest > 5
        below = 0.05 * longest if slanted else 0.0  # inches that slanted names take
        figure, axes = _figure((SIZE[0], min(9.0, 0.9 + 0.24 * len(table) + below)))
        axes.imshow(share, aspect="auto", cmap="Blues", vmin=0, vmax=1)
        step = -(-len(table) // 40)
        places = range(0, len(table), step)
        axes.set_yticks(places, [look.drawable(classes[place], 20) for place in places])
        if named:
            slant: dict[str, Any] = {"rotation": 40, "ha": "right"} if slanted else {}
            axes.set_xticks(range(len(named)), named, **slant)
        else:
            axes.xaxis.set_major_locator(MaxNLocator(min(20, table.shape[1]), integer=True))
        if table.size <= 150:
            for (place, client), value in np.ndenumerate(table):
                colour = "white" if share[place, client] > 0.55 else "#333333"
                options: dict[str, Any] = {"color": colour, "fontsize": 6}
                axes.text(client, place, f"{value:.0f}", ha="center", va="center", **options)
        axes.set_xlabel("client")
        axes.set_title(look.drawable(title, 90))
    return figure


def _figure(size: tuple[float, float] = SIZE) -> tuple[Figure, Axes]:
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.add_subplot()


def _reach(line: Line) -> list[float | None]:
    return [*line.band.x, *(x for stray in line.strays for x in stray.x)]


def _draw(axes: Axes, line: Line, across: float) -> None:
    colour, dash, marker = look.style(line.place, line.reference)
    options: dict[str, Any] = {"color": colour, "linewidth": 1.0 if line.reference else 1.4}
    if dash:
        options["dashes"] = dash
    band = line.band
    x = [across * value for value in band.x]
    name = look.drawable(line.name, 40)
    if line.lone:  # no stroke in the chart, so none in the legend
        axes.plot(x, band.mean, marker, color=colour, markersize=4.5, label=name)
    else:
        axes.plot(x, band.mean, label=name, **options)
    if band.n > 1:
        axes.fill_between(x, band.low, band.high, color=colour, alpha=0.15, linewidth=0)
    for stretch in gaps(x, band.mean):
        if len(stretch) == 1 and not line.lone:
            axes.plot(*stretch[0], marker, color=colour, markersize=4.5)
    for stray in line.strays:
        thin = [across * value for value in stray.x]
        axes.plot(thin, stray.y, color=colour, linewidth=0.6, alpha=0.7)
        if stray.end is not None:
            end = (across * stray.end[0], stray.end[1])
            axes.plot(*end, "x", color=colour, markersize=6, mew=1.6)
            axes.annotate(stray.reason, end, (5, 3), textcoords="offset points", color=colour)


def _frame(axes: Axes, bounds: Limits) -> None:
    axes.set_ylim(bounds.low, bounds.high)
    axes.xaxis.set_major_locator(MaxNLocator(7, integer=True, steps=[1, 2, 5, 10]))
    axes.grid(axis="y")
    axes.set_axisbelow(True)


def _legend(axes: Axes, count: int) -> None:
    axes.legend(
        loc="upper left" if count > 5 else "best",
        bbox_to_anchor=(1.01, 1.0) if count > 5 else None,
        handlelength=3.2,
        fontsize=7.5,
    )


def _no_data(axes: Axes) -> None:
    axes.text(0.5, 0.5, "no data", transform=axes.transAxes, ha="center", va="center", color="#777")
    axes.set_xticks([])
    axes.set_yticks([])


def names_of(card: dict[str, Any]) -> list[str] | None:
    """The names of a card's clients; None where it lists none."""
    clients = card.get("clients")
    if not isinstance(clients, list) or not clients:
        return None
    names = [one.get("name") if isinstance(one, dict) else None for one in clients]
    return None if None in names else list(map(str, names))


def counts_of(card: dict[str, Any]) -> tuple[list[list[int]], list[str]] | None:
    """The count matrix [N, C] and class names of a partition card; None where it has none."""
    counts = card.get("count_matrix") or card.get("counts")
    if not counts or not all(isinstance(row, list) for row in counts):
        return None
    table = [[int(number(value) or 0) for value in row] for row in counts]
    width = len(table[0])
    names = [str(name) for name in card.get("classes") or card.get("class_names") or range(width)]
    return (table, names) if len(names) == width else None

"""The partition as a picture: rows of each class at each client, and the clients' sizes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fedloom.partition.card import names_of
from fedloom.partition.naming import labels_of
from fedloom.partition.partition import Partition

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_CLIENTS, MAX_CLASSES = 300, 200
MAX_TICKS = 30
MAX_NAME = 20
MAX_NUMBERS = 150
INK, FAINT = "#333333", "#aaaaaa"


def heatmap(
    partition: Partition,
    class_names: Sequence[str] | None = None,
    client_names: Sequence[str] | None = None,
) -> "Figure":
    """Count heat map, clients across and classes down, under a bar for each client's size.

    White is no row at all. Up to 150 cells carry their counts. Of more than 300 clients or 200
    classes an even sample is drawn, which the axis says; names are plain text, cut to 20 letters.
    """
    from matplotlib.figure import Figure

    clients = _sample(partition.num_clients, MAX_CLIENTS)
    classes = _sample(partition.num_classes, MAX_CLASSES)
    counts = partition.count_matrix[np.ix_(clients, classes)].T  # [C', N']
    every_class = names_of(partition, class_names)
    names = [every_class[c] for c in classes]
    every_client = labels_of(partition, client_names)
    called = [every_client[c] for c in clients]
    width = float(np.clip(2.8 + 0.42 * len(clients), 5.5, 11))
    height = float(np.clip(1.9 + 0.3 * len(classes), 3.2, 9))
    figure = Figure(figsize=(width, height), layout="constrained")
    sizes, cells = figure.subplots(2, 1, sharex=True, height_ratios=[1, max(2.0, height - 2)])
    _draw_sizes(sizes, partition.sizes[clients])
    _draw_cells(cells, counts)
    image = cells.images[0]
    bar = figure.colorbar(image, ax=cells, pad=0.01, fraction=0.05)
    bar.set_label("rows")
    bar.outline.set_visible(False)
    _label(cells, called, partition.num_clients, names, partition.num_classes)
    return figure


def short_name(name: str) -> str:
    """One line of at most 20 letters, the rest cut with an ellipsis.

    >>> short_name("a very long class name indeed")
    'a very long class n…'
    """
    flat = "".join(letter if letter.isprintable() else " " for letter in name)
    flat = " ".join(flat.split())
    return flat if len(flat) <= MAX_NAME else flat[: MAX_NAME - 1] + "…"


def _sample(count: int, limit: int) -> np.ndarray:
    """All positions, or `limit` of them evenly spaced."""
    if count <= limit:
        return np.arange(count)
    return np.linspace(0, count - 1, limit).round().astype(np.int64)


def _ticks(count: int, limit: int = MAX_TICKS) -> np.ndarray:
    return np.arange(0, count, -(-count // limit))


def _draw_sizes(axes: "Axes", sizes: np.ndarray) -> None:
    axes.bar(np.arange(len(sizes)), sizes, width=0.8 if len(sizes) <= 100 else 1.0, color="#7a9cc6")
    axes.set_ylabel("rows")
    axes.set_ylim(bottom=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(bottom=False, labelbottom=False)
    axes.locator_params(axis="y", nbins=3)


def _draw_cells(axes: "Axes", counts: np.ndarray) -> None:
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    blues = ListedColormap(colormaps["Blues"](np.linspace(0.12, 1.0, 256)))
    top = max(1, int(counts.max()))
    axes.imshow(
        np.ma.masked_equal(counts, 0),
        cmap=blues,
        vmin=0,
        vmax=top,
        aspect="auto",
        interpolation="nearest",
    )
    axes.spines[:].set_color("#cccccc")
    if counts.size > MAX_NUMBERS:
        return
    for (row, column), count in np.ndenumerate(counts):
        ink = "white" if count > 0.55 * top else INK if count else FAINT
        axes.text(column, row, str(count), ha="center", va="center", size=7, color=ink)


def _label(
    axes: "Axes", clients: list[str], num_clients: int, names: list[str], num_classes: int
) -> None:
    across, down = _ticks(len(clients), 20), _ticks(len(names))
    shown = [short_name(clients[i]) for i in across]
    slant: dict[str, Any] = {"rotation": 40, "ha": "right"} if max(map(len, shown)) > 5 else {}
    axes.set_xticks(across, shown, parse_math=False, **slant)
    axes.set_yticks(down, [short_name(names[i]) for i in down], parse_math=False)
    axes.tick_params(length=2, labelsize=8, color="#cccccc")
    whole = len(clients) == num_clients
    axes.set_xlabel("client" if whole else f"client ({len(clients)} of {num_clients} shown)")
    whole = len(names) == num_classes
    axes.set_ylabel("class" if whole else f"class ({len(names)} of {num_classes} shown)")

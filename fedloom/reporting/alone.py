"""What each client's own model reached, client by client, where the reader can take them in."""

from fedloom.reporting import plot, stats, words
from fedloom.reporting.cells import Cell, Column, Line, Table
from fedloom.reporting.gather import Run, number
from fedloom.reporting.rows import Row
from fedloom.reporting.summary import Comparison

MOST_CLIENTS = 30
Own = dict[str, tuple[float | None, float | None]]
"""Client -> (rows, accuracy of its own model)."""


def alone(comparison: Comparison) -> Table | None:
    """Clients that trained alone: name, rows, accuracy; None without such runs or with over 30.

    Clients with names are averaged over trials; clients without hold other rows in every trial, so
    that the first trial is shown.
    """
    row = next((one for one in comparison.references if one.role == "local"), None)
    runs = [] if row is None else list(row.usable.values())
    found = [own for run in runs if (own := _own(run))]
    if row is None or not found or max(map(len, found)) > MOST_CLIENTS:
        return None
    named = all(client_names(run) for run in runs) and len({frozenset(own) for own in found}) == 1
    shown = found if named else found[:1]
    lines = tuple(_line(name, shown) for name in found[0])
    columns = (
        Column("Client", numeric=False),
        Column("Rows", "training rows"),
        Column("Accuracy of its own model (%)", "on the whole test set"),
    )
    return Table("Each client alone", columns, lines, (_note(row, len(shown)),))


def client_names(run: Run) -> list[str] | None:
    """The names of a run's clients; None where they have none."""
    told = run.personal[-1].get("client_names") if run.personal else None
    return list(map(str, told)) if isinstance(told, list) else plot.names_of(run.card)


def _own(run: Run) -> Own:
    values = run.personal[-1].get("per_client") or () if run.personal else ()
    numbers = [str(place) for place in range(len(values))]
    names, entries = client_names(run) or numbers, run.card.get("clients") or ()
    sizes = [number(one.get("size")) if isinstance(one, dict) else None for one in entries]
    if len(names) != len(values) or len(sizes) not in (0, len(values)):
        return {}
    sizes = sizes or [None] * len(values)
    return {
        name: (size, number(value)) for name, size, value in zip(names, sizes, values, strict=True)
    }


def _line(name: str, trials: list[Own]) -> Line:
    size = stats.spread(own[name][0] for own in trials).mean
    reached = stats.spread(own[name][1] for own in trials)
    text = words.percent(reached.mean)
    if len(trials) > 1 and reached.mean is not None:
        text = words.spread(100 * reached.mean, None if reached.std is None else 100 * reached.std)
    rows = Cell(words.NONE if size is None else f"{size:,.0f}", size)
    share = None if reached.mean is None else 100 * reached.mean
    return Line((Cell(name), rows, Cell(text, share)), False)


def _note(row: Row, trials: int) -> str:
    if trials > 1:
        return f"Reference {row.full}: mean ± sample standard deviation over {trials} trials."
    which = "the first trial" if len(row.usable) > 1 else "the one trial"
    return f"Reference {row.full}, {which}. A client's model is scored on the whole test set."

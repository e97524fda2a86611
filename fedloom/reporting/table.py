"""The comparison table: one set of cells, which every format only writes down differently."""

from fedloom.reporting import stats, words
from fedloom.reporting.cells import Cell, Column, Line, Made, Table, numbers, scaled, shares
from fedloom.reporting.gather import Run, number
from fedloom.reporting.rows import Row
from fedloom.reporting.summary import Comparison


def build(comparison: Comparison) -> Table:
    """The table that answers which method wins, by how much, at what cost."""
    rows = (*comparison.rows, *comparison.references)
    made = [_method(rows), *_accuracy(rows), *_difference(comparison, rows), *_costs(rows)]
    made += _reach(comparison, rows)
    made.append((Column("Notes", numeric=False), [Cell("; ".join(remarks(row))) for row in rows]))
    return _assemble(comparison.title, rows, made, reading(comparison))


def detailed(comparison: Comparison) -> Table:
    """Other metrics, how calm the curve ends, and the best round, marked as what it is."""
    rows = (*comparison.rows, *comparison.references)
    optimistic = "highest value on the test set over all rounds: never the result"
    made = [
        _method(rows),
        shares("Macro F1 (%)", [row.final("macro_f1") for row in rows]),
        numbers("Loss (nats)", [row.final("loss") for row in rows], "cross-entropy", 4),
        shares("Mean of last 5 (%)", [row.spread(_last_five) for row in rows]),
        shares("Best round, optimistic (%)", [row.spread(_best) for row in rows], optimistic),
        shares("Std of last 10 (points)", [row.spread(_calm) for row in rows]),
        shares("Largest drop (points)", [row.spread(_drop) for row in rows]),
    ]
    return _assemble(comparison.title, rows, made, ())


def costs(comparison: Comparison) -> Table:
    """What a whole run takes: messages, computation, time; means over the trials that count."""
    rows = (*comparison.rows, *comparison.references)
    made = [_method(rows)]
    for title, key, help_ in (
        ("Up ({}B)", "bytes_up", "reports of all clients"),
        ("Down ({}B)", "bytes_down", "broadcasts to all clients"),
        (
            "As NIID-Bench counts ({}B)",
            "niid_equivalent_bytes",
            "messages by that benchmark's rule",
        ),
        ("Computed ({}FLOP)", "flops", "floating-point operations of local training"),
        ("Steps ({})", "steps", "optimizer steps of all clients"),
        ("Training (s)", "seconds", "on this machine"),
        ("Evaluation (s)", "evaluation_seconds", "on this machine, apart from training"),
    ):
        made.append(scaled(title, [row.cost(key) for row in rows], help_))
    return _assemble(comparison.title, rows, made, ())


def to_target(comparison: Comparison) -> Table:
    """What each method spends until the target accuracy is first measured."""
    rows = comparison.rows
    made = [_method(rows)]
    for title, key, digits in (
        ("Rounds", "rounds", 1),
        ("Sent ({}B)", "bytes", None),
        ("Training (s)", "seconds", None),
    ):
        reaches = [row.reach(comparison.target or 1.0, key) for row in rows]
        means = [stats.spread(reach.values).mean for reach in reaches]
        divisor, prefix = words.scale(means) if key == "bytes" else (1.0, "")
        shown = [None if mean is None else mean / divisor for mean in means]
        places = words.digits(shown) if digits is None else digits
        cells = [reach_cell(reach, divisor, places) for reach in reaches]
        made.append((Column(title.format(prefix), "until the target"), cells))
    return _assemble(f"To {words.percent(comparison.target, 1)} % accuracy", rows, made, ())


def reading(comparison: Comparison) -> tuple[str, ...]:
    """Which test set, which round, which deviation: the sentences under the table."""
    runs = comparison.runs
    splits = list(dict.fromkeys(run.split for run in runs))
    finals = [run.result.get("final") or {} for run in runs if run.role == "method"]
    last = list(dict.fromkeys(str(final["round"]) for final in finals if "round" in final))
    which = f"the final round ({', '.join(last)})" if last else "the final round"
    notes = [
        f"Accuracy of the global model on the {words.listing(splits)} set of {comparison.data}, "
        f"after {which}. Mean ± sample standard deviation (n − 1) over the trials that count; "
        "diverged, constant and unfinished runs are marked and never averaged."
    ]
    if comparison.baseline is not None and len(comparison.rows) > 1:
        notes.append(
            f"Differences to {comparison.baseline.full}, paired by trial, with 95 % t intervals, "
            "not adjusted for the number of methods; * marks an interval without zero."
        )
    if comparison.target is not None:
        notes.append(
            f"Target: {words.percent(comparison.target)} % accuracy, first measured round that "
            "reaches it; mean over the trials that do."
        )
    notes.append(
        "Sent: bytes up and down, counted once for each client. Training: seconds on this "
        "machine, evaluation apart."
    )
    if any(row.role == "local" for row in comparison.references):
        notes.append(
            "Reference local: mean over clients of each client's own model on the same test set."
        )
    return tuple(notes)


def remarks(row: Row) -> list[str]:
    """What the reader has to know about a row: runs left out, reports refused, unlike clients."""
    notes = ["reference"] if row.role != "method" else []
    for reason, count in row.excluded.items():
        runs = [run for run in row.runs if run.excluded == reason]
        extra = ""
        rounds = [run.result.get("diverged_round") for run in runs]
        if reason == "diverged" and any(place is not None for place in rounds):
            extra = f" (round {', '.join(str(place) for place in rounds if place is not None)})"
            scores = [words.percent(value) for run in runs if (value := run.final("accuracy"))]
            extra += f", would score {', '.join(scores)} %" if scores else ""
        if reason == "constant prediction":
            extra = f" ({', '.join(dict.fromkeys(str(run.constant) for run in runs))})"
        notes.append(f"{count} {reason}{extra}")
    refused = sum(len(event.get("refused") or ()) for run in row.runs for event in run.rounds)
    if refused:
        notes.append(f"{words.plural(refused, 'report')} refused")
    if row.role == "local" and row.usable:
        std = row.spread(_between_clients).mean
        notes += [] if std is None else [f"std over clients {words.percent(std)} points"]
    return notes


def _method(rows: tuple[Row, ...]) -> Made:
    return Column("Method", numeric=False), [Cell(row.full) for row in rows]


def _accuracy(rows: tuple[Row, ...]) -> list[Made]:
    finals = [row.final("accuracy") for row in rows]
    return [
        shares("Final accuracy (%)", finals, "final round, mean ± sample std"),
        (Column("n", "trials that count"), [Cell(row.count, len(row.usable)) for row in rows]),
        shares("Balanced (%)", [row.final("balanced_accuracy") for row in rows]),
    ]


def _difference(comparison: Comparison, rows: tuple[Row, ...]) -> list[Made]:
    if comparison.baseline is None or len(comparison.rows) < 2:
        return []
    difference, span = [], []
    for row in rows:
        gap = comparison.gap(row)
        star = "*" if gap is not None and gap.contains_zero is False else ""
        text = "baseline" if row is comparison.baseline else words.NONE
        if gap is not None:
            text = words.percent(gap.mean, sign=True) + star
        difference.append(Cell(text, None if gap is None else 100 * gap.mean))
        span.append(Cell(words.interval(gap.low, gap.high) if gap else words.NONE))
    name = words.short(comparison.baseline.name)
    return [
        (Column(f"Difference to {name} (points)"), difference),
        (Column("95 % interval"), span),
    ]


def _costs(rows: tuple[Row, ...]) -> list[Made]:
    seconds = [row.cost("seconds") for row in rows]
    return [
        scaled("Sent ({}B)", [row.bytes for row in rows], "bytes up and down"),
        numbers("Training (s)", seconds),
    ]


def _reach(comparison: Comparison, rows: tuple[Row, ...]) -> list[Made]:
    if comparison.target is None:
        return []
    nothing = stats.Reach((), 0)
    reaches = [
        row.reach(comparison.target, "rounds") if row.role == "method" else nothing for row in rows
    ]
    cells = [reach_cell(reach, 1, 1) for reach in reaches]
    return [(Column(f"Rounds to {words.percent(comparison.target, 1)} %"), cells)]


def reach_cell(reach: stats.Reach, divisor: float, digits: int) -> Cell:
    """Mean cost up to the target over the trials that met it, and how many did if not all."""
    if not reach.trials:
        return Cell(words.NONE)
    if not reach.values:
        return Cell("not reached")
    mean = stats.spread(reach.values).mean
    assert mean is not None
    text = words.fixed(mean / divisor, digits)
    if len(reach.values) < reach.trials:
        text += f" ({len(reach.values)} of {reach.trials})"
    return Cell(text, mean)


def _between_clients(run: Run) -> float | None:
    last = run.personal[-1] if run.personal else {}
    return stats.spread(number(value) for value in last.get("per_client") or ()).std


def _last_five(run: Run) -> float | None:
    return stats.last_mean(run.curve("accuracy"))


def _best(run: Run) -> float | None:
    if run.role == "local":
        return None
    return number((run.result.get("best") or {}).get("accuracy"))


def _calm(run: Run) -> float | None:
    return stats.stability(run.curve("accuracy")).std_last_10


def _drop(run: Run) -> float | None:
    return stats.stability(run.curve("accuracy")).largest_drop


def _assemble(title: str, rows: tuple[Row, ...], made: list[Made], notes: tuple[str, ...]) -> Table:
    """Columns -> lines, leaving out columns in which nothing was measured."""
    kept = [
        (column, cells)
        for column, cells in made
        if not column.numeric or any(cell.text != words.NONE for cell in cells)
    ]
    lines = tuple(
        Line(tuple(cells[place] for _, cells in kept), row.role != "method")
        for place, row in enumerate(rows)
    )
    return Table(title, tuple(column for column, _ in kept), lines, notes)

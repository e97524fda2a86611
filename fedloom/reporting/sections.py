"""What the page shows of one comparison, gathered for its template."""

from collections.abc import Callable
from typing import Any

from markupsafe import Markup

from fedloom.reporting import chart, facts, plot, series, table, words
from fedloom.reporting.alone import alone
from fedloom.reporting.rows import Row
from fedloom.reporting.summary import Comparison
from fedloom.reporting.verdict import leaders, ranking, verdict

WIDTHS = {"wide": 560, "narrow": 350}
"""Every chart is drawn twice, so that its letters keep their size on a phone."""

MOST_CARDS = 3

MAIN_FACTS = (
    *("num_rows", "num_dropped", "sizes.min", "sizes.median", "sizes.max"),
    *("classes_per_client.median", "skew.tv", "skew.tv_weighted", "skew.size_imbalance"),
)
"""What a card shows at once; the rest unfolds."""


def section(comparison: Comparison, key: str) -> dict[str, Any]:
    """All that the template shows of one comparison; `key` keeps its anchors apart."""
    sentences = verdict(comparison)
    ranked = ranking(comparison)
    methods = [run for row in comparison.rows for run in row.runs]
    shared, varying = facts.configuration(methods or comparison.runs)
    gaps = [row for row in comparison.rows if comparison.gap(row) is not None]
    return {
        "key": key,
        "title": comparison.title,
        "headline": sentences[0],
        "sentences": sentences[1:],
        "best": [row.full for row in leaders(ranked)] if len(ranked) > 1 else [],
        "data": comparison.data,
        "partition": comparison.partition,
        "clients": comparison.clients,
        "trials": max(len(row.runs) for row in _rows(comparison)),
        "table": table.build(comparison),
        "detailed": table.detailed(comparison),
        "costs": table.costs(comparison),
        "to_target": table.to_target(comparison) if comparison.target and comparison.rows else None,
        "legend": _legend(comparison),
        "charts": _charts(comparison, key),
        "forest": _both(lambda width: chart.forest(comparison, width=width)) if gaps else None,
        "classes": _classes(comparison),
        "cards": _cards(comparison),
        "alone": alone(comparison),
        "shared": shared,
        "varying": varying,
        "warnings": facts.warnings(comparison),
        "notes": facts.notes(comparison),
        "tuning": facts.tuning(comparison),
    }


def _rows(comparison: Comparison) -> tuple[Row, ...]:
    return (*comparison.rows, *comparison.references)


def _both(draw: Callable[[int], Markup]) -> list[tuple[str, Markup]]:
    return [(name, draw(width)) for name, width in WIDTHS.items()]


def _legend(comparison: Comparison) -> list[tuple[Markup, str]]:
    return [
        (chart.swatch(line.place, line.reference, line.lone), line.name)
        for line in series.lines(comparison, "accuracy")
    ]


def _charts(comparison: Comparison, key: str) -> list[dict[str, Any]]:
    split = comparison.runs[0].split
    wanted = [
        ("accuracy", "rounds", f"Accuracy on the {split} set (%)"),
        ("accuracy", "bytes", f"Accuracy on the {split} set (%), by bytes sent"),
        ("loss", "rounds", f"Loss on the {split} set (nats)"),
        ("train_loss", "rounds", "Training loss, mean over the cohort (nats)"),
    ]
    made = [_chart(comparison, metric, against, title, key) for metric, against, title in wanted]
    return [one for place, one in enumerate(made) if place == 0 or not one["empty"]]


def _chart(
    comparison: Comparison, metric: str, against: str, title: str, key: str
) -> dict[str, Any]:
    shown = series.lines(comparison, metric, against)
    share = metric == "accuracy"
    bounds = series.limits(shown, zoom=share)
    scale, label = 1.0, "round"
    if against == "bytes":
        scale, prefix = words.scale([x for line in shown for x in line.band.x])
        label = f"bytes up and down ({prefix}B)"
    notes = [bounds.note] if bounds.note else []
    if any(line.band.n > 1 for line in shown):
        notes.append("Line: mean over trials; band: least to greatest.")
    name = f"{key}-{metric}-{against}"

    def draw(width: int) -> Markup:
        return chart.curves(
            shown, bounds, width=width, x_label=label, scale=scale, key=f"{name}-{width}"
        )

    return {
        "title": title,
        "note": " ".join(notes),
        "x": label,
        "digits": 2 if share else 4,
        "empty": all(line.empty for line in shown),
        "points": chart.points(shown, scale),
        "pictures": _both(draw),
    }


def _classes(comparison: Comparison) -> dict[str, Any] | None:
    """Final accuracy by class; None where it was not measured."""
    count = facts.num_classes(comparison)
    if not count:
        return None
    names: list[str] = []
    for run in comparison.runs:
        if (known := plot.counts_of(run.card)) is not None and len(known[1]) == count:
            names = known[1]
            break
    rows = [(row.full, facts.per_class(row, count)) for row in _rows(comparison) if row.usable]
    rows = [(name, cells) for name, cells in rows if any(cell.value is not None for cell in cells)]
    defined = sum(
        any(cells[place].value is not None for _, cells in rows) for place in range(count)
    )
    labels = [words.short(name, 14) for name in names] or [str(place) for place in range(count)]
    return {"names": labels, "rows": rows, "defined": defined, "count": count}


def _cards(comparison: Comparison) -> dict[str, Any]:
    """Distinct partition cards of the methods' runs, the first few with their heat maps."""
    runs = [run for row in comparison.rows for run in row.runs] or list(comparison.runs)
    groups = facts.distinct(runs, "card")
    shown = []
    for group, card in groups[:MOST_CARDS]:
        seeds = words.listing(list(dict.fromkeys(str(run.seed) for run in group)))
        table_ = plot.counts_of(card)
        pairs = facts.flat({key: value for key, value in card.items() if _short(key, value)})
        main = [pair for pair in pairs if pair[0] in MAIN_FACTS]
        shown.append(
            {
                "seeds": seeds,
                "facts": main,
                "rest": [pair for pair in pairs if pair not in main],
                "warnings": [str(one) for one in card.get("warnings") or ()],
                "heatmap": chart.heatmap(*table_, plot.names_of(card)) if table_ else None,
                "hidden": max(0, len(table_[0]) - chart.MOST_CLIENTS) if table_ else 0,
            }
        )
    return {"shown": shown, "more": max(0, len(groups) - MOST_CARDS)}


def _short(key: str, value: object) -> bool:
    """Whether a fact of a card fits on a line, and is not shown elsewhere."""
    if key in ("warnings", "classes", "class_names"):
        return False
    return not isinstance(value, list) or (len(value) <= 12 and not any(map(_nested, value)))


def _nested(value: object) -> bool:
    return isinstance(value, list | dict)

"""What the page tells besides numbers: configuration, environment, fairness, and every note."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from fedloom.report import stats, words
from fedloom.report.cells import Cell, share
from fedloom.report.gather import Run, number
from fedloom.report.rows import Row
from fedloom.report.summary import Comparison, differing

Pairs = list[tuple[str, str]]


def flat(value: dict[str, Any], prefix: str = "") -> Pairs:
    """Nested settings as `outer.inner` and text; lists of plain values on one line.

    >>> flat({"a": {"b": 1}, "c": [1, 2], "d": None})
    [('a.b', '1'), ('c', '1, 2'), ('d', '–')]
    """
    pairs: Pairs = []
    for key, item in value.items():
        if isinstance(item, dict):
            pairs += flat(item, f"{prefix}{key}.")
        elif isinstance(item, list):
            pairs.append((f"{prefix}{key}", ", ".join(map(str, item)) or words.NONE))
        else:
            pairs.append((f"{prefix}{key}", words.NONE if item is None else str(item)))
    return pairs


def distinct(runs: Iterable[Run], part: str) -> list[tuple[list[Run], dict[str, Any]]]:
    """The different values of `environment`, `card` or another part, each with the runs that have it."""
    groups: dict[str, tuple[list[Run], dict[str, Any]]] = {}
    for run in runs:
        value = getattr(run, part)
        if value:
            key = json.dumps(value, sort_keys=True)
            groups.setdefault(key, ([], value))[0].append(run)
    return list(groups.values())


def configuration(runs: Sequence[Run]) -> tuple[Pairs, Pairs]:
    """Settings that all runs share, and those that vary with the values they take."""
    configs = [run.config for run in runs]
    keys = [key for key in dict.fromkeys(key for one in configs for key in one) if key != "method"]
    same = {key: configs[0].get(key) for key in keys if _alike(configs, key)}
    varying = {key: _values(configs, key) for key in keys if key not in same}
    return flat(same), list(varying.items())


def _alike(configs: Sequence[dict[str, Any]], key: str) -> bool:
    return len({repr(one.get(key)) for one in configs}) == 1


def _values(configs: Sequence[dict[str, Any]], key: str) -> str:
    values = list(dict.fromkeys(str(one.get(key)) for one in configs))
    return " | ".join(values[:12]) + (f" … ({len(values)} values)" if len(values) > 12 else "")


def warnings(comparison: Comparison) -> list[str]:
    """What makes the comparison less than fair, or a reader should act on."""
    found = []
    runs = [run for row in comparison.rows for run in row.runs]
    keys = differing(run.config for run in runs)
    if keys:
        found.append(f"Rows differ in more than their method: {', '.join(keys)}.")
    trials = {tuple(sorted(map(str, row.usable))) for row in comparison.rows if row.complete}
    if len(trials) > 1:
        found.append("Methods were not run with the same seeds; only shared trials are paired.")
    for seed in dict.fromkeys(run.seed for run in runs):
        digests = {run.partition.get("digest") for run in runs if run.seed == seed}
        if len(digests - {None}) > 1:
            found.append(f"Seed {seed}: the partition is not the same for every method.")
    return found + [
        one for row in (*comparison.rows, *comparison.references) for one in _refused(row)
    ]


def _refused(row: Row) -> list[str]:
    known = [
        (event["round"], one, run)
        for run in row.runs
        for event in run.rounds
        for one in event.get("refused") or ()
    ]
    if not known:
        return []
    place, first, run = known[0]
    return [
        f"{row.full}: {words.plural(len(known), 'report')} refused, first in round {place} of "
        f"{run.name} from client {first.get('client')} ({first.get('reason')})."
    ]


def notes(comparison: Comparison) -> list[str]:
    """Every note that the runs recorded, each once; a card's warnings stand on the card."""
    found: dict[str, None] = {}
    for run in comparison.runs:
        found |= dict.fromkeys(run.notes)
    return list(found)


def per_class(row: Row, count: int) -> list[Cell]:
    """Final accuracy of each class, mean over the trials that count; no number for a class without rows."""
    lists = [
        run.evals[-1].get("per_class_accuracy") or () for run in row.usable.values() if run.evals
    ]
    cells = []
    for place in range(count):
        values = [number(one[place]) for one in lists if place < len(one)]
        mean = stats.spread(values).mean
        cells.append(Cell(words.percent(mean, 1), mean) if mean is not None else Cell(words.NONE))
    return cells


def num_classes(comparison: Comparison) -> int:
    """Classes that the evaluations tell apart, 0 where there are none."""
    lists = [run.evals[-1].get("per_class_accuracy") for run in comparison.runs if run.evals]
    return max((len(one) for one in lists if one), default=0)


def status(run: Run) -> dict[str, Any]:
    """One line of the list of runs."""
    final, last = run.final("accuracy"), run.rounds[-1]["round"] if run.rounds else None
    extra = [f"always gives {run.constant}"] if run.constant is not None else []
    extra += [str(end) for end in _ends(run)]
    return {
        "name": run.name,
        "label": run.label,
        "seed": run.seed,
        "status": run.status,
        "rounds": last,
        "accuracy": share(stats.spread([final])).text.split(" ±")[0],
        "good": run.excluded is None,
        "note": "; ".join(extra),
        "seconds": words.fixed(run.total("seconds"), 1),
        "resumed": sum(event.get("resumed_from") is not None for event in run.events),
    }


def _ends(run: Run) -> list[str]:
    place = run.result.get("diverged_round")
    return [] if place is None else [f"diverged in round {place}"]

"""What the page tells besides numbers: configuration, environment, fairness, and every note."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from fedloom.record import jsonio, store
from fedloom.reporting import stats, words
from fedloom.reporting.cells import Cell, share
from fedloom.reporting.gather import Run, number
from fedloom.reporting.rows import Row
from fedloom.reporting.summary import Comparison, differing

Pairs = list[tuple[str, str]]


def flat(value: dict[str, Any], prefix: str = "") -> Pairs:
    """Nested settings as `outer.inner` and text; lists of plain values on one line.

    >>> flat({"a": {"b": 1}, "c": [1, 2], "d": None, "e": 0.1234567})
    [('a.b', '1'), ('c', '1, 2'), ('d', '–'), ('e', '0.123457')]
    """
    pairs: Pairs = []
    for key, item in value.items():
        if isinstance(item, dict):
            pairs += flat(item, f"{prefix}{key}.")
        else:
            pairs.append((f"{prefix}{key}", _plain(item)))
    return pairs


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_plain, value)) or words.NONE
    if isinstance(value, float):
        return f"{value:.6g}"
    if value is None or value == "":
        return words.NONE
    text = str(value)
    return f"{text[:12]}…" if len(text) == 64 and not text.strip("0123456789abcdef") else text


def distinct(runs: Iterable[Run], part: str) -> list[tuple[list[Run], dict[str, Any]]]:
    """The different values of `environment`, `card` or another part, with the runs of each."""
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
    values = list(dict.fromkeys(_plain(one.get(key)) for one in configs))
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
        same = [run for run in runs if run.seed == seed]
        if len({run.result.get("partition_digest") for run in same} - {None}) > 1:
            found.append(f"Seed {seed}: the partition is not the same for every method.")
    if len({run.result.get("data_digest") for run in comparison.runs} - {None}) > 1:
        found.append(f"The runs did not read the same data under the name {comparison.data}.")
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
        found |= dict.fromkeys([*run.notes, *map(str, run.result.get("notes") or ())])
    return list(found)


def tuning(comparison: Comparison) -> list[tuple[str, str, Pairs]]:
    """What was chosen on validation data: method, choice, and every candidate with its accuracy."""
    folders = dict.fromkeys(run.compare for run in comparison.runs if run.compare is not None)
    found = []
    for folder in folders:
        for entry in jsonio.read_object(folder / store.COMPARISON).get("tuning") or ():
            candidates = [
                (
                    _options(candidate),
                    f"{words.percent(number(candidate.get('validation_accuracy')))} %",
                )
                for candidate in entry.get("candidates") or ()
            ]
            chosen = _options(entry.get("chosen") or {})
            found.append((str(entry.get("method")), chosen, candidates))
    return found


def _options(candidate: dict[str, Any]) -> str:
    apart = ("validation_accuracy", "run")
    return ", ".join(f"{key} = {value}" for key, value in candidate.items() if key not in apart)


def per_class(row: Row, count: int) -> list[Cell]:
    """Final accuracy of each class, mean over trials; no number for a class without rows."""
    lists = [run.per_class for run in row.usable.values()]
    cells = []
    for place in range(count):
        mean = stats.spread(one[place] for one in lists if place < len(one)).mean
        cells.append(Cell(words.percent(mean, 1), mean))
    return cells


def num_classes(comparison: Comparison) -> int:
    """Classes that the evaluations tell apart, 0 where there are none."""
    return max((len(run.per_class) for run in comparison.runs), default=0)


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

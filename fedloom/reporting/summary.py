"""Runs sorted into comparisons: one per setting (data and partition), one row per method."""

import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from fedloom.errors import ConfigError, nearest
from fedloom.reporting import stats
from fedloom.reporting.gather import Run
from fedloom.reporting.rows import Row
from fedloom.spec import Spec, parse

SETTING = (
    *("data", "label", "client", "test", "test_share", "data_seed", "missing", "scale"),
    *("categorical", "ignore", "size", "bad_files", "partition", "clients", "partition_rng"),
    *("noise", "noise_rule", "test_noise"),
)
"""Settings that make two runs answers to different questions."""

SILENT = (
    *(
        "method",
        "seed",
        "partition_seed",
        "data_dir",
        "separator",
        "decimal",
        "preset",
        "deviations",
        "data_digest",
        "partition_digest",
    ),
    *("executor", "lanes", "compiled", "workers", "threads", "device", "memory_budget"),
    *("eval_batch", "checkpoint_every"),
)
"""Settings that never name a row: trials, places and speed, and what names it anyway."""


@dataclass(frozen=True)
class Comparison:
    """Everything about one setting."""

    data: str
    partition: str
    clients: str
    setting: dict[str, Any]
    rows: tuple[Row, ...]
    references: tuple[Row, ...]
    baseline: Row | None
    target: float | None

    @property
    def title(self) -> str:
        """Data, partition and clients in one line."""
        noun = "client" if self.clients == "1" else "clients"
        return f"{self.data} · {self.partition} · {self.clients} {noun}"

    @property
    def runs(self) -> tuple[Run, ...]:
        """Every run, methods first."""
        return tuple(run for row in (*self.rows, *self.references) for run in row.runs)

    def gap(self, row: Row) -> stats.Difference | None:
        """The row's paired difference to the baseline; None for the baseline and for references."""
        if self.baseline is None or row is self.baseline or row.role != "method":
            return None
        return row.difference(self.baseline)


def compare(
    runs: Sequence[Run], *, baseline: str | None = None, target: float | None = None
) -> tuple[Comparison, ...]:
    """Sort runs into comparisons.

    `baseline` names the row that differences are taken to: FedAvg without it, else the first row.
    `target` is the accuracy, 0 to 1, that costs are counted up to: without it, the baseline's mean
    final accuracy rounded down to a full percent. Raises ConfigError for an unknown baseline.
    """
    if target is not None and not 0 < target <= 1:
        raise ConfigError(f"target accuracy is {target}; expected a share over 0 and up to 1")
    settings: dict[Hashable, list[Run]] = {}
    anchors: dict[Hashable, Run] = {}
    for run in runs:
        if run.compare is not None and run.role == "method":
            anchors.setdefault(run.compare, run)
    for run in runs:
        anchor = anchors.get(run.compare, run) if run.compare is not None else run
        settings.setdefault(_frozen(anchor.config, SETTING), []).append(run)
    made = tuple(_comparison(group, baseline, target) for group in settings.values())
    names = {row.name for comparison in made for row in comparison.rows}
    if baseline is not None and not any(comparison.baseline for comparison in made):
        raise ConfigError(f"no row is called {baseline!r}; {nearest(baseline, names)}")
    return made


def _comparison(runs: list[Run], baseline: str | None, target: float | None) -> Comparison:
    rows = _rows([run for run in runs if run.role == "method"])
    references = _rows([run for run in runs if run.role != "method"])
    first = next((run for run in runs if run.role == "method"), runs[0])
    base = _baseline(rows, baseline)
    if target is None and base is not None and (mean := base.final("accuracy").mean) is not None:
        target = int(mean * 100 + 1e-9) / 100 or None
    return Comparison(
        data=_data_name(first),
        partition=str(first.result.get("partition") or first.config.get("partition")),
        clients=str(first.result.get("clients") or first.config.get("clients")),
        setting={key: first.config.get(key) for key in SETTING if key in first.config},
        rows=rows,
        references=references,
        baseline=base,
        target=target,
    )


def _data_name(run: Run) -> str:
    """A data set's name, or the name of the file or folder that the run read, ending included."""
    given = str(run.config.get("data"))
    name = str(run.result.get("data") or given)
    if re.search(r"[\\/]", given.partition("(")[0]):  # options never follow a path
        return re.split(r"[\\/]", given.rstrip("\\/"))[-1] or given
    return given if given.partition(".")[0] == name else name


def _baseline(rows: tuple[Row, ...], name: str | None) -> Row | None:
    if name is not None:
        wanted = name.strip().lower()
        named = [
            row
            for row in rows
            if wanted in (row.name.lower(), row.full.lower(), row.runs[0].method.lower())
        ]
        return named[0] if named else None
    plain = [row for row in rows if _spec(row.runs[0]).name == "fedavg"]
    return next(iter((*plain, *rows)), None)


def _rows(runs: list[Run]) -> tuple[Row, ...]:
    keys = differing(run.config for run in runs if run.role == "method")
    groups: dict[Hashable, list[Run]] = {}
    for run in runs:
        key: tuple[Hashable, ...] = (run.role, run.label)
        if run.role == "method":
            # within a comparison the label is the row: its options may be tuned for each trial
            key += (None if run.compare else run.method, _frozen(run.config, keys))
        groups.setdefault(key, []).append(run)
    return tuple(_row(group, keys) for group in groups.values())


def _row(runs: list[Run], keys: Sequence[str]) -> Row:
    first = runs[0]
    if first.role != "method":
        return Row(first.label, "", first.role, tuple(runs))
    words = [f"{key} = {first.config.get(key)}" for key in keys]
    specs = [_spec(run).options for run in runs]
    for key in dict.fromkeys(key for options in specs for key in options):
        values = list(dict.fromkeys(str(options.get(key, "default")) for options in specs))
        if f"{key}=" not in first.label.replace(" ", ""):
            words.append(f"{key} = {' / '.join(values)}" + (" by trial" * (len(values) > 1)))
    return Row(first.label, ", ".join(words), first.role, tuple(runs))


def _spec(run: Run) -> Spec:
    try:
        return parse(run.method)
    except ConfigError:
        return Spec(run.method)


def differing(configs: Iterable[dict[str, Any]]) -> tuple[str, ...]:
    """The settings that are not the same in all of these, but for those that never name a row."""
    known = list(configs)
    keys = dict.fromkeys(key for config in known for key in config)
    return tuple(
        key
        for key in keys
        if key not in (*SETTING, *SILENT) and len({repr(one.get(key)) for one in known}) > 1
    )


def _frozen(config: dict[str, Any], keys: Iterable[str]) -> Hashable:
    return tuple((key, repr(config.get(key))) for key in keys)

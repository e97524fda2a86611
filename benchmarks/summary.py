"""Measured rounds -> rows of a table, and whether the systems did the same work."""

import math
from dataclasses import dataclass
from statistics import mean, median, variance
from typing import Any

Key = tuple[str, int, str]
"""(workload, cores, system)."""
Runs = dict[Key, list[dict[str, Any]]]
"""What each job gave, repeat by repeat."""

ACCURACY_FLOOR = 0.01
LOSS_FLOOR = 0.02
"""Differences that always count as noise: of accuracy, and of the loss as a share of it."""


@dataclass(frozen=True)
class Row:
    """One system on one workload and one number of cores."""

    workload: str
    cores: int
    system: str
    version: str = ""
    processes: int = 0
    rounds: int = 0
    """Measured, of all repeats; without the warm-up rounds."""
    fastest: float = math.nan
    middle: float = math.nan
    """Seconds a round: minimum and median."""
    ratio: float = math.nan
    """Minimum over FedLoom's minimum."""
    start: float = math.nan
    """Seconds of the whole process beyond its rounds at their fastest; median of the repeats."""
    accuracy: float = math.nan
    loss: float = math.nan
    agrees: bool | None = None
    """With the reference, within noise; None for the reference, or without one."""
    error: str = ""


def rows(runs: Runs, baseline: str = "fedloom") -> list[Row]:
    """A row for every key, in the order of the keys."""
    fastest = {key: _fastest(found) for key, found in runs.items() if _good(found)}
    made = []
    for key, found in runs.items():
        workload, cores, system = key
        good = _good(found)
        errors = [run["error"] for run in found if "error" in run]
        if not good:
            made.append(Row(workload, cores, system, error=errors[0]))
            continue
        best = fastest[key]
        made.append(
            Row(
                workload,
                cores,
                system,
                version=good[0]["version"],
                processes=good[0]["processes"],
                rounds=len(_measured(good)),
                fastest=best,
                middle=median(_measured(good)),
                ratio=best / fastest.get((workload, cores, baseline), math.nan),
                start=median(run["wall_seconds"] - best * len(run["seconds"]) for run in good),
                accuracy=mean(run["accuracy"] for run in good),
                loss=mean(run["loss"] for run in good),
                agrees=_agrees(runs, key),
                error=errors[0] if errors else "",
            )
        )
    return made


def _good(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [run for run in found if "error" not in run]


def _measured(found: list[dict[str, Any]]) -> list[float]:
    return [seconds for run in found for seconds in run["seconds"][1:]]


def _fastest(found: list[dict[str, Any]]) -> float:
    return min(_measured(_good(found)))


def reference(runs: Runs, key: Key) -> Key | None:
    """Whom a system's accuracy is held against: the plain loop on as many cores, if it ran."""
    other = (key[0], key[1], "plain")
    return other if other != key and _good(runs.get(other, [])) else None


def _agrees(runs: Runs, key: Key) -> bool | None:
    """Whether accuracy and loss differ from the reference's by no more than noise.

    Noise is four standard errors of a difference of means, from the spread of the repeats within
    each system (each repeat has another order of rows), and no less than the floors.
    """
    other = reference(runs, key)
    if other is None:
        return None
    beside = [_good(found) for (w, c, _), found in runs.items() if (w, c) == key[:2]]
    for name, floor in (("accuracy", ACCURACY_FLOOR), ("loss", None)):
        mine, theirs = ([run[name] for run in _good(runs[each])] for each in (key, other))
        spreads = [variance(run[name] for run in found) for found in beside if len(found) > 1]
        error = math.sqrt((mean(spreads) if spreads else 0) * (1 / len(mine) + 1 / len(theirs)))
        least = LOSS_FLOOR * mean(theirs) if floor is None else floor
        if abs(mean(mine) - mean(theirs)) > max(least, 4 * error):
            return False
    return True


def markdown(found: list[Row]) -> str:
    """A table for each workload and number of cores."""
    head = (
        "| System | Processes | s/round, minimum | median | times FedLoom's | start, s "
        "| Accuracy | Loss | Same work |"
    )
    lines: list[str] = []
    shown: tuple[str, int] | None = None
    for row in found:
        if (row.workload, row.cores) != shown:
            shown = (row.workload, row.cores)
            title = f"### {row.workload}, {row.cores} {'core' if row.cores == 1 else 'cores'}"
            lines += ["", title, "", head, "| :--- |" + " ---: |" * 7 + " :--- |"]
        lines.append(_line(row))
    broken = [row for row in found if row.error]
    if broken:
        lines += ["", "### What failed"]
        for row in broken:
            where = f"{row.system} on {row.workload}, {row.cores} cores:"
            lines += ["", where, "", "```text", row.error, "```"]
    return "\n".join(lines).strip() + "\n"


def _line(row: Row) -> str:
    if not row.rounds:
        return f"| {row.system} | failed |" + " |" * 7
    same = {None: "reference", True: "yes", False: "NO"}[row.agrees]
    if row.agrees is None and row.system != "plain":
        same = "not checked"
    cells = [
        f"{row.system} ({row.version})",
        str(row.processes),
        f"{row.fastest:.3f}",
        f"{row.middle:.3f}",
        f"{row.ratio:.2f}",
        f"{row.start:.1f}",
        f"{row.accuracy:.4f}",
        f"{row.loss:.4f}",
        same + ("; some runs failed" if row.error else ""),
    ]
    return "| " + " | ".join(cells) + " |"

"""Several methods under identical conditions: a matrix of runs in one folder."""

import dataclasses
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedloom import methods
from fedloom.config import RunConfig
from fedloom.errors import ConfigError, RunDirectoryError
from fedloom.record import jsonio
from fedloom.server.pool import Cell, run_cells
from fedloom.server.run import Progress, RunResult
from fedloom.spec import Spec, parse

FILE = "compare.json"
HELD_OUT = 0.1


@dataclass(frozen=True)
class Comparison:
    """What a comparison left: its folder, its runs by name, and failures with their reasons."""

    path: Path
    runs: dict[str, RunResult]
    failures: dict[str, str] = field(default_factory=dict)
    tuning: tuple[dict[str, Any], ...] = ()


def compare(
    config: RunConfig,
    method_specs: Sequence[str | Spec],
    out: str | Path,
    *,
    trials: int = 3,
    grid: Mapping[str, Sequence[Any]] | None = None,
    reference: bool = True,
    jobs: int = 1,
    resume: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Comparison:
    """Run every method `trials` times; trial t has seed + t, the same for all methods.

    Partition, initial model, cohorts and batch order are functions of the seed alone, so they are
    the same for every method. An option in `grid` is chosen per method on held-out training rows
    of the first trial, never on the test set; the runs compared then train on all rows. A run that
    fails is listed in `failures` and the others go on; if all fail, the first error is raised.
    """
    if jobs > 1 and config.workers is None:
        config = config.replace(workers=1)
    specs = [parse(spec, "method") for spec in method_specs]
    _check(specs, trials, grid or {})
    folder = Path(out)
    if (folder / FILE).exists() and not (resume or overwrite):
        raise RunDirectoryError(
            f"{folder} holds a comparison; go on with it (resume), replace it (overwrite), or "
            "write to another folder"
        )
    mode = {"resume": resume, "overwrite": overwrite}
    tuning: list[dict[str, Any]] = []
    if grid:
        specs, tuning = _tune(config, specs, grid, folder, jobs, mode, progress)
        config = config.replace(validation=0.0)
    cells = _cells(config, specs, trials, reference)
    record = {
        "config": config.model_dump(),
        "methods": [str(spec) for spec in specs],
        "trials": trials,
        "runs": [cell.name for cell in cells],
        "tuning": tuning,
    }
    folder.mkdir(parents=True, exist_ok=True)
    jsonio.write(folder / FILE, {**record, "failures": {}})
    runs, failures = run_cells(cells, folder, jobs, progress=progress, **mode)
    jsonio.write(folder / FILE, {**record, "failures": {n: str(e) for n, e in failures.items()}})
    if not runs:
        raise next(iter(failures.values()))
    return Comparison(folder, runs, {n: str(e) for n, e in failures.items()}, tuple(tuning))


def _check(specs: Sequence[Spec], trials: int, grid: Mapping[str, Sequence[Any]]) -> None:
    if not specs:
        raise ConfigError("methods is empty; name at least one")
    if trials < 1:
        raise ConfigError(f"trials={trials}; expected at least 1")
    for spec in specs:
        methods.make(spec)
    for option, values in grid.items():
        takers = [spec for spec in specs if option in _options(spec)]
        if not takers:
            raise ConfigError(
                f"{option}: no method of {', '.join(map(str, specs))} has this option"
            )
        for spec, value in itertools.product(takers, values):
            methods.make(spec, **{option: value})


def _options(spec: Spec) -> set[str]:
    return {option.name for option in dataclasses.fields(methods.find(spec.name))}


def _cells(config: RunConfig, specs: Sequence[Spec], trials: int, reference: bool) -> list[Cell]:
    cells = []
    for trial in range(trials):
        here = config.replace(seed=config.seed + trial)
        if config.partition_seed is not None:
            here = here.replace(partition_seed=config.partition_seed)
        cells += [
            Cell(f"{slug}/trial-{trial}", here.replace(method=str(spec)), str(spec))
            for slug, spec in zip(_slugs(specs), specs, strict=True)
        ]
        if reference:
            cells += _references(here, trial)
    return cells


def _references(config: RunConfig, trial: int) -> list[Cell]:
    """All rows at one place, and every client by itself, with as many epochs or steps."""
    central = config.replace(
        partition="iid", clients=1, method="fedavg", participation=1.0, noise=0.0, sampler="uniform"
    )
    alone = config.replace(method="local")
    return [
        Cell(f"centralised/trial-{trial}", central, "centralised", "centralised"),
        Cell(f"local/trial-{trial}", alone, "local only", "local"),
    ]


def _slugs(specs: Sequence[Spec]) -> list[str]:
    """A plain folder name for each method, different for different methods."""
    names = [spec.name for spec in specs]
    short = [_plain(s.name if names.count(s.name) == 1 else str(s)) for s in specs]
    return [name if short.count(name) == 1 else f"{name}-{i}" for i, name in enumerate(short)]


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.=_]+", "-", text).strip("-.")


def _tune(
    config: RunConfig,
    specs: Sequence[Spec],
    grid: Mapping[str, Sequence[Any]],
    folder: Path,
    jobs: int,
    mode: Mapping[str, bool],
    progress: Progress | None,
) -> tuple[list[Spec], list[dict[str, Any]]]:
    """Each method with the values that did best on validation rows, and what that took."""
    held = config.replace(validation=config.validation or HELD_OUT)
    plans: list[tuple[Spec, list[tuple[dict[str, Any], Cell]]]] = []
    for slug, spec in zip(_slugs(specs), specs, strict=True):
        keys = [key for key in grid if key in _options(spec)]
        choices = (
            [
                dict(zip(keys, values, strict=True))
                for values in itertools.product(*(grid[key] for key in keys))
            ]
            if keys
            else []
        )
        cells = [
            (
                choice,
                Cell(
                    f"tuning/{slug}/{i}",
                    held.replace(method=str(_with(spec, choice))),
                    str(_with(spec, choice)),
                ),
            )
            for i, choice in enumerate(choices)
        ]
        plans.append((spec, cells))
    every = [cell for _, cells in plans for _, cell in cells]
    runs, failures = run_cells(every, folder, jobs, progress=progress, **mode)
    chosen, notes = [], []
    for spec, cells in plans:
        if not cells:
            chosen.append(spec)
            continue
        scored = [(_validation(runs.get(cell.name)), choice, cell) for choice, cell in cells]
        best = max((s for s in scored if s[0] is not None), key=lambda s: s[0] or 0.0, default=None)
        if best is None:
            raise next(
                iter(failures.values()), ConfigError(f"{spec}: every value of the grid diverged")
            )
        chosen.append(_with(spec, best[1]))
        notes.append(
            {
                "method": spec.name,
                "chosen": best[1],
                "candidates": [
                    {**choice, "validation_accuracy": score, "run": cell.name}
                    for score, choice, cell in scored
                ],
                "seconds": sum(runs[c.name].result["seconds"] for _, c in cells if c.name in runs),
            }
        )
    return chosen, notes


def _with(spec: Spec, options: Mapping[str, Any]) -> Spec:
    return Spec(spec.name, {**spec.options, **options})


def _validation(result: RunResult | None) -> float | None:
    if result is None or result.status != "finished" or not result.result["validation"]:
        return None
    value = result.result["validation"]["accuracy"]
    return None if value is None else float(value)

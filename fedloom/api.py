"""The Python API; it reads like the command line.

>>> from fedloom import run
>>> result = run(data="fcube", method="fedprox(mu=0.01)", rounds=2, out=folder)  # doctest: +SKIP
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fedloom import presets
from fedloom.config import RunConfig
from fedloom.errors import RunDirectoryError
from fedloom.record import jsonio
from fedloom.server import compare as comparing
from fedloom.server import run as running
from fedloom.server.compare import Comparison
from fedloom.server.run import Progress, RunResult
from fedloom.spec import Spec


def settings(config: RunConfig | None, given: Mapping[str, Any]) -> RunConfig:
    """One checked configuration: `config` with `given` on top, or `given` under its preset."""
    if config is not None:
        return config.replace(**given) if given else config
    if given.get("preset"):
        values, _ = presets.apply(given["preset"], given)
        return RunConfig(**values)
    return RunConfig(**given)


def run(
    config: RunConfig | None = None,
    *,
    out: str | Path,
    resume: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
    **given: Any,
) -> RunResult:
    """Train one method on one partition, recording everything in the folder `out`.

    Keywords are the fields of `RunConfig`: `run(data="mnist", partition="label_count(k=2)",
    clients=10, method="fedprox(mu=0.01)", rounds=50, out="runs/first")`. With `resume` the stored
    settings hold, and keywords may raise `rounds`.
    """
    if resume:
        stored = Path(out) / "config.json"
        if not stored.exists():
            raise RunDirectoryError(f"{out} holds no run to resume; start one without resume")
        if config is None:
            found = jsonio.read_object(stored)
            given = {key: found[key] for key in RunConfig.model_fields if key in found} | given
            config, given = RunConfig(**given), {}
    return running.run(
        settings(config, given), out, resume=resume, overwrite=overwrite, progress=progress
    )


def compare(
    config: RunConfig | None = None,
    *,
    methods: Sequence[str | Spec],
    out: str | Path,
    trials: int = 3,
    grid: Mapping[str, Sequence[Any]] | None = None,
    reference: bool = True,
    jobs: int = 1,
    resume: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
    **given: Any,
) -> Comparison:
    """Train several methods under identical conditions, `trials` seeds each, into the folder `out`.

    `grid` maps an option to the values it is chosen from, on held-out training rows. Follow it with
    `report(out)`.
    """
    asked = settings(config, given)
    if asked.preset:
        values = asked.model_dump()
        methods = [presets.with_options(asked.preset, spec, values) for spec in methods]
    return comparing.compare(
        asked,
        methods,
        out,
        trials=trials,
        grid=grid,
        reference=reference,
        jobs=jobs,
        resume=resume,
        overwrite=overwrite,
        progress=progress,
    )


def report(
    paths: str | Path | Sequence[str | Path],
    out: str | Path | None = None,
    *,
    baseline: str | None = None,
    target: float | None = None,
) -> Any:
    """Write report.html, the table as Markdown, CSV and LaTeX, and the figures.

    `paths` are run or comparison folders; the report goes to `out`, else into the first of them.
    """
    from fedloom.reporting.write import write

    found = [paths] if isinstance(paths, str | Path) else list(paths)
    return write(found, out or found[0], baseline=baseline, target=target)

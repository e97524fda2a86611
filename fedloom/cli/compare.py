"""`fedloom compare`: several methods under identical conditions."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from fedloom import config_file
from fedloom.cli import complete, contest, flags, show
from fedloom.cli.folders import Where
from fedloom.cli.progress import reporter
from fedloom.errors import DivergedError, FedloomError

EPILOG = """[bold]Examples[/bold]

fedloom compare --methods fedavg,fedprox,scaffold,fednova --trials 3

fedloom compare --data adult --partition "label_dirichlet(alpha=0.5)" --methods fedavg,fedprox \
--mu 0.001,0.01,0.1,1

fedloom compare --config study.toml --jobs 2 --out runs/study

Partition, initial model, cohorts and batch order are the same for every method. An option with
several values is a grid: the value is chosen on validation data, never on the test set.
"""

Methods = Annotated[
    str | None,
    typer.Option(
        "--methods",
        metavar="LIST",
        help="Methods, with commas; each may have options, as in fedprox(mu=0.1).",
        autocompletion=complete.FOR["methods"],
        show_default=False,
    ),
]
Trials = Annotated[str | None, typer.Option("--trials", metavar="WHOLE", help="Seeds a method.")]
Jobs = Annotated[str | None, typer.Option("--jobs", metavar="WHOLE", help="Runs at a time.")]
Reference = Annotated[
    bool | None,
    typer.Option("--reference/--no-reference", help="Add the local-only and the centralised rows."),
]
Baseline = Annotated[
    str | None,
    typer.Option("--baseline", metavar="METHOD", help="Method that the others are compared with."),
]
Target = Annotated[
    str | None,
    typer.Option("--target", metavar="ACCURACY", help="Accuracy to reach, between 0 and 1."),
]


def compare(
    ctx: typer.Context,
    settings: dict[str, Any],
    methods: Methods = None,
    trials: Trials = None,
    jobs: Jobs = None,
    reference: Reference = None,
    baseline: Baseline = None,
    target: Target = None,
    config: flags.Config = None,
    set_: flags.Sets = None,
    out: flags.Out = None,
    dry_run: flags.DryRun = False,
    resume: flags.Resume = False,
    overwrite: flags.Overwrite = False,
    quiet: flags.Quiet = False,
) -> None:
    """Train several methods under identical conditions and report which wins, and by how much."""
    own = {
        "methods": methods,
        "trials": trials,
        "jobs": jobs,
        "reference": reference,
        "baseline": baseline,
        "target": target,
    }
    asked = contest.read(
        base=config_file.read(config) if config else {},
        sets=set_,
        flags=settings,
        own={key: value for key, value in own.items() if value is not None},
        arguments=ctx.args,
    )
    _compare(asked, Where(out, dry_run, resume, overwrite, quiet))


def _compare(asked: contest.Contest, where: Where) -> None:
    show.notes(asked.notes)
    show.notes(asked.deviations, label="deviation")
    if where.dry_run:
        _plan(asked)
        return
    from fedloom import api
    from fedloom.reporting.write import write

    with where.folder(asked.config, "compare") as out:
        progress = reporter(where.quiet)
        try:
            api.compare(
                asked.config,
                methods=list(asked.methods),
                trials=asked.trials,
                out=out,
                grid=asked.grid,
                reference=asked.reference,
                jobs=asked.jobs,
                progress=progress,
                **where.mode,
            )
        finally:
            progress.close()
        show.report(write([out], out, baseline=asked.baseline, target=asked.target))
        _conclude(out)


def _plan(asked: contest.Contest) -> None:
    from fedloom.server.plan import plan

    for spec in asked.methods:
        show.thing(plan(asked.config.replace(method=str(spec))), title=str(spec))
    show.line(
        f"{len(asked.methods)} methods x {asked.trials} trials"
        + "".join(f" x {len(values)} values of {key}" for key, values in asked.grid.items())
        + (", and the local-only and centralised references" if asked.reference else "")
    )


def _conclude(out: Path) -> None:
    """A run that is missing or diverged makes the exit code say so."""
    found = json.loads((out / "compare.json").read_text(encoding="utf-8"))
    states = {name: _status(out / name) for name in found["runs"]}
    show.notes((f"{name}: {why}" for name, why in found["failures"].items()), label="failed")
    if holes := [name for name, status in states.items() if status not in ("finished", "diverged")]:
        raise FedloomError(
            f"{len(holes)} of {len(states)} runs did not finish: {', '.join(holes)}; "
            f"repeat the command with --resume --out {out} to run only these"
        )
    if lost := [name for name, status in states.items() if status == "diverged"]:
        raise DivergedError(f"{len(lost)} of {len(states)} runs diverged: {', '.join(lost)}")


def _status(run: Path) -> str:
    path = run / "result.json"
    if not path.exists():
        return "unfinished"
    found: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return str(found.get("status"))


def register(app: typer.Typer) -> None:
    """Add the command."""
    command = flags.with_settings(compare, leave_out=("method",))
    app.command(context_settings=flags.LOOSE, epilog=EPILOG)(command)

"""`fedloom run`: one method, one run."""

from pathlib import Path
from typing import Any

import typer

from fedloom import config_file
from fedloom.cli import flags, show
from fedloom.cli.folders import Where
from fedloom.cli.progress import reporter
from fedloom.cli.settings import build, chosen_method, gather, stored
from fedloom.config import RunConfig
from fedloom.errors import DivergedError, RunDirectoryError

EPILOG = """[bold]Examples[/bold]

fedloom run --data fcube --method fedprox --mu 0.01 --rounds 20

fedloom run --data mnist --partition "label_count(k=2)" --clients 10 --method scaffold --dry-run

fedloom run --resume --out runs/fcube-iid-fedavg-001 --rounds 100

A method's options are flags too (--mu, --server-lr, ...): see [bold]fedloom list methods[/bold].
"""


def run(
    ctx: typer.Context,
    settings: dict[str, Any],
    config: flags.Config = None,
    set_: flags.Sets = None,
    out: flags.Out = None,
    dry_run: flags.DryRun = False,
    resume: flags.Resume = False,
    overwrite: flags.Overwrite = False,
    quiet: flags.Quiet = False,
) -> None:
    """Train one method on one partition and record everything in a run directory."""
    where = Where(out, dry_run, resume, overwrite, quiet)
    base = config_file.read(config) if config else {}
    if resume and out is not None:
        base = stored(out) | base
    gathered = gather(
        base=base, sets=set_, flags=settings, arguments=ctx.args, methods=chosen_method
    )
    asked, deviations = build(gathered)
    show.notes(gathered.notes)
    show.notes(deviations, label="deviation")
    if dry_run:
        from fedloom.server.plan import plan

        show.thing(plan(asked), title="plan")
    else:
        _run(asked, where)


def _run(config: RunConfig, where: Where) -> None:
    with where.folder(config, config.spec("method").name) as out:
        from fedloom import api

        progress = reporter(where.quiet)
        try:
            api.run(config, out=out, progress=progress, **where.mode)
        finally:
            progress.close()
        _conclude(out)


def _conclude(out: Path) -> None:
    status = show.result(out)
    if status == "diverged":
        raise DivergedError(f"the run in {out} diverged: see its events.jsonl; lower --lr")
    if status != "finished":
        raise RunDirectoryError(f"the run in {out} is {status}; go on with --resume --out {out}")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(context_settings=flags.LOOSE, epilog=EPILOG)(flags.with_settings(run))

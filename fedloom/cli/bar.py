"""The progress bar of a run on a terminal."""

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from fedloom.cli.progress import describe

__all__ = ["Bar", "Console"]


class Bar:
    """A bar with round, figures, time and time left; redrawn in place, cleared at the end."""

    def __init__(self, console: Console):
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[figures]}", markup=False),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
        )
        self._task: TaskID | None = None
        self._fresh = True

    def start(self, total_rounds: int, label: str) -> None:
        """Show a bar; an earlier one makes room."""
        self.close()
        self._progress.start()
        self._task = self._progress.add_task(label, total=max(total_rounds, 1), figures="")
        self._fresh = True

    def advance(self, round: int, info: Mapping[str, Any]) -> None:
        """Move on to this round; after a resume the rounds before it don't count as fast ones."""
        if self._task is None:
            return
        if self._fresh and round > 1:
            self._progress.reset(self._task, completed=round - 1)
        self._fresh = False
        self._progress.update(self._task, completed=round, figures=describe(info))

    def close(self) -> None:
        """Take the bar away."""
        if self._task is not None:
            self._progress.refresh()
            self._progress.remove_task(self._task)
            self._task = None
        self._progress.stop()

"""Folders for results when none is named."""

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from fedloom.config import RunConfig
from fedloom.errors import ConfigError, RunDirectoryError

RUNS = Path("runs")


@dataclass(frozen=True)
class Where:
    """Where results go, and what becomes of a run that is there already."""

    out: Path | None
    dry_run: bool
    resume: bool
    overwrite: bool
    quiet: bool

    @property
    def mode(self) -> dict[str, bool]:
        """The two answers to a folder that holds a run."""
        return {"resume": self.resume, "overwrite": self.overwrite}

    @contextmanager
    def folder(self, config: RunConfig, kind: str) -> Iterator[Path]:
        """The folder asked for, or a new numbered one that is taken away again if it stays empty.

        Raises ConfigError where `--resume` or `--overwrite` need to be told which.
        """
        if self.resume and self.overwrite:
            raise ConfigError("--resume and --overwrite exclude each other")
        if self.out is not None:
            yield self.out
            return
        for flag, given in (("--resume", self.resume), ("--overwrite", self.overwrite)):
            if given:
                raise ConfigError(f"{flag} needs --out DIR: which run?")
        path = _claim("-".join(map(slug, (Path(config.data).stem, config.partition, kind))))
        try:
            yield path
        finally:
            with suppress(OSError):
                path.rmdir()


def _claim(stem: str) -> Path:
    """A new folder under runs/: the first free number, claimed by making it."""
    for number in range(1, 100_000):
        path = RUNS / f"{stem}-{number:03d}"
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise RunDirectoryError(f"can't make {path}: {error.strerror}") from None
        return path
    raise RunDirectoryError(f"{RUNS} is full of runs named {stem}; name a folder with --out DIR")


def slug(text: str) -> str:
    """Letters, digits and hyphens only, so that no name leads out of its folder.

    >>> slug("../../label_dirichlet(alpha=0.5)")
    'label-dirichlet-alpha-0-5'
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40].strip("-") or "run"

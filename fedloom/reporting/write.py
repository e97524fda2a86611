"""Everything a report leaves on disk: the page, the table in three formats, and the figures."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from fedloom import files
from fedloom.reporting import formats, look, page, plot, table
from fedloom.reporting.gather import gather
from fedloom.reporting.summary import Comparison, compare
from fedloom.reporting.verdict import verdict


@dataclass(frozen=True)
class ReportFiles:
    """What was written, what it says, and what could not be drawn."""

    folder: Path
    html: Path
    markdown: Path
    csv: Path
    latex: Path
    figures: tuple[Path, ...]
    comparisons: tuple[Comparison, ...]
    notes: tuple[str, ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        """The verdict on every comparison."""
        return tuple(one for comparison in self.comparisons for one in verdict(comparison))


def write(
    paths: str | Path | Iterable[str | Path],
    out: str | Path,
    baseline: str | None = None,
    target: float | None = None,
) -> ReportFiles:
    """Read runs and write `report.html`, `table.md`, `.csv` and `.tex`, and `figures/` to `out`.

    `baseline` and `target` are those of `fedloom.reporting.summary.compare`. Tables and page
    are written before any figure, and a figure that fails is a note, so that none is ever lost.
    Raises RunDirectoryError without runs, ConfigError for an unknown baseline.
    """
    gathered = gather(paths)
    comparisons = compare(gathered.runs, baseline=baseline, target=target)
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    tables = [table.build(one) for one in comparisons]
    texts = {
        "table.csv": formats.csv_text(comparisons),
        "table.md": "\n".join(map(formats.markdown, tables)),
        "table.tex": "\n".join(map(formats.latex, tables)),
        "report.html": page.render(comparisons, gathered.notes),
    }
    for name, text in texts.items():
        data = text.encode("utf-8")
        files.write_atomic(folder / name, [data], len(data))
    figures, notes = _figures(comparisons, folder / "figures")
    return ReportFiles(
        folder=folder,
        html=folder / "report.html",
        markdown=folder / "table.md",
        csv=folder / "table.csv",
        latex=folder / "table.tex",
        figures=figures,
        comparisons=comparisons,
        notes=(*gathered.notes, *notes),
    )


def _figures(
    comparisons: Sequence[Comparison], folder: Path
) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    paths: list[Path] = []
    notes: list[str] = []
    for place, comparison in enumerate(comparisons, start=1):
        notes += _undrawn(comparison)
        start = f"{place}-" if len(comparisons) > 1 else ""
        for name in ("accuracy_by_round", "accuracy_by_bytes", "differences", "partition"):
            try:
                figure = _draw(comparison, name)
                if figure is not None:
                    paths += plot.save(figure, folder, start + name)
            except Exception as error:  # a figure never costs the tables
                notes.append(f"figure {start + name} failed: {type(error).__name__}: {error}")
    return tuple(paths), tuple(notes)


def _undrawn(comparison: Comparison) -> list[str]:
    names = [comparison.title, *(row.full for row in (*comparison.rows, *comparison.references))]
    names += [name for run in comparison.runs for name in map(str, run.card.get("classes") or ())]
    letters = "".join(dict.fromkeys(letter for name in names for letter in look.missing(name)))
    if not letters:
        return []
    return [f"figures show ? for {letters}: no font of this machine has it; the page shows it"]


def _draw(comparison: Comparison, name: str) -> Figure | None:
    """One of the figures; None where the runs have nothing for it."""
    against = {"accuracy_by_round": "rounds", "accuracy_by_bytes": "bytes"}.get(name)
    if against is not None:
        return plot.curves(comparison, "accuracy", against)
    if name == "differences":
        apart = any(comparison.gap(row) is not None for row in comparison.rows)
        return plot.forest(comparison) if apart else None
    runs = [run for row in comparison.rows for run in row.runs]
    card = next((run.card for run in runs if plot.counts_of(run.card)), {})
    known = plot.counts_of(card)
    return plot.heatmap(*known, comparison.title, plot.names_of(card)) if known else None

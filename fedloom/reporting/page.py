"""One self-contained HTML page: it asks nothing of the network and opens from disk."""

from collections.abc import Sequence
from importlib import resources

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from fedloom.reporting import facts, formats, look, table, words
from fedloom.reporting.gather import Run
from fedloom.reporting.sections import section
from fedloom.reporting.summary import Comparison


def render(comparisons: Sequence[Comparison], notes: Sequence[str] = ()) -> str:
    """The page as text. Names that come from files are escaped wherever they stand."""
    page = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = page.from_string(_asset("page.html"))
    runs = [run for comparison in comparisons for run in comparison.runs]
    return template.render(
        title=_title(comparisons),
        style=Markup(_palette() + _asset("page.css")),
        script=Markup(_asset("page.js")),
        sections=[section(one, f"c{place}") for place, one in enumerate(comparisons, start=1)],
        runs=[facts.status(run) for run in runs],
        environments=[
            (_who(group, runs), facts.flat(value))
            for group, value in facts.distinct(runs, "environment")
        ],
        notes=list(notes),
        started=_started(runs),
        csv=formats.csv_text(comparisons),
        markdown="\n".join(formats.markdown(table.build(one)) for one in comparisons),
        latex="\n".join(formats.latex(table.build(one)) for one in comparisons),
    )


def _asset(name: str) -> str:
    return resources.files("fedloom.reporting").joinpath("assets", name).read_text("utf-8")


def _palette() -> str:
    """Colours of the lines, light and dark, from the one list that figures use too."""

    def rules(colours: Sequence[str]) -> str:
        return "".join(f".s{place}{{--c:{colour}}}" for place, colour in enumerate(colours))

    dark = rules(look.LIGHT) + ".ref{--c:#9a9a9a}"
    light = rules(look.COLOURS) + f".ref{{--c:{look.REFERENCE}}}"
    return f"{light}@media screen and (prefers-color-scheme:dark){{{dark}}}"


def _title(comparisons: Sequence[Comparison]) -> str:
    if len(comparisons) > 1:
        data = list(dict.fromkeys(one.data for one in comparisons))
        return f"{len(comparisons)} settings on {words.listing(data)}"
    names = [words.short(row.name.partition("(")[0], 40) for row in comparisons[0].rows]
    return f"{words.listing(list(dict.fromkeys(names)) or ['references'])} on {comparisons[0].data}"


def _started(runs: Sequence[Run]) -> str:
    times = sorted(
        str(event["time"])[:10]
        for run in runs
        for event in run.events
        if event["event"] == "start" and event.get("time")
    )
    return " to ".join(dict.fromkeys((times[0], times[-1]))) if times else ""


def _who(group: Sequence[Run], everyone: Sequence[Run]) -> str:
    if len(group) == len(everyone):
        return "all runs"
    names = ", ".join(run.name for run in group[:4])
    return names + (f" and {len(group) - 4} more" if len(group) > 4 else "")

"""A table written down: for the terminal, as Markdown, as LaTeX (booktabs) and as CSV.

The first three hold the same text; the CSV holds the numbers behind it, unrounded, one to a column.
"""

import csv
import io
import re
from collections.abc import Iterable

from rich import box
from rich.table import Table as RichTable
from rich.text import Text

from fedloom.reporting import stats
from fedloom.reporting.cells import Table
from fedloom.reporting.rows import Row
from fedloom.reporting.summary import Comparison
from fedloom.reporting.table import remarks

_PLAIN = {"±": "+/-", "\u2212": "-", "–": "-", "·": "|", "…": "..."}
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{sign: "\\" + sign for sign in "&%$#_{}"},
    "±": r"$\pm$",
    "\u2212": "$-$",
    "–": "--",
    "·": r"$\cdot$",
    "…": r"\ldots{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "*": r"$^{*}$",
}


def terminal(table: Table, *, plain: bool = False) -> RichTable:
    """A rich table; `plain` spells signs out for a terminal that has only ASCII.

    Names are text: square brackets in them style nothing.
    """

    def text(words: str, style: str = "") -> Text:
        for sign, letters in _PLAIN.items() if plain else ():
            words = words.replace(sign, letters)
        return Text(words, style=style)

    rich = RichTable(
        title=text(table.title, "bold"),
        caption=text("\n".join(table.notes), "dim"),
        box=box.ASCII if plain else box.SIMPLE_HEAD,
        caption_justify="left",
        title_justify="left",
    )
    for column in table.columns:
        rich.add_column(text(column.title), justify="right" if column.numeric else "left")
    for place, line in enumerate(table.lines):
        last = place + 1 == len(table.lines) or table.lines[place + 1].reference
        rich.add_row(
            *(text(cell.text, "dim" if line.reference else "") for cell in line.cells),
            end_section=last and not line.reference,
        )
    return rich


def markdown(table: Table) -> str:
    """A pipe table under its title, with the notes below."""
    rule = ["---:" if column.numeric else ":---" for column in table.columns]
    lines = [[column.title for column in table.columns], rule]
    lines += [[_cell(cell.text) for cell in line.cells] for line in table.lines]
    body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    notes = "\n".join(f"- {_cell(note)}" for note in table.notes)
    return f"### {_cell(table.title)}\n\n{body}\n\n{notes}\n"


def _cell(text: str) -> str:
    marked = re.sub(r"([\\`*_|\[\]#~$])", r"\\\1", " ".join(text.split()))
    return marked.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def latex(table: Table) -> str:
    """A booktabs tabular in a table float; needs only the booktabs package.

    Letters outside ASCII are kept as they are: pdflatex reads the usual ones, lualatex all.
    """
    shape = "".join("r" if column.numeric else "l" for column in table.columns)
    lines = [r"\begin{table}", r"\centering", rf"\caption{{{escape(table.title)}}}"]
    lines += [rf"\begin{{tabular}}{{{shape}}}", r"\toprule"]
    lines += [" & ".join(escape(column.title) for column in table.columns) + r" \\", r"\midrule"]
    apart = False
    for line in table.lines:
        if line.reference and not apart:
            apart = True
            lines.append(r"\midrule")
        lines.append(" & ".join(escape(cell.text) for cell in line.cells) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}", r"\par\smallskip", r"\footnotesize"]
    lines += [escape(note) + r"\par" for note in table.notes]
    return "\n".join([*lines, r"\end{table}", ""])


def escape(text: str) -> str:
    r"""Text as LaTeX shows it.

    >>> escape("a_b & 5 %")
    'a\\_b \\& 5 \\%'
    """
    return "".join(_LATEX.get(letter, letter) for letter in " ".join(text.split()))


def csv_text(comparisons: Iterable[Comparison]) -> str:
    """Every row of every comparison with unrounded numbers; percentages and points as in the table.

    A missing value is an empty field; data and partition tell several comparisons apart.
    """
    records = [_record(one, row) for one in comparisons for row in (*one.rows, *one.references)]
    out = io.StringIO()
    writer = csv.DictWriter(out, list(records[0]) if records else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return out.getvalue()


def _record(comparison: Comparison, row: Row) -> dict[str, object]:
    gap = comparison.gap(row)
    record: dict[str, object] = {
        "data": comparison.data,
        "partition": comparison.partition,
        "clients": comparison.clients,
        "role": row.role,
        "method": row.name,
        "options": row.options,
        "trials": len(row.runs),
        "n": len(row.usable),
        "baseline": comparison.baseline.full if comparison.baseline else None,
    }
    for name, key in (
        ("final_accuracy", "accuracy"),
        ("balanced_accuracy", "balanced_accuracy"),
        ("macro_f1", "macro_f1"),
    ):
        record |= _spread(f"{name}_percent", row.final(key), 100)
    record["difference_points"] = None if gap is None else 100 * gap.mean
    for side in ("low", "high"):
        value = None if gap is None else getattr(gap, side)
        record[f"difference_95_{side}_points"] = None if value is None else 100 * value
    record["pairs"] = None if gap is None else gap.n
    record |= _spread("bytes", row.bytes) | _spread("seconds", row.cost("seconds"))
    record["target_percent"] = None if comparison.target is None else 100 * comparison.target
    for key in ("rounds", "bytes", "seconds"):
        reach = stats.Reach((), 0)
        if comparison.target is not None and row.role == "method":
            reach = row.reach(comparison.target, key)
        record[f"{key}_to_target"] = stats.spread(reach.values).mean
        record["reached"] = len(reach.values)
    record["notes"] = "; ".join(remarks(row))
    return record


def _spread(name: str, one: stats.Spread, factor: float = 1.0) -> dict[str, float | None]:
    mean, std = (None if value is None else factor * value for value in (one.mean, one.std))
    return {f"{name}_mean": mean, f"{name}_std": std}

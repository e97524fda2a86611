"""From run directories to an answer: which method wins, by how much, at what cost, how surely."""

from fedloom.report.formats import csv_text, latex, markdown, terminal
from fedloom.report.gather import gather
from fedloom.report.summary import Comparison, compare
from fedloom.report.table import build, detailed
from fedloom.report.verdict import verdict
from fedloom.report.write import ReportFiles, write

__all__ = [
    "Comparison",
    "ReportFiles",
    "build",
    "compare",
    "csv_text",
    "detailed",
    "gather",
    "latex",
    "markdown",
    "terminal",
    "verdict",
    "write",
]

"""From run directories to an answer: which method wins, by how much, at what cost, how surely."""

from fedloom.reporting.formats import csv_text, latex, markdown, terminal
from fedloom.reporting.gather import gather
from fedloom.reporting.summary import Comparison, compare
from fedloom.reporting.table import build, detailed
from fedloom.reporting.verdict import verdict
from fedloom.reporting.write import ReportFiles, write

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

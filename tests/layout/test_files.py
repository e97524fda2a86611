"""What holds for every file of the repository."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("fedloom", "tests", "examples", "benchmarks", "docs")
KINDS = {".py", ".md", ".toml", ".txt", ".ini", ".cfg"}

FILES = sorted(
    [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in KINDS]
    + [path for path in ROOT.glob("*") if path.suffix in KINDS or path.name == "Makefile"]
)
NAMES = [path.relative_to(ROOT).as_posix() for path in FILES]


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_a_file_ends_with_one_newline_and_no_line_with_a_blank(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not text or (text.endswith("\n") and not text.endswith("\n\n"))
    assert "\r" not in text
    for number, line in enumerate(text.splitlines(), start=1):
        assert line == line.rstrip(), f"line {number} ends with a blank"


@pytest.mark.parametrize(
    "path", [path for path in FILES if path.suffix == ".py"], ids=lambda path: path.name
)
def test_a_source_file_has_at_most_300_lines(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 300

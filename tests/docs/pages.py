"""Fenced blocks of the documentation, as the tests run them."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")))

_BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>[^\n]*?) -->\n+)?^```(?P<language>\w*)\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """One fenced block; `mark` is the comment that stands before it.

    Marks: `file: NAME` writes the block to a file, `not run: REASON` passes over it, `exit: CODE`
    says how its last command ends, `shortened: FLAGS` appends flags to its last command.
    """

    page: Path
    line: int
    language: str
    body: str
    mark: str

    @property
    def where(self) -> str:
        return f"{self.page.name}:{self.line}"

    def marked(self, word: str) -> str | None:
        """What follows `word:` in the mark."""
        name, colon, rest = self.mark.partition(":")
        return rest.strip() if colon and name == word else None

    @property
    def commands(self) -> list[tuple[list[str], list[str]]]:
        """(words of a command, output lines shown under it), for a console block."""
        found: list[tuple[list[str], list[str]]] = []
        for line in self.body.replace("\\\n", " ").splitlines():
            if line.startswith("$ "):
                found.append((shlex.split(line[2:], comments=True), []))
            elif line.strip():
                found[-1][1].append(line)
        if extra := self.marked("shortened"):
            found[-1][0].extend(shlex.split(extra))
        return found


def blocks(page: Path) -> list[Block]:
    """Every fenced block of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            page,
            text.count("\n", 0, match.start("body")),
            match["language"],
            match["body"],
            match["mark"] or "",
        )
        for match in _BLOCK.finditer(text)
    ]


def runnable(page: Path) -> list[Block]:
    """The blocks of a page that are run."""
    return [
        block
        for block in blocks(page)
        if block.marked("file") or block.language in ("python", "console")
    ]

"""Every page is run from top to bottom in an empty folder, the way a reader would."""

import fnmatch
import re
import runpy
import sys

import pytest
from typer.testing import CliRunner

from fedloom.cli import app
from fedloom.reporting import plot
from tests.docs.pages import PAGES, ROOT, Block, blocks, runnable

RUN = [page for page in PAGES if any(b.marked("not run") is None for b in runnable(page))]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder to be in, importable, with the examples in it and no data sets around."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv("FEDLOOM_DATA", raising=False)
    monkeypatch.setenv("COLUMNS", "160")
    # all formats are written in the tests of the report; here they would take most of the time
    monkeypatch.setattr(plot, "FORMATS", ("svg",))
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    known = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - known:
        if str(getattr(sys.modules[name], "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.stem)
def test_the_code_of_a_page_runs_and_prints_what_the_page_shows(page, here):
    names: dict[str, object] = {"__name__": "__main__"}  # what a reader's script would have
    for block in runnable(page):
        if block.marked("not run") is not None:
            continue
        if path := block.marked("file"):
            (here / path).parent.mkdir(parents=True, exist_ok=True)
            (here / path).write_text(block.body, encoding="utf-8")
        elif block.language == "python":
            # padded, so that a traceback names the page's own line
            exec(compile("\n" * block.line + block.body, str(page), "exec"), names)
        else:
            run_console(block)


def run_console(block: Block) -> None:
    commands = block.commands
    assert commands, f"{block.where}: a console block needs a line that begins with '$ '"
    for place, (words, shown) in enumerate(commands):
        wanted = int(block.marked("exit") or 0) if place == len(commands) - 1 else 0
        output = run_words(words, wanted, block.where)
        lines = [flat(line) for line in output.splitlines()]
        for line in shown:
            pattern = re.sub(r"\[", "[[]", flat(line)).replace("...", "*")
            assert any(fnmatch.fnmatchcase(one, pattern) for one in lines), (
                f"{block.where}: {line!r} is not in\n{output}"
            )


def run_words(words: list[str], wanted: int, where: str) -> str:
    """Run one command line in this process and give all that it printed."""
    if words[:3] == ["python", "-m", "fedloom"]:
        words = words[2:]
    if words[0] == "python":
        runpy.run_path(words[1], run_name="__main__")
        return ""
    assert words[0] == "fedloom", f"{where}: don't know how to run {words[0]!r}"
    result = CliRunner().invoke(app, words[1:])
    assert result.exit_code == wanted, f"{where}: {result.output}\n{result.exception!r}"
    return result.output


def flat(line: str) -> str:
    """A line without the frames of tables and with single blanks."""
    return " ".join(re.sub(r"[─-╿]", " ", line).split())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_says_what_it_is_and_every_mark_is_known(page):
    for block in blocks(page):
        assert block.language in ("python", "console", "toml", "json", "text"), block.where
        if block.mark and block.mark.partition(":")[1]:
            known = ("file", "not run", "exit", "shortened")
            assert block.mark.partition(":")[0] in known, block.where


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_within_the_repository_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name}: {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_make_targets_that_are_named_exist(page):
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    text = page.read_text(encoding="utf-8")
    named = re.findall(r"`make ([a-z]+)`|^\$ make (?:\w+=\S+ )*([a-z]+)$", text, re.MULTILINE)
    assert {one or other for one, other in named} <= targets

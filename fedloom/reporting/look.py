"""Colours, dashes and letters of every figure.

The first colours are close to those of Okabe and Ito (Color Universal Design, 2008), which stay
apart in the common kinds of colour blindness; each line has its own dash and marker too, so that
figures read in black and white.
"""

import unicodedata
from functools import cache

from matplotlib import font_manager
from matplotlib.ft2font import FT2Font

from fedloom.reporting import words

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#56b4e9", "#7b4fa3", "#444444")
LIGHT = ("#56b4f5", "#ff8a47", "#2fd0a0", "#eda3cb", "#f0c64a", "#a5d8ff", "#c3a1e6", "#c8c8c8")
"""The same hues for a dark ground."""
REFERENCE = "#777777"
DASHES: tuple[tuple[float, ...], ...] = (
    (),
    (6, 2.5),
    (2, 2),
    (8, 2.5, 2, 2.5),
    (10, 3),
    (4, 2, 1.5, 2, 1.5, 2),
    (1.5, 1.5),
    (12, 3, 3, 3),
)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")

_WANTED = (
    *("DejaVu Sans", "Noto Sans", "Noto Sans CJK JP", "Noto Sans CJK SC", "Source Han Sans"),
    *("WenQuanYi Zen Hei", "Hiragino Sans", "Yu Gothic", "Microsoft YaHei", "Arial Unicode MS"),
)


@cache
def families() -> tuple[str, ...]:
    """The fonts to try in turn, out of those this machine has; the first comes with matplotlib."""
    have = {entry.name for entry in font_manager.fontManager.ttflist}
    return tuple(name for name in _WANTED if name in have)


@cache
def _letters() -> frozenset[int]:
    found: set[int] = set()
    for name in families():
        found.update(FT2Font(font_manager.findfont(name)).get_charmap())
    return frozenset(found)


def drawable(text: str, width: int = 28) -> str:
    """A name as a figure file can show it: cut if long, letters that no font has as `?`.

    >>> drawable("a_b $5")
    'a_b $5'
    """
    flat = words.short(unicodedata.normalize("NFC", text), width)
    return "".join(letter if ord(letter) in _letters() else "?" for letter in flat)


def missing(text: str) -> str:
    """The letters of a name that no font here can draw, each once."""
    letters = dict.fromkeys(unicodedata.normalize("NFC", " ".join(text.split())))
    return "".join(letter for letter in letters if ord(letter) not in _letters())


def style(place: int, reference: bool) -> tuple[str, tuple[float, ...], str]:
    """Colour, dash and marker of a line."""
    if reference:
        return REFERENCE, DASHES[(place + 2) % len(DASHES)], MARKERS[place % len(MARKERS)]
    return (
        COLOURS[place % len(COLOURS)],
        DASHES[place % len(DASHES)],
        MARKERS[place % len(MARKERS)],
    )

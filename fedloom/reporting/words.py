"""Numbers and names as text, the same in the terminal, the page and every file."""

import math

NONE = "–"
MINUS = "\u2212"


def fixed(value: float | None, digits: int = 2, sign: bool = False) -> str:
    """A number with a true minus sign, `–` if there is none.

    >>> fixed(-0.5), fixed(0.25, 1, sign=True), fixed(None)
    ('−0.50', '+0.2', '–')
    """
    if value is None or not math.isfinite(value):
        return NONE
    text = f"{value:+.{digits}f}" if sign else f"{value:.{digits}f}"
    if not text.strip("+-0."):
        text = text.lstrip("+-")
    return text.replace("-", MINUS)


def percent(value: float | None, digits: int = 2, sign: bool = False) -> str:
    """A share as a percentage without its sign, or a difference of shares in points."""
    return fixed(None if value is None else 100 * value, digits, sign)


def spread(mean: float | None, std: float | None, digits: int = 2) -> str:
    """`mean ± deviation`, with `–` for the deviation of a single trial."""
    return NONE if mean is None else f"{fixed(mean, digits)} ± {fixed(std, digits)}"


def interval(low: float | None, high: float | None) -> str:
    """A 95 % interval of shares, in points: `+0.40 to +2.00`."""
    if low is None or high is None:
        return NONE
    return f"{percent(low, sign=True)} to {percent(high, sign=True)}"


def scale(values: list[float | None]) -> tuple[float, str]:
    """One divisor and prefix for a whole column, so that its numbers compare at a glance.

    >>> scale([2.5e6, 12e6, None])
    (1000000.0, 'M')
    """
    top = max((abs(value) for value in values if value is not None), default=0.0)
    for power, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if top >= power:
            return power, prefix
    return 1.0, ""


def digits(values: list[float | None]) -> int:
    """Decimals that leave the greatest of these about four figures."""
    top = max((abs(value) for value in values if value is not None), default=0.0)
    return 0 if top >= 1000 else 1 if top >= 100 else 2


def short(text: str, width: int = 24) -> str:
    """Cut a long name with an ellipsis.

    >>> short("a very long class name indeed", 12)
    'a very long…'
    """
    flat = " ".join(text.split())
    return flat if len(flat) <= width else flat[: width - 1].rstrip() + "…"


def listing(names: list[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def plural(count: int, noun: str) -> str:
    """`1 trial`, `3 trials`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"

"""Pieces of SVG: a frame with two axes, text, and the outer element."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape
from matplotlib.ticker import MaxNLocator

from fedloom.reporting import words


@dataclass(frozen=True)
class Frame:
    """Where data lie in a drawing of `width` x `height`: margins and the ranges of both axes."""

    width: float
    height: float
    x: tuple[float, float]
    y: tuple[float, float]
    left: float = 44
    right: float = 14
    top: float = 12
    bottom: float = 42

    def across(self, value: float) -> float:
        """Horizontal place of a value."""
        low, high = self.x
        span = self.width - self.left - self.right
        return self.left + span * (value - low) / ((high - low) or 1)

    def up(self, value: float) -> float:
        """Vertical place of a value."""
        low, high = self.y
        span = self.height - self.top - self.bottom
        return self.height - self.bottom - span * (value - low) / ((high - low) or 1)


def picture(frame: Frame, parts: Sequence[str], name: str, kind: str = "") -> Markup:
    """The whole element; screen readers say `name`, the page's script reads the frame."""
    data = (
        f'data-left="{frame.left:g}" data-right="{frame.right:g}" data-low="{frame.x[0]:g}" '
        f'data-high="{frame.x[1]:.10g}" data-top="{frame.top:g}" data-bottom="{frame.bottom:g}"'
    )
    return Markup(
        f'<svg class="{kind}" style="--natural:{frame.width:.0f}px" role="img" '
        f'viewBox="0 0 {frame.width:g} {frame.height:g}" '
        f'aria-label="{escape(name)}" {data}>{"".join(parts)}</svg>'
    )


def text(x: float, y: float, words_: str, anchor: str = "start", kind: str = "") -> str:
    """A line of text, escaped."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{kind}">'
        f"{escape(words_)}</text>"
    )


def grid(frame: Frame, x_label: str, *, whole: bool) -> str:
    """Rules with their values, the x axis with ticks and label; `whole` allows only integers."""
    parts = []
    for value, shown in ticks(frame.y, 6):
        y = frame.up(value)
        x_end = frame.width - frame.right
        parts.append(f'<path class="rule" d="M{frame.left:g} {y:.1f}H{x_end:g}"/>')
        parts.append(text(frame.left - 7, y + 4, shown, "end", "tick"))
    base = frame.height - frame.bottom
    for value, shown in ticks(frame.x, 8 if frame.width > 500 else 5, whole=whole):
        parts.append(text(frame.across(value), base + 17, shown, "middle", "tick"))
    middle = (frame.left + frame.width - frame.right) / 2
    parts.append(f'<path class="axis" d="M{frame.left:g} {base:g}H{frame.width - frame.right:g}"/>')
    parts.append(text(middle, frame.height - 6, x_label, "middle", "label"))
    return "".join(parts)


def ticks(span: tuple[float, float], count: int, *, whole: bool = False) -> list[tuple[float, str]]:
    """Round values inside a range, with as many decimals as tell them apart."""
    steps = [1, 2, 2.5, 5, 10]
    values = MaxNLocator(count, integer=whole, steps=steps).tick_values(*span)
    slack = 1e-9 * (span[1] - span[0])
    kept = [float(v) for v in values if span[0] - slack <= v <= span[1] + slack]
    step = float(values[1] - values[0]) if len(values) > 1 else 1.0
    digits = next((d for d in range(5) if abs(step * 10**d - round(step * 10**d)) < 1e-6), 5)
    return [(value, words.fixed(value, digits)) for value in kept]

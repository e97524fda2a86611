"""Charts of the page: SVG that takes its colours from the page, so that dark and print work.

Nothing here runs a script; the page's own script reads the points beside a chart to show values.
"""

import math
from collections.abc import Sequence

from markupsafe import Markup

from fedloom.reporting import look, svg, words
from fedloom.reporting.rows import Row
from fedloom.reporting.series import Limits, Line, gaps
from fedloom.reporting.summary import Comparison

MOST_CLIENTS = 100


def tag(place: int, reference: bool) -> str:
    """The class of the page's style sheet that gives a line its colour."""
    return "ref" if reference else f"s{place % len(look.COLOURS)}"


def dash(place: int, reference: bool) -> str:
    """The dash pattern as an attribute, empty for a solid line."""
    pattern = look.style(place, reference)[1]
    return f' stroke-dasharray="{" ".join(f"{part:g}" for part in pattern)}"' if pattern else ""


def swatch(place: int, reference: bool, lone: bool = False) -> Markup:
    """A short piece of the line for the legend, with the dot that a chart may show alone."""
    mark = f'<path class="line" d="M1 4H29"{dash(place, reference)}/>'
    if lone:
        mark += '<circle class="dot" cx="15" cy="4" r="3.5"/>'
    return Markup(
        f'<svg class="swatch {tag(place, reference)}" viewBox="0 0 30 8" aria-hidden="true">'
        f"{mark}</svg>"
    )


def curves(
    shown: Sequence[Line], bounds: Limits, *, width: int, x_label: str, scale: float, key: str
) -> Markup:
    """Lines against rounds or a cost divided by `scale`; `key` is unique on the page."""
    right = max((x for line in shown for x in _all_x(line)), default=scale) / scale
    frame = svg.Frame(width, 320, (0.0, right or 1.0), (bounds.low, bounds.high))
    parts = [svg.grid(frame, x_label, whole=scale == 1 and x_label == "round")]
    parts.append(
        f'<clipPath id="{key}"><rect x="{frame.left:g}" y="0" width="{width - frame.left:g}" '
        f'height="{frame.height - frame.bottom:g}"/></clipPath><g clip-path="url(#{key})">'
    )
    ordered = sorted(shown, key=lambda line: not line.reference)
    parts += [_line(frame, line, scale) for line in ordered]
    parts.append("</g>")
    if all(line.empty for line in shown):
        parts.append(svg.text(width / 2, frame.height / 2, "no data", "middle", "label"))
    else:
        parts.append('<path class="cursor" d=""/>')
    return svg.picture(frame, parts, f"{key}: values by {x_label}", "plot")


def _all_x(line: Line) -> list[float]:
    return [*line.band.x, *(x for stray in line.strays for x in stray.x)]


def _line(frame: svg.Frame, line: Line, scale: float) -> str:
    band = line.band
    x = [value / scale for value in band.x]
    parts = [f'<g class="{tag(line.place, line.reference)}">']
    if band.n > 1:
        upper, lower = gaps(x, band.high), gaps(x, band.low)
        for above, below in zip(upper, lower, strict=True):
            outline = _path(frame, [*above, *reversed(below)])
            parts.append(f'<path class="band" d="{outline}Z"/>')
    for stretch in gaps(x, band.mean):
        parts.append(_stretch(frame, stretch, f'class="line"{dash(line.place, line.reference)}'))
    for stray in line.strays:
        thin = [value / scale for value in stray.x]
        for stretch in gaps(thin, stray.y):
            parts.append(_stretch(frame, stretch, 'class="stray"'))
        if stray.end is not None:
            parts.append(_cross(frame, stray.end[0] / scale, stray.end[1], stray.reason))
    return "".join([*parts, "</g>"])


def _path(frame: svg.Frame, points: Sequence[tuple[float, float]]) -> str:
    places = (f"{frame.across(x):.1f} {frame.up(y):.1f}" for x, y in points)
    return "M" + "L".join(places)


def _stretch(frame: svg.Frame, points: list[tuple[float, float]], look_: str) -> str:
    if len(points) == 1:
        (x, y) = points[0]
        return f'<circle class="dot" cx="{frame.across(x):.1f}" cy="{frame.up(y):.1f}" r="4"/>'
    return f'<path {look_} d="{_path(frame, points)}"/>'


def _cross(frame: svg.Frame, x: float, y: float, reason: str) -> str:
    across, up = frame.across(x), frame.up(y)
    mark = f"M{across - 4:.1f} {up - 4:.1f}l8 8m0 -8l-8 8"
    near_end = across > frame.width - 90
    place = (across - 8, "end") if near_end else (across + 8, "start")
    return f'<path class="cross" d="{mark}"/>' + svg.text(
        place[0], up - 6, reason, place[1], "mark"
    )


def points(shown: Sequence[Line], scale: float) -> list[dict[str, object]]:
    """What the page's script needs to name values under the pointer."""
    return [
        {
            "name": line.name,
            "tag": tag(line.place, line.reference),
            "n": line.band.n,
            "x": [round(value / scale, 6) for value in line.band.x],
            **{
                side: [round(v, 4) if math.isfinite(v) else None for v in getattr(line.band, side)]
                for side in ("mean", "low", "high")
            },
        }
        for line in shown
        if line.band.x
    ]


def forest(comparison: Comparison, *, width: int) -> Markup:
    """Paired differences to the baseline, in points, with 95 % intervals."""
    rows = [row for row in comparison.rows if comparison.gap(row) is not None]
    gaps_ = [comparison.gap(row) for row in rows]
    ends = [0.0] + [
        100 * end
        for gap in gaps_
        if gap
        for end in (gap.mean, gap.low, gap.high)
        if end is not None
    ]
    margin = 0.08 * (max(ends) - min(ends)) or 1.0
    span = (min(ends) - margin, max(ends) + margin)
    left = min(width * 0.4, 20 + 7.2 * max((len(_name(row, width)) for row in rows), default=1))
    frame = svg.Frame(width, 60 + 34 * len(rows), span, (0, max(1, len(rows))), left=left)
    base = frame.height - frame.bottom
    parts = [
        f'<path class="rule" d="M{frame.across(value):.1f} {frame.top:g}V{base:g}"/>'
        + svg.text(frame.across(value), base + 17, shown, "middle", "tick")
        for value, shown in svg.ticks(span, 7 if width > 400 else 4)
    ]
    parts.append(f'<path class="zero" d="M{frame.across(0):.1f} {frame.top:g}V{base:g}"/>')
    parts += [
        _interval(frame, comparison, row, len(rows) - place - 0.5, width)
        for place, row in enumerate(rows)
    ]
    against = comparison.baseline.full if comparison.baseline else ""
    label = f"points above or below {words.short(against)}"
    parts.append(svg.text((left + width) / 2, frame.height - 6, label, "middle", "label"))
    return svg.picture(frame, parts, f"paired differences to {against}", "forest")


def _name(row: Row, width: int) -> str:
    return words.short(row.full, 34 if width > 400 else 18)


def _interval(frame: svg.Frame, comparison: Comparison, row: Row, level: float, width: int) -> str:
    gap = comparison.gap(row)
    assert gap is not None
    y, x = frame.up(level), frame.across(100 * gap.mean)
    parts = [f'<g class="{tag(comparison.rows.index(row), False)}">']
    if gap.low is not None and gap.high is not None:
        low, high = frame.across(100 * gap.low), frame.across(100 * gap.high)
        caps = "".join(f"M{end:.1f} {y - 4:.1f}v8" for end in (low, high))
        parts.append(f'<path class="line" d="M{low:.1f} {y:.1f}H{high:.1f}{caps}"/>')
    kind = "dot" if gap.contains_zero is False else "ring"
    tip = f"{row.full}: {words.percent(gap.mean, sign=True)} ({words.interval(gap.low, gap.high)})"
    parts.append(f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="4.5"/></g>')
    parts.append(svg.text(frame.left - 12, y + 4, _name(row, width), "end", "name"))
    return Markup("<g><title>{}</title>{}</g>").format(tip, Markup("".join(parts)))


def heatmap(
    counts: Sequence[Sequence[int]], classes: Sequence[str], clients: Sequence[str] | None = None
) -> Markup:
    """Classes down, clients across (at most `MOST_CLIENTS`), shaded by the client's share."""
    shown = counts[:MOST_CLIENTS]
    names = [words.short(name, 20) for name in classes]
    left = 18.0 + 7 * max(map(len, names))
    wide = min(max(640 / len(shown), 7), 56)
    tall = 25 if len(names) <= 30 else 12
    called = [words.short(name, 16) for name in (clients or map(str, range(len(counts))))]
    longest = max(map(len, called[: len(shown)]))
    slanted = 7 * longest > wide and clients is not None
    deep = 14
    if slanted:
        deep += 5 * longest
        ends = (5.6 * len(name) - wide * (place + 0.5) for place, name in enumerate(called))
        left = max(left, *ends)
    frame = svg.Frame(left + wide * len(shown) + 4, 32 + deep + tall * len(names), (0, 1), (0, 1))
    parts = []
    for place, name in enumerate(names):
        y = tall * (place + 0.5)
        parts.append(svg.text(left - 8, y + 4, name, "end", "tick"))
        for client, row in enumerate(shown):
            x, share = left + wide * client, row[place] / (sum(row) or 1)
            parts.append(_box(x, tall * place, wide - 1, tall - 1, row[place], share))
    step = 1 if wide >= (14 if slanted else 22) else 10
    base = tall * len(names) + 16
    for client in range(0, len(shown), step):
        parts.append(_under(left + wide * (client + 0.5), base, called[client], slanted))
    middle = left + wide * len(shown) / 2
    parts.append(svg.text(middle, base + 8 + deep, "client", "middle", "label"))
    return svg.picture(frame, parts, "rows of each class at each client", "heat")


def _under(x: float, y: float, name: str, slanted: bool) -> str:
    if not slanted:
        return svg.text(x, y, name, "middle", "tick")
    turned = f'<g transform="translate({x + 4:.1f} {y - 6:.1f}) rotate(-40)">'
    return turned + svg.text(0, 0, name, "end", "tick") + "</g>"


def _box(x: float, y: float, width: float, height: float, count: int, share: float) -> str:
    strength = 0.04 + 0.96 * share if count else 0.0
    box = (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="2" '
        f'style="fill-opacity:{strength:.3f}"/>'
    )
    if width < 34 or height < 14:
        return box
    kind = "strong" if share > 0.72 else "weak" if count else "none"
    return box + svg.text(x + width / 2, y + height / 2 + 4, str(count), "middle", kind)

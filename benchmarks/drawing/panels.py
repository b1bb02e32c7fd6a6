"""Panels side by side: lines of points, all with the same axes.

title          title
|   .--        |  .---
| ./           | /
+------        +------
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

__all__ = ["Axis", "Panel", "panels"]

_WIDTH, _HEIGHT = 200, 140  # of the plot in a panel
_LEFT, _TOP, _RIGHT, _BOTTOM = 44, 24, 14, 32  # around it
_HEAD = 44
#: Colours for colour-blind readers, in the order of lines in the first panel.
_COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_STYLE = (
    "text{font:10.5px system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;fill:#222}"
    ".head{font-size:13px;font-weight:600}.tick{fill:#666;font-size:10px}"
    ".frame{fill:none;stroke:#999}.even{stroke:#999;stroke-dasharray:2 3}"
    "polyline{fill:none;stroke-width:1.4}"
)


class Axis(NamedTuple):
    """The quantity on an axis. A logarithmic axis begins at 1."""

    label: str
    least: float
    most: float
    ticks: tuple[float, ...]
    logarithmic: bool = False

    def share(self, value: float) -> float:
        """Return the position of a value from 0 to 1; values outside are clamped."""
        value = min(max(value, self.least), self.most)
        if self.logarithmic:
            return math.log(value / self.least) / math.log(self.most / self.least)
        return (value - self.least) / (self.most - self.least)


class Panel(NamedTuple):
    """One panel: points by the name of their line."""

    title: str
    lines: Mapping[str, Sequence[tuple[float, float]]]
    y: Axis


def panels(
    title: str, x: Axis, parts: Sequence[Panel], columns: int, names: Sequence[str], even=False
) -> str:
    """Return all panels as one SVG picture; `even` draws the diagonal of equal values in each."""
    colours = dict(zip(names, _COLOURS, strict=False))
    width, height = _LEFT + _WIDTH + _RIGHT, _TOP + _HEIGHT + _BOTTOM
    columns = min(columns, len(parts))
    rows = -(-len(parts) // columns)
    whole = max(columns * width, 640), _HEAD + rows * height
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole[0]}" height="{whole[1]}" '
        f'viewBox="0 0 {whole[0]} {whole[1]}" role="img">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style>",
        f'<rect width="{whole[0]}" height="{whole[1]}" fill="#fff"/>',
        f'<text class="head" x="10" y="18">{escape(title)}</text>',
    ]
    for at, (name, colour) in enumerate(colours.items()):
        drawn.append(
            f'<line x1="{10 + 100 * at}" y1="32" x2="{28 + 100 * at}" y2="32" stroke="{colour}" '
            f'stroke-width="2"/><text x="{33 + 100 * at}" y="36">{escape(name)}</text>'
        )
    for at, panel in enumerate(parts):
        row, column = divmod(at, columns)
        moved = f"translate({column * width + _LEFT},{_HEAD + row * height + _TOP})"
        drawn.append(f'<g transform="{moved}">{_panel(panel, x, colours, even)}</g>')
    return "\n".join([*drawn, "</svg>"]) + "\n"


def _panel(panel: Panel, x: Axis, colours: dict, even: bool) -> str:
    def place(point) -> str:
        across, up = x.share(point[0]), panel.y.share(point[1])
        return f"{across * _WIDTH:.1f},{(1 - up) * _HEIGHT:.1f}"

    parts = [
        f'<rect class="frame" width="{_WIDTH}" height="{_HEIGHT}"/>',
        f'<text x="0" y="-7">{escape(panel.title)}</text>',
        f'<text class="tick" x="{_WIDTH / 2}" y="{_HEIGHT + 26}" text-anchor="middle">'
        f"{escape(x.label)}</text>",
        f'<text class="tick" transform="translate(-34,{_HEIGHT / 2}) rotate(-90)" '
        f'text-anchor="middle">{escape(panel.y.label)}</text>',
    ]
    for tick in x.ticks:
        parts.append(
            f'<text class="tick" x="{x.share(tick) * _WIDTH:.1f}" y="{_HEIGHT + 13}" '
            f'text-anchor="middle">{tick:,.0f}</text>'
        )
    for tick in panel.y.ticks:
        parts.append(
            f'<text class="tick" x="-4" y="{(1 - panel.y.share(tick)) * _HEIGHT + 3:.1f}" '
            f'text-anchor="end">{tick:g}</text>'
        )
    if even:
        ends = (place((end, end)).split(",") for end in (x.least, x.most))
        (x1, y1), (x2, y2) = ends
        parts.append(f'<line class="even" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>')
    for name, points in panel.lines.items():
        colour, places = colours[name], [place(point) for point in points]
        parts.append(f'<polyline stroke="{colour}" points="{" ".join(places)}"/>')
        parts += [
            f'<circle cx="{across}" cy="{up}" r="2" fill="{colour}"/>'
            for across, up in (one.split(",") for one in places)
        ]
    return "".join(parts)

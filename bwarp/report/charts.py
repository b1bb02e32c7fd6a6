"""Draw lines and bars as SVG for the pages of reports, the same bytes each time.

Text and axes have the colour of the text around them, so charts suit light and dark pages.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import NamedTuple

#: The palette of Okabe & Ito, which is safe for colour-blind readers.
BLUE, VERMILION, GREEN, PINK = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, GREY = "#E69F00", "#56B4E9", "#7a7a7a"
COLOURS = (BLUE, VERMILION, GREEN, PINK, ORANGE, SKY, "currentColor")

#: More samples than this share one grey, except the lowest and the highest.
MOST_NAMED = 14

#: More bars than this are thin and have no names.
_MOST_BARS = 40

_WIDTH, _HEIGHT = 460, 280
#: Where axes of lines begin and end.
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 448, 26, 236
#: Where bars begin and end if they have names.
_NAMES, _END = 150, 340
_LONGEST = 19


class Bar(NamedTuple):
    """A bar of several parts: a name, the length of each part, and the text after it."""

    name: str
    parts: Sequence[float]
    text: str


def bar_chart(bars: Sequence[Bar], legend: Mapping[str, str], total: float = 0) -> str:
    """Return horizontal bars.

    Parameters
    ----------
    bars : sequence of Bar
    legend : mapping
        The colours of the parts by their names; no legend is shown for a single part.
    total : float
        The length of a bar across the chart (default: the longest bar).
    """
    named = len(bars) <= _MOST_BARS
    left, end = (_NAMES, _END) if named else (0, _WIDTH)
    if named:
        # Long texts after the bars need space.
        longest = max((len(bar.text) for bar in bars), default=0)
        end = max(left + 60, min(end, _WIDTH - 8 - 7.4 * longest))
    row = min(44.0, max(22.0, 150 / max(len(bars), 1))) if named else max(2.0, 500 / len(bars))
    scale = (end - left) / (total or max([sum(bar.parts) for bar in bars], default=0) or 1)
    drawn = []
    for number, bar in enumerate(bars):
        x, y = float(left), row * number
        drawn.append(f"<g><title>{escape(f'{bar.name}: {bar.text}')}</title>")
        for part, colour in zip(bar.parts, legend.values(), strict=True):
            width = part * scale
            if width:
                high = row - 5 if named else row * 0.9
                drawn.append(_rectangle(x, y, width, high, colour))
            x += width
        if named:
            name = bar.name if len(bar.name) <= _LONGEST else f"{bar.name[: _LONGEST - 1]}…"
            drawn.append(_text(left - 8, y + row / 2 + 2, name, "end"))
            drawn.append(_text((x if not total else end) + 8, y + row / 2 + 2, bar.text))
        drawn.append("</g>")
    keys = _legend((key, _rectangle(0, 0, 22, 10, colour)) for key, colour in legend.items())
    return (keys if len(legend) > 1 else "") + _svg(row * len(bars), drawn)


def line_chart(
    curves: Mapping[str, Mapping[int, float]],
    x_title: str,
    y_title: str,
    marked: Sequence[str] = (),
    y_end: float = 0,
) -> str:
    """Return a line per sample.

    Parameters
    ----------
    curves : mapping
        The heights of each sample by their positions, in order.
    x_title, y_title : str
    marked : sequence of str
        The samples with a colour and a name if there are more than `MOST_NAMED`.
    y_end : float
        The end of the vertical axis (default: the highest point).
    """
    xs = [x for curve in curves.values() for x in curve]
    start, end = min(xs), max(max(xs), min(xs) + 1)
    high = y_end or max(max(curve.values()) for curve in curves.values()) or 1
    x_scale, y_scale = (_RIGHT - _LEFT) / (end - start), (_BOTTOM - _TOP) / high
    drawn = [
        _text(_LEFT, 14, y_title),
        _text((_LEFT + _RIGHT) / 2, _HEIGHT - 6, x_title, "middle"),
    ]
    for tick in _ticks(0, high):
        y = _BOTTOM - tick * y_scale
        drawn.append(f'<path d="M{_LEFT} {y:.1f}H{_RIGHT}" stroke="currentColor" opacity=".2"/>')
        drawn.append(_text(_LEFT - 6, y + 4, f"{tick:,g}", "end"))
    for tick in _ticks(start, end):
        x = _LEFT + (tick - start) * x_scale
        drawn.append(_text(x, _BOTTOM + 18, f"{tick:,g}", "middle"))
    styles = _styles(list(curves), marked)
    others = 'stroke="currentColor" opacity=".18"'
    for name in sorted(curves, key=lambda name: name in styles):
        points = " ".join(
            f"{_LEFT + (x - start) * x_scale:.1f},{_BOTTOM - y * y_scale:.1f}"
            for x, y in curves[name].items()
        )
        drawn.append(
            f'<polyline points="{points}" fill="none" stroke-width="2" stroke-linejoin="round" '
            f"{styles.get(name, others)}><title>{escape(name)}</title></polyline>"
        )
    keys = styles if len(styles) == len(curves) else {**styles, "the other samples": others}
    if len(curves) == 1:
        keys = {}
    legend = ((key, f'<path d="M0 5H22" stroke-width="2" {style}/>') for key, style in keys.items())
    return _legend(legend) + _svg(_HEIGHT, drawn)


def _styles(names: Sequence[str], marked: Sequence[str]) -> dict[str, str]:
    """Return the attributes of the lines that have a name."""
    shown = names if len(names) <= MOST_NAMED else [name for name in names if name in marked]
    return {
        name: f'stroke="{COLOURS[i % len(COLOURS)]}"'
        + (' stroke-dasharray="6 3"' if i >= len(COLOURS) else "")
        for i, name in enumerate(shown)
    }


def _ticks(start: float, end: float) -> list[float]:
    """Return at most eight round numbers from `start` to `end`."""
    step = 10 ** math.floor(math.log10((end - start) / 7))
    step *= next(factor for factor in (1, 2, 5, 10) if factor * step * 7 >= end - start)
    first = math.ceil(start / step)
    return [number * step for number in range(first, math.floor(end / step) + 1)]


def _legend(keys: Iterable[tuple[str, str]]) -> str:
    items = "".join(
        f'<li><svg viewBox="0 0 22 10" aria-hidden="true">{mark}</svg>{escape(name)}</li>'
        for name, mark in keys
    )
    return f'<ul class="legend">{items}</ul>\n' if items else ""


def _svg(height: float, drawn: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height:.0f}" role="img" '
        'font-family="system-ui, sans-serif" font-size="13" fill="currentColor">\n'
        + "\n".join(drawn)
        + "\n</svg>"
    )


def _rectangle(x: float, y: float, width: float, height: float, colour: str) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}"/>'
    )


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'

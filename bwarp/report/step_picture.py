"""Draw what each step of allmap takes, gives and drops, and how long it runs, as SVG."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

from bwarp.report.charts import BLUE, GREEN, GREY, ORANGE, PINK, VERMILION, YELLOW

KEPT, TIME, CUDA = BLUE, GREEN, PINK
DROPPED = (ORANGE, VERMILION, YELLOW)

WIDTH, TOP, ROW, LINE = 960, 74, 58, 17
#: Where bars of numbers and of seconds begin, and the longest of each.
NUMBERS, LONGEST = 250, 420
SECONDS, SLOWEST = 730, 180


class Step(NamedTuple):
    """A step of the chain in the picture.

    Attributes
    ----------
    program : str
    does : str
        What it does, in a few words.
    engine : str
        "cpu" or "cuda", or both; "" if unknown.
    kept : int
        The number of what it gives.
    gives : str
        The same in words, such as "12 hits".
    dropped : dict
        The numbers that each of its bounds dropped, by the name of the bound.
    seconds : float or None
    """

    program: str
    does: str
    engine: str
    kept: int
    gives: str
    dropped: Mapping[str, int]
    seconds: float | None


def step_picture(title: str, steps: Sequence[Step]) -> str:
    """Return an SVG picture: a bar per step of what it gives, and one of its seconds."""
    largest = max(1, *(step.kept + sum(step.dropped.values()) for step in steps))
    slowest = max((step.seconds or 0 for step in steps), default=0) or 1
    rows, y = [], TOP
    for number, step in enumerate(steps, 1):
        rows += _row(step, number, y, LONGEST / largest, SLOWEST / slowest)
        y += ROW + LINE * len(step.dropped)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" width="{WIDTH}" '
            'font-family="system-ui, sans-serif">',
            _text(16, 26, title, size=17, weight=600),
            _text(NUMBERS, 54, "what each step passes on", weight=600),
            _text(SECONDS, 54, "time of all its jobs", weight=600),
            *rows,
            "</svg>",
        ]
    )


def _row(step: Step, number: int, y: int, per_number: float, per_second: float) -> list[str]:
    """Draw a step; the bar of what it drops continues that of what it passes on."""
    parts = [
        _text(16, y + 12, f"{number}  {step.does}", weight=600),
        _text(31, y + 29, step.program, fill=GREY, size=12),
    ]
    for nth, engine in enumerate(filter(None, step.engine.split(", "))):
        x, colour = 172 + 34 * nth, CUDA if engine == "cuda" else GREY
        word = "GPU" if engine == "cuda" else "CPU"
        parts.append(f'<rect x="{x}" y="{y + 17}" width="31" height="16" rx="3" fill="{colour}"/>')
        parts.append(_text(x + 15.5, y + 29, word, fill="#fff", anchor="middle", size=11))
    parts.append(_bar(NUMBERS, y, max(1.0, per_number * step.kept), KEPT))
    parts.append(_text(NUMBERS, y + 31, step.gives))
    at, total = NUMBERS + per_number * step.kept, step.kept + sum(step.dropped.values())
    for nth, (bound, n_dropped) in enumerate(step.dropped.items()):
        colour, line = DROPPED[nth % len(DROPPED)], y + 31 + LINE * (nth + 1)
        parts.append(_bar(at, y, per_number * n_dropped, colour))
        parts.append(_bar(NUMBERS, line - 10, 11, colour, 11))
        share = 100 * n_dropped / max(1, total)
        parts.append(_text(NUMBERS + 17, line, f"{n_dropped:,} dropped by {bound} ({share:.0f} %)"))
        at += per_number * n_dropped
    if step.seconds is not None:
        parts.append(_bar(SECONDS, y, max(1.0, per_second * step.seconds), TIME))
        parts.append(_text(SECONDS, y + 31, f"{step.seconds:,.1f} s"))
    return parts


def _bar(x: float, y: int, width: float, colour: str, height: int = 16) -> str:
    return f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{height}" fill="{colour}"/>'


def _text(x, y, text, fill="currentColor", anchor="start", size=13, weight=400) -> str:
    return (
        f'<text x="{x:.1f}" y="{y}" fill="{fill}" text-anchor="{anchor}" font-size="{size}" '
        f'font-weight="{weight}" xml:space="preserve">{escape(text)}</text>'
    )

"""Draw the timeline of a run as SVG: one row per thread, one colour per step.

A recorded step that another one called is drawn over it. The legend has the seconds of every step,
summed over all threads, without those of the steps that it called.
"""

import collections
import json
import math
from typing import NamedTuple
from xml.sax.saxutils import escape

_LEFT, _WIDTH, _ROW, _TOP = 80, 720, 22, 40
_COLOURS = (
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#882255",
    "#44AA99", "#999933", "#6699CC", "#AA4466",
)  # fmt: skip
_WAITING = "#E4E4E4"
_STYLE = "text{font:12px system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;fill:#222}"


class Step(NamedTuple):
    """A span of a thread, in seconds."""

    name: str
    thread: int
    start: float
    end: float


def parse_timeline(text: str) -> tuple[list[Step], dict[int, str]]:
    """Return the spans, outer ones first, and the names of the threads.

    Raises
    ------
    ValueError
        If ``--timeline`` did not write the text.
    """
    try:
        events = json.loads(text)["traceEvents"]
        names = {one["tid"]: str(one["args"]["name"]) for one in events if one["ph"] == "M"}
        steps = [
            Step(str(one["name"]), one["tid"], one["ts"] / 1e6, (one["ts"] + one["dur"]) / 1e6)
            for one in events
            if one["ph"] == "X"
        ]
        known = all(isinstance(thread, int) for thread in names) and all(
            step.thread in names and 0 <= step.start <= step.end < math.inf for step in steps
        )
    except (KeyError, TypeError):
        known = False
    if not known:
        raise ValueError("no timeline")
    return sorted(steps, key=lambda step: (step.start, -step.end)), names


def own_seconds(steps: list[Step]) -> collections.Counter:
    """Return the seconds of each step without those of the steps inside it."""
    seconds, open_steps = collections.Counter(), collections.defaultdict(list)
    for step in steps:
        around = open_steps[step.thread]
        while around and around[-1].end <= step.start:
            around.pop()
        seconds[step.name] += step.end - step.start
        if around:
            seconds[around[-1].name] -= step.end - step.start
        around.append(step)
    return seconds


def picture(steps: list[Step], names: dict[int, str], title: str) -> str:
    """Draw the timeline as SVG."""
    end = max((step.end for step in steps), default=0) or 1.0
    scale = _WIDTH / end
    seconds = own_seconds(steps)
    working = [name for name, _ in seconds.most_common() if not name.startswith("wait")]
    colours = {name: _COLOURS[i % len(_COLOURS)] for i, name in enumerate(working)}
    rows = {thread: _TOP + _ROW * i for i, thread in enumerate(sorted(names))}
    legend = _TOP + _ROW * len(rows) + 40
    height = legend + 20 * -(-len(seconds) // 2)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _WIDTH + 20} {height}" '
        'role="img">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style>",
        '<rect width="100%" height="100%" rx="6" fill="#fff"/>',
        f'<text x="16" y="24" font-weight="600">{escape(title)}</text>',
    ]
    parts += [
        f'<text x="{_LEFT - 8}" y="{y + 15}" text-anchor="end">{escape(names[thread])}</text>'
        for thread, y in rows.items()
    ]
    for step in steps:
        width = (step.end - step.start) * scale
        # Narrower spans are not visible.
        if width >= 0.1:
            parts.append(
                f'<rect x="{_LEFT + step.start * scale:.1f}" y="{rows[step.thread]}" '
                f'width="{width:.1f}" height="{_ROW - 4}" '
                f'fill="{colours.get(step.name, _WAITING)}"/>'
            )
    axis = _TOP + _ROW * len(rows) + 14
    for tick in range(5):
        at = end * tick / 4
        parts.append(
            f'<text x="{_LEFT + at * scale:.0f}" y="{axis}" text-anchor="middle">{at:.2g} s</text>'
        )
    for i, (name, taken) in enumerate(seconds.most_common()):
        x, y = _LEFT + 370 * (i % 2), legend + 20 * (i // 2)
        parts.append(
            f'<rect x="{x}" y="{y - 11}" width="12" height="12" '
            f'fill="{colours.get(name, _WAITING)}"/>'
            f'<text x="{x + 20}" y="{y}">{escape(name)}, {taken:.2f} s</text>'
        )
    return "\n".join([*parts, "</svg>"]) + "\n"

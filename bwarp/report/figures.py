"""Draw mapped samples, an index and timelines as SVG, reproducibly to the byte."""

import collections
import json
import math
from collections.abc import Mapping, Sequence
from typing import IO, NamedTuple
from xml.sax.saxutils import escape

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from bwarp.index.parameters import PartSize
from bwarp.report.mapping_summary import depth_curve, share_at_least, truth_curve
from bwarp.report.multiqc_sections import insert_size_curve

#: The palette of Okabe & Ito, which is safe for colour-blind readers.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")

#: More samples than this share one grey, without a legend.
_MOST_NAMED = 14


def save(figure: Figure, file: IO[bytes]) -> None:
    """Write a figure as SVG, without date and random names."""
    with matplotlib.rc_context({"svg.hashsalt": "bwarp"}):
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})


def draw_qualities(samples: Mapping[str, Mapping]) -> Figure:
    """Draw mapped reads by minimum quality, one line per sample."""
    figure, axes = _axes("mapping quality of at least", "mapped reads (%)")
    for name, style, statistics in _lines(samples):
        axes.plot(share_at_least(statistics["mapping_qualities"]), label=name, **style)
    axes.set_ylim(0, 102)
    axes.set_xlim(0, 60)
    return _finished(figure, axes, len(samples))


def draw_depths(samples: Mapping[str, Mapping]) -> Figure:
    """Draw bases of the reference by minimum depth, one line per sample."""
    figure, axes = _axes("depth of at least", "bases of the reference (%)")
    curves = {name: depth_curve(statistics["depths"]) for name, statistics in samples.items()}
    for name, style, curve in _lines(curves):
        axes.plot(list(curve), list(curve.values()), label=name, **style)
    axes.set_ylim(0, 102)
    axes.set_xlim(left=0)
    return _finished(figure, axes, len(samples))


def draw_insert_sizes(samples: Mapping[str, Mapping]) -> Figure:
    """Draw proper pairs by insert size, one line per sample."""
    figure, axes = _axes("insert size (bases)", "proper pairs (%)")
    curves = {name: insert_size_curve(statistics) for name, statistics in samples.items()}
    for name, style, curve in _lines(curves):
        axes.plot(list(curve), list(curve.values()), label=name, **style)
    axes.set_ylim(bottom=0)
    return _finished(figure, axes, len(samples))


def draw_stages(samples: Mapping[str, Mapping]) -> Figure:
    """Draw what is left after every stage, on a logarithmic scale, one group of bars per stage."""
    stages = list(next(iter(samples.values()))["stages"])
    figure = Figure(figsize=(7, 1 + 0.5 * len(stages)), layout="constrained")
    axes = figure.add_subplot()
    high = 0.8 / len(samples)
    for number, (name, style, statistics) in enumerate(_lines(samples)):
        counts = [statistics["stages"][stage] for stage in stages]
        heights = np.arange(len(stages)) - 0.4 + high * (number + 0.5)
        axes.barh(heights, counts, high, label=name, color=style["color"])
        if len(samples) == 1:
            for y, count in zip(heights, counts, strict=True):
                axes.annotate(f" {count:,}", (max(count, 1), y), va="center", fontsize="small")
    axes.set_xscale("log")
    axes.set_xlim(left=1)
    axes.margins(x=0.2)
    axes.set_yticks(np.arange(len(stages)), stages)
    axes.invert_yaxis()
    axes.set_xlabel("number (logarithmic)")
    return _finished(figure, axes, len(samples))


def draw_truth(truths: Mapping[str, Mapping]) -> Figure:
    """Draw correct against incorrect reads, for every minimum mapping quality from 60 to 0."""
    figure, axes = _axes(
        "incorrect reads per million mapped (logarithmic above 10)", "correct reads (% of all)"
    )
    axes.set_xscale("symlog", linthresh=10)
    for name, style, truth in _lines(truths):
        correct, incorrect = truth_curve(truth)
        axes.plot(incorrect, correct, label=name, marker=".", **style)
        for quality in (0, 10, 30, 60):
            if not np.isnan(incorrect[quality]):
                axes.annotate(
                    f"Q{quality}",
                    (incorrect[quality], correct[quality]),
                    xytext=(4, -11),
                    textcoords="offset points",
                    fontsize="small",
                )
    axes.margins(0.08)
    axes.set_xlim(left=-0.5)
    return _finished(figure, axes, len(truths))


def draw_index_sizes(parts: Sequence[PartSize]) -> Figure:
    """Draw the bytes of every part of an index, and those of the paper's formula."""
    figure = Figure(figsize=(7, 3.4), layout="constrained")
    axes = figure.add_subplot()
    rows = np.arange(len(parts))
    sizes = np.array([part.size for part in parts]) / 1e6
    formulas = np.array([np.nan if part.formula is None else part.formula for part in parts]) / 1e6
    axes.barh(rows - 0.19, sizes, 0.36, color=COLOURS[0], label="bwarp")
    axes.barh(rows + 0.19, formulas, 0.36, color=COLOURS[4], label="formula of Liu & Schmidt")
    axes.set_yticks(rows, [part.name for part in parts])
    axes.invert_yaxis()
    axes.set_xlabel("million bytes")
    return _finished(figure, axes, 2)


def _axes(x: str, y: str):
    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.add_subplot()
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.xaxis.set_major_locator(MaxNLocator(8))
    axes.grid(alpha=0.25)
    return figure, axes


def _lines(samples: Mapping[str, Mapping]):
    """Yield names, line styles and values of the samples."""
    for number, (name, values) in enumerate(samples.items()):
        if len(samples) > _MOST_NAMED:
            yield name, {"color": "0.4", "alpha": 0.4}, values
            continue
        dashes = "-" if number < len(COLOURS) else "--"
        yield name, {"color": COLOURS[number % len(COLOURS)], "linestyle": dashes}, values


def _finished(figure: Figure, axes, n_samples: int) -> Figure:
    axes.spines[["top", "right"]].set_visible(False)
    if n_samples <= _MOST_NAMED:
        figure.legend(frameon=False, fontsize="small", loc="outside upper center", ncols=5)
    return figure


# The timeline of a run: one row per thread, one colour per step.
#
# A recorded step that another one called is drawn over it. The legend has the seconds of every
# step, summed over all threads, without those of the steps that it called.


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

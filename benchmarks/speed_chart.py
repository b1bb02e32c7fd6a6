"""The chart of README.md: the speed of bwarp relative to other programs, a bar a comparison.

`benchmarks/speed_table.py` draws it from the results, into docs/speed.svg.

    index     133 Mb of human    |=========== 9.0 x bwa index
                                 1: as fast
"""

from collections.abc import Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

__all__ = ["Comparison", "chart"]

_WIDTH, _ROW, _TOP, _BOTTOM = 820, 26, 74, 30
_WHAT, _BARS, _LONGEST = 16, 350, 300  # where the labels and the bars begin, and the longest bar

_STYLE = (
    "text{font:13px system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;fill:#222}"
    ".title{font-size:15px;font-weight:600}.what{font-weight:600}.of,.note{fill:#666}"
    ".note{font-size:12px}.bar{fill:#0072B2}.one{stroke:#D55E00;stroke-dasharray:4 3}"
)


class Comparison(NamedTuple):
    """One job that bwarp and another program did in the same run."""

    what: str
    of: str
    other: str
    times: float


def chart(title: str, note: str, comparisons: Sequence[Comparison]) -> str:
    """An SVG picture with a bar for each comparison, in their order."""
    height = _TOP + _ROW * len(comparisons) + _BOTTOM
    scale = _LONGEST / max(comparison.times for comparison in comparisons)
    one = _BARS + scale
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">',
        f"<title>{escape(title)}</title>",
        f"<style>{_STYLE}</style>",
        f'<rect width="{_WIDTH}" height="{height}" rx="6" fill="#fff"/>',
        f'<text class="title" x="{_WHAT}" y="28">{escape(title)}</text>',
        f'<text class="note" x="{_WHAT}" y="48">{escape(note)}</text>',
    ]
    before = None
    for row, (what, of, other, times) in enumerate(comparisons):
        y = _TOP + _ROW * row
        if what != before:
            parts.append(f'<text class="what" x="{_WHAT}" y="{y + 14}">{escape(what)}</text>')
        before = what
        parts += [
            f'<text class="of" x="{_BARS - 10}" y="{y + 14}" text-anchor="end">{escape(of)}</text>',
            f'<rect class="bar" x="{_BARS}" y="{y}" width="{times * scale:.1f}" height="18"/>',
            f'<text x="{_BARS + times * scale + 8:.1f}" y="{y + 14}">'
            f"{times:.1f} × {escape(other)}</text>",
        ]
    end = height - _BOTTOM
    parts += [
        f'<line class="one" x1="{one:.1f}" y1="{_TOP - 6}" x2="{one:.1f}" y2="{end}"/>',
        f'<text class="note" x="{one:.1f}" y="{end + 14}" text-anchor="middle">1: as fast</text>',
        "</svg>",
    ]
    return "\n".join(parts) + "\n"

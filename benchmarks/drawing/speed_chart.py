"""The chart of README.md: the speed of bwarp relative to other programs, a bar per comparison.

index     133 Mb of human    |=========== 9.0 x bwa index
                             1: as fast
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

from drawing.figures import Lines, megabases_of

__all__ = ["Comparison", "chart", "comparisons", "speed_chart"]

_WIDTH, _ROW, _TOP, _BOTTOM = 820, 26, 74, 30
_WHAT, _BARS, _LONGEST = 16, 350, 300  # start of the labels and of the bars, and the longest bar

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
    """Return an SVG picture with a bar for each comparison, in their order."""
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


def comparisons(lines: Lines) -> Iterator[Comparison]:
    """Return the largest job of each kind on the CPU, with the peer closest to bwarp."""
    for what, name, job, of in (
        ("index", "index_cpu.json", "index, FASTA to folder 133 Mb of human", "133 Mb of human"),
        ("seeds", "seeds_cpu.jsonl", "30,000 20-mers, 1 mismatch", "30,000 20-mers, 1 mismatch"),
        ("exact matches", "mems_cpu.jsonl", "of E. coli DH1", "E. coli DH1"),
        ("exact matches", "mems_cpu.jsonl", "unique matches", "reads of 100 bases"),
    ):
        seconds = {}
        some = [
            line
            for line in lines(name)
            if job in f"{line.get('what')} {line.get('reference')}" and "seconds" in line
        ]
        # Use the largest of several references.
        for line in sorted(some, key=megabases_of):
            seconds[line["program"]] = line["seconds"]
        for other, theirs in seconds.items():
            if not other.startswith("bwarp"):
                yield Comparison(what, of, other, theirs / seconds["bwarp"])
    mapping = {
        line["mapper"]: line for line in lines("map_cpu.json") if line["reference"] == "chr20.fa"
    }
    if mapping:
        ours = mapping.pop("bwarp")
        of = f"{ours['reads']:,} reads, chr20"
        for other, line in mapping.items():
            yield Comparison("map", of, other, line["wall_seconds"] / ours["wall_seconds"])
    for line in lines("pairs_cpu.jsonl"):
        if "times_parasail" in line and line.get("mode") in ("local", "semiglobal"):
            of = f"{line['mode']}, DNA {line['lengths'].replace('x', ' x ')}"
            yield Comparison("pairs", of, "parasail", line["times_parasail"])
    proteins = [line for line in lines("search_cpu.jsonl") if line.get("part") == "proteins"]
    proteins = sorted(
        (line for line in proteins if "times_parasail" in line), key=lambda line: line["length"]
    )
    if proteins:
        for line in (proteins[0], proteins[-1]):
            of = f"protein of {line['length']:,}"
            yield Comparison("search", of, "parasail", line["times_parasail"])


def speed_chart(lines: Lines) -> str | None:
    """Return the chart, grouped by kind of job, largest gain first; None without comparisons."""
    found = sorted(comparisons(lines), key=lambda one: -one.times)
    if not found:
        return None
    kinds = list(dict.fromkeys(one.what for one in found))
    found.sort(key=lambda one: kinds.index(one.what))
    note = "Up to two cores of the same machine, in the same run."
    return chart("Speed relative to other programs, on the CPU", note, found)

"""Write the page of a run that maps reads: a table of the samples, and plots of their reads."""

from collections.abc import Iterable, Mapping
from html import escape

from bwarp import __version__
from bwarp.counted import counted
from bwarp.report.charts import BLUE, GREY, ORANGE, Bar, bar_chart, line_chart
from bwarp.report.mapping_summary import (
    COLUMNS,
    CONFIDENT,
    columns_of,
    depth_curve,
    insert_quartiles,
    insert_size_curve,
    mapping_warnings,
    share_at_least,
    summarise,
    summary_rows,
)
from bwarp.report.page import page, section, side_by_side, table

#: How to read the plots.
DEPTH = (
    "The share of the reference with at least each depth. A curve that falls steeply around the "
    "mean depth means even coverage. Bases without coverage are N, in repeats, or absent from the "
    "sample."
)
INSERT_SIZE = (
    "The distance from the first base of a pair to its last: the length of the sequenced fragment, "
    "in bins of ten bases. One peak is normal. Two peaks mean two libraries; a peak cut off at the "
    "read length means fragments shorter than the reads."
)
QUALITY = (
    "The share of mapped reads with at least each quality, from 0 (equally likely elsewhere) to 60 "
    "(certain). The step at the left is due to reads from repeats. A curve that is low throughout "
    "means poor reads or a different genome."
)

_COUNTED = " Duplicates are left out, and bases of both mates of a pair count once."
_ESTIMATED = (
    " Estimated from up to 10,000 positions of the reference; duplicates and reads of quality 0 "
    "are included."
)


def mapping_page(title: str, samples: Mapping[str, Mapping], truths: Mapping[str, Mapping]) -> str:
    """Return the page as HTML.

    Parameters
    ----------
    title : str
    samples : mapping
        Statistics of `bwarp.records.statistics` or `bwarp.checks.check_numbers`, by sample.
    truths : mapping
        Correct and incorrect reads of simulated samples.
    """
    summaries = {name: summarise(counts, truths.get(name)) for name, counts in samples.items()}
    mapped = {name: counts for name, counts in samples.items() if counts["mapped"]}
    n_reads = sum(counts["reads"] for counts in samples.values())
    charts = (
        []
        if not mapped
        else [
            _fates(mapped, summaries),
            _depths(mapped, summaries),
            _insert_sizes(mapped),
            _qualities(mapped, summaries),
        ]
    )
    body = [
        f'<p class="soft">{counted(len(samples), "sample")} with {counted(n_reads, "read")}, '
        f"mapped by bwarp {__version__}.</p>",
        *(f'<p class="warning">{escape(text)}</p>' for text in mapping_warnings(samples)),
        _summary_table(summaries),
        side_by_side(charts),
    ]
    return page(title, "\n".join(body))


def _summary_table(summaries: Mapping[str, Mapping[str, float]]) -> str:
    """Return the table of samples, and what its columns are."""
    names = columns_of(summaries)
    head, titles = ["Sample"], dict[str, list[str]]()
    for column in (COLUMNS[name] for name in names):
        title = column.title.replace(">= ", "\u2265\u00a0")
        head.append(f"{title} ({column.unit})" if column.unit else title)
        titles.setdefault(column.description, []).append(f"<b>{title}</b>")
    explained = "; ".join(f"{', '.join(of)}: {text}" for text, of in titles.items())
    return f'{table(head, summary_rows(summaries, names))}\n<p class="soft">{explained}.</p>'


def _fates(mapped, summaries) -> str:
    shares = _known(summaries, mapped, "mapped")
    proper = _known(summaries, mapped, "paired")
    duplicates = _known(summaries, mapped, "duplicates")
    legend = {"mapped": BLUE, "duplicates": ORANGE, "not mapped": GREY}
    if not duplicates:
        del legend["duplicates"]
    bars = []
    for name in sorted(shares, key=shares.__getitem__):
        share, marked = shares[name], duplicates.get(name, 0.0)
        parts = [share - marked, marked, 100 - share] if duplicates else [share, 100 - share]
        bars.append(Bar(name, parts, f"{share:.2f} % mapped"))
    return section(
        "Mapped reads and duplicates",
        bar_chart(bars, legend, total=100),
        f"{_from_to(shares)} of the reads are mapped"
        + (f", {_from_to(proper)} in proper pairs" if proper else "")
        + (f"; {_from_to(duplicates)} are duplicates." if duplicates else ".")
        + ("" if duplicates else " Duplicates were not marked."),
        "The reads of each sample, beginning with the sample with the fewest mapped reads. Few "
        "mapped reads mean contamination, poor reads, or another genome. Many duplicates mean that "
        "the library began with little DNA: more sequencing would add few new fragments.",
    )


def _depths(mapped, summaries) -> str:
    curves = {name: depth_curve(counts) for name, counts in mapped.items()}
    curves = {name: curve for name, curve in curves.items() if curve}
    if not curves:
        return ""
    mean = _known(summaries, curves, "depth")
    some, deep = (_known(summaries, curves, f"breadth_{depth}") for depth in (1, 10))
    is_counted = any("breadth" in counts for counts in mapped.values())
    return section(
        "Depth and breadth",
        line_chart(curves, "depth of at least", "reference (%)", _ends(mean), 100),
        f"The mean depth is {_from_to(mean, '')}. "
        f"{_from_to(some, digits=0)} of the reference is covered, and {_from_to(deep, digits=0)} "
        "has a depth of at least 10.",
        DEPTH + (_COUNTED if is_counted else _ESTIMATED),
    )


def _insert_sizes(mapped) -> str:
    curves = {name: insert_size_curve(counts) for name, counts in mapped.items()}
    curves = {name: curve for name, curve in curves.items() if curve}
    if not curves:
        return ""
    quartiles = {name: insert_quartiles(mapped[name]) or (0, 0, 0) for name in curves}
    medians = {name: middle for name, (_, middle, _) in quartiles.items()}
    widths = {name: high - low for name, (low, _, high) in quartiles.items()}
    return section(
        "Insert size",
        line_chart(curves, "insert size (bases)", "pairs (%)", _ends(medians)),
        f"The median insert size is {_from_to(medians, ' bases', 0)}. The middle half of the pairs "
        f"spans {_from_to(widths, ' bases', 0)}.",
        INSERT_SIZE,
    )


def _qualities(mapped, summaries) -> str:
    confident = _known(summaries, mapped, "confident")
    curves = {
        name: dict(enumerate(share_at_least(counts["mapping_qualities"]).tolist()))
        for name, counts in mapped.items()
    }
    return section(
        "Mapping quality",
        line_chart(
            curves, "mapping quality of at least", "mapped reads (%)", _ends(confident), 100
        ),
        f"{_from_to(confident)} of the reads have a mapping quality of {CONFIDENT} or more: at "
        "most one in a thousand of them is incorrect.",
        QUALITY,
    )


def _known(
    summaries: Mapping[str, Mapping[str, float]], names: Iterable[str], column: str
) -> dict[str, float]:
    """Return the values of a column by sample, omitting samples without one."""
    return {name: summaries[name][column] for name in names if column in summaries[name]}


def _ends(values: Mapping[str, float]) -> list[str]:
    """Return the samples with the lowest and the highest value."""
    return [min(values, key=values.__getitem__), max(values, key=values.__getitem__)]


def _from_to(values: Mapping[str, float], unit: str = " %", digits: int = 2) -> str:
    """Return the value, or the lowest and the highest one with their samples."""
    texts = {name: f"{value:,.{digits}f}{unit}" for name, value in values.items()}
    low, high = _ends(values)
    if texts[low] == texts[high]:
        return texts[low]
    return f"{texts[low]} ({low}) to {texts[high]} ({high})"

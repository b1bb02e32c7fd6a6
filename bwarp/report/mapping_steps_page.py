"""Write the page on how reads were mapped, for developers: candidates, times, and the index."""

import base64
from collections.abc import Mapping, Sequence
from html import escape

import numpy as np

from bwarp.counted import counted
from bwarp.index.parameters import PartSize
from bwarp.records.statistics import STAGES
from bwarp.report.charts import BLUE, Bar, bar_chart
from bwarp.report.mapping_summary import truth_curve
from bwarp.report.page import page, section, side_by_side, table
from bwarp.report.step_times import Jobs, times_section

#: The steps with times, in their order.
STEPS = ("index_reference", "cut_reads", "map_reads", "map_part")

#: Mapping qualities in the table of correct and incorrect reads.
_QUALITIES = (0, 10, 30, 60)


def mapping_steps_page(
    samples: Mapping[str, Mapping],
    truths: Mapping[str, Mapping],
    parts: Sequence[PartSize],
    jobs: Mapping[str, Jobs],
    timelines: Mapping[str, str],
) -> str:
    """Return the page as HTML; sections without data are omitted.

    Parameters
    ----------
    samples : mapping
        Statistics of `bwarp.records.statistics`, by sample.
    truths : mapping
        Correct and incorrect reads of simulated samples.
    parts : sequence of PartSize
        The parts of the index.
    jobs : mapping
        The jobs of each step, for their times.
    timelines : mapping
        Pictures of timelines as SVG, by the name of their file.
    """
    sections = (
        _stages(samples),
        times_section(jobs, STEPS) if jobs else "",
        _index_sizes(parts) if parts else "",
        _truths(truths) if truths else "",
    )
    pictures = (_timeline(name, picture) for name, picture in timelines.items())
    return page("How the reads were mapped", "\n".join([side_by_side(sections), *pictures]))


def _stages(samples: Mapping[str, Mapping]) -> str:
    counts = {name: sum(one["stages"][name] for one in samples.values()) for name in STAGES}
    reads = counts["reads"] or 1
    bars = [Bar(name, [count], f"{count:,}") for name, count in counts.items()]
    return section(
        "Where candidates went",
        bar_chart(bars, {"": BLUE}),
        f"Located hits per read: {counts['hits located'] / reads:,.1f}; candidates per read: "
        f"{counts['candidates'] / reads:,.1f}; alignments with gaps per read: "
        f"{counts['hits with gaps'] / reads:,.2f}.",
        "Counts of all samples after each stage of mapping. "
        "Hits on neighbouring diagonals form a candidate. Scored hits include mate rescue. "
        "Alignment with gaps is by far the most expensive stage. If there are many more candidates "
        "than reads, they come from repeats.",
    )


def _index_sizes(parts: Sequence[PartSize]) -> str:
    rows = [
        [part.name, f"{part.size:,}", "-" if part.formula is None else f"{part.formula:,}"]
        for part in parts
    ]
    return section(
        "Index sizes",
        table(["Part", "Bytes", "Formula (bytes)"], rows),
        f"The index takes {counted(sum(part.size for part in parts), 'byte')}.",
        "The formulas are those of Liu & Schmidt for the same genome and sampling rates: "
        "4n⌈log2 n⌉/q + 2n bits for a BWT, n⌈log2 n⌉/p bits for the suffix array. bwarp stores "
        "counts as 32-bit integers; its prefix table and packed genome are not part of the "
        "formulas. Larger values of occ_rate and sa_rate make the index smaller and slower to "
        "search.",
    )


def _truths(truths: Mapping[str, Mapping]) -> str:
    rows = []
    for name, truth in truths.items():
        correct, incorrect = truth_curve(truth)
        rows += [
            [
                name,
                f"{quality}",
                f"{correct[quality]:.2f}",
                "-" if np.isnan(incorrect[quality]) else f"{incorrect[quality]:,.0f}",
            ]
            for quality in _QUALITIES
        ]
    shares = [truth_curve(truth)[0][0] for truth in truths.values()]
    return section(
        "Correct and incorrect reads",
        table(["Sample", "Quality of at least", "Correct (%)", "Incorrect per million"], rows),
        f"{min(shares):.2f} % or more of the reads of each simulated sample are correct.",
        "The names of simulated reads contain their origin. Correct reads lie within 20 bases of "
        "it, as a percentage of all reads; incorrect reads are given per million mapped reads "
        "with at least this mapping quality.",
    )


def _timeline(name: str, picture: str) -> str:
    # As an image, so that its styles do not apply to the page.
    data = base64.b64encode(picture.encode()).decode()
    return (
        f'<section class="wide"><img src="data:image/svg+xml;base64,{data}" '
        f'alt="Timeline {escape(name)}" style="width: 100%"></section>'
    )

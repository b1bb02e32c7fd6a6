"""Make bwarp's sections of a MultiQC report, as MultiQC custom content.

Each section is a dictionary for a file NAME_mqc.yaml (MultiQC would sort numeric axes of JSON as
text); its description is the caption, which explains how to read the plot.
"""

import math
from collections.abc import Mapping, Sequence

from bwarp.index.parameters import PartSize
from bwarp.report.mapping_summary import (
    COLUMNS,
    columns_of,
    depth_curve,
    insert_size_curve,
    share_at_least,
    summarise,
    truth_curve,
)


def mapping_sections(samples: Mapping[str, Mapping], truths: Mapping[str, Mapping]) -> dict:
    """Return sections about mapped reads, by file name, from the statistics of samples."""
    sections = {"general": _general(samples, truths), "mapping_quality": _qualities(samples)}
    units = _units(samples)
    if len(units) > len(samples):
        sections["units"] = _units_section(units)
    depths = {name: s["depths"] for name, s in samples.items() if s.get("depths")}
    if depths:
        sections["depth"] = _depths(depths)
    curves = {name: insert_size_curve(statistics) for name, statistics in samples.items()}
    curves = {name: curve for name, curve in curves.items() if curve}
    if curves:
        sections["insert_size"] = _insert_sizes(curves)
    stages = {name: s["stages"] for name, s in samples.items() if s.get("stages")}
    if stages:
        sections["stages"] = _stages(stages)
    if truths:
        sections["truth"] = truth_section(truths)
    return sections


def _section(name: str, title: str, description: str, kind: str, data, plot: Mapping) -> dict:
    return {
        "id": f"bwarp_{name}",
        "parent_id": "bwarp",
        "parent_name": "bwarp",
        "parent_description": "mapped these reads: FM-index seeds, candidates by diagonal, "
        "alignments with CIGARs.",
        "section_name": title,
        "description": description,
        "plot_type": kind,
        "pconfig": {"id": f"bwarp_{name}_plot", "title": f"bwarp: {title}", **plot},
        "data": data,
    }


_FORMATS = {
    "": {"format": "{:,.0f}"},
    "%": {"suffix": "%", "min": 0, "max": 100, "format": "{:,.2f}"},
    "X": {"suffix": "X", "min": 0, "format": "{:,.2f}"},
    "bases": {"suffix": " bases", "min": 0, "format": "{:,.0f}"},
}


def _table(samples: Mapping[str, Mapping], truths: Mapping[str, Mapping]) -> dict:
    """Return the headers and data of a table, omitting columns that no sample has."""
    summaries = {name: summarise(counts, truths.get(name)) for name, counts in samples.items()}
    headers = {
        key: {
            "title": COLUMNS[key].title,
            "description": COLUMNS[key].description,
            **_FORMATS[COLUMNS[key].unit],
        }
        for key in columns_of(summaries)
    }
    data = {
        name: {key: value for key, value in vars(summary).items() if value is not None}
        for name, summary in summaries.items()
    }
    return {"headers": headers, "data": data}


def _general(samples, truths) -> dict:
    return {
        "id": "bwarp_general",
        "namespace": "bwarp",
        "plot_type": "generalstats",
        **_table(samples, truths),
    }


def _units(samples: Mapping[str, Mapping]) -> dict[str, Mapping]:
    """Return the statistics of every unit, as SAMPLE.UNIT."""
    return {
        f"{name}.{unit}": counts
        for name, statistics in samples.items()
        for unit, counts in statistics.get("units", {}).items()
    }


def _units_section(units: Mapping[str, Mapping]) -> dict:
    table = _table(units, {})
    return _section(
        "units",
        "Lanes",
        "One row per lane or run of each sample. Lanes of a library should be alike: one with "
        "more errors, fewer mapped reads or more duplicates than the others shows a problem of "
        "the run. Duplicates here are those within the lane.",
        "table",
        table["data"],
        {"col1_header": "Lane", "namespace": "bwarp"},
    ) | {"headers": table["headers"]}


def _depths(depths) -> dict:
    return _section(
        "depth",
        "Depth",
        "The share of the reference with at least each depth, from evenly spaced positions. A "
        "curve that falls at once, around the mean depth, means even coverage. Where it begins is "
        "what is covered at all: the rest is N, repeats, or not in the sample. Reads of quality 0 "
        "and duplicates count.",
        "linegraph",
        {name: depth_curve(values) for name, values in depths.items()},
        {
            "xlab": "depth of at least",
            "ylab": "bases of the reference (%)",
            "ymin": 0,
            "ymax": 100,
            "tt_label": "depth >= {point.x}: {point.y:.2f} %",
        },
    )


def _qualities(samples) -> dict:
    return _section(
        "mapping_quality",
        "Mapping quality",
        "Mapped reads of at least each mapping quality, from 0 (equally likely elsewhere) to 60 "
        "(certain). The curve begins at the share of all mapped reads; where it is flat, few reads "
        "have these qualities. A large first step is reads from repeats; a curve that is low "
        "throughout means short or poor reads, or another genome.",
        "linegraph",
        {
            name: dict(enumerate(share_at_least(statistics["mapping_qualities"]).round(3).tolist()))
            for name, statistics in samples.items()
        },
        {
            "xlab": "mapping quality of at least",
            "ylab": "mapped reads (%)",
            "ymin": 0,
            "ymax": 100,
            "tt_label": "quality >= {point.x}: {point.y:.2f} %",
        },
    )


def _insert_sizes(curves) -> dict:
    return _section(
        "insert_size",
        "Insert size",
        "From the first base of a proper pair to its last: the length of the sequenced fragment. "
        "One peak is normal. Two peaks mean two libraries in one sample; a peak cut off at the "
        "read length means fragments shorter than the reads.",
        "linegraph",
        curves,
        {"xlab": "insert size (bases)", "ylab": "proper pairs (%)", "ymin": 0},
    )


def _stages(stages) -> dict:
    return _section(
        "stages",
        "Where candidates went",
        "Reads; their seeds searched; the hits of these that were located; the candidates that "
        "hits on neighbouring diagonals form; the hits that were scored, mate rescue included; "
        "those that needed an alignment with gaps, by far the most expensive; mapped reads. Many "
        "more hits than seeds, or candidates than reads, come from repeats. Log10 above the plot "
        "makes the scale logarithmic.",
        "bargraph",
        {name: dict(counts) for name, counts in stages.items()},
        {
            "xlab": "sample",
            "ylab": "number",
            "stacking": "group",
            "cpswitch": False,
            "logswitch": True,
        },
    )


def truth_section(truths: Mapping[str, Mapping]) -> dict:
    """Return the section of correct and incorrect reads for each minimum mapping quality."""
    curves = {}
    for name, truth in truths.items():
        correct, incorrect = truth_curve(truth)
        # Among qualities with equally many incorrect reads, the lowest has the most correct ones,
        # so last.
        points = zip(incorrect[::-1].tolist(), correct[::-1].tolist(), strict=True)
        curves[name] = {
            round(ppm, 2): round(share, 3) for ppm, share in points if not math.isnan(ppm)
        }
    return _section(
        "truth",
        "Correct and incorrect reads",
        "The names of simulated reads contain their origin. Each point counts only the reads with "
        "a minimum mapping quality, from 0 at the right to 60 at the left. Higher points have more "
        "reads within 20 bases of their origin; points further left have fewer reads elsewhere.",
        "linegraph",
        curves,
        {
            "xlab": "incorrect reads per million mapped",
            "ylab": "correct reads (% of all)",
            "style": "lines+markers",
        },
    )


def index_section(parts: Sequence[PartSize]) -> dict:
    """Return the section of the bytes of each part of the index, with the paper's formula."""
    return _section(
        "index_sizes",
        "Index sizes",
        "Bytes of each part of the index, and the formulas of Liu & Schmidt for the same genome "
        "and sampling rates. The formulas count packed bits; bwarp's counts are whole 32-bit "
        "numbers, and its prefix table and packed genome are not part of the formulas.",
        "bargraph",
        {
            part.name: {
                "bwarp": part.size / 1e6,
                **({} if part.formula is None else {"paper": part.formula / 1e6}),
            }
            for part in parts
        },
        {"ylab": "million bytes", "stacking": "group", "cpswitch": False, "tt_suffix": " MB"},
    )


# Statistics in the format of `samtools stats`, for other programs.


#: MultiQC recognises samtools stats by the second line.
_HEAD = (
    "# The summary numbers of samtools stats, which bwarp has counted while it mapped.\n"
    "# MultiQC looks for: This file was produced by samtools stats\n"
)


def samtools_stats(statistics: Mapping) -> str:
    """Return the section SN of samtools stats, with the numbers that were counted.

    Parameters
    ----------
    statistics : mapping
        From `bwarp.records.statistics`.
    """
    counts = statistics
    bases = counts["aligned_bases"] + counts["inserted_bases"]
    numbers = {
        "raw total sequences": counts["reads"],
        "filtered sequences": 0,
        "sequences": counts["reads"],
        "reads mapped": counts["mapped"],
        "reads mapped and paired": counts["both_mapped"],
        "reads unmapped": counts["unmapped"],
        "reads properly paired": counts["properly_paired"],
        "reads paired": counts["paired"],
        "reads MQ0": counts["mapping_qualities"][0],
        "reads QC failed": 0,
        "supplementary alignments": counts["supplementary"],
        "total length": counts["bases"],
        "bases mapped (cigar)": bases,
        "mismatches": counts["edits"],
        "error rate": f"{counts['edits'] / bases if bases else 0:.6e}",
    }
    if counts["duplicates"] is not None:
        numbers["reads duplicated"] = counts["duplicates"]
    return _HEAD + "".join(f"SN\t{name}:\t{number}\n" for name, number in numbers.items())

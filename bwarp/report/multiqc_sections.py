"""Make bwarp's sections of a MultiQC report, as MultiQC custom content.

Each section is a dictionary for a file NAME_mqc.yaml (MultiQC would sort numeric axes of JSON as
text); its description is the caption, which explains how to read the plot.
"""

from collections.abc import Callable, Mapping

from bwarp.report.mapping_page import DEPTH, INSERT_SIZE, QUALITY
from bwarp.report.mapping_summary import (
    COLUMNS,
    columns_of,
    depth_curve,
    insert_size_curve,
    share_at_least,
    summarise,
)


def mapping_sections(samples: Mapping[str, Mapping], truths: Mapping[str, Mapping]) -> dict:
    """Return sections about mapped reads, by file name, from the statistics of samples."""
    sections = {
        "general": {
            "id": "bwarp_general",
            "namespace": "bwarp",
            "plot_type": "generalstats",
            **_table(samples, truths),
        },
        "mapping_quality": _section(
            "mapping_quality",
            "Mapping quality",
            QUALITY,
            {
                name: dict(enumerate(share_at_least(one["mapping_qualities"]).round(3).tolist()))
                for name, one in samples.items()
            },
            xlab="mapping quality of at least",
            ylab="mapped reads (%)",
            ymax=100,
        ),
    }
    units = _units(samples)
    if len(units) > len(samples):
        sections["units"] = _units_section(units)
    if depths := _curves(depth_curve, samples):
        sections["depth"] = _section(
            "depth",
            "Depth",
            DEPTH,
            depths,
            xlab="depth of at least",
            ylab="bases of the reference (%)",
            ymax=100,
        )
    if sizes := _curves(insert_size_curve, samples):
        sections["insert_size"] = _section(
            "insert_size",
            "Insert size",
            INSERT_SIZE,
            sizes,
            xlab="insert size (bases)",
            ylab="pairs (%)",
        )
    return sections


def _curves(curve: Callable[[Mapping], dict], samples: Mapping[str, Mapping]) -> dict[str, dict]:
    """Return the curve of each sample, omitting empty ones."""
    curves = {name: curve(statistics) for name, statistics in samples.items()}
    return {name: points for name, points in curves.items() if points}


def _section(
    name: str, title: str, description: str, data, kind: str = "linegraph", **plot
) -> dict:
    return {
        "id": f"bwarp_{name}",
        "parent_id": "bwarp",
        "parent_name": "bwarp",
        "section_name": title,
        "description": description,
        "plot_type": kind,
        "pconfig": {"id": f"bwarp_{name}_plot", "title": f"bwarp: {title}", **plot},
        "data": data,
    }


_LIMITS: dict[str, dict] = {
    "": {},
    "%": {"suffix": "%", "min": 0, "max": 100},
    "X": {"suffix": "X", "min": 0},
    "bases": {"suffix": " bases", "min": 0},
}


def _table(samples: Mapping[str, Mapping], truths: Mapping[str, Mapping]) -> dict:
    """Return the headers and data of a table, omitting columns that no sample has."""
    data = {name: summarise(counts, truths.get(name)) for name, counts in samples.items()}
    headers = {
        key: {
            "title": COLUMNS[key].title,
            "description": COLUMNS[key].description,
            "format": f"{{:,.{COLUMNS[key].digits}f}}",
            **_LIMITS[COLUMNS[key].unit],
        }
        for key in columns_of(data)
    }
    return {"headers": headers, "data": data}


def _units(samples: Mapping[str, Mapping]) -> dict[str, Mapping]:
    """Return the statistics of every unit, as SAMPLE.UNIT."""
    return {
        f"{name}.{unit}": counts
        for name, statistics in samples.items()
        for unit, counts in statistics.get("units", {}).items()
    }


def _units_section(units: Mapping[str, Mapping]) -> dict:
    table = _table(units, {})
    return {"headers": table["headers"]} | _section(
        "units",
        "Lanes",
        "One row per lane or run of each sample. Lanes of a library should be alike: one with "
        "more errors, fewer mapped reads or more duplicates than the others shows a problem of "
        "the run. Duplicates here are those within the lane.",
        table["data"],
        "table",
        col1_header="Lane",
        namespace="bwarp",
    )

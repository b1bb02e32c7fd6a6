"""The statistics of map as a data frame, a row a unit, and those of allmap, a row."""

import os
from dataclasses import asdict
from pathlib import Path

import pandas as pd

from bwarp.errors import InputError
from bwarp.loci.find import Certificate
from bwarp.mapping.output.statistics import empty_statistics, parse_statistics
from bwarp.report.mapping_summary import summarise

__all__ = ["statistics_frame"]

#: Counts that are one number.
_NUMBERS = [name for name, none in empty_statistics().items() if isinstance(none, int)]

_INSERT_SIZE = ("mean", "standard_deviation")


def statistics_frame(path: str | os.PathLike) -> pd.DataFrame:
    """The counts of map, and what follows from them, or the counts of allmap.

    Raises
    ------
    InputError
        For a file of anything else.
    """
    try:
        counts = parse_statistics(Path(path).read_bytes())
        units = counts.get("units", {Path(path).name.removesuffix(".stats.json"): counts})
        rows = [_row(unit, statistics) for unit, statistics in units.items()]
    except (ValueError, KeyError, TypeError, AttributeError):
        return _of_loci(path)
    return pd.DataFrame(rows)


def _of_loci(path: str | os.PathLike) -> pd.DataFrame:
    try:
        return pd.DataFrame([asdict(Certificate.read(path))])
    except InputError:
        raise InputError(
            f"{path}: not the statistics of map_reads.py or find_alignments.py: read other JSON "
            "with json.load"
        ) from None


def _row(unit: str, statistics: dict) -> dict:
    summary, size = summarise(statistics), statistics["insert_size"] or {}
    return {
        "unit": unit,
        **{name: statistics[name] for name in _NUMBERS},
        "duplicates": float("nan") if summary.duplicates is None else statistics["duplicates"],
        "error_rate": summary.errors / 100,
        "mean_depth": summary.depth or 0.0,
        **{f"insert_size_{name}": size.get(name, float("nan")) for name in _INSERT_SIZE},
    }

"""The statistics of mapped reads as a data frame, a row a unit."""

import os
from pathlib import Path

import pandas as pd

from bwarp.errors import InputError
from bwarp.mapping.output.statistics import empty_statistics, parse_statistics
from bwarp.report.mapping_summary import summarise

__all__ = ["statistics_frame"]

#: Counts that are one number.
_NUMBERS = [name for name, none in empty_statistics().items() if isinstance(none, int)]

_INSERT_SIZE = ("mean", "standard_deviation")


def statistics_frame(path: str | os.PathLike) -> pd.DataFrame:
    """The counts of every unit of a sample, or of one run, and what follows from them.

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
        raise InputError(
            f"{path}: not the counts that map_reads.py writes: map these reads again"
        ) from None
    return pd.DataFrame(rows)


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

"""Read the numbers of a report from the files of --qc."""

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from bwarp.errors import InputError
from bwarp.records.statistics import INSERT_BIN, INSERT_BINS


def with_checks(statistics: Mapping, folder: str | os.PathLike, sample: str) -> dict:
    """Return the statistics of a sample with the numbers of its files of --qc.

    Parameters
    ----------
    statistics : mapping
        From `bwarp.records.statistics`.
    folder : path
    sample : str
        The name of the files without their endings.

    Returns
    -------
    dict
        `duplicates` and `insert_sizes` are replaced; the sizes are those of all pairs. `mean_depth`
        is added, and `breadth`: the percentages of the bases of the reference with at least each
        depth from 0 (ndarray, dtype=float64).

    Raises
    ------
    InputError
        If the files are incomplete, or another program wrote them.
    """
    stats, summary, distribution = (
        Path(folder, f"{sample}{ending}")
        for ending in (".stats", ".mosdepth.summary.txt", ".mosdepth.global.dist.txt")
    )
    sizes = np.zeros(INSERT_BINS, np.int64)
    try:
        for size, pairs, *_ in _rows(stats, "IS"):
            sizes[min(int(size) // INSERT_BIN, INSERT_BINS - 1)] += int(pairs)
        (duplicates,) = (row[1] for row in _rows(stats, "SN") if row[0] == "reads duplicated:")
        length, bases = _rows(summary, "total")[-1][:2]
        shares = np.array(_rows(distribution, "total"), np.float64).reshape(-1, 2)[::-1]
        depths, breadth = shares.T
        # Depths without a row have the share of the next higher one.
        breadth = breadth[np.searchsorted(depths, np.arange(depths[-1] + 1 if depths.size else 0))]
        # Contigs without reads are not in these files.
        whole = max(statistics["reference_bases"], int(length), 1)
        return {
            **statistics,
            "duplicates": statistics["duplicates"] and int(duplicates),
            "insert_sizes": sizes.tolist(),
            "mean_depth": int(bases) / whole,
            "breadth": 100 * breadth * int(length) / whole,
        }
    except (ValueError, IndexError):
        raise InputError(
            f"{Path(folder, sample)}.*: not the files of bwarp map --qc: map the reads again"
        ) from None


def _rows(path: Path, first: str) -> list[list[str]]:
    """Return the other cells of the lines with this first cell."""
    with open(path, errors="replace") as file:
        lines = (line.rstrip("\n").split("\t") for line in file)
        return [cells for name, *cells in lines if name == first]

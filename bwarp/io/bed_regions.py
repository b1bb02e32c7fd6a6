"""Read regions of a genome from BED."""

import os
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bwarp.counted import counted
from bwarp.errors import InputError
from bwarp.io.compressed_files import read_blocks
from bwarp.reference import Reference


class Region(NamedTuple):
    """A region in positions of the concatenated contigs, and its name, which may be empty."""

    start: int
    stop: int
    name: str


def read_regions(path: str | os.PathLike, reference: Reference) -> list[tuple[int, int]]:
    """Return the regions in a BED file as positions of the genome; see `read_named_regions`."""
    regions = read_named_regions(path, reference.names, reference.contig_starts)
    return [(region.start, region.stop) for region in regions]


def read_named_regions(
    path: str | os.PathLike, contig_names: Sequence[str], contig_starts: np.ndarray
) -> list[Region]:
    """Return the regions in a BED file.

    Parameters
    ----------
    path : path-like
    contig_names : sequence of str
    contig_starts : ndarray, shape=(n_contigs + 1,), dtype=int64
        Starts of the concatenated contigs, and the end of the last.

    Raises
    ------
    InputError
        If a line is not BED, or its contig does not exist or has fewer bases.
    """
    contigs = {name: i for i, name in enumerate(contig_names)}
    regions = []
    text = b"".join(read_blocks(path)).decode("utf-8", "replace")
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or re.match(r"#|track\b|browser\b", line):
            continue
        cells = line.split("\t")
        if len(cells) < 3 or not all(re.fullmatch("[0-9]{1,18}", cell) for cell in cells[1:3]):
            raise InputError(
                f"{path}, line {number}: not BED: write contig, start and end, separated by tabs"
            )
        name, start, stop = cells[0], int(cells[1]), int(cells[2])
        if name not in contigs:
            raise InputError(
                f"{path}, line {number}: no contig {name} in the reference: its first contig is "
                f"{contig_names[0]}"
            )
        begin, end = contig_starts[contigs[name] : contigs[name] + 2].tolist()
        if not start < stop <= end - begin:
            raise InputError(
                f"{path}, line {number}: {name} has {counted(end - begin, 'base')}: the start must "
                f"be less than the end, and the end at most {end - begin:,}"
            )
        regions.append(
            Region(begin + start, begin + stop, cells[3].strip() if len(cells) > 3 else "")
        )
    if not regions:
        raise InputError(f"{path}: no regions: write contig, start and end, separated by tabs")
    return regions


def overlap_any(
    starts: np.ndarray, stops: np.ndarray, lefts: np.ndarray, rights: np.ndarray
) -> np.ndarray:
    """Return which intervals, from `lefts` to `rights`, overlap any of the regions.

    Parameters
    ----------
    starts, stops : ndarray, shape=(n_regions,), dtype=int64
        Of the regions, each sorted.
    lefts, rights : ndarray, shape=(n,), dtype=int64

    Returns
    -------
    overlap : ndarray, shape=(n,), dtype=bool
    """
    # Regions that start before the right end, less those that stop before the left end.
    return np.searchsorted(starts, rights) > np.searchsorted(stops, lefts, side="right")

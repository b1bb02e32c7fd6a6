"""Sites of guides as tables of columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


class SiteOptions(NamedTuple):
    """Limits of the sites of a guide; see `bwarp.offtargets`.

    Attributes
    ----------
    mismatches : int
        Maximum mismatches, 0 to 6.
    dna_bulge, rna_bulge : int
        Maximum bases in bulges of each kind, 0 to 2.
    all_alignments : bool
        Whether to report every alignment of a site or only the best one.
    """

    mismatches: int = 3
    dna_bulge: int = 0
    rna_bulge: int = 0
    all_alignments: bool = False


@dataclass(frozen=True)
class SiteHits:
    """Alignments of guides to sites.

    Attributes
    ----------
    guides : ndarray, shape=(n,), dtype=int32
    starts : ndarray, shape=(n,), dtype=int64
        The first base of the protospacer in the genome, on the forward strand.
    lengths : ndarray, shape=(n,), dtype=uint8
        The length of the protospacer.
    strands : ndarray, shape=(n,), dtype=uint8
        0: forward, 1: reverse.
    mismatches, dna_bulges, rna_bulges : ndarray, shape=(n,), dtype=uint8
    gaps : ndarray, shape=(n,), dtype=uint32
        The locations of the bulges; see `bwarp.offtargets.alignments`.
    ranks : ndarray, shape=(n,), dtype=uint32
        The rank of the alignment among those of its site; 0 is the best.
    """

    guides: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray
    strands: np.ndarray
    mismatches: np.ndarray
    dna_bulges: np.ndarray
    rna_bulges: np.ndarray
    gaps: np.ndarray
    ranks: np.ndarray

    @property
    def count(self) -> int:
        return len(self.guides)


def taken_hits(hits: SiteHits, rows) -> SiteHits:
    """Select rows by mask, numbers or slice."""
    return SiteHits(*(column[rows] for column in vars(hits).values()))


def joined_hits(parts: Sequence[SiteHits]) -> SiteHits:
    """Concatenate the rows of one or more tables."""
    columns = zip(*(vars(part).values() for part in parts), strict=True)
    # Copies of memory-mapped arrays would have the class numpy.memmap.
    return SiteHits(*(np.concatenate(column).view(np.ndarray) for column in columns))


def no_hits() -> SiteHits:
    """Return a table without rows."""
    types = (np.int32, np.int64, *[np.uint8] * 5, np.uint32, np.uint32)
    return SiteHits(*(np.empty(0, dtype) for dtype in types))

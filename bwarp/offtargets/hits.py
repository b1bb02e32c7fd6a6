"""Sites of guides as tables of columns."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class SiteOptions:
    """What counts as a site of a guide; see `bwarp.offtargets`.

    Attributes
    ----------
    mismatches : int
        At most, 0 to 6.
    dna_bulge, rna_bulge : int
        Bases in bulges of each kind at most, 0 to 2.
    all_alignments : bool
        Whether every alignment of a site has a row, or the best one alone.
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
        Of the protospacer.
    strands : ndarray, shape=(n,), dtype=uint8
        0: forward, 1: reverse.
    mismatches, dna_bulges, rna_bulges : ndarray, shape=(n,), dtype=uint8
    gaps : ndarray, shape=(n,), dtype=uint32
        Where the bulges lie; see `bwarp.offtargets.alignments`.
    ranks : ndarray, shape=(n,), dtype=uint32
        Of the alignment among those of its site: 0 is the best.
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
    """Some rows, by mask, numbers or slice."""
    return SiteHits(*(column[rows] for column in vars(hits).values()))


def joined_hits(parts: Sequence[SiteHits]) -> SiteHits:
    """The rows of one after the other; there is at least one."""
    columns = zip(*(vars(part).values() for part in parts), strict=True)
    # Of arrays in files as well they are arrays in memory that may be written.
    return SiteHits(*(np.array(np.concatenate(column)) for column in columns))

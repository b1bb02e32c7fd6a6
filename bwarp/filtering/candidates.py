"""Candidates, and what the filter made of them."""

from dataclasses import dataclass

import numpy as np

from bwarp.errors import UsageError
from bwarp.filtering.histogram_bound import LONGEST_KMER

__all__ = ["Candidates", "Filtered", "check_kmer_length"]


@dataclass(frozen=True)
class Candidates:
    """Windows of the genome where reads may align.

    Attributes
    ----------
    reads : ndarray, shape=(n,), dtype=int64
        Number of the read of each candidate.
    strands : ndarray, shape=(n,), dtype=uint8
        1 where it is the read's reverse complement that may align, else 0.
    starts, stops : ndarray, shape=(n,), dtype=int64
        The window of the genome, slack for gaps included, at most 65,535 bases.
    max_edits : ndarray, shape=(n,), dtype=int32
        The most edits an alignment may have and be wanted.
    """

    reads: np.ndarray
    strands: np.ndarray
    starts: np.ndarray
    stops: np.ndarray
    max_edits: np.ndarray


@dataclass(frozen=True)
class Filtered:
    """What the filter found.

    Attributes
    ----------
    kept : ndarray, shape=(n,), dtype=bool
        False where no alignment within the allowed edits exists.
    edits : ndarray, shape=(n,), dtype=int32
        No alignment within the allowed edits has fewer edits than this.
    seen, dropped_by_bases, dropped_by_kmers : int
    """

    kept: np.ndarray
    edits: np.ndarray
    seen: int
    dropped_by_bases: int
    dropped_by_kmers: int

    @classmethod
    def of(cls, by_bases: np.ndarray, by_kmers: np.ndarray, max_edits: np.ndarray) -> "Filtered":
        """Join the bounds by bases and by k-mers (int32[n], 0 where not computed)."""
        near = by_bases <= max_edits
        kept = near & (by_kmers <= max_edits)
        return cls(
            kept,
            np.maximum(by_bases, by_kmers),
            kept.size,
            int(near.size - near.sum()),
            int(near.sum() - kept.sum()),
        )


def check_kmer_length(kmer_length: int) -> None:
    """Refuse k-mer lengths whose tables would not fit."""
    if not 0 <= kmer_length <= LONGEST_KMER:
        raise UsageError(
            f"word length {kmer_length} is not from 1 to {LONGEST_KMER}, or 0 for bases alone"
        )

"""Candidates, and what the filter made of them."""

from dataclasses import dataclass

import numpy as np

from bwarp.errors import UsageError
from bwarp.filtering.histogram_bound import LONGEST_WORD

__all__ = ["Candidates", "Filtered", "check_word_length"]


@dataclass(frozen=True)
class Candidates:
    """Places where reads may align.

    Attributes
    ----------
    reads : ndarray, shape=(n,), dtype=int64
        Number of the read of each candidate.
    strands : ndarray, shape=(n,), dtype=uint8
        1 where it is the read's reverse complement that may align, else 0.
    starts, stops : ndarray, shape=(n,), dtype=int64
        The window of the genome, slack for gaps included, at most 65,535 letters.
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
    """What the filter found out.

    Attributes
    ----------
    kept : ndarray, shape=(n,), dtype=bool
        False where no alignment within the allowed edits exists.
    edits : ndarray, shape=(n,), dtype=int32
        No alignment within the allowed edits has fewer edits than this.
    seen, dropped_by_letters, dropped_by_words : int
    """

    kept: np.ndarray
    edits: np.ndarray
    seen: int
    dropped_by_letters: int
    dropped_by_words: int

    @classmethod
    def of(cls, by_letters: np.ndarray, by_words: np.ndarray, max_edits: np.ndarray) -> "Filtered":
        """Put together the bounds by letters and by words (int32[n], 0 where not asked)."""
        near = by_letters <= max_edits
        kept = near & (by_words <= max_edits)
        return cls(
            kept,
            np.maximum(by_letters, by_words),
            kept.size,
            int(near.size - near.sum()),
            int(near.sum() - kept.sum()),
        )


def check_word_length(word_length: int) -> None:
    """Refuse word lengths whose tables would not fit."""
    if not 0 <= word_length <= LONGEST_WORD:
        raise UsageError(
            f"word length {word_length} is not from 1 to {LONGEST_WORD}, or 0 for letters alone"
        )

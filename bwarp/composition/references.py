"""The references of a scan, end to end, and the prefix counts that give any window's bases.

`prefix[x, i]` is how many bases x stand before position i, kept modulo 256 (or 65,536): the
difference of two of them is exact for a window of up to 255 (or 65,535) bases, at one byte a
base and position instead of four.

    codes      A C A N | G A            two references of 4 and 2 bases
    prefix[A]  0 1 1 2 2 2 3            window [0, 4): prefix[A, 4] - prefix[A, 0] = 2
    starts     0         4   6
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from bwarp.io.fastx import SequenceBatch
from bwarp.runtime.compiled_code import compiled

__all__ = ["References", "gather_references", "prefix_counts", "window_count"]


@dataclass(frozen=True)
class References:
    """Reference sequences, end to end.

    Attributes
    ----------
    names : list of str
    codes : ndarray, shape=(total,), dtype=uint8
    starts : ndarray, shape=(n + 1,), dtype=int64
        Reference i is ``codes[starts[i]:starts[i + 1]]``.
    """

    names: list[str]
    codes: np.ndarray
    starts: np.ndarray


def gather_references(batches: Iterable[SequenceBatch]) -> References:
    """All records of a file in memory, end to end."""
    names: list[str] = []
    codes = []
    lengths = []
    for batch in batches:
        names += batch.names()
        codes.append(batch.codes)
        lengths.append(np.diff(batch.offsets))
    return References(
        names,
        np.concatenate(codes) if codes else np.zeros(0, np.uint8),
        np.concatenate([[0], *lengths]).cumsum().astype(np.int64),
    )


def prefix_counts(codes: np.ndarray, dtype) -> np.ndarray:
    """Prefix counts of the four bases.

    Parameters
    ----------
    codes : ndarray, shape=(total,), dtype=uint8
    dtype : numpy.uint8 or numpy.uint16

    Returns
    -------
    prefix : ndarray, shape=(4, total + 1), dtype=dtype
    """
    prefix = np.zeros((4, codes.size + 1), dtype)
    _prefix_counts(codes, prefix)
    return prefix


def window_count(references: References, length: int) -> int:
    """How many windows of `length` bases lie within the references."""
    return int(np.maximum(np.diff(references.starts) - length + 1, 0).sum())


@compiled
def _prefix_counts(codes, prefix):
    for base in range(4):
        count = 0
        for i in range(codes.size):
            count += codes[i] == base
            # Storing keeps the low 8 or 16 bits.
            prefix[base, i + 1] = count

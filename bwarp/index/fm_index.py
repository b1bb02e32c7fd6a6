"""The arrays of an FM-index: Burrows-Wheeler transforms in blocks and a sampled suffix array.

Rows are the sorted suffixes of the text (see `bwarp.reference` for the text). A block contains what
``rank`` needs for `occ_rate` rows, so that one rank reads one block:

    word   0      1      2      3            4     5      6     7     ...
           C      G      T      separators   low   high   low   high
           before the block     * 2 + here?  rows 0-31    rows 32-63

    low, high   the two bits of each row's base (A C G T = 0 1 2 3), row r in bit r % 32

These are ROcc and B of the paper, interleaved (Liu & Schmidt III.A; Drozd's buckets). With the
default rate of 64 a block is 32 bytes: one memory sector of a GPU, half a cache line of a CPU. The
count of A before a block follows from the others. A row whose base is a separator stores 0; the
lowest bit of word 3 indicates that a block has such rows, and the remaining bits are the index of
the first in `separator_rows`. Ranks are therefore exact, and no match contains a separator.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from bwarp.reference import Reference

COUNT_WORDS = 4


class BWTArrays(NamedTuple):
    """The fields of a `BWT` that compiled functions use; loops over single arrays are faster."""

    words: np.ndarray
    separator_rows: np.ndarray
    groups: tuple[int, ...]
    first_rows: np.ndarray
    text_start: int


@dataclass(frozen=True)
class BWT:
    """The Burrows-Wheeler transform of one text, ready for rank queries.

    Attributes
    ----------
    blocks : ndarray, shape=(n_rows // occ_rate + 1, 4 + occ_rate // 16), dtype=uint32
    separator_rows : ndarray, shape=(n_separators,), dtype=uint32
        The rows whose base is a separator, in order.
    first_rows : ndarray, shape=(5,), dtype=uint32
        The first rows that begin with A, C, G and T; the last element is the number of rows.
    text_start : int
        The index in `separator_rows` of the row of the whole text.
    """

    blocks: np.ndarray = field(repr=False)
    separator_rows: np.ndarray = field(repr=False)
    first_rows: np.ndarray
    text_start: int

    @property
    def n_rows(self) -> int:
        return int(self.first_rows[4])

    @property
    def occ_rate(self) -> int:
        return (self.blocks.shape[1] - COUNT_WORDS) * 16

    @property
    def words(self) -> np.ndarray:
        """Return the blocks as one flat array, as compiled functions read them."""
        return self.blocks.reshape(-1)

    @property
    def groups(self) -> tuple[int, ...]:
        """The numbers of the 32-row groups of a block.

        The length of this tuple is part of its type and unrolls the loops of compiled functions:
        one source gives a specialised rank for each rate.
        """
        return tuple(range(self.occ_rate // 32))

    @property
    def arrays(self) -> BWTArrays:
        return BWTArrays(
            self.words, self.separator_rows, self.groups, self.first_rows, self.text_start
        )


@dataclass(frozen=True)
class FMIndex:
    """The index of a reference, used for all searches and for locating.

    Attributes
    ----------
    reference : Reference
    forward : BWT
        The BWT of the text, which searches from the last base of a pattern to the first.
    reverse : BWT or None
        The BWT of the reversed text, which searches from the first base to the last. None if not
        requested; `bwarp.index.store` rejects searches that need it.
    prefix_table : ndarray, shape=(4**prefix_length, 2), dtype=uint32
        First row and number of rows, in the forward BWT, of every k-mer of that length.
    suffix_array : ndarray, shape=(ceil(n_rows / sa_rate),), dtype=uint32
        Text positions of the forward rows 0, sa_rate, 2 sa_rate, ... (RSA in the paper).
    sa_rate : int
    start_tables : dict
        See `bwarp.seeding.search_schemes_cpu.start_tables`; filled when first used.
    """

    reference: Reference
    forward: BWT
    reverse: BWT | None
    prefix_table: np.ndarray = field(repr=False)
    suffix_array: np.ndarray = field(repr=False)
    sa_rate: int
    start_tables: dict = field(default_factory=dict, repr=False, compare=False)

    @property
    def prefix_length(self) -> int:
        """The length of the k-mers of the prefix table; 0 if there is none."""
        return (max(len(self.prefix_table), 1).bit_length() - 1) // 2

    @property
    def occ_rate(self) -> int:
        return self.forward.occ_rate

    @property
    def has_reverse(self) -> bool:
        return self.reverse is not None


def block_words(occ_rate: int) -> int:
    """Return the number of 32-bit words per block."""
    return COUNT_WORDS + occ_rate // 16


def first_rows_of(base_counts: np.ndarray) -> np.ndarray:
    """Return first rows from the counts of separators, A, C, G and T (shape=(5,)) in the text."""
    return np.cumsum(base_counts).astype(np.uint32)

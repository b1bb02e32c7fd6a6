"""The table of the SA intervals of all k-mers of a length, counted in the text."""

import numpy as np

from bwarp.index.building.packed_text_cpu import PackedText
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.uncounted import uncounted

__all__ = ["prefix_table"]


def prefix_table(text: PackedText, prefix_length: int) -> np.ndarray:
    """First row and number of rows of every k-mer.

    Returns
    -------
    table : ndarray, shape=(4**prefix_length, 2), dtype=uint32
        A k-mer that does not occur has (0, 0). Without a prefix length, shape=(0, 2).

    Notes
    -----
    Suffixes begin in the order of their k-mers, except those cut short by a separator: such a
    suffix comes just before the first k-mer that continues its bases with A. So a k-mer's first
    row is the number of occurrences of smaller k-mers, plus the short suffixes that, filled up
    with A, are not larger. One pass over the text replaces a search a k-mer.
    """
    if prefix_length == 0:
        return np.empty((0, 2), np.uint32)
    table = np.zeros((4**prefix_length, 2), np.uint32)
    counts = np.zeros(4**prefix_length, np.uint32)
    _count_kmers(text, prefix_length, counts, table)
    _first_rows(counts, table)
    return table


@compiled
def _count_kmers(text, k, counts, table):
    """Count every k-mer, and in the table's column 0 every short suffix, under its k-mer with A.

    The counts lie apart from the table because half the memory is twice as often in the cache.
    """
    text, counts, table = uncounted((text, counts, table))
    mask = (1 << (2 * k)) - 1
    start = 0
    for separator in text.separators:
        kmer = 0
        word = np.uint64(0)
        for position in range(start, separator):
            if position == start or position & 31 == 0:
                word = text.words[position >> 5] << np.uint64(2 * (position & 31))
            kmer = (kmer << 2 | np.int64(word >> np.uint64(62))) & mask
            word <<= np.uint64(2)
            if position - start >= k - 1:
                counts[kmer] += 1
        # The suffixes that begin in the last k - 1 bases before the separator, and at it.
        for bases in range(min(separator - start, k - 1) + 1):
            table[(kmer << (2 * (k - bases))) & mask, 0] += 1
        start = separator + 1


@compiled
def _first_rows(counts, table):
    """Turn counts of short suffixes into first rows, and add the counts of the k-mers."""
    row = np.int64(0)
    for kmer in range(len(table)):
        row += np.int64(table[kmer, 0])
        count = np.int64(counts[kmer])
        table[kmer, 0] = row if count else 0
        table[kmer, 1] = count
        row += count

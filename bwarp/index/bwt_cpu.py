"""Fill the blocks of a Burrows-Wheeler transform from pieces of the suffix array; count k-mers."""

import numpy as np

from bwarp.index.fm_index import BWT, COUNT_WORDS, block_words, first_rows_of
from bwarp.index.packed_text_cpu import PackedText, is_near_separator, next_separator
from bwarp.index.suffix_array_cpu import sample_suffixes, suffixes_in_order
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.simd import population_count, prefetch
from bwarp.runtime.threads import for_each_range
from bwarp.sequence import kmer_at

#: Rows whose bits share a word.
GROUP = 32

#: Consecutive rows read distant positions, so they are prefetched well ahead.
_READ_AHEAD = 48


def make_bwt(
    text: PackedText, occ_rate: int, sa_rate: int, most: int, threads: int = 1
) -> tuple[BWT, np.ndarray]:
    """Make the BWT of a text, and the entries 0, sa_rate, 2 sa_rate, ... of its suffix array.

    Parameters
    ----------
    text : PackedText
    occ_rate : int
        Rows per block, a multiple of 32.
    sa_rate : int
        0 for no entries.
    most : int
        Maximum rows of the suffix array in memory at a time.
    threads : int

    Returns
    -------
    bwt : BWT
    sampled : ndarray, shape=(ceil(n / sa_rate),), dtype=uint32
    """
    blocks = np.zeros((text.size // occ_rate + 1, block_words(occ_rate)), np.uint32)
    # The row of every segment's suffix, which is preceded by a separator.
    segment_rows = np.empty(text.separators.size, np.uint32)
    sampled = np.empty(-(-text.size // sa_rate) if sa_rate else 0, np.uint32)
    sample = sample_suffixes(text, threads)
    for first, positions in suffixes_in_order(text, sample, False, most, threads):
        if sa_rate:
            row = -(-first // sa_rate)
            kept = positions[row * sa_rate - first :: sa_rate]
            sampled[row : row + kept.size] = kept

        def fill(start: int, stop: int, first=first, positions=positions) -> None:
            _fill_blocks(text, first, positions, blocks, segment_rows, start, stop)

        for_each_range(fill, (first + positions.size - 1) // GROUP - first // GROUP + 1, threads)
    separator_rows = np.sort(segment_rows)
    counts = count_before_blocks(blocks, separator_rows, text.size)
    text_start = int(np.searchsorted(separator_rows, segment_rows[0]))
    return BWT(blocks, separator_rows, first_rows_of(counts), text_start), sampled


@compiled(counted=False)
def _fill_blocks(text, first, positions, blocks, segment_rows, start, stop):
    """Set the bits of groups of 32 rows, counted from the group of the piece's first row."""
    groups_a_block = (blocks.shape[1] - COUNT_WORDS) // 2
    for group in range(first // GROUP + start, first // GROUP + stop):
        low, high = np.uint32(0), np.uint32(0)
        begin = max(group * GROUP, first)
        for row in range(begin, min(group * GROUP + GROUP, first + positions.size)):
            ahead = np.int64(positions[min(row - first + _READ_AHEAD, positions.size - 1)])
            prefetch(text.words, max(ahead - 1, 0) >> 5)
            before = np.int64(positions[row - first]) - 1
            segment = np.int64(-1)
            if before < 0:
                segment = 0
            elif is_near_separator(text, before):
                separator = next_separator(text, before)
                if text.separators[separator] == before:
                    segment = separator + 1
            if segment >= 0:
                segment_rows[segment] = row
                continue
            base = np.uint32(kmer_at(text.words, before, 1))
            low |= (base & np.uint32(1)) << np.uint32(row & 31)
            high |= (base >> np.uint32(1)) << np.uint32(row & 31)
        # A group may contain the last rows of one piece and the first of the next.
        word = COUNT_WORDS + 2 * (group % groups_a_block)
        blocks[group // groups_a_block, word] |= low
        blocks[group // groups_a_block, word + 1] |= high


@compiled
def count_before_blocks(blocks, separator_rows, n_rows):
    """Fill the first words of all blocks; return the counts of separators, A, C, G and T."""
    occ_rate = (blocks.shape[1] - COUNT_WORDS) * 16
    counts = np.zeros(5, np.int64)
    for block in range(len(blocks)):
        for letter in range(2, 5):
            blocks[block, letter - 2] = counts[letter]
        before = counts[0]
        while counts[0] < separator_rows.size and (
            separator_rows[counts[0]] < (block + 1) * occ_rate
        ):
            counts[0] += 1
        blocks[block, 3] = 2 * before + (counts[0] > before)
        for word in range(COUNT_WORDS, blocks.shape[1], 2):
            low, high = blocks[block, word], blocks[block, word + 1]
            counts[2] += population_count(np.uint64(low & ~high))
            counts[3] += population_count(np.uint64(~low & high))
            counts[4] += population_count(np.uint64(low & high))
    counts[1] = n_rows - counts[0] - counts[2] - counts[3] - counts[4]
    return counts


# The prefix table: SA intervals of all k-mers of one length, counted in the text.


def prefix_table(text: PackedText, prefix_length: int) -> np.ndarray:
    """Return the first row and number of rows of every k-mer.

    Returns
    -------
    table : ndarray, shape=(4**prefix_length, 2), dtype=uint32
        (0, 0) for k-mers that do not occur. Without a prefix length, shape=(0, 2).

    Notes
    -----
    Suffixes are in the order of their k-mers, except those cut short by a separator: such a suffix
    comes just before the first k-mer that continues its bases with A. The first row of a k-mer is
    therefore the number of occurrences of smaller k-mers, plus the number of short suffixes that,
    padded with A, are not larger. One pass over the text replaces one search per k-mer.
    """
    if prefix_length == 0:
        return np.empty((0, 2), np.uint32)
    table = np.zeros((4**prefix_length, 2), np.uint32)
    counts = np.zeros(4**prefix_length, np.uint32)
    _count_kmers(text, prefix_length, counts, table)
    _first_rows(counts, table)
    return table


@compiled(counted=False)
def _count_kmers(text, k, counts, table):
    """Count every k-mer, and, in column 0 of the table, every short suffix under its k-mer with A.

    Counts are separate from the table, because half the memory is twice as often in the cache.
    """
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
    """Turn counts of short suffixes into first rows, and add the counts of k-mers."""
    row = np.int64(0)
    for kmer in range(len(table)):
        row += np.int64(table[kmer, 0])
        count = np.int64(counts[kmer])
        table[kmer, 0] = row if count else 0
        table[kmer, 1] = count
        row += count

"""From a suffix array to an FM-index, on the CPU: blocks, sampled suffix array, prefix table."""

from collections.abc import Callable

import numba
import numpy as np

from bwarp.index.building.suffix_array_cpu import keep_every, suffix_array
from bwarp.index.fm_index import BWT, block_words, first_rows_of
from bwarp.index.parameters import IndexParameters
from bwarp.runtime.simd import prefetch
from bwarp.runtime.threads import for_each_range, run_together

__all__ = [
    "BACKWARD",
    "FORWARD",
    "build_bwts",
    "make_bwt",
    "prefix_table",
    "reversed_text",
]

FORWARD, BACKWARD = 1, -1

_READ_AHEAD = 48


def build_bwts(
    text: np.ndarray,
    parameters: IndexParameters,
    threads: int = 1,
    done: Callable[[str], None] = lambda step: None,
) -> tuple[BWT, BWT, np.ndarray, np.ndarray]:
    """Everything of an index that is made from its text.

    Parameters
    ----------
    text : ndarray, shape=(n,), dtype=uint8
        0 for a separator, 1 to 4 for A, C, G, T; the last is a separator.
    parameters : IndexParameters
    threads : int
    done : function of str
        Called with every step that is done.

    Returns
    -------
    forward, reverse : BWT
    suffixes : ndarray, shape=(ceil(n / sa_rate),), dtype=uint32
        The sampled suffix array of the text.
    table : ndarray, shape=(4**prefix_length, 2), dtype=uint32
    """

    # Sorting suffixes is work for one thread, so the two directions run side by side. Each gives
    # memory back as soon as it can: two suffix arrays are most of what a build takes.
    half = max(1, threads // 2)

    def forward_part():
        suffixes = suffix_array(text)
        done("suffix array of the text")
        forward = make_bwt(text, suffixes, parameters.occ_rate, FORWARD, half)
        sampled = keep_every(suffixes, parameters.sa_rate)
        return forward, sampled, prefix_table(text, parameters.prefix_length)

    def reverse_part():
        suffixes = suffix_array(reversed_text(text))
        done("suffix array of the reversed text")
        return make_bwt(text, suffixes, parameters.occ_rate, BACKWARD, half)

    (forward, sampled, table), reverse = run_together((forward_part, reverse_part), threads)
    return forward, reverse, sampled, table


def reversed_text(text: np.ndarray) -> np.ndarray:
    """The text read backwards, its last separator still last, dtype uint8."""
    turned = np.empty_like(text)
    turned[:-1] = text[-2::-1]
    turned[-1] = 0
    return turned


def make_bwt(
    text: np.ndarray, suffixes: np.ndarray, occ_rate: int, direction: int, threads: int = 1
) -> BWT:
    """The Burrows-Wheeler transform, in blocks, of a text read in a direction.

    Parameters
    ----------
    text : ndarray, shape=(n,), dtype=uint8
        0 for a separator, 1 to 4 for A, C, G, T; the last is a separator.
    suffixes : ndarray, shape=(n,), dtype=uint32
        The suffix array of the text as it is read: of `reversed_text` for `BACKWARD`.
    occ_rate : int
        Rows a block, a multiple of 32.
    direction : int
        `FORWARD` or `BACKWARD`; the text itself is never turned, for it is large.
    """
    n_blocks = text.size // occ_rate + 1
    blocks = np.zeros((n_blocks, block_words(occ_rate)), np.uint32)
    # Ranges fill their blocks with counts from the range's start; sums over the ranges before
    # are added once they are known.
    edges: list[tuple[int, int, np.ndarray]] = []

    def fill(start: int, stop: int) -> None:
        counts = np.zeros(5, np.int64)
        _fill_blocks(text, direction, suffixes, blocks, start, stop, counts)
        edges.append((start, stop, counts))

    for_each_range(fill, n_blocks, threads)
    edges.sort()
    before = np.zeros((len(edges) + 1, 5), np.int64)
    np.cumsum([counts for _, _, counts in edges], axis=0, out=before[1:])
    separator_rows = np.empty(before[-1, 0], np.uint32)

    def finish(first: int, last: int) -> None:
        for i in range(first, last):
            start, stop, _ = edges[i]
            _finish_blocks(
                text, direction, suffixes, blocks, start, stop, before[i], separator_rows
            )

    for_each_range(finish, len(edges), threads, smallest=1)
    text_start = int(np.flatnonzero(suffixes[separator_rows] == 0)[0])
    return BWT(blocks, separator_rows, first_rows_of(before[-1]), text_start)


def prefix_table(text: np.ndarray, prefix_length: int) -> np.ndarray:
    """First row and number of rows of every k-mer, counted in the text.

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


@numba.njit(cache=True, nogil=True)
def _position_before(text, direction, suffixes, row):
    """Where in the text the base before a suffix lies; before the whole text, the separator.

    Forwards that of suffix 0 is text[-1]; backwards suffix 0 begins left of the last base.
    """
    position = np.int64(suffixes[row])
    return position - 1 if direction == FORWARD else text.size - 1 - position


@numba.njit(cache=True, nogil=True)
def _fill_blocks(text, direction, suffixes, blocks, start, stop, counts):
    """Fill the blocks from `start` to `stop`, counting from the first; leave the counts."""
    n_groups = (blocks.shape[1] - 4) // 2
    for block in range(start, stop):
        blocks[block, 0] = counts[2]
        blocks[block, 1] = counts[3]
        blocks[block, 2] = counts[4]
        separators = counts[0]
        for group in range(n_groups):
            low = np.uint32(0)
            high = np.uint32(0)
            first = (block * n_groups + group) * 32
            for row in range(first, min(first + 32, text.size)):
                # Neighbouring rows read bases far apart, so they are asked for well ahead.
                ahead = min(row + _READ_AHEAD, text.size - 1)
                prefetch(text, _position_before(text, direction, suffixes, ahead))
                base = text[_position_before(text, direction, suffixes, row)]
                counts[base] += 1
                if base:
                    code = np.uint32(base - 1)
                    low |= (code & np.uint32(1)) << np.uint32(row & 31)
                    high |= (code >> np.uint32(1)) << np.uint32(row & 31)
            blocks[block, 4 + 2 * group] = low
            blocks[block, 5 + 2 * group] = high
        blocks[block, 3] = separators * 2 + (counts[0] > separators)


@numba.njit(cache=True, nogil=True)
def _finish_blocks(text, direction, suffixes, blocks, start, stop, before, separator_rows):
    """Add what came before the range to its blocks' counts; list its separator rows."""
    occ_rate = (blocks.shape[1] - 4) * 16
    for block in range(start, stop):
        for word in range(3):
            blocks[block, word] += before[word + 2]
        blocks[block, 3] += 2 * before[0]
        if blocks[block, 3] & 1:
            found = np.int64(blocks[block, 3]) >> 1
            first = block * occ_rate
            for row in range(first, min(first + occ_rate, text.size)):
                if text[_position_before(text, direction, suffixes, row)] == 0:
                    separator_rows[found] = row
                    found += 1


@numba.njit(cache=True, nogil=True)
def _count_kmers(text, k, counts, table):
    """Count every k-mer, and in the table's column 0 every short suffix, under its k-mer with A.

    The counts lie apart from the table because half the memory is twice as often in the cache.
    """
    mask = (1 << (2 * k)) - 1
    kmer = 0
    length = 0
    for i in range(text.size):
        base = text[i]
        if base:
            kmer = ((kmer << 2) | (np.int64(base) - 1)) & mask
            length += 1
            if length >= k:
                counts[kmer] += 1
            continue
        # The suffixes that begin in the last k - 1 bases before the separator, and at it.
        for bases in range(min(length, k - 1) + 1):
            table[(kmer << (2 * (k - bases))) & mask, 0] += 1
        length = 0


@numba.njit(cache=True, nogil=True)
def _first_rows(counts, table):
    """Turn counts of short suffixes into first rows, and add the counts of the k-mers."""
    row = np.int64(0)
    for kmer in range(len(table)):
        row += np.int64(table[kmer, 0])
        count = np.int64(counts[kmer])
        table[kmer, 0] = row if count else 0
        table[kmer, 1] = count
        row += count

"""Check that the arrays of an index are consistent, so that no search or lookup leaves them.

Every index is checked when it is opened, in one pass over the data read anyway.
`bwarp.index.verify` checks more: that the index is that of its text.
"""

import numpy as np

from bwarp.index.fm_index import BWT, COUNT_WORDS
from bwarp.index.rank import load_counts, load_planes
from bwarp.reference import Reference
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.simd import population_count
from bwarp.runtime.threads import for_each_range


def segments_in_order(reference: Reference) -> bool:
    """Return whether the segments are ordered, non-empty, and within contigs."""
    starts = reference.segment_genome.astype(np.int64)
    lengths = np.diff(reference.segment_text) - 1
    if not starts.size or reference.segment_text[0] or lengths.min() < 1:
        return False
    stops = starts + lengths
    if stops[-1] > reference.n_bases or np.any(stops[:-1] > starts[1:]):
        return False
    return bool(np.all(stops <= reference.contig_starts[reference.contig_of(starts) + 1]))


def counts_add_up(bwt: BWT, n_rows: int, threads: int = 1) -> bool:
    """Return whether every count of a BWT is the sum of the bits before it.

    If so, every rank is exact, and no LF step or search leaves the rows.
    """
    blocks, rows = bwt.blocks, bwt.separator_rows
    n_blocks = n_rows // bwt.occ_rate + 1
    first_rows = bwt.first_rows.astype(np.int64)
    if len(blocks) != n_blocks or first_rows[0] != rows.size or first_rows[4] != n_rows:
        return False
    if not 0 <= bwt.text_start < rows.size or np.any(rows[1:] <= rows[:-1]) or rows[-1] >= n_rows:
        return False
    beyond = np.arange(n_rows % bwt.occ_rate, bwt.occ_rate)
    planes = blocks[-1, COUNT_WORDS:].reshape(-1, 2)
    used = (planes[:, 0] | planes[:, 1])[beyond // 32] >> (beyond % 32).astype(np.uint32)
    if np.any(used & 1):
        return False
    parts = for_each_range(
        lambda first, last: _counted(bwt.words, bwt.groups, rows, first, last), n_blocks, threads
    )
    # Each part starts from the counts in its first block, which the previous part must reach.
    before = np.array([[0, 0, 0, 0], *(part[2] for part in parts)])
    totals = [*np.diff(first_rows)[1:], rows.size]
    after = np.array([*(part[1] for part in parts), totals])
    return all(part[0] for part in parts) and np.array_equal(before, after)


def intervals_below(table: np.ndarray, n_rows: int, threads: int = 1) -> bool:
    """Return whether every interval of a prefix table is within the rows."""
    flat = table.reshape(-1)
    ends = for_each_range(lambda first, last: _last_row(flat, first, last), len(table), threads)
    return max(ends, default=0) <= n_rows


@compiled
def _counted(words, groups, separator_rows, first, last):
    """Return whether blocks match their bits, and the counts before and after them."""
    n_groups = np.uint64(len(groups))
    width = np.uint64(COUNT_WORDS) + np.uint64(2) * n_groups
    c, g, t, separator = load_counts(words, groups, np.uint64(first))
    separator >>= np.uint64(1)
    before = np.int64(c), np.int64(g), np.int64(t), np.int64(separator)
    wrong = np.uint64(0)
    for block in range(np.uint64(first), np.uint64(last)):
        c_before, g_before, t_before, word = load_counts(words, groups, block)
        wrong |= (c ^ c_before) | (g ^ g_before) | (t ^ t_before)
        wrong |= separator ^ (word >> np.uint64(1))
        for pair in range((len(groups) + 1) // 2):
            low, high = load_planes(words, groups, block, pair)
            both = population_count(low & high)
            c += population_count(low) - both
            g += population_count(high) - both
            t += both
        if word & np.uint64(1):
            row = block * np.uint64(32) * n_groups
            there = separator
            while separator < np.uint64(separator_rows.size):
                offset = np.uint64(separator_rows[separator]) - row
                if offset >= np.uint64(32) * n_groups:  # a row before this block
                    break
                # Separators are stored as A.
                plane = (
                    block * width + np.uint64(COUNT_WORDS) + np.uint64(2) * (offset >> np.uint64(5))
                )
                both = np.uint64(words[plane] | words[plane + np.uint64(1)])
                wrong |= both >> (offset & np.uint64(31)) & np.uint64(1)
                separator += np.uint64(1)
            wrong |= np.uint64(separator == there)
    after = np.int64(c), np.int64(g), np.int64(t), np.int64(separator)
    return wrong == 0, before, after


@compiled
def _last_row(table, first, last):
    end = np.uint64(0)
    for entry in range(np.uint64(first), np.uint64(last)):
        start = np.uint64(table[np.uint64(2) * entry])
        end = max(end, start + np.uint64(table[np.uint64(2) * entry + np.uint64(1)]))
    return np.int64(end)

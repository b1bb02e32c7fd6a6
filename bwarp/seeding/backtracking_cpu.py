"""Inexact search as the paper has it (Liu & Schmidt III.D): depth first, with a lower bound.

The reverse BWT is searched from the k-mer's first base to its last, trying all four bases at
every base: a search through the tree of strings within so many mismatches. Before, one pass over
the forward BWT, from the last base to the first, finds how many mismatches the bases after
each base need at least: every stretch that does not occur in the text costs one. A branch whose
mismatches and that bound together are more than allowed is left.

The forward rows are carried along (`bwarp.seeding.search_schemes_cpu` says how), so that
hits are located with the one suffix array.
"""

import numpy as np

from bwarp.index.fm_index import FMIndex
from bwarp.index.rank import extend_left, ranks
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.threads import for_each_range
from bwarp.seeding.hits import Intervals, joined
from bwarp.seeding.kmers import PackedKmers, base_of_item

_LONGEST = 64


def search_backtracking(
    index: FMIndex, kmers: np.ndarray, k: int, mismatches: int, threads: int = 1
) -> Intervals:
    """The rows of every string within so many mismatches of a k-mer or its reverse complement.

    Parameters and result are those of `bwarp.seeding.search_schemes_cpu.search_schemes`.
    """
    forward, reverse, packed = index.forward.arrays, index.reverse.arrays, PackedKmers.of(kmers, k)

    def search_items(start: int, stop: int) -> Intervals:
        found = _search(forward, reverse, packed, mismatches, start, stop)
        return Intervals.of_items(*found.T)

    return joined(for_each_range(search_items, 2 * len(kmers), threads, smallest=256))


@compiled
def _least_mismatches(words, separator_rows, groups, first_rows, bases, k, least):
    """The paper's DIFFS: least[i] mismatches are needed in the bases after base i, or more."""
    needed = 0
    low = np.uint64(0)
    high = np.uint64(first_rows[4])
    for i in range(k - 1, -1, -1):
        least[i] = needed
        low, high = extend_left(words, separator_rows, groups, first_rows, bases[i], low, high)
        if low >= high:
            needed += 1
            low = np.uint64(0)
            high = np.uint64(first_rows[4])
    return needed


@compiled
def _search(forward, reverse, kmers, mismatches, start, stop):
    """Search items start to stop; returns item, first row, rows and mismatches of what is found."""
    words, separator_rows, groups, first_rows, _ = forward
    reverse_words, reverse_separators, _, _, _ = reverse
    flat, words_a_kmer, k = kmers
    found = np.empty((1024, 4), np.uint32)
    n_found = 0
    bases = np.empty(_LONGEST, np.uint64)
    least = np.empty(_LONGEST, np.int64)
    # The stack: at each depth the rows of the four longer strings, and which is tried next.
    firsts = np.empty((_LONGEST, 4), np.uint64)
    firsts_reverse = np.empty((_LONGEST, 4), np.uint64)
    rows = np.empty((_LONGEST, 4), np.uint64)
    tried = np.empty(_LONGEST, np.int64)
    errors = np.zeros(_LONGEST + 1, np.int64)
    for item in range(start, stop):
        for position in range(k):
            bases[position] = base_of_item(flat, words_a_kmer, k, item, position)
        needed = _least_mismatches(words, separator_rows, groups, first_rows, bases, k, least)
        if needed > mismatches:
            continue
        depth = 0
        first = np.uint64(0)
        first_reverse = np.uint64(0)
        n_rows = np.uint64(first_rows[4])
        entering = True
        while depth >= 0:
            if entering:
                low = ranks(reverse_words, reverse_separators, groups, first_reverse)
                high = ranks(reverse_words, reverse_separators, groups, first_reverse + n_rows)
                first += n_rows
                for base in range(4):
                    firsts_reverse[depth, base] = np.uint64(first_rows[base]) + low[base]
                    rows[depth, base] = high[base] - low[base]
                    first -= rows[depth, base]
                for base in range(4):
                    firsts[depth, base] = first
                    first += rows[depth, base]
                tried[depth] = 0
                entering = False
            if tried[depth] == 4:
                depth -= 1
                continue
            base = tried[depth]
            tried[depth] += 1
            with_this = errors[depth] + (np.uint64(base) != bases[depth])
            if rows[depth, base] == 0 or with_this + least[depth] > mismatches:
                continue
            if depth == k - 1:
                if n_found == len(found):
                    more = np.empty((2 * n_found, 4), np.uint32)
                    more[:n_found] = found
                    found = more
                found[n_found, 0] = item
                found[n_found, 1] = firsts[depth, base]
                found[n_found, 2] = rows[depth, base]
                found[n_found, 3] = with_this
                n_found += 1
                continue
            first = firsts[depth, base]
            first_reverse = firsts_reverse[depth, base]
            n_rows = rows[depth, base]
            depth += 1
            errors[depth] = with_this
            entering = True
    return found[:n_found]

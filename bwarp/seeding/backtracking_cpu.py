"""Inexact search of the paper (Liu & Schmidt III.D): depth first, with a lower bound.

The search runs through the reverse BWT from the first base of the k-mer to the last and tries all
four bases at each position: a traversal of the tree of strings within the allowed mismatches.
Beforehand, one pass over the forward BWT, from the last base to the first, computes a lower bound
of the mismatches in the bases after each base: every stretch that does not occur in the text costs
one. A branch is abandoned if its mismatches plus this bound exceed the limit.

As in the paper, the search of a k-mer stops as soon as it has more hits than a limit. The k-mer is
searched before its reverse complement, and the bases are tried in the order A, C, G, T.

The forward rows are updated along with the reverse ones (see `bwarp.seeding.search_schemes_cpu`),
so that a single suffix array suffices to locate the hits.
"""

import numpy as np

from bwarp.index.fm_index import FMIndex
from bwarp.index.rank import extend_left, ranks
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.threads import for_each_range
from bwarp.seeding.hits import NO_LIMIT, Intervals, joined
from bwarp.seeding.kmers import PackedKmers, base_of_item

_LONGEST = 64


def search_backtracking(
    index: FMIndex,
    kmers: np.ndarray,
    k: int,
    mismatches: int,
    stops_after: int = NO_LIMIT,
    threads: int = 1,
) -> Intervals:
    """Find the rows of every string within `mismatches` of a k-mer or its reverse complement.

    The other parameters and the result are those of
    `bwarp.seeding.search_schemes_cpu.search_schemes`.

    Parameters
    ----------
    stops_after : int
        The search of a k-mer stops when it has more hits than this; the result then contains
        some of its hits, more than this number.
    """
    forward, reverse, packed = index.forward.arrays, index.reverse.arrays, PackedKmers.of(kmers, k)

    def search_kmers(start: int, stop: int) -> Intervals:
        found = _search(forward, reverse, packed, mismatches, stops_after, start, stop)
        return Intervals.of_items(*found.T)

    return joined(for_each_range(search_kmers, len(kmers), threads, smallest=128))


@compiled
def _least_mismatches(words, separator_rows, groups, first_rows, bases, k, least):
    """Compute DIFFS of the paper: least[i] is a lower bound of the mismatches after base i."""
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
def _search(forward, reverse, kmers, mismatches, stops_after, start, stop):
    """Search k-mers start to stop; return item, first row, rows and mismatches of each result."""
    words, separator_rows, groups, first_rows, _ = forward
    reverse_words, reverse_separators, _, _, _ = reverse
    flat, words_a_kmer, k = kmers
    found = np.empty((1024, 4), np.uint32)
    n_found = 0
    bases = np.empty(_LONGEST, np.uint64)
    least = np.empty(_LONGEST, np.int64)
    # The stack: at each depth, the rows of the four longer strings, and which to try next.
    firsts = np.empty((_LONGEST, 4), np.uint64)
    firsts_reverse = np.empty((_LONGEST, 4), np.uint64)
    rows = np.empty((_LONGEST, 4), np.uint64)
    tried = np.empty(_LONGEST, np.int64)
    errors = np.zeros(_LONGEST + 1, np.int64)
    n_hits = np.int64(0)
    for item in range(2 * start, 2 * stop):
        if item % 2 == 0:
            n_hits = np.int64(0)
        elif n_hits > stops_after:
            continue
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
                n_hits += np.int64(rows[depth, base])
                if n_hits > stops_after:
                    break
                continue
            first = firsts[depth, base]
            first_reverse = firsts_reverse[depth, base]
            n_rows = rows[depth, base]
            depth += 1
            errors[depth] = with_this
            entering = True
    return found[:n_found]

"""Exact search on the CPU: backward search from the prefix table, many k-mers at a time.

A search step reads two blocks at random addresses and waits for both. Therefore `_TOGETHER`
searches are interleaved: each prefetches its next blocks while the others proceed.
"""

from typing import NamedTuple

import numpy as np

from bwarp.index.fm_index import FMIndex
from bwarp.index.rank import block_start, extend_left
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.simd import prefetch
from bwarp.runtime.threads import for_each_range
from bwarp.runtime.uncounted import uncounted
from bwarp.seeding.hits import Intervals
from bwarp.seeding.kmers import PackedKmers
from bwarp.sequence import kmer_at, reverse_complement_kmer

_TOGETHER = 64


def search_exact(index: FMIndex, kmers: np.ndarray, k: int, threads: int = 1) -> Intervals:
    """Find the SA intervals of every k-mer and its reverse complement; see `exact_intervals`."""
    starts, stops = exact_intervals(index, kmers, k, threads)
    found = np.flatnonzero(starts < stops)
    return Intervals.of_items(
        found, starts[found], stops[found] - starts[found], np.zeros(found.size, np.uint8)
    )


def exact_intervals(
    index: FMIndex, kmers: np.ndarray, k: int, threads: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Find the first and last + 1 SA row of k-mer i (at 2 i) and its reverse complement (at 2 i +
    1).

    Parameters
    ----------
    kmers : ndarray, shape=(n, 1 or 2), dtype=uint64
        K-mers, all of length k, packed as in `bwarp.seeding.kmers`.

    Returns
    -------
    starts, stops : ndarray, shape=(2 * n,), dtype=uint32
        Equal if there is no match.
    """
    packed = PackedKmers.of(kmers, k)
    positions = 32 * packed.words_a_kmer * np.arange(len(kmers))
    return kmer_rows(index, packed.words, positions, k, threads, both_strands=True)


def kmer_rows(
    index: FMIndex,
    words: np.ndarray,
    positions: np.ndarray,
    k: int,
    threads: int = 1,
    both_strands: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Find the first SA row and the last + 1 of k-mers of a packed text.

    With `both_strands`, the order is that of `exact_intervals`.

    Parameters
    ----------
    words : ndarray, dtype=uint64
        The text (`bwarp.sequence.pack`).
    positions : ndarray, shape=(n,), dtype=int64
        Where the k-mers begin in the text.
    k : int
        From 1 to 64.

    Returns
    -------
    starts, stops : ndarray, shape=(n,) or (2 * n,), dtype=uint32
        Equal if there is no match.
    """
    strand_bits = int(both_strands)
    starts, stops = np.empty((2, positions.size << strand_bits), np.uint32)
    table_k = index.prefix_length if index.prefix_length <= k else 0
    table = index.prefix_table[: 4**table_k if table_k else 0].reshape(-1)
    bwt, kmers = index.forward.arrays, _Kmers(words, positions, k, strand_bits)
    for_each_range(
        lambda start, stop: _search(bwt, table, table_k, kmers, start, stop, starts, stops),
        starts.size,
        threads,
    )
    return starts, stops


class _Kmers(NamedTuple):
    """K-mers of a text; item i is k-mer i, or, with 1 strand bit, k-mer i // 2 on strand i % 2."""

    words: np.ndarray
    positions: np.ndarray
    k: int
    strand_bits: int


@compiled
def _last_bases(kmers, item, part):
    """Return the last 32 bases of an item (part 0), or those before them (part 1), as a number."""
    words, positions, k, strand_bits = kmers
    first = positions[item >> strand_bits]
    n = min(32, k - 32 * part)
    if item & strand_bits:
        return reverse_complement_kmer(kmer_at(words, first + 32 * part, n), n)
    return kmer_at(words, first + k - 32 * part - n, n)


@compiled
def _search(bwt, table, table_k, kmers, start, stop, starts, stops):
    """Search items start to stop."""
    bwt, table, kmers, starts, stops = uncounted((bwt, table, kmers, starts, stops))
    words, separator_rows, groups, first_rows, _ = bwt
    k = kmers.k
    low = np.empty(_TOGETHER, np.uint64)
    high = np.empty(_TOGETHER, np.uint64)
    bases = np.empty(_TOGETHER, np.uint64)
    active = np.empty(_TOGETHER, np.uint64)
    in_table = (np.uint64(1) << np.uint64(2 * table_k)) - np.uint64(1)
    for first in range(start, stop, _TOGETHER):
        n = min(_TOGETHER, stop - first)
        for j in range(n):
            bases[j] = _last_bases(kmers, first + j, 0)
            low[j] = 0
            high[j] = first_rows[4]
        if table_k:
            for j in range(n):
                low[j] = np.uint64(2) * (bases[j] & in_table)
                bases[j] >>= np.uint64(2 * table_k)
                prefetch(table, np.int64(low[j]))
            for j in range(n):
                entry = low[j]
                low[j] = table[entry]
                high[j] = low[j] + np.uint64(table[entry + np.uint64(1)])
                prefetch(words, np.int64(block_start(groups, low[j])))
                prefetch(words, np.int64(block_start(groups, high[j])))
        # A list of the remaining searches, because branches on which ones remain are unpredictable.
        n_active = np.uint64(0)
        for j in range(n):
            if low[j] < high[j]:
                active[n_active] = j
                n_active += np.uint64(1)
        for step in range(table_k, k):
            if step == 32:
                for j in range(n):
                    bases[j] = _last_bases(kmers, first + j, 1)
            still = np.uint64(0)
            for i in range(n_active):
                j = active[i]
                code = bases[j] & np.uint64(3)
                bases[j] >>= np.uint64(2)
                new_low, new_high = extend_left(
                    words, separator_rows, groups, first_rows, code, low[j], high[j]
                )
                low[j], high[j] = new_low, new_high
                prefetch(words, np.int64(block_start(groups, new_low)))
                prefetch(words, np.int64(block_start(groups, new_high)))
                active[still] = j
                still += np.uint64(new_low < new_high)
            n_active = still
        for j in range(n):
            starts[first + j] = low[j]
            stops[first + j] = max(low[j], high[j])

"""Find the rows of k-mers of a packed text on the CPU, many searches at a time."""

import numpy as np

from bwarp.index.fm_index import FMIndex
from bwarp.index.rank import block_start, extend_left
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.simd import prefetch
from bwarp.runtime.threads import for_each_range
from bwarp.runtime.uncounted import uncounted
from bwarp.sequence import kmer_at

# Searches that are interleaved so that their cache misses overlap.
_TOGETHER = 64


def kmer_rows(
    index: FMIndex, words: np.ndarray, positions: np.ndarray, k: int, threads: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Find the first row and last row + 1, in the forward BWT, of k-mers of a packed text.

    Parameters
    ----------
    words : ndarray, dtype=uint64
        The text (`bwarp.sequence.pack`).
    positions : ndarray, shape=(n,), dtype=int64
        Where the k-mers begin in the text.
    k : int
        From 1 to 32.

    Returns
    -------
    starts, stops : ndarray, shape=(n,), dtype=uint32
        Equal if a k-mer does not occur.
    """
    starts = np.empty(positions.size, np.uint32)
    stops = np.empty_like(starts)
    bwt = index.forward.arrays
    table_k = index.prefix_length if index.prefix_length <= k else 0
    table = index.prefix_table.reshape(-1)
    for_each_range(
        lambda start, stop: _search(
            bwt, table, table_k, words, positions[start:stop], k, starts[start:stop],
            stops[start:stop],
        ),
        positions.size,
        threads,
    )  # fmt: skip
    return starts, stops


@compiled
def _search(bwt, table, table_k, words, positions, k, starts, stops):
    bwt, table, words = uncounted((bwt, table, words))
    blocks, separator_rows, groups, first_rows, _ = bwt
    low = np.empty(_TOGETHER, np.uint64)
    high = np.empty(_TOGETHER, np.uint64)
    bases = np.empty(_TOGETHER, np.uint64)
    in_table = (np.uint64(1) << np.uint64(2 * table_k)) - np.uint64(1)
    for first in range(0, positions.size, _TOGETHER):
        n = min(_TOGETHER, positions.size - first)
        for j in range(n):
            bases[j] = kmer_at(words, positions[first + j], k)
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
                prefetch(blocks, np.int64(block_start(groups, low[j])))
                prefetch(blocks, np.int64(block_start(groups, high[j])))
        for _ in range(table_k, k):
            for j in range(n):
                if low[j] < high[j]:
                    code = bases[j] & np.uint64(3)
                    bases[j] >>= np.uint64(2)
                    low[j], high[j] = extend_left(
                        blocks, separator_rows, groups, first_rows, code, low[j], high[j]
                    )
                    prefetch(blocks, np.int64(block_start(groups, low[j])))
                    prefetch(blocks, np.int64(block_start(groups, high[j])))
        for j in range(n):
            starts[first + j] = low[j]
            stops[first + j] = max(low[j], high[j])

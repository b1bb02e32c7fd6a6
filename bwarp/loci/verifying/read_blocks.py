"""Reads as bits in the blocks that the genome has (`bwarp.mapping.reads.base_bits_cpu`).

Every stretch of a read is compared with the genome many times while loci are verified: turned
into bits once, 64 bases of each are compared in a dozen steps.
"""

import numba
import numpy as np

from bwarp.mapping.reads.base_bits_cpu import bits_at, bits_of_codes
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.simd import population_count

__all__ = ["blocks_of", "differing", "mismatches"]

_inlined = numba.njit(nogil=True, forceinline=True)


def blocks_of(codes: np.ndarray) -> np.ndarray:
    """Blocks of codes, and two more of ambiguous bases: shape=(3 * n_blocks,), dtype=uint64."""
    n_blocks = codes.size // 64 + 3
    blocks = np.empty(3 * n_blocks, np.uint64)
    _turn(codes, n_blocks, blocks)
    return blocks


@compiled
def _turn(codes, n_blocks, blocks):
    for block in range(n_blocks):
        n = min(np.int64(64), codes.size - 64 * block)
        low = high = np.uint64(0)
        ambiguous = ~np.uint64(0)
        if n > 0:
            inside = ~np.uint64(0) >> np.uint64(64 - n)
            low, high, ambiguous = bits_of_codes(codes, 64 * block, n)
            low, high, ambiguous = low & inside, high & inside, ambiguous | ~inside
        blocks[3 * block], blocks[3 * block + 1], blocks[3 * block + 2] = low, high, ambiguous


@_inlined
def differing(blocks, at, others, other_at):
    """Which of 64 bases differ from 64 others, or are ambiguous: a bit each, the first lowest."""
    low, high, ambiguous = bits_at(blocks, at)
    other_low, other_high, other_ambiguous = bits_at(others, other_at)
    return low ^ other_low | high ^ other_high | ambiguous | other_ambiguous


@_inlined
def mismatches(blocks, at, others, other_at, n):
    """How many of n bases differ from n others."""
    count = np.int64(0)
    for i in range(0, n, 64):
        bits = differing(blocks, at + i, others, other_at + i)
        if n - i < 64:
            bits &= (np.uint64(1) << np.uint64(n - i)) - np.uint64(1)
        count += np.int64(population_count(bits))
    return count

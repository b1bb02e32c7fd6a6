"""Reads as bits in the blocks that the genome has (`bwarp.mapping.reads.base_bits_cpu`).

Every stretch of a read is compared with the genome many times while loci are verified: turned
into bits once, 64 bases of each are compared in a dozen steps.
"""

import numba
import numpy as np

from bwarp.runtime.simd import VECTOR_BYTES, equal, fill, greater, load, mask_bits, population_count

__all__ = ["blocks_of", "differing", "mismatches"]

_inlined = numba.njit(nogil=True, forceinline=True)


def blocks_of(codes: np.ndarray) -> np.ndarray:
    """Blocks of codes, and two more of ambiguous bases: shape=(3 * n_blocks,), dtype=uint64."""
    n_blocks = codes.size // 64 + 3
    blocks = np.empty(3 * n_blocks, np.uint64)
    _turn(codes, n_blocks, blocks)
    return blocks


@numba.njit(cache=True, nogil=True)
def _turn(codes, n_blocks, blocks):
    whole = codes.size // 64
    for block in range(whole):
        low = high = ambiguous = np.uint64(0)
        for part in range(0, 64, VECTOR_BYTES):
            bases = load(codes, 64 * block + part)
            three = np.uint64(mask_bits(equal(bases, fill(np.uint8(3)))))
            one = np.uint64(mask_bits(equal(bases, fill(np.uint8(1))))) | three
            two = np.uint64(mask_bits(equal(bases, fill(np.uint8(2))))) | three
            more = np.uint64(mask_bits(greater(bases, fill(np.uint8(3)))))
            low |= one << np.uint64(part)
            high |= two << np.uint64(part)
            ambiguous |= more << np.uint64(part)
        blocks[3 * block], blocks[3 * block + 1], blocks[3 * block + 2] = low, high, ambiguous
    for block in range(whole, n_blocks):
        low = high = np.uint64(0)
        ambiguous = ~np.uint64(0)
        for i in range(64 * block, min(64 * block + 64, codes.size)):
            code, bit = np.uint64(codes[i]), np.uint64(i & 63)
            if code < 4:
                low |= (code & np.uint64(1)) << bit
                high |= (code >> np.uint64(1)) << bit
                ambiguous ^= np.uint64(1) << bit
        blocks[3 * block], blocks[3 * block + 1], blocks[3 * block + 2] = low, high, ambiguous


@_inlined
def _bits_at(blocks, first, shift):
    """64 bits of a plane from bit `shift` (0 to 63) of a word on; the next word is 3 further."""
    return blocks[first] >> shift | blocks[first + np.uint64(3)] << np.uint64(1) << (
        np.uint64(63) - shift
    )


@_inlined
def differing(blocks, at, others, other_at):
    """Which of 64 bases differ from 64 others, or are ambiguous: a bit each, the first lowest."""
    first = np.uint64(3) * (np.uint64(at) >> np.uint64(6))
    shift = np.uint64(at) & np.uint64(63)
    other_first = np.uint64(3) * (np.uint64(other_at) >> np.uint64(6))
    other_shift = np.uint64(other_at) & np.uint64(63)
    one, two = np.uint64(1), np.uint64(2)
    low = _bits_at(blocks, first, shift) ^ _bits_at(others, other_first, other_shift)
    high = _bits_at(blocks, first + one, shift) ^ _bits_at(others, other_first + one, other_shift)
    return (
        low
        | high
        | _bits_at(blocks, first + two, shift)
        | _bits_at(others, other_first + two, other_shift)
    )


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

"""Bases as bits on the card, 32 a block, so that 32 are compared at a time wherever they begin.

    block      words   0                1                 2            3
                       low bits of 32   high bits of 32   ambiguous    unused      base i: bit i

A block is one load of 16 bytes; 32 bases that begin anywhere take two, side by side.
"""

import numpy as np
from numba import cuda, uint32, uint64
from numba.cuda import types

from bwarp.ptx import load_uint32x4

__all__ = ["KERNEL_SIGNATURES", "base_blocks", "differing"]

#: Threads a block of a kernel.
BLOCK = 128

_WARP = 32
_ALL_LANES = 0xFFFFFFFF


def base_blocks(codes):
    """Blocks of codes (device array, uint8): device array, dtype=uint32.

    There are two blocks more than bases need, of ambiguous ones.
    """
    n_blocks = codes.size // _WARP + 3
    blocks = cuda.device_array(4 * n_blocks, np.uint32)
    fill_blocks[-(-n_blocks * _WARP // BLOCK), BLOCK](codes, n_blocks, blocks)
    return blocks


@cuda.jit(cache=True)
def fill_blocks(codes, n_blocks, blocks):
    """One warp a block, a thread a base."""
    i = cuda.grid(1)
    if i // _WARP >= n_blocks:
        return
    code = uint32(4)
    if i < codes.size:
        code = uint32(codes[i])
    low = cuda.ballot_sync(_ALL_LANES, (code & uint32(1)) != 0)
    high = cuda.ballot_sync(_ALL_LANES, (code & uint32(2)) != 0)
    ambiguous = cuda.ballot_sync(_ALL_LANES, code > uint32(3))
    if cuda.laneid == 0:
        first = uint64(4) * (uint64(i) >> uint64(5))
        blocks[first] = uint32(low)
        blocks[first + uint64(1)] = uint32(high)
        blocks[first + uint64(2)] = uint32(ambiguous)
        blocks[first + uint64(3)] = uint32(0)


@cuda.jit(device=True)
def shifted(word, following, shift):
    """32 bits of two neighbouring words, from bit `shift` (0 to 31) of the first on."""
    return uint32((uint64(word) | uint64(following) << uint64(32)) >> uint64(shift))


@cuda.jit(device=True)
def differing(blocks, at, others, other_at):
    """Which of 32 bases differ from 32 others, or are ambiguous: a bit each, the first lowest."""
    first = uint64(4) * (uint64(at) >> uint64(5))
    shift = uint32(at) & uint32(31)
    low, high, ambiguous, _ = load_uint32x4(blocks, first)
    low_after, high_after, ambiguous_after, _ = load_uint32x4(blocks, first + uint64(4))
    other_first = uint64(4) * (uint64(other_at) >> uint64(5))
    other_shift = uint32(other_at) & uint32(31)
    other_low, other_high, other_ambiguous, _ = load_uint32x4(others, other_first)
    low_next, high_next, ambiguous_next, _ = load_uint32x4(others, other_first + uint64(4))
    low = shifted(low, low_after, shift) ^ shifted(other_low, low_next, other_shift)
    high = shifted(high, high_after, shift) ^ shifted(other_high, high_next, other_shift)
    ambiguous = shifted(ambiguous, ambiguous_after, shift) | shifted(
        other_ambiguous, ambiguous_next, other_shift
    )
    return uint32(low | high | ambiguous)


#: The argument types that every kernel is compiled with.
KERNEL_SIGNATURES = {fill_blocks: (types.uint8[::1], types.int64, types.uint32[::1])}

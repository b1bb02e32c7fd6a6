"""Lower bounds of edits on the GPU: the rules of candidates_cpu.

Each function runs in one thread and compares 32 bases at a time.
"""

from typing import NamedTuple

from bwarp.allmap.candidates_cpu import HISTOGRAM, KMERS
from bwarp.allmap.histogram_cuda import least_unmatched
from bwarp.gpu.cuda import cuda, int64, uint32, uint64
from bwarp.gpu.ptx import load_uint32x4
from bwarp.reads.base_bits_cuda import shifted

_FIRST_BASES = 0x11111111


class ItemLimits(NamedTuple):
    """`bwarp.allmap.candidates_cpu.ItemLimits`; the fields are int64."""

    first: object
    length: object
    edits: object
    gaps: object


def last_bounded(n_bases: int) -> int:
    """Return the last diagonal far enough from the end of the genome for the bounds, as in
    candidates_cpu, for a read without bases or gaps.
    """
    return 64 * (n_bases // 64 - 2)


@cuda.jit(device=True)
def bound_exceeded(which, text, diagonal, reads, item):
    """Do what `bwarp.allmap.candidates_cpu.bound_exceeded` does; `which` as in its `Bounds`."""
    if diagonal < item.gaps or diagonal > text.last_bounded - item.length - item.gaps:
        return 0
    if which & KMERS and (
        least_kmers_spoiled(text.blocks, diagonal, reads, item, item.edits) > item.edits
    ):
        return KMERS
    if which & HISTOGRAM and (
        least_unmatched(text.blocks, diagonal, reads, item, item.edits) > item.edits
    ):
        return HISTOGRAM
    return 0


@cuda.jit(device=True)
def least_kmers_spoiled(genome, diagonal, reads, item, most):
    """Do what `bwarp.allmap.candidates_cpu.least_kmers_spoiled` does.

    Reads the bases of the read, and slightly more of the genome, once each.
    """
    first, length, _, gaps = item
    spoiled = int64(0)
    for at in range(0, length - 3, 32):
        block = uint64(4) * (uint64(first + at) >> uint64(5))
        shift = uint32(first + at) & uint32(31)
        low, high, ambiguous, _ = load_uint32x4(reads, block)
        low_after, high_after, ambiguous_after, _ = load_uint32x4(reads, block + uint64(4))
        low = shifted(low, low_after, shift)
        high = shifted(high, high_after, shift)
        ambiguous = shifted(ambiguous, ambiguous_after, shift)
        # The bases of the genome from the first diagonal on: 64, and 32 more.
        window = diagonal + at - gaps
        block = uint64(4) * (uint64(window) >> uint64(5))
        shift = uint32(window) & uint32(31)
        low_0, high_0, _, _ = load_uint32x4(genome, block)
        low_1, high_1, _, _ = load_uint32x4(genome, block + uint64(4))
        low_2, high_2, _, _ = load_uint32x4(genome, block + uint64(8))
        lows = uint64(shifted(low_0, low_1, shift))
        lows |= uint64(shifted(low_1, low_2, shift)) << uint64(32)
        highs = uint64(shifted(high_0, high_1, shift))
        highs |= uint64(shifted(high_1, high_2, shift)) << uint64(32)
        more_lows, more_highs = uint64(0), uint64(0)
        if gaps > 16:
            low_3, high_3, _, _ = load_uint32x4(genome, block + uint64(12))
            more_lows = uint64(shifted(low_2, low_3, shift))
            more_highs = uint64(shifted(high_2, high_3, shift))
        kmers = uint32(_FIRST_BASES)
        for _ in range(2 * gaps + 1):
            wrong = (low ^ uint32(lows & uint64(0xFFFFFFFF))) | ambiguous
            wrong |= high ^ uint32(highs & uint64(0xFFFFFFFF))
            wrong |= wrong >> uint32(2)
            wrong |= wrong >> uint32(1)
            kmers = uint32(kmers & wrong)
            lows = lows >> uint64(1) | more_lows << uint64(63)
            highs = highs >> uint64(1) | more_highs << uint64(63)
            more_lows >>= uint64(1)
            more_highs >>= uint64(1)
        n = (length - at) >> 2
        if n < 8:
            kmers &= (uint32(1) << uint32(4 * n)) - uint32(1)
        spoiled += int64(cuda.popc(kmers))
        if spoiled > most:
            break
    return spoiled

"""Bases as bits on the GPU, in blocks of 32, to compare 32 bases at a time at any position.

    block      32 bits 0                1                 2            3
                       low bits of 32   high bits of 32   ambiguous    unused      base i: bit i

A block is one load of 16 bytes; 32 bases at any position take two adjacent blocks.
"""

import numpy as np

from bwarp.gpu.cuda import cuda, int32, int64, uint8, uint32, uint64
from bwarp.gpu.device_arrays import zeros
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import ALL_LANES, WARP, launch
from bwarp.gpu.memory_pool import cut
from bwarp.gpu.ptx import load_uint32x4
from bwarp.gpu.sums_and_sorts import exclusive_sum, greatest
from bwarp.gpu.transfers import to_host


def base_blocks(codes):
    """Convert codes (device array, uint8) to blocks: device array, dtype=uint32.

    Two blocks of ambiguous bases follow the last base.
    """
    n_blocks = codes.size // WARP + 3
    blocks = cuda.device_array(4 * n_blocks, np.uint32)
    fill_blocks[launch(n_blocks * WARP)](codes, n_blocks, blocks)
    return blocks


def blocks_of_packed(packed, n_bases: int, stretches: np.ndarray):
    """Convert a packed genome to blocks on the GPU, without an intermediate byte per base.

    Parameters
    ----------
    packed : device array, shape=(n_bases / 32 rounded up,), dtype=uint64
        2 bits per base in the layout of `bwarp.sequence.pack`.
    stretches : ndarray, shape=(n, 2), dtype=int64
        Starts and ends of stretches of ambiguous bases.
    """
    n_blocks = n_bases // WARP + 3
    blocks = cuda.device_array(4 * n_blocks, np.uint32)
    turn_words[launch(n_blocks)](packed, n_bases, n_blocks, blocks)
    if len(stretches):
        starts, stops = (cuda.to_device(np.ascontiguousarray(stretches[:, i])) for i in (0, 1))
        mark_ambiguous[len(stretches), 4 * WARP](starts, stops, blocks)
    return blocks


def copy_bases(blocks, starts, lengths):
    """Copy stretches of bases from blocks, concatenated, one byte per base.

    Parameters
    ----------
    starts, lengths : device arrays, shape=(count,), dtype=int64 and int32
        Start and length of each stretch. The sum of the lengths is less than 2**32.

    Returns
    -------
    codes : device array, shape=(n_copied,), dtype=uint8
    copied_starts : device array, shape=(count,), dtype=int64
        Start of each stretch in `codes`.
    longest : int
        The maximum length.
    """
    count = lengths.size
    # The maximum length follows the last sum, so that the host copies both at once.
    numbers = zeros(count + 2, np.uint32)
    sums, greatest_length = (
        cut(numbers, 4 * begin, size, np.uint32) for begin, size in ((0, count + 1), (count + 1, 1))
    )
    count_bases[launch(count)](lengths, sums, greatest_length)
    exclusive_sum(sums)
    [both] = to_host([cut(numbers, 4 * count, 2, np.uint32)])
    n_copied, longest = map(int, both)
    codes = cuda.device_array(max(1, n_copied), np.uint8)
    copied_starts = cuda.device_array(count, np.int64)
    write_bases[launch(count * WARP)](blocks, starts, lengths, sums, codes, copied_starts)
    return codes, copied_starts, longest


@kernel
def turn_words(packed: uint64[::1], n_bases: int, n_blocks: int, blocks: uint32[::1]):
    """Convert packed bases to blocks. One thread per block: one word read, one block written.

    The first base is in the two highest bits of a word, and in the lowest bits of a block.
    """
    i = cuda.grid(1)
    if i >= n_blocks:
        return
    word = uint64(0)
    if i < packed.size:
        word = uint64(cuda.brev(packed[i]))
    # After reversal, the high bit of a base comes first.
    high, low = even_bits(word), even_bits(word >> uint64(1))
    here = n_bases - int64(i) * WARP
    ambiguous = uint32(0)
    if here < WARP:
        ambiguous = uint32(uint64(0xFFFFFFFF) << uint64(max(here, int64(0))))
    first = uint64(4) * uint64(i)
    blocks[first] = low & ~ambiguous
    blocks[first + uint64(1)] = high & ~ambiguous
    blocks[first + uint64(2)] = ambiguous
    blocks[first + uint64(3)] = uint32(0)


@cuda.jit(device=True)
def even_bits(word):
    """Return bits 0, 2, 4, ... of a word, packed."""
    word &= uint64(0x5555555555555555)
    word = (word | (word >> uint64(1))) & uint64(0x3333333333333333)
    word = (word | (word >> uint64(2))) & uint64(0x0F0F0F0F0F0F0F0F)
    word = (word | (word >> uint64(4))) & uint64(0x00FF00FF00FF00FF)
    word = (word | (word >> uint64(8))) & uint64(0x0000FFFF0000FFFF)
    return uint32(word | (word >> uint64(16)))


@kernel
def mark_ambiguous(starts: int64[::1], stops: int64[::1], blocks: uint32[::1]):
    """Mark stretches of bases. One thread block per stretch; a thread marks some of its blocks.

    Two stretches may share a block, so bits are set by atomic operations.
    """
    start, stop = starts[cuda.blockIdx.x], stops[cuda.blockIdx.x]
    first, last = start // WARP, (stop - 1) // WARP
    for i in range(first + cuda.threadIdx.x, last + 1, cuda.blockDim.x):
        marked = uint32(0xFFFFFFFF)
        if i == first:
            marked &= uint32(uint64(0xFFFFFFFF) << uint64(start & 31))
        if i == last:
            marked &= uint32(uint64(0xFFFFFFFF) >> uint64(31 - ((stop - 1) & 31)))
        cuda.atomic.or_(blocks, 4 * i + 2, marked)


@kernel
def count_bases(lengths: int32[::1], counts: uint32[::1], longest: uint32[::1]):
    """Copy lengths as counts to sum, and find the maximum. One thread per length, one atomic
    operation per warp."""
    i = cuda.grid(1)
    length = int32(0)
    if i < lengths.size:
        length = lengths[i]
        counts[i] = uint32(length)
    length = greatest(length)
    if cuda.laneid == 0:
        cuda.atomic.max(longest, 0, uint32(length))


@kernel
def write_bases(
    blocks: uint32[::1], starts: int64[::1], lengths: int32[::1], sums: uint32[::1],
    codes: uint8[::1], copied_starts: int64[::1],
):  # fmt: skip
    """Write the bases of stretches. One warp per stretch, every 32nd base per thread; the threads
    of a warp read one or two blocks."""
    i = cuda.grid(1) // WARP
    if i >= lengths.size:
        return
    copied_start = int64(sums[i])
    if cuda.laneid == 0:
        copied_starts[i] = copied_start
    for step in range(cuda.laneid, lengths[i], WARP):
        codes[copied_start + step] = base_at(blocks, starts[i] + step)


@cuda.jit(device=True)
def base_at(blocks, at):
    """Return the code of a base."""
    first = uint64(4) * (uint64(at) >> uint64(5))
    bit = uint32(at) & uint32(31)
    low, high, ambiguous, _ = load_uint32x4(blocks, first)
    code = ((low >> bit) & uint32(1)) | (((high >> bit) & uint32(1)) << uint32(1))
    return uint8(4) if (ambiguous >> bit) & uint32(1) else uint8(code)


@kernel
def fill_blocks(codes: uint8[::1], n_blocks: int, blocks: uint32[::1]):
    """Fill the blocks. One warp per block, one thread per base."""
    i = cuda.grid(1)
    if i // WARP >= n_blocks:
        return
    code = uint32(4)
    if i < codes.size:
        code = uint32(codes[i])
    low = cuda.ballot_sync(ALL_LANES, (code & uint32(1)) != 0)
    high = cuda.ballot_sync(ALL_LANES, (code & uint32(2)) != 0)
    ambiguous = cuda.ballot_sync(ALL_LANES, code > uint32(3))
    if cuda.laneid == 0:
        first = uint64(4) * (uint64(i) >> uint64(5))
        blocks[first] = uint32(low)
        blocks[first + uint64(1)] = uint32(high)
        blocks[first + uint64(2)] = uint32(ambiguous)
        blocks[first + uint64(3)] = uint32(0)


@cuda.jit(device=True)
def shifted(word, following, shift):
    """Return 32 bits of two neighbouring words, from bit `shift` (0 to 31) of the first on."""
    return uint32((uint64(word) | uint64(following) << uint64(32)) >> uint64(shift))


@cuda.jit(device=True)
def shifted_64(word, following, shift):
    """Return 64 bits of two neighbouring words, from bit `shift` (0 to 63) of the first on."""
    following = uint64(following) << uint64(1)
    return uint64(word >> shift | following << (uint64(63) - shift))


@cuda.jit(device=True)
def bits_at(blocks, at):
    """Return low bits, high bits and ambiguity of 64 bases from any position on: three blocks."""
    first = uint64(4) * (uint64(at) >> uint64(5))
    shift = uint64(at) & uint64(31)
    low, high, ambiguous, _ = load_uint32x4(blocks, first)
    low_2, high_2, ambiguous_2, _ = load_uint32x4(blocks, first + uint64(4))
    low_3, high_3, ambiguous_3, _ = load_uint32x4(blocks, first + uint64(8))
    half = uint64(32)
    return (
        shifted_64(uint64(low) | uint64(low_2) << half, low_3, shift),
        shifted_64(uint64(high) | uint64(high_2) << half, high_3, shift),
        shifted_64(uint64(ambiguous) | uint64(ambiguous_2) << half, ambiguous_3, shift),
    )


@cuda.jit(device=True)
def differing(blocks, at, others, other_at):
    """Return a mask of 32 bases that differ from 32 others or are ambiguous, the first lowest."""
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

"""The lower bound of edits from base counts on the GPU: the rules of histogram_cpu.

The sum before a block of 32 bases is the fourth word of the block, so that one load of 16 bytes
gives the sum before any base.
"""

from bwarp.allmap.histogram_cpu import piece_length
from bwarp.gpu.cuda import cuda, int64, uint32, uint64
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import launch
from bwarp.gpu.ptx import load_uint32x4
from bwarp.gpu.sums_and_sorts import exclusive_sum

_WORDS, _SUM = 4, 3


def sum_bases(blocks) -> None:
    """Write the sum before each block of `bwarp.reads.base_bits_cuda` into the block."""
    n_blocks = blocks.size // _WORDS
    count_blocks[launch(n_blocks)](blocks, n_blocks)
    exclusive_sum(blocks, _SUM, _WORDS)


@kernel
def count_blocks(blocks: uint32[::1], n_blocks: int):
    """Write the counts of each block into it. One thread per block: one load, one store."""
    i = cuda.grid(1)
    if i < n_blocks:
        first = uint64(_WORDS) * uint64(i)
        low, high, ambiguous, _ = load_uint32x4(blocks, first)
        blocks[first + uint64(_SUM)] = _counts(low, high, ~ambiguous)


@cuda.jit(device=True)
def _counts(low, high, known):
    """Return the four counts of up to 32 bases as one number; `known` marks those to count."""
    t = uint32(cuda.popc(uint32(low & high & known)))
    c = uint32(cuda.popc(uint32(low & known)) - t)
    g = uint32(cuda.popc(uint32(high & known)) - t)
    a = uint32(cuda.popc(uint32(known)) - c - g - t)
    return uint32(a | c << uint32(8) | g << uint32(16) | t << uint32(24))


@cuda.jit(device=True)
def _sum_before(blocks, at):
    """Return the sum before any base."""
    low, high, ambiguous, total = load_uint32x4(blocks, uint64(_WORDS) * (uint64(at) >> uint64(5)))
    inside = uint32((uint64(1) << (uint64(at) & uint64(31))) - uint64(1))
    return uint32(total + _counts(low, high, uint32(inside & ~ambiguous)))


@cuda.jit(device=True)
def _common(one, other):
    """Return the maximum number of bases that two stretches can share."""
    n = int64(0)
    for shift in range(0, 32, 8):
        in_one = int64(one >> uint32(shift)) & int64(255)
        in_other = int64(other >> uint32(shift)) & int64(255)
        n += min(in_one, in_other)
    return n


@cuda.jit(device=True)
def least_unmatched(genome, diagonal, reads, item, most):
    """Do what `bwarp.allmap.histogram_cpu.least_unmatched` does, with the sums of the reads.

    Per piece, loads 16 bytes at each end of its window and at one end of it.
    """
    first, length, _, gaps = item
    n = (length + piece_length(gaps) - 1) // piece_length(gaps)
    unmatched, a = int64(0), int64(0)
    before_piece = _sum_before(reads, first)
    before_window = _sum_before(genome, diagonal - gaps)
    for piece in range(n):
        b = length * (piece + 1) // n
        after_piece = _sum_before(reads, first + b)
        after_window = _sum_before(genome, diagonal + b + gaps)
        counts = uint32(after_piece - before_piece)
        unmatched += b - a - _common(counts, uint32(after_window - before_window))
        if unmatched > most:
            break
        a, before_piece, before_window = b, after_piece, after_window
        if gaps > 0:
            before_window = _sum_before(genome, diagonal + a - gaps)
    return unmatched

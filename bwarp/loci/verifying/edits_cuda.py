"""Edit distances by furthest-reaching rows on the GPU: `edits_cpu` in a thread.

Bases are compared 32 at a time. What a thread works in lies in arrays that may be longer than that,
from a number on: in local memory each thread has its own, in global memory a share.
"""

from bwarp.gpu.cuda import cuda, int64, uint8, uint32, uint64
from bwarp.loci.verifying.edits_cpu import NO_DISTANCE, RIGHT
from bwarp.mapping.reads.base_bits_cuda import differing

__all__ = [
    "agreeing",
    "count_mismatches",
    "distances_to",
    "distances_with_few_gaps",
    "room_with_few_gaps",
    "room_with_gaps",
]


_NOWHERE = -(1 << 30)


def room_with_gaps(gaps: int) -> int:
    """How many numbers `distances_to` works in."""
    return 2 * (2 * gaps + 3)


def room_with_few_gaps(gaps: int) -> int:
    """How many numbers `distances_with_few_gaps` works in."""
    return 2 * (gaps + 1) * (2 * gaps + 3)


@cuda.jit(device=True)
def agreeing(genome, at, reads, first, most, side):
    """How many of up to `most` bases agree, from two positions to a side, `RIGHT` or `LEFT`."""
    n = int64(0)
    while n < most:
        if side == RIGHT:
            bits = differing(genome, at + n, reads, first + n)
            if bits != 0:
                return min(most, n + int64(cuda.ffs(int64(bits))) - 1)
            n += 32
        else:
            width = min(int64(32), at - n, first - n)
            bits = differing(genome, at - n - width, reads, first - n - width)
            bits = uint32(uint64(bits) << uint64(32 - width))
            if bits != 0:
                return min(most, n + int64(cuda.clz(int64(bits))) - 32)
            n += width
    return max(most, int64(0))


@cuda.jit(device=True)
def count_mismatches(genome, at, reads, first, n):
    """How many of n bases differ."""
    count = int64(0)
    for i in range(0, n, 32):
        bits = differing(genome, at + i, reads, first + i)
        if n - i < 32:
            bits = uint32(uint64(bits) & ((uint64(1) << uint64(n - i)) - uint64(1)))
        count += int64(cuda.popc(bits))
    return count


@cuda.jit(device=True)
def furthest(same, shorter, longer, most):
    """The furthest row with one edit more, as edits_cpu has it."""
    row = min(max(same, longer) + 1, most)
    if shorter <= most:
        row = max(row, shorter)
    return row


@cuda.jit(device=True)
def distances_to(
    genome, origin, room, reads, first, length, edits, gaps, side, reach, reach_at, distances, to
):
    """`bwarp.loci.verifying.edits_cpu.distances_to`.

    It works in `reach` (int32) from `reach_at` on, and writes distances (uint8) from `to` on.
    """
    width = 2 * gaps + 3
    for i in range(2 * width):
        reach[reach_at + i] = _NOWHERE
    for i in range(2 * gaps + 1):
        distances[to + i] = uint8(NO_DISTANCE)
    before = reach_at + gaps + 1
    now = before + width
    least = edits + 1
    row = agreeing(genome, origin, reads, first, min(length, room), side)
    reach[before] = row
    if row == length:
        least = int64(0)
        distances[to + gaps] = uint8(0)
    for s in range(1, edits + 1):
        widest = min(s, gaps)
        for k in range(-widest, widest + 1):
            most = min(length, room - k)
            at = before + k
            row = furthest(int64(reach[at]), int64(reach[at - 1]), int64(reach[at + 1]), most)
            if row >= 0:
                row += agreeing(
                    genome, origin + side * (row + k), reads, first + side * row, most - row, side
                )
                if row == length and distances[to + gaps + k] == NO_DISTANCE:
                    distances[to + gaps + k] = uint8(s)
                    least = min(least, int64(s))
            reach[now + k] = row
        before, now = now, before
    return least


@cuda.jit(device=True)
def distances_with_few_gaps(
    genome, origin, room, reads, first, length, edits, gaps, reach, reach_at, distances, to
):
    """`bwarp.loci.verifying.edits_cpu.distances_with_few_gaps`; memory as in `distances_to`."""
    width = 2 * gaps + 3
    level = (gaps + 1) * width
    for i in range(2 * level):
        reach[reach_at + i] = _NOWHERE
    for i in range(2 * gaps + 1):
        distances[to + i] = uint8(NO_DISTANCE)
    before = reach_at + gaps + 1
    now = before + level
    row = agreeing(genome, origin, reads, first, min(length, room), RIGHT)
    reach[before] = row
    if row == length:
        distances[to + gaps] = uint8(0)
    for s in range(1, edits + 1):
        for g in range(min(s, gaps) + 1):
            for k in range(-g, g + 1, 2):
                most = min(length, room - k)
                at = before + g * width + k
                shorter, longer = int64(_NOWHERE), int64(_NOWHERE)
                if g > 0:
                    shorter = int64(reach[at - width - 1])
                    longer = int64(reach[at - width + 1])
                row = furthest(int64(reach[at]), shorter, longer, most)
                if row >= 0:
                    row += agreeing(genome, origin + row + k, reads, first + row, most - row, RIGHT)
                    if row == length and distances[to + gaps + k] == NO_DISTANCE:
                        distances[to + gaps + k] = uint8(s)
                reach[now + g * width + k] = row
        before, now = now, before

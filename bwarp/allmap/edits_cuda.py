"""Edit distances on the GPU: the rules of verify_cpu.

Each function runs in one thread and compares 32 bases at a time. Its working arrays may be longer
than it needs, starting at an offset: local memory of the thread, or a share of global memory.
"""

from typing import NamedTuple

from bwarp.allmap.verify_cpu import NO_DISTANCE, RIGHT
from bwarp.gpu.cuda import cuda, int64, uint8, uint32, uint64
from bwarp.reads.base_bits_cuda import differing

_NOWHERE = -(1 << 30)


class Compared(NamedTuple):
    """Blocks of the genome and of reads."""

    genome: object
    reads: object


class Stretch(NamedTuple):
    """Bases of a read from `first` on, and where and how many bases of the genome go with them."""

    origin: int
    room: int
    first: int
    length: int


class WorkRoom(NamedTuple):
    """Working memory (`reach` of dtype int32), and where results go; each from its offset on."""

    reach: object
    reach_at: int
    sides: object
    sides_at: int
    distances: object
    distances_at: int


def room_with_gaps(gaps: int) -> int:
    """Return how many numbers `distances_to` works in."""
    return 2 * (2 * gaps + 3)


def room_with_few_gaps(gaps: int) -> int:
    """Return how many numbers `distances_with_few_gaps` works in."""
    return 2 * (gaps + 1) * (2 * gaps + 3)


@cuda.jit(device=True)
def agreeing(bases, at, first, most, side):
    """Count agreeing bases, up to `most`, from two positions towards `RIGHT` or `LEFT`."""
    n = int64(0)
    while n < most:
        if side == RIGHT:
            bits = differing(bases.genome, at + n, bases.reads, first + n)
            if bits != 0:
                return min(most, n + int64(cuda.ffs(int64(bits))) - 1)
            n += 32
        else:
            width = min(int64(32), at - n, first - n)
            bits = differing(bases.genome, at - n - width, bases.reads, first - n - width)
            bits = uint32(uint64(bits) << uint64(32 - width))
            if bits != 0:
                return min(most, n + int64(cuda.clz(int64(bits))) - 32)
            n += width
    return max(most, int64(0))


@cuda.jit(device=True)
def count_mismatches(bases, at, first, n):
    """Count the differences among n bases."""
    count = int64(0)
    for i in range(0, n, 32):
        bits = differing(bases.genome, at + i, bases.reads, first + i)
        if n - i < 32:
            bits = uint32(uint64(bits) & ((uint64(1) << uint64(n - i)) - uint64(1)))
        count += int64(cuda.popc(bits))
    return count


@cuda.jit(device=True)
def furthest(same, shorter, longer, most):
    """Return the furthest row with one more edit, as in verify_cpu."""
    row = min(max(same, longer) + 1, most)
    if shorter <= most:
        row = max(row, shorter)
    return row


@cuda.jit(device=True)
def distances_to(bases, stretch, edits, gaps, side, work, to):
    """Do what `bwarp.allmap.verify_cpu.distances_to` does; write to `work.sides` from `to` on."""
    origin, room, first, length = stretch
    reach, distances = work.reach, work.sides
    width = 2 * gaps + 3
    for i in range(2 * width):
        reach[work.reach_at + i] = _NOWHERE
    for i in range(2 * gaps + 1):
        distances[to + i] = uint8(NO_DISTANCE)
    before = work.reach_at + gaps + 1
    now = before + width
    least = edits + 1
    row = agreeing(bases, origin, first, min(length, room), side)
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
                    bases, origin + side * (row + k), first + side * row, most - row, side
                )
                if row == length and distances[to + gaps + k] == NO_DISTANCE:
                    distances[to + gaps + k] = uint8(s)
                    least = min(least, int64(s))
            reach[now + k] = row
        before, now = now, before
    return least


@cuda.jit(device=True)
def distances_with_few_gaps(bases, stretch, edits, gaps, work, to):
    """Do what `bwarp.allmap.verify_cpu.distances_with_few_gaps` does; write to `work.distances`."""
    origin, room, first, length = stretch
    reach, distances = work.reach, work.distances
    width = 2 * gaps + 3
    level = (gaps + 1) * width
    for i in range(2 * level):
        reach[work.reach_at + i] = _NOWHERE
    for i in range(2 * gaps + 1):
        distances[to + i] = uint8(NO_DISTANCE)
    before = work.reach_at + gaps + 1
    now = before + level
    row = agreeing(bases, origin, first, min(length, room), RIGHT)
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
                    row += agreeing(bases, origin + row + k, first + row, most - row, RIGHT)
                    if row == length and distances[to + gaps + k] == NO_DISTANCE:
                        distances[to + gaps + k] = uint8(s)
                reach[now + g * width + k] = row
        before, now = now, before

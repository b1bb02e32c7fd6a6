"""Sorting many short lists on the GPU, a warp a list: device functions.

    a list      [ tile 0 ][ tile 1 ][ tile 2 ][ .. ]     tiles of 32, in order by shuffles
    merged      [      0 and 1     ][   2 and 3    ]     in twos, to and fro between the list
                [            all of them           ]     and as much room beside it

Time grows with n log n, and most lists are a single tile. While lists are merged a thread writes
PART numbers at a time: it searches where they begin in both lists, and goes on from there.
"""

from bwarp.gpu.cuda import cuda, int64
from bwarp.gpu.launch import ALL_LANES, WARP

__all__ = ["sort_list"]

#: Numbers that a thread merges at a time; a power of two, 32 at most. More take fewer searches;
#: fewer let neighbouring threads read neighbouring numbers.
PART = 8


#: Behind every number of a list.
_LAST = (1 << 63) - 1


@cuda.jit(device=True)
def sort_tile(number):
    """The number that this lane has when those of the warp are in order: a bitonic sort."""
    for size in (2, 4, 8, 16, 32):
        for distance in (16, 8, 4, 2, 1):
            if distance < size:
                other = cuda.shfl_xor_sync(ALL_LANES, number, distance)
                is_lower = (cuda.laneid & distance) == 0
                is_rising = (cuda.laneid & size) == 0
                number = min(number, other) if is_lower == is_rising else max(number, other)
    return number


@cuda.jit(device=True)
def merge_part(source, target, begin, n, width, first):
    """Write PART numbers from `first` on of lists merged in twos; each had `width`, the last less.

    Indices are counted from `begin`.
    """
    pair = first & ~(2 * width - 1)
    middle, stop = min(pair + width, n), min(pair + 2 * width, n)
    before = first - pair
    # How many of the numbers before are from the left list.
    low, high = max(int64(0), before - (stop - middle)), min(before, middle - pair)
    while low < high:
        taken = (low + high) >> 1
        right = source[begin + middle + before - 1 - taken]
        if source[begin + pair + taken] <= right:
            low = taken + 1
        else:
            high = taken
    i, j = pair + low, middle + before - low
    left = int64(source[begin + i]) if i < middle else int64(_LAST)
    right = int64(source[begin + j]) if j < stop else int64(_LAST)
    for at in range(first, min(first + PART, stop)):
        if left <= right:
            target[begin + at] = left
            i += 1
            left = int64(source[begin + i]) if i < middle else int64(_LAST)
        else:
            target[begin + at] = right
            j += 1
            right = int64(source[begin + j]) if j < stop else int64(_LAST)


@cuda.jit(device=True)
def sort_list(numbers, spare, begin, end):
    """Put numbers[begin:end] in order; spare[begin:end] is room. All lanes of a warp call it.

    Numbers are uint64 below 2**63 - 1. When it returns, every lane sees them all in order.
    """
    n = end - begin
    # So that the last merge writes to where the list was.
    source, target = numbers, spare
    width = int64(WARP)
    while width < n:
        source, target = target, source
        width *= 2
    for first in range(begin, end, WARP):
        at = first + cuda.laneid
        number = sort_tile(int64(numbers[at]) if at < end else int64(_LAST))
        if at < end:
            source[at] = number
    width = int64(WARP)
    while width < n:
        cuda.syncwarp()
        for first in range(PART * int64(cuda.laneid), n, PART * WARP):
            merge_part(source, target, begin, n, width, first)
        source, target = target, source
        width *= 2
    cuda.syncwarp()

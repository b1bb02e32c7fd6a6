"""Running sums, warp reductions, lists and sorting on the GPU.

Running sums are computed in place in three steps:

    values   [ tile 0 ][ tile 1 ][ tile 2 ] ...     one warp per tile
    1.          sum       sum       sum             of each tile, into a small array
    2.           0      sum 0   sum 0 + 1           running sum of that array, recursively
    3.       running sums within each tile, from its start on

A warp processes PART elements per lane at a time. Memory latency dominates, so tiles of a short
array are short as well: there are about as many tiles as elements per tile.
"""

import functools
from collections.abc import Callable
from importlib.metadata import version
from math import isqrt

import numpy as np

from bwarp.errors import UsageError
from bwarp.gpu.cuda import cuda, int32, int64, uint32
from bwarp.gpu.device_arrays import number_at
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import ALL_LANES, WARP, launch
from bwarp.gpu.memory_pool import device_array
from bwarp.runtime.compiled_code import keep, kept

#: Maximum number of elements per warp, and of an array summed by one warp; a multiple of 32.
TILE = 2048

#: Elements that a lane reads before the warp adds them up.
PART = 8

_THREADS = 256


def exclusive_sum(values, first: int = 0, stride: int = 1) -> None:
    """Replace elements of a device array by the sum of the elements before each.

    The elements are first, first + stride, first + 2 * stride, ...: a column of a table.

    Parameters
    ----------
    values : device array, shape=(m,), dtype=uint32
        Sums are modulo 2**32.
    first, stride : int
    """
    count = -(-(values.size - first) // stride)
    if count <= 0:
        return
    tile_size = _tile_size(count)
    tiles = -(-count // tile_size)
    shape = launch(tiles * WARP, _THREADS)
    starts = device_array(tiles, np.uint32)
    if tiles > 1:
        add_tiles[shape](values, first, stride, count, tile_size, starts)
        exclusive_sum(starts)
    sum_tiles[shape](values, first, stride, count, tile_size, starts)


def _tile_size(count: int) -> int:
    if count <= TILE:
        return TILE
    step = PART * WARP
    return min(TILE, -(-isqrt(count) // step) * step)


def add_up(counts) -> int:
    """Replace counts, the last of which is 0, by their running sums; return the total."""
    exclusive_sum(counts)
    return number_at(counts, counts.size - 1)


@kernel
def add_tiles(
    values: uint32[::1], first: int, stride: int, count: int, tile_size: int, sums: uint32[::1]
):
    """Compute the sum of each tile. One warp per tile; each element is read once."""
    tile = cuda.grid(1) // WARP
    lane = cuda.laneid
    if tile < sums.size:
        total = np.uint32(0)
        for i in range(tile * tile_size + lane, min((tile + 1) * tile_size, count), int64(WARP)):
            total = np.uint32(total + values[first + i * stride])
        for distance in (16, 8, 4, 2, 1):
            other = cuda.shfl_down_sync(ALL_LANES, np.int32(total), distance)
            total = np.uint32(total + np.uint32(other))
        if lane == 0:
            sums[tile] = total


@kernel
def sum_tiles(
    values: uint32[::1], first: int, stride: int, count: int, tile_size: int, starts: uint32[::1]
):
    """Compute running sums within each tile from its start value. One warp per tile, PART elements
    per lane and step; each element is read twice, the second time from the cache, and
    written once."""
    tile = cuda.grid(1) // WARP
    lane = cuda.laneid
    if tile < starts.size:
        # The first tile starts at 0, which is not stored if it is the only one.
        before = starts[tile] if tile > 0 else np.uint32(0)
        end = min((tile + 1) * tile_size, count)
        for step in range(tile * tile_size, end, int64(PART * WARP)):
            begin = step + PART * lane
            total = np.uint32(0)
            for i in range(begin, min(begin + PART, end)):
                total = np.uint32(total + values[first + i * stride])
            running = total
            for distance in (1, 2, 4, 8, 16):
                other = cuda.shfl_up_sync(ALL_LANES, np.int32(running), distance)
                if lane >= distance:
                    running = np.uint32(running + np.uint32(other))
            lane_sum = np.uint32(before + running - total)
            for i in range(begin, min(begin + PART, end)):
                value = values[first + i * stride]
                values[first + i * stride] = lane_sum
                lane_sum = np.uint32(lane_sum + value)
            whole = cuda.shfl_sync(ALL_LANES, np.int32(running), WARP - 1)
            before = np.uint32(before + np.uint32(whole))


# --------------------------------------------------------------------------------------------------
# Reductions over a warp. Every lane gets the result, and all lanes must call them.


@cuda.jit(device=True)
def greatest(value):
    """Return the maximum value of a warp."""
    for distance in (16, 8, 4, 2, 1):
        value = max(value, cuda.shfl_xor_sync(ALL_LANES, value, distance))
    return value


@cuda.jit(device=True)
def total(value):
    """Return the sum of a warp's values."""
    for distance in (16, 8, 4, 2, 1):
        value += cuda.shfl_xor_sync(ALL_LANES, value, distance)
    return value


# --------------------------------------------------------------------------------------------------
# Lists on the GPU to which many threads append, with one atomic addition per block or warp.
#
# The order of elements does not matter to any search. A full list drops further elements, but its
# counter continues, so that the host sees that it was too short.


#: Numbers of the counters of `Workspace.intervals` and `Workspace.keys`.
INTERVALS, KEYS = 0, 1

# Longer than any list; a counter that reaches this value stays there instead of wrapping to 0.
_FULL = 1 << 31


@cuda.jit(device=True)
def reserve(counters, which, wanted):
    """Return the index of the first of a thread's `wanted` (uint32) elements in list `which`.

    All threads of a block must call this together. Three barriers and one atomic addition.
    """
    totals = cuda.shared.array(33, uint32)
    lane = cuda.laneid
    warp = cuda.threadIdx.x // WARP
    running = int32(wanted)
    for distance in (1, 2, 4, 8, 16):
        other = cuda.shfl_up_sync(ALL_LANES, running, distance)
        if lane >= distance:
            running = int32(running + other)
    if lane == WARP - 1:
        totals[warp] = uint32(running)
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        total = uint32(0)
        for other_warp in range(cuda.blockDim.x // WARP):
            here = totals[other_warp]
            totals[other_warp] = total
            total = uint32(total + here)
        if total:
            slot = cuda.atomic.add(counters, which, total)
            if slot >= uint32(_FULL):
                cuda.atomic.add(counters, which, uint32(uint32(0) - total))
            totals[32] = min(slot, uint32(_FULL))
    cuda.syncthreads()
    slot = uint32(totals[32] + totals[warp] + uint32(running) - wanted)
    cuda.syncthreads()
    return slot


@cuda.jit(device=True)
def slot_in_list(counter, is_wanted):
    """Return the index (int64) of a lane's element in a list with room for all elements.

    `counter[0]` is the number of elements. All lanes of a warp must call this together, including
    lanes without an element, which ignore the index. A ballot, a shuffle, and one atomic addition
    if any lane has an element; no barrier.
    """
    lane = int64(cuda.laneid)
    lanes = int64(cuda.ballot_sync(ALL_LANES, is_wanted)) & ALL_LANES
    slot = int32(0)
    if lane == 0 and lanes != 0:
        slot = int32(cuda.atomic.add(counter, 0, int32(cuda.popc(lanes))))
    # A list may exceed the range of int32.
    first = uint32(cuda.shfl_sync(ALL_LANES, slot, 0))
    return int64(first) + cuda.popc(lanes & ((int64(1) << lane) - 1))


# --------------------------------------------------------------------------------------------------
# Sorting pairs on the GPU, with the radix sort of NVIDIA's CUDA Core Compute Libraries.


def pair_sorter() -> Callable:
    """Return a function that sorts pairs of keys and values on the current GPU.

    ``sort_pairs(keys, values, count, key_bits)`` sorts the first `count` pairs by the lowest
    `key_bits` bits of their keys (fewer bits take fewer passes); equal keys keep their order.

    keys : pair of device arrays, dtype=uint64
        The keys to sort, and a buffer of the same size.
    values : pair of device arrays, dtype=uint32
        The value of each key, and a buffer of the same size.

    It returns the same two pairs of arrays, each with the sorted array first: the sort alternates
    between them and needs almost no further memory. The arrays of the last call stay allocated as
    long as the function exists.
    """
    try:  # imported here because it needs a driver
        from cuda.compute import DoubleBuffer, deserialize
    except ImportError as error:
        raise UsageError(
            "sorting on the GPU requires the package cuda-cccl: pip install 'bwarp[gpu-cu13]' (or "
            f"gpu-cu12), or use --backend cpu ({error})"
        ) from None

    sort = deserialize(compiled_sort(cuda.get_current_device().compute_capability))

    def sort_pairs(keys, values, count: int, key_bits: int):
        arguments = {
            "d_in_keys": DoubleBuffer(*keys),
            "d_out_keys": None,
            "d_in_values": DoubleBuffer(*values),
            "d_out_values": None,
            "num_items": count,
            "begin_bit": 0,
            "end_bit": key_bits,
        }
        scratch_bytes = sort(temp_storage=None, **arguments)
        sort(temp_storage=cuda.device_array(max(scratch_bytes, 1), np.uint8), **arguments)
        keys, values = arguments["d_in_keys"], arguments["d_in_values"]
        return (keys.current(), keys.alternate()), (values.current(), values.alternate())

    return sort_pairs


@functools.cache
def compiled_sort(capability: tuple[int, int]) -> bytes:
    """Return the sort compiled for GPUs of a compute capability.

    Compiling takes seconds but no GPU. The code is stored; if that is not possible, every process
    compiles it.
    """
    words = "radix_sort", version("cuda-cccl"), "{}.{}".format(*capability)
    stored = kept(*words)
    if stored is not None:
        return stored

    from cuda.compute import DoubleBuffer, ProxyArray, SortOrder, make_radix_sort, serialize

    keys, values = (
        DoubleBuffer(ProxyArray(dtype), ProxyArray(dtype)) for dtype in (np.uint64, np.uint32)
    )
    sort = make_radix_sort(
        d_in_keys=keys,
        d_out_keys=None,
        d_in_values=values,
        d_out_values=None,
        order=SortOrder.ASCENDING,
        compute_capability=tuple(capability),
    )
    compiled = serialize(sort)
    keep(compiled, *words)
    return compiled


# --------------------------------------------------------------------------------------------------
# Sorting many short lists on the GPU with one warp per list: device functions.
#
#     a list      [ tile 0 ][ tile 1 ][ tile 2 ][ .. ]     tiles of 32, sorted by shuffles
#     merged      [      0 and 1     ][   2 and 3    ]     pairwise, alternating between the list
#                 [            all of them           ]     and a buffer of the same size
#
# Time grows with n log n, and most lists are a single tile. In a merge, a thread writes PART
# numbers at a time: it searches for their start in both lists, and continues from there.


#: Greater than every number of a list.
_LAST = (1 << 63) - 1


@cuda.jit(device=True)
def sort_tile(number):
    """Sort the numbers of a warp by a bitonic sort; return the number of this lane."""
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
    """Write PART numbers from `first` on of the pairwise merge of lists of `width` numbers.

    Indices are relative to `begin`; the last list may be shorter.
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
    """Sort numbers[begin:end], with spare[begin:end] as a buffer. All lanes of a warp must call it.

    Numbers are uint64 below 2**63 - 1. On return, every lane sees the sorted numbers.
    """
    n = end - begin
    # Choose the source so that the last merge writes to the list.
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

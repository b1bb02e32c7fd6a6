"""Running sums of device arrays, in place.

Three steps:

    values   [ tile 0 ][ tile 1 ][ tile 2 ] ...     one warp a tile
    1.          sum       sum       sum             of every tile, into a small array
    2.           0      sum 0   sum 0 + 1           that array's running sum: the same again
    3.       running sums inside every tile, from its start on

A warp takes PART elements a lane at a time. What takes long is waiting for memory, so tiles of a
short array are short as well: about as many as the elements of each.
"""

from math import isqrt

import numpy as np

from bwarp.gpu.cuda import cuda, int64, uint32
from bwarp.gpu.device_arrays import number_at
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import ALL_LANES, WARP, launch
from bwarp.gpu.workspace import device_array

__all__ = ["add_up", "exclusive_sum"]

#: Elements a warp adds up at most, and all of an array of no more; a multiple of 32.
TILE = 2048

#: Elements a lane reads before the warp adds them up.
PART = 8

_THREADS = 256


def exclusive_sum(values, first: int = 0, stride: int = 1) -> None:
    """Replace elements of a device array by the sum of those before each.

    Works on the elements first, first + stride, first + 2 * stride, ...: a column of a table.

    Parameters
    ----------
    values : device array, shape=(m,), dtype=uint32
        Where the sum of the column is not below 2**32, sums are modulo that.
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
    """Replace counts, of which the last is 0, by their running sums; returns the total."""
    exclusive_sum(counts)
    return number_at(counts, counts.size - 1)


@kernel
def add_tiles(
    values: uint32[::1], first: int, stride: int, count: int, tile_size: int, sums: uint32[::1]
):
    """The sum of every tile. One warp a tile; reads every element once."""
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
    """Running sums inside every tile, on from the tile's start. One warp a tile, PART elements a
    lane and step; reads every element twice, the second time from the cache, and writes it once."""
    tile = cuda.grid(1) // WARP
    lane = cuda.laneid
    if tile < starts.size:
        # The first starts at 0; where it is the only one, nobody has written that.
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

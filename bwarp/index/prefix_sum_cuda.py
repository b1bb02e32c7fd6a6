"""Running sums of device arrays, in place.

Three steps, so that every element is read twice and written once:

    values   [ tile 0 ][ tile 1 ][ tile 2 ] ...     one warp a tile
    1.          sum       sum       sum             of every tile, into a small array
    2.           0      sum 0   sum 0 + 1           that array's running sum: the same again
    3.       running sums inside every tile, from its start on
"""

import numpy as np
from numba import cuda
from numba.cuda import types

from bwarp.work_space_cuda import device_array

__all__ = ["KERNEL_SIGNATURES", "exclusive_sum"]

#: Elements a warp adds up; a multiple of 32.
TILE = 2048

_WARP = 32
_THREADS = 256
_ALL_LANES = 0xFFFFFFFF


def exclusive_sum(values, first: int = 0, stride: int = 1) -> None:
    """Replace elements of a device array by the sum of those before each.

    Works on the elements first, first + stride, first + 2 * stride, ...: a column of a table.

    Parameters
    ----------
    values : device array, shape=(m,), dtype=uint32
        The sum of the column must be below 2**32.
    first, stride : int
    """
    count = -(-(values.size - first) // stride)
    tiles = -(-count // TILE)
    if tiles == 0:
        return
    blocks = -(-tiles * _WARP // _THREADS)
    starts = device_array(tiles, np.uint32)
    if tiles > 1:
        add_tiles[blocks, _THREADS](values, first, stride, count, starts)
        exclusive_sum(starts)
    sum_tiles[blocks, _THREADS](values, first, stride, count, starts)


@cuda.jit(cache=True)
def add_tiles(values, first, stride, count, sums):
    """The sum of every tile. One warp a tile; reads every element once."""
    tile = cuda.grid(1) // _WARP
    lane = cuda.laneid
    if tile < sums.size:
        total = np.uint32(0)
        for i in range(tile * TILE + lane, min((tile + 1) * TILE, count), _WARP):
            total = np.uint32(total + values[first + i * stride])
        for distance in (16, 8, 4, 2, 1):
            other = cuda.shfl_down_sync(_ALL_LANES, np.int32(total), distance)
            total = np.uint32(total + np.uint32(other))
        if lane == 0:
            sums[tile] = total


@cuda.jit(cache=True)
def sum_tiles(values, first, stride, count, starts):
    """Running sums inside every tile, on from the tile's start. One warp a tile, 32 elements a
    step; reads and writes every element once."""
    tile = cuda.grid(1) // _WARP
    lane = cuda.laneid
    if tile < starts.size:
        # The first starts at 0; where it is the only one, nobody has written that.
        before = starts[tile] if tile > 0 else np.uint32(0)
        for step in range(tile * TILE, min((tile + 1) * TILE, count), _WARP):
            i = step + lane
            value = np.uint32(0)
            if i < count:
                value = values[first + i * stride]
            running = value
            for distance in (1, 2, 4, 8, 16):
                other = cuda.shfl_up_sync(_ALL_LANES, np.int32(running), distance)
                if lane >= distance:
                    running = np.uint32(running + np.uint32(other))
            if i < count:
                values[first + i * stride] = before + running - value
            whole = cuda.shfl_sync(_ALL_LANES, np.int32(running), _WARP - 1)
            before = np.uint32(before + np.uint32(whole))


_COLUMN = (types.uint32[::1], types.int64, types.int64, types.int64, types.uint32[::1])

#: The argument types that every kernel is compiled with.
KERNEL_SIGNATURES = {add_tiles: _COLUMN, sum_tiles: _COLUMN}

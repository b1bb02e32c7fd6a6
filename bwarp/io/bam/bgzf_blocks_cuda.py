"""BGZF blocks compressed on a GPU, by nvCOMP.

    host     | copy to pinned memory, sum up |           | heads and feet |
    GPU                                      | deflate, close up |

Jobs take turns on the GPU. The blocks inflate to what those of `compressed_blocks` do, but they are
not the same bytes.
"""

import threading
from functools import partial

import numba
import numpy as np
from numba import cuda, int64
from numba.cuda import types

from bwarp.gpu import nvcomp
from bwarp.gpu.available_memory import attempt
from bwarp.gpu.pinned_memory import PinnedBuffers
from bwarp.io.bam.bgzf import BLOCK_BYTES
from bwarp.io.bam.bgzf_blocks import (
    FOOT_BYTES,
    HEAD_BYTES,
    STORED_BYTES,
    compressed_blocks,
    finish_block,
    is_stored,
    sums_of_blocks,
)
from bwarp.runtime.timeline import on_timeline, span

__all__ = ["KERNEL_SIGNATURES", "BlocksOnGpu"]

#: Threads that copy the bytes of a block.
_THREADS = 128


class BlocksOnGpu:
    """As `compressed_blocks`, on the current GPU; where its memory is full, on the host."""

    def __init__(self):
        self._turn = threading.Lock()
        self._pinned_in, self._pinned_out = PinnedBuffers(2), PinnedBuffers(2)

    @on_timeline("compress")
    def __call__(self, data: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        sums = sums_of_blocks(data)
        if sums is None or not data.size:
            return compressed_blocks(data)
        sizes = np.full(sums.size, BLOCK_BYTES)
        sizes[-1] = data.size - BLOCK_BYTES * (sums.size - 1)
        with self._pinned_in.lent() as pinned, self._pinned_out.lent() as pinned_out:
            (source,) = pinned.arrays(data.size, [np.uint8])
            source[:] = data
            with self._turn, span("compress on the GPU"):
                found = attempt(partial(_deflated, source, sizes, pinned_out))
            if found is None:
                return compressed_blocks(data)
            there, packed, starts = found
            blocks, ends = np.empty(starts[-1], np.uint8), starts[1:]
            _finish_blocks(there, starts, packed, data, sizes, sums, blocks)
        return blocks, ends


def _deflated(source, sizes, pinned) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The file's bytes but for heads and feet, bytes that each block was packed into, and where
    blocks begin in the file.
    """
    room = nvcomp.room_of(BLOCK_BYTES)
    raw = cuda.device_array(sizes.size * BLOCK_BYTES, np.uint8)
    raw[: source.size].copy_to_device(source)
    out = cuda.device_array(sizes.size * room, np.uint8)
    packed_there = nvcomp.deflate(raw, sizes, BLOCK_BYTES, out, room)
    packed = packed_there.copy_to_host().astype(np.int64)
    starts = _starts(packed, sizes)
    file = cuda.device_array(int(starts[-1]), np.uint8)
    close_up[sizes.size, _THREADS](out, room, packed_there, cuda.to_device(starts), file)
    (here,) = pinned.arrays(int(starts[-1]), [np.uint8])
    file.copy_to_host(here)
    return here, packed, starts


@numba.njit(cache=True, nogil=True)
def _starts(packed, sizes):
    starts = np.zeros(packed.size + 1, np.int64)
    for i in range(packed.size):
        contents = STORED_BYTES + sizes[i] if is_stored(packed[i]) else packed[i]
        starts[i + 1] = starts[i] + HEAD_BYTES + contents + FOOT_BYTES
    return starts


@numba.njit(cache=True, nogil=True)
def _finish_blocks(there, starts, packed, data, sizes, sums, blocks):
    """Copy the blocks out of pinned memory, and write what surrounds their contents."""
    for i in range(packed.size):
        first, stop = np.uint64(starts[i]), np.uint64(starts[i + 1])
        for at in range(first, stop):
            blocks[at] = there[at]
        finish_block(blocks, starts[i], packed[i], data, BLOCK_BYTES * i, sizes[i], sums[i])


@cuda.jit(cache=True)
def close_up(out, room, packed, starts, file):
    """Copy what blocks were packed into to where it stands in the file. A thread block a block.

    What does not fit between head and foot is not used, and not copied.
    """
    block = cuda.blockIdx.x
    first = int64(starts[block]) + HEAD_BYTES
    count = int64(packed[block])
    if first + count + FOOT_BYTES > int64(starts[block + 1]):
        return
    for i in range(int64(cuda.threadIdx.x), count, int64(cuda.blockDim.x)):
        file[first + i] = out[room * block + i]


_BYTES = types.uint8[::1]

#: The argument types that every kernel is compiled with.
KERNEL_SIGNATURES = {
    close_up: (_BYTES, types.int64, types.uint64[::1], types.int64[::1], _BYTES),
}

"""BGZF blocks that are finished on the GPU: compressed by nvCOMP, with head, foot and checksum.

    raw     bytes of the stream | block 0      | block 1      | block 2  |
    out     what nvCOMP makes   | 0   ...      | 1 ...        | 2    ... |    room for the worst
    file    head 0 foot head 1 foot head 2 foot                               as it is in the file

The bytes of every block are those that `bwarp.io.bam.bgzf_blocks_cuda` makes of the same.
"""

import numpy as np

from bwarp.gpu import nvcomp
from bwarp.gpu.cuda import cuda, int64, uint8, uint32, uint64
from bwarp.gpu.kernel import kernel
from bwarp.gpu.workspace import cut
from bwarp.io.bam.bgzf import BLOCK_BYTES
from bwarp.io.bam.bgzf_blocks import FOOT_BYTES, HEAD, HEAD_BYTES, STORED_BYTES, is_stored
from bwarp.io.bam.bgzf_blocks_cuda import file_starts
from bwarp.io.bam.checksums_cuda import Checksums

__all__ = ["FinishedBlocks"]

#: Threads that write a block.
_THREADS = 256

#: What a head says before the size.
_FIXED_HEAD = len(HEAD)


class FinishedBlocks:
    """Makes blocks of bytes on the current GPU, in a stream of its own.

    Parameters
    ----------
    most_blocks : int
        As many are made at a time.

    Attributes
    ----------
    stream : CUDA stream
        In which `raw` is to be written.
    raw, raw_words : device arrays, dtype=uint8 and uint32
        Room for the bytes of the blocks, once as bytes and once as words.
    file : device array, dtype=uint8
        The finished blocks, one after another.
    """

    def __init__(self, most_blocks: int):
        n_bytes = most_blocks * BLOCK_BYTES
        self.stream = cuda.stream()
        self.raw = cuda.device_array(n_bytes, np.uint8)
        self.raw_words = cut(self.raw, 0, n_bytes // 4, np.uint32)
        # A block that is stored as it is takes a little more.
        self.file = cuda.device_array(n_bytes + 32 * most_blocks, np.uint8)
        self._room = nvcomp.room_of(BLOCK_BYTES)
        self._out = cuda.device_array(most_blocks * self._room, np.uint8)
        self._sizes = cuda.device_array(most_blocks, np.uint64)
        self._packed = cuda.device_array(most_blocks, np.uint64)
        self._starts = cuda.device_array(most_blocks + 1, np.int64)
        self._sums = cuda.device_array(most_blocks, np.uint32)
        self._addresses = nvcomp.addresses(self.raw, BLOCK_BYTES, most_blocks)
        self._out_addresses = nvcomp.addresses(self._out, self._room, most_blocks)
        self._scratch = cuda.device_array(nvcomp.scratch_bytes(most_blocks, BLOCK_BYTES), np.uint8)
        self._head = cuda.to_device(HEAD)
        self._checksums = Checksums()
        self._pinned = cuda.pinned_array(most_blocks + 1, np.int64)
        self._size = 0
        # Memory is handed out in the order of another stream.
        cuda.synchronize()

    def begin(self, size: int) -> None:
        """Compress the first `size` bytes of `raw`; this does not wait."""
        n, self._size = -(-size // BLOCK_BYTES), size
        pinned = self._pinned[:n].view(np.uint64)
        pinned[:] = BLOCK_BYTES
        pinned[-1] = size - BLOCK_BYTES * (n - 1)
        self._sizes[:n].copy_to_device(pinned, stream=self.stream)
        self._checksums.compute(self.raw_words, size, self._sums, self.stream)
        nvcomp.deflate(
            self._addresses, self._sizes, BLOCK_BYTES, n, self._scratch, self._out_addresses,
            self._packed, self.stream,
        )  # fmt: skip
        self._packed[:n].copy_to_host(pinned, stream=self.stream)

    def finish(self) -> np.ndarray:
        """Wait for the blocks, which are in `file` then; where each ends, int64."""
        n = -(-self._size // BLOCK_BYTES)
        self.stream.synchronize()
        sizes = np.full(n, BLOCK_BYTES)
        sizes[-1] = self._size - BLOCK_BYTES * (n - 1)
        starts = file_starts(self._pinned[:n].copy(), sizes)
        self._pinned[: n + 1] = starts
        self._starts[: n + 1].copy_to_device(self._pinned[: n + 1], stream=self.stream)
        finish_blocks[n, _THREADS, self.stream](
            self.raw, self._size, self._out, self._room, self._packed, self._starts, self._sums,
            self._head, self.file,
        )  # fmt: skip
        self.stream.synchronize()
        return starts[1:]


@kernel
def finish_blocks(
    raw: uint8[::1], size: int, out: uint8[::1], room: int, packed: uint64[::1], starts: int64[::1],
    sums: uint32[::1], head: uint8[::1], file: uint8[::1],
):  # fmt: skip
    """Write blocks as they are in the file: what `bgzf_blocks.finish_block` writes. A thread block
    a block; every byte is read and written once."""
    block = int64(cuda.blockIdx.x)
    thread = int64(cuda.threadIdx.x)
    threads = int64(cuda.blockDim.x)
    begin, stop = starts[block], starts[block + 1]
    first = block * BLOCK_BYTES
    length = min(int64(BLOCK_BYTES), size - first)
    at = begin + HEAD_BYTES
    if is_stored(int64(packed[block])):
        for i in range(thread, length, threads):
            file[at + STORED_BYTES + i] = raw[first + i]
        if thread == 0:
            # One deflate block of its own kind.
            file[at] = 1
            for byte in range(2):
                file[at + 1 + byte] = length >> 8 * byte & 255
                file[at + 3 + byte] = (length ^ 0xFFFF) >> 8 * byte & 255
    else:
        for i in range(thread, int64(packed[block]), threads):
            file[at + i] = out[room * block + i]
    if thread < _FIXED_HEAD:
        file[begin + thread] = head[thread]
    if thread < HEAD_BYTES - _FIXED_HEAD:
        file[begin + _FIXED_HEAD + thread] = (stop - begin - 1) >> 8 * thread & 255
    if thread < 4:
        file[stop - FOOT_BYTES + thread] = int64(sums[block]) >> 8 * thread & 255
        file[stop - 4 + thread] = length >> 8 * thread & 255

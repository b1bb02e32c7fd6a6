"""Writing sorted records from the GPU to a file, in windows of the stream, two at a time.

    window 0   copy in order, sum up, deflate | finish | download, write    | window 2 ...
    window 1                copy in order, sum up, deflate | finish | download, write

Only finished blocks are downloaded, through pinned memory of the threads that write them, and the
loci of the records, for the index. If the host or another program compresses the records, they are
downloaded uncompressed. If the host counts the records (`bwarp.checks`), another thread downloads
them uncompressed meanwhile.
"""

import os
import queue
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np

from bwarp.bam.bgzf import BLOCK_BYTES, FOOT_BYTES, HEAD, HEAD_BYTES, STORED_BYTES, is_stored
from bwarp.bam.bgzf_cuda import Checksums, file_starts
from bwarp.bam.block_writer import BlockWriter
from bwarp.bam.index import RecordLoci
from bwarp.bam.record_order_cuda import SortedRecords
from bwarp.bam.records import Records
from bwarp.errors import GpuMemoryError
from bwarp.gpu import nvcomp
from bwarp.gpu.available_memory import attempt
from bwarp.gpu.cuda import cuda, driver, int64, uint8, uint32, uint64
from bwarp.gpu.kernel import kernel
from bwarp.gpu.memory_pool import cut
from bwarp.gpu.several_gpus import copy_from_gpu
from bwarp.gpu.transfers import PinnedBuffer, into_host
from bwarp.runtime.backend import is_gpu_memory_error
from bwarp.runtime.timeline import on_timeline, span

# --------------------------------------------------------------------------------------------------
# BGZF blocks finished on the GPU: compressed by nvCOMP, with head, foot and checksum.
#
#     raw     bytes of the stream | block 0      | block 1      | block 2  |
#     out     output of nvCOMP    | 0   ...      | 1 ...        | 2    ... |    with maximum room
#     file    head 0 foot head 1 foot head 2 foot                               as in the file
#
# The bytes of each block are the same as those of `bwarp.bam.bgzf_cuda`.


#: Threads that write a block.
_THREADS = 256

#: Bytes of a head before the size.
_FIXED_HEAD = len(HEAD)


class FinishedBlocks:
    """Compresses bytes to blocks on the current GPU, in its own stream.

    Parameters
    ----------
    most_blocks : int
        Maximum number of blocks at a time.

    Attributes
    ----------
    stream : CUDA stream
        The stream in which the caller writes `raw`.
    raw, raw_words : device arrays, dtype=uint8 and uint32
        Room for the bytes of the blocks: the same memory as bytes and as words.
    file : device array, dtype=uint8
        The finished blocks, concatenated.
    """

    def __init__(self, most_blocks: int):
        n_bytes = most_blocks * BLOCK_BYTES
        self.stream = cuda.stream()
        self.raw = cuda.device_array(n_bytes, np.uint8)
        self.raw_words = cut(self.raw, 0, n_bytes // 4, np.uint32)
        # A stored block takes slightly more than its bytes.
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
        # Memory is allocated in the order of another stream.
        cuda.synchronize()

    def begin(self, size: int) -> None:
        """Start compressing the first `size` bytes of `raw`, without waiting."""
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
        """Wait until the blocks are in `file`; return the end of each, int64."""
        n = -(-self._size // BLOCK_BYTES)
        self.stream.synchronize()
        sizes = np.full(n, BLOCK_BYTES)
        sizes[-1] = self._size - BLOCK_BYTES * (n - 1)
        starts = file_starts(self._pinned[:n].copy(), sizes)
        self._pinned[: n + 1] = starts
        self._starts[: n + 1].copy_to_device(self._pinned[: n + 1], stream=self.stream)
        finish_blocks[n, _THREADS, self.stream](
            self.raw,
            self._size,
            PackedBlocks(self._out, self._room, self._packed),
            self._starts,
            self._sums,
            self._head,
            self.file,
        )
        self.stream.synchronize()
        return starts[1:]


class PackedBlocks(NamedTuple):
    """Compressed blocks, each in `room` bytes, and their sizes."""

    data: uint8[::1]
    room: int
    sizes: uint64[::1]


@kernel
def finish_blocks(
    raw: uint8[::1], size: int, packed: PackedBlocks, starts: int64[::1], sums: uint32[::1],
    head: uint8[::1], file: uint8[::1],
):  # fmt: skip
    """Write blocks as in the file, like `bwarp.bam.bgzf.finish_block`. One thread block per block;
    each byte is read and written once."""
    block = int64(cuda.blockIdx.x)
    thread = int64(cuda.threadIdx.x)
    threads = int64(cuda.blockDim.x)
    begin, stop = starts[block], starts[block + 1]
    first = block * BLOCK_BYTES
    length = min(int64(BLOCK_BYTES), size - first)
    at = begin + HEAD_BYTES
    if is_stored(int64(packed.sizes[block])):
        for i in range(thread, length, threads):
            file[at + STORED_BYTES + i] = raw[first + i]
        if thread == 0:
            # One deflate block of type "stored".
            file[at] = 1
            for byte in range(2):
                file[at + 1 + byte] = length >> 8 * byte & 255
                file[at + 3 + byte] = (length ^ 0xFFFF) >> 8 * byte & 255
    else:
        for i in range(thread, int64(packed.sizes[block]), threads):
            file[at + i] = packed.data[packed.room * block + i]
    if thread < _FIXED_HEAD:
        file[begin + thread] = head[thread]
    if thread < HEAD_BYTES - _FIXED_HEAD:
        file[begin + _FIXED_HEAD + thread] = (stop - begin - 1) >> 8 * thread & 255
    if thread < 4:
        file[stop - FOOT_BYTES + thread] = int64(sums[block]) >> 8 * thread & 255
        file[stop - 4 + thread] = length >> 8 * thread & 255


#: Blocks per window. Two windows fill a large GPU, and take four times their bytes.
BLOCKS_A_WINDOW = 4096

#: Maximum number of writing threads, and the pinned memory of each.
_MOST_THREADS = 4
_SLOT = 16 << 20

#: Types of a record's locus on the GPU.
_LOCUS = (np.int32, np.int64, np.int64, np.uint8)

Made = TypeVar("Made")


@on_timeline("write sorted records")
def write_sorted(
    records: SortedRecords, writer: BlockWriter, threads: int, most_blocks: int = BLOCKS_A_WINDOW
) -> None:
    """Pass records to a writer, compressed on the GPU if the writer compresses there.

    The writer must receive nothing after them.
    """
    if not records.n_bytes:
        return
    most_blocks = min(most_blocks, -(-records.n_bytes // BLOCK_BYTES))
    if not writer.compresses_on_gpu:
        with_memory(partial(_Download, records), most_blocks).pass_to(writer.write, threads)
        return
    counted = []
    with (
        ThreadPoolExecutor(1, initializer=cuda.current_context().push) as counting,
        ThreadPoolExecutor(1) as index,
        with_memory(_FileThreads, min(threads, _MOST_THREADS)) as file_threads,
    ):
        if writer.checker is not None:
            download = with_memory(partial(_Download, records), most_blocks)
            counted = [counting.submit(download.pass_to, writer.checker.add, threads)]
        plan = with_memory(partial(_Windows, records, writer.is_indexed), most_blocks)
        plan.write(writer, file_threads, index)
        for job in counted:
            job.result()


def with_memory(make: Callable[[int], Made], count: int = 1, least: int = 1) -> Made:
    """Return ``make(count)``, with a smaller count if GPU memory runs out.

    The minimum is tried twice, because memory freed in between may suffice.
    """
    while (made := attempt(partial(make, count))) is None:
        if count <= least:
            return _made_or_refused(partial(make, count))
        count = max(count // 2, least)
    return made


def _made_or_refused(make: Callable[[], Made]) -> Made:
    try:
        return make()
    except Exception as error:
        if not is_gpu_memory_error(error):
            raise
    raise GpuMemoryError("sorting records requires more GPU memory than is free")


class _Download:
    """Windows of complete records that are downloaded uncompressed."""

    def __init__(self, records: SortedRecords, most_blocks: int):
        self._records = records
        self._rows, self._begins = records.rows_of_windows(most_blocks * BLOCK_BYTES)
        # The kernel writes whole words.
        largest = -(-int(np.diff(self._begins).max()) // 4) * 4
        self._bytes = cuda.device_array(largest, np.uint8)
        self._words = cut(self._bytes, 0, largest // 4, np.uint32)

    def pass_to(self, use: Callable[[np.ndarray, np.ndarray], object], threads: int) -> None:
        """Call ``use(data, starts)`` for each window; `starts` has n + 1 elements."""
        rows, begins = self._rows.tolist(), self._begins.tolist()
        # Other windows may be compressed at the same time, in streams of their own.
        stream = cuda.stream()
        for window in range(len(rows) - 1):
            own, first, stop = (rows[window], rows[window + 1]), begins[window], begins[window + 1]
            # A record may be longer than windows.
            if first < stop:
                self._records.copy(own, first, stop, self._bytes, self._words, stream)
                starts = self._records.bounds(own).copy_to_host(stream=stream)
                stream.synchronize()
                data = np.empty(stop - first, np.uint8)
                into_host(data, cut(self._bytes, 0, data.size, np.uint8), threads)
                use(data, starts - first)


class _Windows:
    """Windows of complete blocks that are finished on the GPU."""

    def __init__(self, records: SortedRecords, is_indexed: bool, most_blocks: int):
        self._records = records
        self._step = most_blocks * BLOCK_BYTES
        self._rows = records.rows_of_windows(self._step)[0].tolist()
        most_rows = int(np.diff(self._rows).max()) if is_indexed else None
        self._count = len(self._rows) - 1
        self._windows = [
            _Window(records, most_blocks, most_rows) for _ in range(min(2, self._count))
        ]

    def write(self, writer: BlockWriter, file_threads: "_FileThreads", index) -> None:
        for number in range(self._count):
            window = self._windows[number % 2]
            window.wait()
            first = number * self._step
            window.begin(
                (self._rows[number], self._rows[number + 1]),
                first,
                min(first + self._step, self._records.n_bytes),
            )
            if number:
                self._windows[(number - 1) % 2].hand_on(writer, file_threads, index)
        self._windows[number % 2].hand_on(writer, file_threads, index)
        for window in self._windows:
            window.wait()


class _Window:
    """Memory of a window on the host and on the GPU, and the jobs that still read it."""

    def __init__(self, records: SortedRecords, most_blocks: int, most_rows: int | None):
        self._records = records
        self._loci = None
        if most_rows is not None:
            self._loci = [cuda.device_array(max(1, most_rows), dtype) for dtype in _LOCUS]
            self._pinned = PinnedBuffer()
            # Allocate now, while a smaller size can still be tried.
            self._pinned_arrays(most_rows)
        self._blocks = FinishedBlocks(most_blocks)
        self._rows, self._size = (0, 0), 0
        self._jobs: list[Future] = []

    def begin(self, rows: tuple[int, int], first: int, stop: int) -> None:
        """Start compressing bytes ``[first, stop)``, in which these rows begin, without waiting."""
        blocks, records = self._blocks, self._records
        self._rows, self._size = rows, stop - first
        # The previous record may reach into the window.
        own = (max(rows[0] - 1, 0), rows[1])
        records.copy(own, first, stop, blocks.raw, blocks.raw_words, blocks.stream)
        if self._loci is not None:
            n = rows[1] - rows[0]
            records.loci(rows, self._loci, blocks.stream)
            *loci, starts = self._here()
            for here, there in zip(loci, self._loci, strict=True):
                if n:
                    there[:n].copy_to_host(here[:n], stream=blocks.stream)
            records.bounds(rows).copy_to_host(starts, stream=blocks.stream)
        blocks.begin(stop - first)

    def hand_on(self, writer: BlockWriter, file_threads: "_FileThreads", index) -> None:
        """Wait for the blocks, then let threads write and index them."""
        with span("compress on the GPU"):
            ends = self._blocks.finish()
        descriptor, at = writer.reserve(ends, self._size)
        self._jobs = file_threads.write(self._blocks.file, int(ends[-1]), descriptor, at)
        if self._loci is not None:
            n = self._rows[1] - self._rows[0]
            contigs, firsts, stops, mapped, starts = self._here()
            loci = RecordLoci(contigs[:n], firsts[:n], stops[:n], mapped[:n].view(bool))
            self._jobs.append(index.submit(writer.add_to_index, loci, starts))

    def wait(self) -> None:
        """Wait until the jobs of `hand_on` have finished."""
        with span("wait for the file"):
            for job in self._jobs:
                job.result()
        self._jobs = []

    def _here(self) -> list[np.ndarray]:
        """Return pinned memory for the loci and the stream offsets of the records."""
        return self._pinned_arrays(self._rows[1] - self._rows[0])

    def _pinned_arrays(self, n_rows: int) -> list[np.ndarray]:
        return self._pinned.arrays(n_rows + 1, [*_LOCUS, np.int64])


class _FileThreads:
    """Threads that download finished blocks and write them to a file."""

    def __init__(self, threads: int):
        # Allocated here, because an error in a thread's initializer would be lost.
        self._slots = queue.SimpleQueue()
        for _ in range(threads):
            self._slots.put((cuda.pinned_array(_SLOT, np.uint8), cuda.stream()))
        self._pool = ThreadPoolExecutor(threads, initializer=cuda.current_context().push)

    def __enter__(self) -> "_FileThreads":
        return self

    def __exit__(self, *_) -> None:
        self._pool.shutdown()

    def write(self, blocks, size: int, descriptor: int, at: int) -> list[Future]:
        """Write the first `size` bytes of a device array to a file, at offset `at`."""
        return [
            self._pool.submit(
                self._write, blocks, first, min(_SLOT, size - first), descriptor, at + first
            )
            for first in range(0, size, _SLOT)
        ]

    @on_timeline("download and write blocks")
    def _write(self, blocks, first: int, size: int, descriptor: int, at: int) -> None:
        # There are as many slots as threads, so none waits.
        slot, stream = self._slots.get()
        try:
            driver.device_to_host(slot, cut(blocks, first, size, np.uint8), size, stream)
            stream.synchronize()
            left = memoryview(slot)[:size]
            while left:
                written = os.pwrite(descriptor, left, at)
                left, at = left[written:], at + written
        finally:
            self._slots.put((slot, stream))


# --------------------------------------------------------------------------------------------------
# Copying BAM records between the host and GPUs.


@dataclass(frozen=True)
class DeviceRecords:
    """Some BAM records on a GPU, less than 4 GB.

    Attributes
    ----------
    data : device array, dtype=uint8
        Complete records, concatenated.
    starts : device array, shape=(count + 1,), dtype=uint32
        Start of each record, and the end of the last.
    keys : device array, shape=(count,), dtype=uint64
        Sort keys (see `bwarp.bam.sort_keys`).
    count, n_bytes : int
    gpu : int
        Number of the GPU among those visible to CUDA.
    """

    data: object
    starts: object
    keys: object
    count: int
    n_bytes: int
    gpu: int


def records_on_gpu(records: Records) -> DeviceRecords:
    starts = records.starts - records.starts[0]
    return DeviceRecords(
        cuda.to_device(np.append(records.data, np.uint8(0))),
        cuda.to_device(starts.astype(np.uint32)),
        cuda.to_device(np.append(records.keys, np.uint64(0))),
        records.count,
        int(starts[-1]),
        cuda.get_current_device().id,
    )


def records_from_gpu(records: DeviceRecords) -> DeviceRecords:
    """Copy records from another GPU to the current one."""
    arrays = (copy_from_gpu(a, records.gpu) for a in (records.data, records.starts, records.keys))
    return DeviceRecords(*arrays, records.count, records.n_bytes, cuda.get_current_device().id)


def records_on_host(records: DeviceRecords, pinned: PinnedBuffer) -> Records:
    """Copy records to the host, their bytes to pinned memory."""
    (data,) = pinned.arrays(max(1, records.n_bytes), [np.uint8])
    data = data[: records.n_bytes]
    if data.size:
        records.data[: data.size].copy_to_host(data)
    return Records(
        data,
        records.starts.copy_to_host().astype(np.int64),
        records.keys.copy_to_host()[: records.count],
    )

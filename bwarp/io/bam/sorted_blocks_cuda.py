"""Records in order on the GPU, to a file: in windows of the sorted stream, two at a time.

    window 0   copy in order, sum up, deflate | finish | download, write    | window 2 ...
    window 1                copy in order, sum up, deflate | finish | download, write

Only finished blocks come down, through pinned memory of the threads that write them, and where the
records lie, for the index. What another program compresses, or the host, comes down as it is.
"""

import os
import queue
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import numpy as np

from bwarp.errors import GpuMemoryError
from bwarp.gpu.available_memory import attempt
from bwarp.gpu.cuda import cuda, driver
from bwarp.gpu.pinned_memory import PinnedBuffer
from bwarp.gpu.transfers import into_host
from bwarp.gpu.workspace import cut
from bwarp.io.bam.bai_index import RecordLoci
from bwarp.io.bam.bgzf import BLOCK_BYTES
from bwarp.io.bam.block_writer import BlockWriter
from bwarp.io.bam.finished_blocks_cuda import FinishedBlocks
from bwarp.io.bam.record_order_cuda import SortedRecords
from bwarp.runtime.backend import is_gpu_memory_error
from bwarp.runtime.timeline import on_timeline, span

__all__ = ["BLOCKS_A_WINDOW", "with_memory", "write_sorted"]

#: Blocks that are compressed together. Two windows fill a large GPU, and take four times their
#: bytes.
BLOCKS_A_WINDOW = 4096

#: Threads that write, and the pinned memory of each.
_MOST_THREADS = 4
_SLOT = 16 << 20

#: Types of a record's locus on the GPU.
_LOCUS = (np.int32, np.int64, np.int64, np.uint8)

Made = TypeVar("Made")


@on_timeline("write sorted records")
def write_sorted(
    records: SortedRecords, writer: BlockWriter, threads: int, most_blocks: int = BLOCKS_A_WINDOW
) -> None:
    """Hand records to a writer; on the GPU they are compressed if that is how the writer does it.

    Nothing may be handed to the writer after them.
    """
    if not records.n_bytes:
        return
    most_blocks = min(most_blocks, -(-records.n_bytes // BLOCK_BYTES))
    if not writer.compresses_on_gpu:
        with_memory(partial(_Download, records), most_blocks).write(writer, threads)
        return
    plan = with_memory(partial(_Windows, records, writer.is_indexed), most_blocks)
    with (
        ThreadPoolExecutor(1) as index,
        with_memory(_FileThreads, min(threads, _MOST_THREADS)) as file_threads,
    ):
        plan.write(writer, file_threads, index)


def with_memory(make: Callable[[int], Made], count: int = 1, least: int = 1) -> Made:
    """What ``make(count)`` makes, or of fewer where the GPU's memory is not enough.

    The least are tried twice: what was given back may be enough for them.
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
    raise GpuMemoryError("sorting records takes more GPU memory than is free")


class _Download:
    """Windows of whole records that come down as they are."""

    def __init__(self, records: SortedRecords, most_blocks: int):
        self._records = records
        self._rows, self._begins = records.rows_of_windows(most_blocks * BLOCK_BYTES)
        # Words are written whole.
        largest = -(-int(np.diff(self._begins).max()) // 4) * 4
        self._bytes = cuda.device_array(largest, np.uint8)
        self._words = cut(self._bytes, 0, largest // 4, np.uint32)

    def write(self, writer: BlockWriter, threads: int) -> None:
        rows, begins = self._rows.tolist(), self._begins.tolist()
        for window in range(len(rows) - 1):
            own, first, stop = (rows[window], rows[window + 1]), begins[window], begins[window + 1]
            # A record may be longer than windows.
            if first < stop:
                self._records.copy(own, first, stop, self._bytes, self._words)
                data = np.empty(stop - first, np.uint8)
                into_host(data, cut(self._bytes, 0, data.size, np.uint8), threads)
                writer.write(data, self._records.bounds(own).copy_to_host() - first)


class _Windows:
    """Windows of whole blocks that are finished on the GPU."""

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
    """Memory for a window, here and on the GPU, and who still reads it."""

    def __init__(self, records: SortedRecords, most_blocks: int, most_rows: int | None):
        self._records = records
        self._loci = None
        if most_rows is not None:
            self._loci = [cuda.device_array(max(1, most_rows), dtype) for dtype in _LOCUS]
            self._pinned = PinnedBuffer()
            # As long as fewer rows can be tried.
            self._pinned_arrays(most_rows)
        self._blocks = FinishedBlocks(most_blocks)
        self._rows, self._size = (0, 0), 0
        self._jobs: list[Future] = []

    def begin(self, rows: tuple[int, int], first: int, stop: int) -> None:
        """Have bytes ``[first, stop)`` compressed, in which these rows begin; does not wait."""
        blocks, records = self._blocks, self._records
        self._rows, self._size = rows, stop - first
        # The record before them may reach into the window.
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
        """Wait for the blocks, and have them written and indexed in threads."""
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
        """Until what was handed on is not needed any more."""
        with span("wait for the file"):
            for job in self._jobs:
                job.result()
        self._jobs = []

    def _here(self) -> list[np.ndarray]:
        """Pinned memory for the loci, and for where the records begin in the stream."""
        return self._pinned_arrays(self._rows[1] - self._rows[0])

    def _pinned_arrays(self, n_rows: int) -> list[np.ndarray]:
        return self._pinned.arrays(n_rows + 1, [*_LOCUS, np.int64])


class _FileThreads:
    """Threads that bring finished blocks down and write them to a file."""

    def __init__(self, threads: int):
        # Made here: of an error in a thread that begins nobody would hear what it was.
        self._slots = queue.SimpleQueue()
        for _ in range(threads):
            self._slots.put((cuda.pinned_array(_SLOT, np.uint8), cuda.stream()))
        self._pool = ThreadPoolExecutor(threads, initializer=cuda.current_context().push)

    def __enter__(self) -> "_FileThreads":
        return self

    def __exit__(self, *_) -> None:
        self._pool.shutdown()

    def write(self, blocks, size: int, descriptor: int, at: int) -> list[Future]:
        """Write the first bytes of a device array into a file, from its byte `at` on."""
        return [
            self._pool.submit(
                self._write, blocks, first, min(_SLOT, size - first), descriptor, at + first
            )
            for first in range(0, size, _SLOT)
        ]

    @on_timeline("download and write blocks")
    def _write(self, blocks, first: int, size: int, descriptor: int, at: int) -> None:
        # As many as threads, so none waits for one.
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

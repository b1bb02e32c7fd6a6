"""Writing records to the blocks of a file: threads order and compress them, one thread writes.

    records in order   |rec 7 |rec 2      |rec 9   |rec 0|...        bytes of the stream
    blocks             |        0        |        1        |  2      each BLOCK_BYTES long

A job takes several blocks, gathers the bytes of their records, and compresses them. If a record
crosses a block boundary, each job copies its part.
"""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import IO

import numpy as np

from bwarp.bam.bgzf import BLOCK_BYTES
from bwarp.bam.compression_engine import ON_HOST, Compression, filled
from bwarp.bam.fields import SIZE_BYTES
from bwarp.bam.index import IndexBuilder, RecordLoci, record_loci
from bwarp.bam.records import get_int32
from bwarp.checks.checker import Checker
from bwarp.runtime.compiled_code import compiled, read_only
from bwarp.runtime.threads import for_each_range
from bwarp.runtime.timeline import on_timeline

#: Minimum number of records that a thread looks up.
_LEAST = 1 << 16


class BlockWriter:
    """Writes streams of records to a file. The caller must finally call `finish` or `stop`.

    Parameters
    ----------
    file : file
    threads : int
    compression : Compression
        How blocks are compressed.
    index : IndexBuilder, optional
        Receives every record.
    checker : Checker, optional
        Receives every record.
    """

    def __init__(
        self,
        file: IO[bytes],
        threads: int,
        compression: Compression = ON_HOST,
        index: IndexBuilder | None = None,
        checker: Checker | None = None,
    ):
        self._file = file
        self._blocks, self._blocks_a_job = compression.blocks, compression.blocks_a_job
        #: Whether nvCOMP makes the blocks; the caller may then compress on the GPU as well.
        self.compresses_on_gpu = compression.on_gpu
        self._index = index
        #: The caller of `reserve` must pass it the records that bypass `write`.
        self.checker = checker
        self._threads = threads = min(threads, compression.most_threads)
        self._pool = ThreadPoolExecutor(threads)
        # Indexing and counting records are separate jobs from compressing their blocks.
        self._most_jobs = 3 * (1 + (index is not None) + (checker is not None)) * threads
        self._jobs = deque()
        #: Bytes that do not fill a block yet, and the number of bytes received so far.
        self._rest = np.empty(0, np.uint8)
        self._stream_at = 0
        self._file_at = 0
        self._addresses: list[int] = []

    @contextmanager
    def after(self, header: bytes) -> Iterator["BlockWriter"]:
        """Write the header on entry, and the waiting records on exit unless an error occurred."""
        try:
            self.write_header(header)
            yield self
            self.finish()
        finally:
            self.stop()

    def write_header(self, data: bytes) -> None:
        """Write the bytes before the records, in separate blocks."""
        # On the host even if the GPU compresses records: it may not need lanes at all.
        blocks_of = ON_HOST.blocks if self.compresses_on_gpu else self._blocks
        blocks, _ = blocks_of(len(data), partial(_copy, np.array(bytearray(data), np.uint8)))
        self._file.write(blocks)
        self._file_at += blocks.size

    def write(self, data: np.ndarray, starts: np.ndarray, order: np.ndarray | None = None) -> None:
        """Write the records at `starts` (n + 1) of `data`, in their own order or in `order`.

        A record may end before the next one starts, because its tag was removed. The caller must
        not change the arrays before `finish`.
        """
        # Records from samtools are read-only already; our own are not.
        data = read_only(data)
        if order is None:
            order = np.arange(starts.size - 1, dtype=np.uint32)
        bounds = np.zeros(order.size + 1, np.int64)
        for_each_range(
            lambda first, stop: _list_lengths(data, starts, order, first, stop, bounds[1:]),
            order.size, self._threads, _LEAST,
        )  # fmt: skip
        np.cumsum(bounds, out=bounds)
        rest, total, none = self._rest, int(bounds[-1]), np.empty(0, np.uint8)
        whole = (rest.size + total) // BLOCK_BYTES * BLOCK_BYTES
        step = self._blocks_a_job * BLOCK_BYTES
        for at in range(0, whole, step):
            first, stop = max(at - rest.size, 0), min(at + step, whole) - rest.size
            self._submit_blocks(data, starts, order, bounds, none if at else rest, first, stop)
        done = whole - rest.size if whole else 0
        self._submit_records(data, starts, order, bounds, done, total)
        kept = none if whole else rest
        fill = partial(_fill, data, starts, order, bounds, kept, done, total)
        self._rest = filled(kept.size + total - done, fill)
        self._stream_at += total

    @property
    def is_indexed(self) -> bool:
        return self._index is not None

    def reserve(self, ends: np.ndarray, size: int) -> tuple[int, int]:
        """Reserve room in the file for finished blocks, which the caller writes.

        The blocks follow the records written before, which must fill their blocks. If the last
        block is not full, nothing may follow it.

        Parameters
        ----------
        ends : ndarray, shape=(n_blocks,), dtype=int64
            End of each block, relative to the start of the first.
        size : int
            Uncompressed bytes in the blocks.

        Returns
        -------
        descriptor : int
            File descriptor for `os.pwrite`.
        begin : int
            Offset of the first block in the file.
        """
        while self._jobs:
            self._finish_job()
        if self._rest.size or self._stream_at % BLOCK_BYTES:
            raise ValueError("records wait for others to fill their block")
        begin = self._file_at
        self._take_ends(ends)
        self._stream_at += size
        self._file.flush()
        self._file.seek(self._file_at)
        return self._file.fileno(), begin

    def add_to_index(self, loci: RecordLoci, stream_starts: np.ndarray) -> None:
        """Add the records of `reserve` to the index, in order; call it from one thread at a time.

        `stream_starts` (n + 1) holds the start of each record in the stream, and the end of the
        last.
        """
        self._index.add(loci, stream_starts)

    @property
    def block_addresses(self) -> np.ndarray:
        """File offsets of the blocks of records, and of the end of the last, int64."""
        return np.array([*self._addresses, self._file_at], np.int64)

    def finish(self) -> None:
        """Write the remaining records."""
        while self._jobs:
            self._finish_job()
        self._pool.shutdown()
        if self._rest.size:
            self._write_blocks(self._blocks(self._rest.size, partial(_copy, self._rest)))

    def stop(self) -> None:
        """Cancel everything that is not written yet."""
        self._pool.shutdown(cancel_futures=True)

    def _submit_records(self, data, starts, order, bounds, first: int, stop: int) -> None:
        """Index and count the records that begin in bytes ``[first, stop)``."""
        rows = slice(*np.searchsorted(bounds[:-1], [first, stop]).tolist())
        if self._index is not None:
            stream_starts = bounds[rows.start : rows.stop + 1] + self._stream_at
            self._submit(
                lambda: record_loci(data, starts[order[rows]]),
                lambda loci: self._index.add(loci, stream_starts),
            )
        if self.checker is not None:
            checker = self.checker
            self._submit(lambda: checker.count(data, starts[order[rows]]), checker.take)

    def _submit_blocks(self, data, starts, order, bounds, rest, first: int, stop: int) -> None:
        def run() -> tuple[np.ndarray, np.ndarray]:
            fill = partial(_fill, data, starts, order, bounds, rest, first, stop)
            return self._blocks(rest.size + stop - first, fill)

        self._submit_records(data, starts, order, bounds, first, stop)
        self._submit(run, self._write_blocks)

    def _submit(self, run: Callable, use: Callable) -> None:
        """Call `run` in a thread; the calling thread passes the results to `use` in order."""
        self._jobs.append((self._pool.submit(run), use))
        while len(self._jobs) > self._most_jobs:
            self._finish_job()

    def _finish_job(self) -> None:
        future, use = self._jobs.popleft()
        use(future.result())

    def _write_blocks(self, blocks_and_ends: tuple[np.ndarray, np.ndarray]) -> None:
        blocks, ends = blocks_and_ends
        self._take_ends(ends)
        self._file.write(blocks)

    def _take_ends(self, ends: np.ndarray) -> None:
        self._addresses.extend([self._file_at, *(self._file_at + ends[:-1]).tolist()])
        self._file_at += int(ends[-1])


@compiled
def _list_lengths(data, starts, order, first, stop, lengths):
    """Write the lengths of some records in order."""
    for row in range(first, stop):
        lengths[row] = SIZE_BYTES + get_int32(data, starts[order[row]])


def _copy(data: np.ndarray, out: np.ndarray) -> None:
    out[:] = data


@on_timeline("put records in order")
def _fill(data, starts, order, bounds, rest, first: int, stop: int, out: np.ndarray) -> None:
    """Write `rest`, then the bytes ``[first, stop)`` of the records in order."""
    out[: rest.size] = rest
    _gather(data, starts, order, bounds, first, stop, out, rest.size)


@compiled
def _gather(data, starts, order, bounds, first, stop, out, at):
    """Copy the bytes ``[first, stop)`` of the records in order; record i begins at bounds[i]."""
    if first >= stop:
        return
    row = np.searchsorted(bounds, first, side="right") - 1
    skip = first - bounds[row]
    while first < stop:
        source = np.uint64(starts[order[row]] + skip)
        length = min(bounds[row + 1], stop) - first
        to = np.uint64(at)
        # LLVM vectorises this copy only with unsigned indexes.
        for i in range(np.uint64(length)):
            out[to + i] = data[source + i]
        at += length
        first += length
        skip = np.int64(0)
        row += 1

"""Records to blocks of a file: put in order and compressed in threads, written by one.

    records in order   |rec 7 |rec 2      |rec 9   |rec 0|...        bytes of the stream
    blocks             |        0        |        1        |  2      each BLOCK_BYTES long

A job takes some blocks, gathers their bytes from where the records lie, and compresses them. Where
a record crosses from one block into the next, each job copies its part.
"""

from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import IO

import numpy as np

from bwarp.bam.bgzf import BLOCK_BYTES
from bwarp.bam.compression import ON_HOST, Compression, filled
from bwarp.bam.index import IndexBuilder, RecordLoci, record_loci
from bwarp.runtime.compiled_code import compiled, read_only
from bwarp.runtime.timeline import on_timeline


class BlockWriter:
    """Writes streams of records to a file; `finish` or `stop` must be called in the end.

    Parameters
    ----------
    file : file
    threads : int
    compression : Compression
        How its blocks are made.
    index : IndexBuilder, optional
        Gets every record.
    """

    def __init__(
        self,
        file: IO[bytes],
        threads: int,
        compression: Compression = ON_HOST,
        index: IndexBuilder | None = None,
    ):
        self._file = file
        self._blocks, self._blocks_a_job = compression.blocks, compression.blocks_a_job
        #: Whether its blocks are those of nvCOMP, and may be made elsewhere by that.
        self.compresses_on_gpu = compression.on_gpu
        self._index = index
        threads = min(threads, compression.most_threads)
        self._pool = ThreadPoolExecutor(threads)
        # What goes to the index is a job beside that of its blocks.
        self._most_jobs = (3 if index is None else 6) * threads
        self._jobs = deque()
        #: Bytes that do not fill a block yet, and how many were handed in before those to come.
        self._rest = np.empty(0, np.uint8)
        self._stream_at = 0
        self._file_at = 0
        self._addresses: list[int] = []

    def write_header(self, data: bytes) -> None:
        """Bytes before the records, in blocks of their own."""
        # On the host even where records are compressed on a GPU: lanes for them may not be needed.
        blocks_of = ON_HOST.blocks if self.compresses_on_gpu else self._blocks
        blocks, _ = blocks_of(len(data), partial(_copy, np.array(bytearray(data), np.uint8)))
        self._file.write(blocks)
        self._file_at += blocks.size

    def write(self, data: np.ndarray, starts: np.ndarray, order: np.ndarray | None = None) -> None:
        """Records at `starts` (n + 1) of `data`, one after another or in another order.

        The arrays must stay as they are until `finish`.
        """
        # Records of samtools are, our own are not.
        data = read_only(data)
        if order is None:
            order = np.arange(starts.size - 1, dtype=np.uint32)
        bounds = np.concatenate([[0], np.cumsum(np.diff(starts)[order])])
        rest, total, none = self._rest, int(bounds[-1]), np.empty(0, np.uint8)
        whole = (rest.size + total) // BLOCK_BYTES * BLOCK_BYTES
        step = self._blocks_a_job * BLOCK_BYTES
        for at in range(0, whole, step):
            first, stop = max(at - rest.size, 0), min(at + step, whole) - rest.size
            self._submit_blocks(data, starts, order, bounds, none if at else rest, first, stop)
        done = whole - rest.size if whole else 0
        self._submit_loci(data, starts, order, bounds, done, total)
        kept = none if whole else rest
        fill = partial(_fill, data, starts, order, bounds, kept, done, total)
        self._rest = filled(kept.size + total - done, fill)
        self._stream_at += total

    @property
    def is_indexed(self) -> bool:
        return self._index is not None

    def reserve(self, ends: np.ndarray, size: int) -> tuple[int, int]:
        """Take finished blocks of the stream into the file, which the caller writes there.

        They follow the records that came before, which must fill their blocks; where the last of
        them is not full, nothing may follow.

        Parameters
        ----------
        ends : ndarray, shape=(n_blocks,), dtype=int64
            Where each ends, counted from where the first begins.
        size : int
            Bytes of the stream that they hold.

        Returns
        -------
        descriptor : int
            Of the file, for `os.pwrite`.
        begin : int
            Where in it the first block begins.
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
        """Give the index the records of `reserve`, in order; from one thread at a time.

        `stream_starts` (n + 1) is where each begins in the stream, and where the last ends.
        """
        self._index.add(loci, stream_starts)

    @property
    def block_addresses(self) -> np.ndarray:
        """Where in the file the blocks of records begin, and where the last one ends, int64."""
        return np.array([*self._addresses, self._file_at], np.int64)

    def finish(self) -> None:
        """Write what is left."""
        while self._jobs:
            self._finish_job()
        self._pool.shutdown()
        if self._rest.size:
            self._write_blocks(self._blocks(self._rest.size, partial(_copy, self._rest)))

    def stop(self) -> None:
        """Leave undone what is not written yet."""
        self._pool.shutdown(cancel_futures=True)

    def _submit_loci(self, data, starts, order, bounds, first: int, stop: int) -> None:
        """Give the index the records that begin in bytes ``[first, stop)``."""
        if self._index is None:
            return
        rows = slice(*np.searchsorted(bounds[:-1], [first, stop]).tolist())
        stream_starts = bounds[rows.start : rows.stop + 1] + self._stream_at
        self._submit(
            lambda: record_loci(data, starts[order[rows]]),
            lambda loci: self._index.add(loci, stream_starts),
        )

    def _submit_blocks(self, data, starts, order, bounds, rest, first: int, stop: int) -> None:
        def run() -> tuple[np.ndarray, np.ndarray]:
            fill = partial(_fill, data, starts, order, bounds, rest, first, stop)
            return self._blocks(rest.size + stop - first, fill)

        self._submit_loci(data, starts, order, bounds, first, stop)
        self._submit(run, self._write_blocks)

    def _submit(self, run: Callable, use: Callable) -> None:
        """Run something in a thread, and in its turn use what comes of it in this one."""
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


def _copy(data: np.ndarray, out: np.ndarray) -> None:
    out[:] = data


@on_timeline("put records in order")
def _fill(data, starts, order, bounds, rest, first: int, stop: int, out: np.ndarray) -> None:
    """Write `rest` and then the bytes ``[first, stop)`` of the records in order."""
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
        # Only unsigned indexes let LLVM copy in vectors.
        for i in range(np.uint64(length)):
            out[to + i] = data[source + i]
        at += length
        first += length
        skip = np.int64(0)
        row += 1

"""Sorting records: in memory, and in sorted runs on disk where there are more than fit.

    records in any order -> store -> in order -> file
                              |                    ^
                              '-> runs on disk ----'  merged, in order

A run takes two thirds of the memory. It is put in order and written by threads of its own while
more records come, which take the other third as long as it is there.
"""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from bwarp.io.bam.bgzf import END_OF_FILE
from bwarp.io.bam.block_writer import BlockWriter
from bwarp.io.bam.compression import ON_HOST, Compression
from bwarp.io.bam.merging import merged, whole_records
from bwarp.io.bam.records import Records
from bwarp.io.bam.sort_order import sorted_order
from bwarp.io.file_blocks import read_binary_blocks
from bwarp.runtime.threads import read_ahead
from bwarp.runtime.timeline import on_timeline

__all__ = ["RecordSorter", "merge_runs", "run_file"]

#: Bytes of a run that are inflated at a time: the most, and as a part of the memory. Of every run
#: one piece is inflated, one parsed, one waits, and one is merged; of several threads each inflates
#: one, and as many wait.
_MOST_BYTES_A_PIECE = 16 << 20
_PIECES = 4


class RecordSorter:
    """Takes records in any order, and writes them in order to a `BlockWriter` in the end.

    It is a context: where that is left nothing is written to the folder any more.

    Parameters
    ----------
    folder : Path
        Where runs are written when the records do not fit into memory.
    contig_starts : ndarray, shape=(n_contigs + 1,), dtype=int64
        Of the contigs that the header names, end to end.
    most_bytes : int
        Records kept in memory; sorting them takes about a sixth more.
    threads : int
    compression : Compression
        Of the runs.
    """

    def __init__(
        self,
        folder: Path,
        contig_starts: np.ndarray,
        most_bytes: int,
        threads: int,
        compression: Compression = ON_HOST,
    ):
        self._compression = compression
        self._folder = folder
        self._contig_starts = contig_starts
        self._threads = threads
        self._most_bytes = most_bytes
        # Memory that is not touched is not taken.
        self._data = np.empty(self._bytes_a_run, np.uint8)
        self._used = 0
        self._starts: list[np.ndarray] = []
        self._keys: list[np.ndarray] = []
        self._runs: list[Path] = []
        self._pool = ThreadPoolExecutor(1)
        self._writing: Future | None = None

    def __enter__(self) -> "RecordSorter":
        return self

    def __exit__(self, *_) -> None:
        self._pool.shutdown(cancel_futures=True)

    @property
    def _bytes_a_run(self) -> int:
        return self._most_bytes * 2 // 3

    @on_timeline("keep records to sort")
    def add(self, records: Records) -> None:
        if self._used + records.data.size > self._most_bytes - self._bytes_a_run:
            self._wait()
        if self._used + records.data.size > self._data.size and self._used:
            self._begin_run()
        if records.data.size > self._data.size:
            self._data = np.empty(records.data.size, np.uint8)
        stop = self._used + records.data.size
        self._data[self._used : stop] = records.data
        self._starts.append(records.starts[:-1] + self._used)
        self._keys.append(records.keys)
        self._used = stop

    def finish(self, writer: BlockWriter) -> None:
        """Hand all records to the writer in order."""
        if not self._runs:
            self._write_to(writer, *self._stored())
            return
        self._begin_run()
        self._wait()
        merge_runs(self._runs, writer, self._contig_starts, self._most_bytes, self._threads)

    def _stored(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What is in memory: the bytes, where records begin in them and all end, and their keys."""
        starts = np.concatenate([*self._starts, [self._used]])
        return self._data, starts, np.concatenate([*self._keys, np.empty(0, np.uint64)])

    def _write_to(self, writer: BlockWriter, data, starts, keys) -> None:
        writer.write(data, starts, sorted_order(keys, self._threads))

    def _begin_run(self) -> None:
        """Have what is in memory written as a run, when the one before it has been."""
        self._wait()
        path = self._folder / f"run{len(self._runs)}"
        self._runs.append(path)
        self._writing = self._pool.submit(self._write_run, path, *self._stored())
        self._data = np.empty(self._bytes_a_run, np.uint8)
        self._starts, self._keys, self._used = [], [], 0

    def _wait(self) -> None:
        if self._writing is not None:
            self._writing.result()
            self._writing = None

    def _write_run(self, path: Path, data, starts, keys) -> None:
        with run_file(path, self._threads, self._compression) as writer:
            self._write_to(writer, data, starts, keys)


@contextmanager
def run_file(path: Path, threads: int, compression: Compression) -> Iterator[BlockWriter]:
    """Write a sorted run: records without a header."""
    with open(path, "wb") as file:
        writer = BlockWriter(file, threads, compression)
        try:
            yield writer
            writer.finish()
        finally:
            writer.stop()
        file.write(END_OF_FILE)


def merge_runs(
    paths: list[Path],
    writer: BlockWriter,
    contig_starts: np.ndarray,
    most_bytes: int,
    threads: int,
) -> None:
    """Hand the records of sorted runs to the writer in order; equal keys in the order of the runs.

    Parameters
    ----------
    most_bytes : int
        Of memory, for what is read of them.
    """
    threads_a_run = max(1, threads // len(paths))
    pieces = _PIECES + (2 * threads_a_run if threads_a_run > 1 else 0)
    piece = max(min(most_bytes // (pieces * len(paths)), _MOST_BYTES_A_PIECE), 1)
    runs = [
        read_ahead(
            whole_records(path, read_binary_blocks(path, piece, threads_a_run), contig_starts),
            most=1,
        )
        for path in paths
    ]
    for records, order in read_ahead(merged(runs, threads)):
        writer.write(records.data, records.starts, order)

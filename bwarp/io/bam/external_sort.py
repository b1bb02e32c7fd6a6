"""Sorting records: in memory, and in sorted runs on disk where there are more than fit.

records in any order -> store -> in order -> file
                          |                    ^
                          '-> runs on disk ----'  merged, in order
"""

from contextlib import ExitStack
from pathlib import Path

import numpy as np

from bwarp.io.bam.bgzf import BLOCK_BYTES, END_OF_FILE, read_bgzf
from bwarp.io.bam.block_writer import BlockWriter
from bwarp.io.bam.compression import ON_HOST, Compression
from bwarp.io.bam.merging import merged, whole_records
from bwarp.io.bam.records import Records
from bwarp.io.bam.sort_order import sorted_order

__all__ = ["RecordSorter"]


class RecordSorter:
    """Takes records in any order, and writes them in order to a `BlockWriter` in the end.

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
        # Memory that is not touched is not taken.
        self._data = np.empty(most_bytes, np.uint8)
        self._used = 0
        self._starts: list[np.ndarray] = []
        self._keys: list[np.ndarray] = []
        self._runs: list[Path] = []

    def add(self, records: Records) -> None:
        if self._used + records.data.size > self._data.size and self._used:
            self._write_run()
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
            self._write_stored(writer)
            return
        self._write_run()
        window = self._data.size // (4 * len(self._runs))
        self._data = np.empty(0, np.uint8)
        with ExitStack() as files:
            runs = []
            for path in self._runs:
                file = files.enter_context(open(path, "rb"))
                blocks = read_bgzf(file, path, 1, max(window // BLOCK_BYTES, 1))
                runs.append(whole_records(path, blocks, self._contig_starts))
            for records, order in merged(runs):
                writer.write(records.data, records.starts, order)

    def _write_stored(self, writer: BlockWriter) -> None:
        starts = np.concatenate([*self._starts, [self._used]])
        keys = np.concatenate([*self._keys, np.empty(0, np.uint64)])
        order = sorted_order(keys, self._threads)
        writer.write(self._data, starts, order)

    def _write_run(self) -> None:
        path = self._folder / f"run{len(self._runs)}"
        with open(path, "wb") as file:
            writer = BlockWriter(file, self._threads, self._compression)
            try:
                self._write_stored(writer)
                writer.finish()
            finally:
                writer.stop()
            file.write(END_OF_FILE)
        self._runs.append(path)
        self._starts, self._keys, self._used = [], [], 0

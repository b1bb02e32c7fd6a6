"""Sorting records in memory, or in sorted runs on disk if they do not fit.

    records in any order -> store -> in order -> file
                              |                    ^
                              '-> runs on disk ----'  merged, in order

A run takes two thirds of the memory. Separate threads sort and write it while more records arrive,
which take the other third until the run is written.

Merging takes a window of each stream, and emits records up to the last key known in all of them.

To mark duplicates, templates are listed before a run is written, and records are marked when all
templates are known: in memory, or when runs are merged.
"""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from bwarp.bam.bgzf import END_OF_FILE
from bwarp.bam.block_writer import BlockWriter
from bwarp.bam.compression_engine import ON_HOST, Compression
from bwarp.bam.duplicates import DuplicateMarker
from bwarp.bam.fields import (
    FIXED_BYTES,
    FLAG_AT,
    NAME_BYTES_AT,
    OPERATIONS_AT,
    POSITION_AT,
    REVERSE,
    SIZE_BYTES,
)
from bwarp.bam.records import Records, get_int16, get_int32, record_starts
from bwarp.bam.sort_keys import NO_POSITION, sorted_order
from bwarp.errors import InputError
from bwarp.io.compressed_files import read_binary_blocks
from bwarp.runtime.chunks import read_ahead
from bwarp.runtime.compiled_code import compiled, read_only
from bwarp.runtime.threads import for_each_range
from bwarp.runtime.timeline import on_timeline

# --------------------------------------------------------------------------------------------------
# Merging sorted streams of records.


def whole_records(path, blocks: Iterator[bytes], contig_starts: np.ndarray) -> Iterator[Records]:
    """Yield the records of a sorted stream of bytes in groups; blocks may split records.

    Parameters
    ----------
    path : path-like
        Name of the input for error messages.
    blocks : iterator of bytes or of views of bytes
    contig_starts : ndarray, shape=(n_contigs + 1,), dtype=int64
        Starts of the concatenated contigs of the header, and the end of the last.
    """
    rest = np.empty(0, np.uint8)
    for block in blocks:
        data = read_only(np.concatenate([rest, np.frombuffer(block, np.uint8)]))
        starts = record_starts(data)
        rest = data[starts[-1] :].copy()
        keys, damaged = _keys(data, starts, contig_starts)
        if damaged or (rest.size >= 4 and get_int32(data, starts[-1]) < FIXED_BYTES):
            raise InputError(f"{path}: a record is damaged: write the file again")
        if np.any(keys[1:] < keys[:-1]):
            raise InputError(
                f"{path}: the records are not sorted as the header states: sort the file"
            )
        if keys.size:
            yield Records(data[: starts[-1]], starts, keys)
    if rest.size:
        raise InputError(f"{path}: the file is truncated in a record: write it again")


@compiled
def _keys(data, starts, contig_starts):
    """Return the keys (see `sort_keys`), and whether a record is inconsistent."""
    keys = np.empty(starts.size - 1, np.uint64)
    for i in range(keys.size):
        at = starts[i] + SIZE_BYTES
        contig = get_int32(data, at)
        position = get_int32(data, at + POSITION_AT)
        operations = get_int16(data, at + OPERATIONS_AT)
        size = FIXED_BYTES + np.int64(data[at + NAME_BYTES_AT]) + 4 * operations
        longer = size > starts[i + 1] - at
        if longer or contig < -1 or contig >= contig_starts.size - 1:
            return keys, True
        keys[i] = NO_POSITION
        if contig >= 0:
            if position < 0 or position >= contig_starts[contig + 1] - contig_starts[contig]:
                return keys, True
            reverse = data[at + FLAG_AT] & REVERSE != 0
            keys[i] = (contig_starts[contig] + position) << 1 | reverse
    return keys, False


@on_timeline("merge sorted runs")
def merged(runs: list[Iterator[Records]], threads: int = 1) -> Iterator[tuple[Records, np.ndarray]]:
    """Yield the records of sorted runs in batches, each with its sorted order.

    Among equal keys, records of earlier runs come first. A window of each run is in memory. The
    window with the smallest last key determines how far the merged order is known: up to that key,
    and including it for earlier runs, whose windows hold all records with that key.
    """
    windows = [(number, records) for number, run in enumerate(runs) if (records := next(run, None))]
    while windows:
        end, last = min((records.keys[-1], number) for number, records in windows)
        taken, left = [], []
        for number, records in windows:
            side = "right" if number <= last else "left"
            count = int(np.searchsorted(records.keys, end, side=side))
            taken.append(_part(records, 0, count))
            rest = _part(records, count, records.count)
            if not rest.count:
                rest = next(runs[number], None)
            if rest is not None:
                left.append((number, rest))
        windows = left
        records = _joined(taken, threads)
        yield records, sorted_order(records.keys)


def _part(records: Records, first: int, stop: int) -> Records:
    starts = records.starts[first : stop + 1]
    return Records(
        records.data[starts[0] : starts[-1]], starts - starts[0], records.keys[first:stop]
    )


def _joined(parts: list[Records], threads: int) -> Records:
    ends = np.cumsum([0] + [part.data.size for part in parts])
    starts = [part.starts[:-1] + end for part, end in zip(parts, ends, strict=False)]
    data = np.empty(ends[-1], np.uint8)

    def copy(first: int, last: int) -> None:
        for number in range(first, last):
            data[ends[number] : ends[number + 1]] = parts[number].data

    # The system hands a thread new memory at one gigabyte per second.
    for_each_range(copy, len(parts), threads, smallest=1)
    return Records(
        data, np.concatenate([*starts, ends[-1:]]), np.concatenate([part.keys for part in parts])
    )


#: Maximum bytes of a run inflated at a time, and pieces of a run in memory: one is inflated, one is
#: parsed, one waits, and one is merged. With several threads per run, each thread inflates one
#: more, and as many wait.
_MOST_BYTES_A_PIECE = 16 << 20
_PIECES = 4

#: Threads that copy records to the memory of a sorter: the system hands a thread new memory at one
#: gigabyte per second. Then the maximum number of groups of records that wait for them.
_COPYING, _MOST_COPIES = 4, 8


class RecordSorter:
    """Takes records in any order, and finally writes them in order to a `BlockWriter`.

    It is a context manager: nothing is written to the folder after it exits.

    Parameters
    ----------
    folder : Path
        Folder for the runs, used if the records do not fit into memory.
    contig_starts : ndarray, shape=(n_contigs + 1,), dtype=int64
        Starts of the concatenated contigs of the header, and the end of the last.
    most_bytes : int
        Maximum bytes of records in memory; sorting them takes about a sixth more.
    threads : int
    compression : Compression
        Compression of the runs.
    duplicates : DuplicateMarker, optional
        Marks duplicates.
    """

    def __init__(
        self,
        folder: Path,
        contig_starts: np.ndarray,
        most_bytes: int,
        threads: int,
        compression: Compression = ON_HOST,
        duplicates: DuplicateMarker | None = None,
    ):
        self._compression, self._duplicates = compression, duplicates
        self._folder = folder
        self._contig_starts = contig_starts
        self._threads = threads
        self._most_bytes = most_bytes
        # The system allocates memory only when it is first written.
        self._data = np.empty(self._bytes_a_run, np.uint8)
        self._used = 0
        self._starts: list[np.ndarray] = []
        self._keys: list[np.ndarray] = []
        self._runs: list[Path] = []
        self._pool = ThreadPoolExecutor(1)
        self._writing: Future | None = None
        self._copying = ThreadPoolExecutor(min(threads, _COPYING))
        self._copies: deque[Future] = deque()

    def __enter__(self) -> "RecordSorter":
        return self

    def __exit__(self, *_) -> None:
        self._copying.shutdown(cancel_futures=True)
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
        self._copies.append(
            self._copying.submit(np.copyto, self._data[self._used : stop], records.data)
        )
        if len(self._copies) > _MOST_COPIES:
            self._copies.popleft().result()
        self._starts.append(records.starts[:-1] + self._used)
        self._keys.append(records.keys)
        self._used = stop

    def finish(self, writer: BlockWriter) -> None:
        """Write all records in order."""
        if self._runs:
            self._begin_run()
            self._wait()
            merge_runs(
                self._runs, writer, self._contig_starts, self._most_bytes, self._threads,
                self._duplicates,
            )  # fmt: skip
            return
        records = self._stored()
        if self._duplicates is not None:
            self._duplicates.add(records)
            self._duplicates.find()
            self._duplicates.mark(records)
        self._write_to(writer, records)

    def _stored(self) -> Records:
        """Return the records in memory."""
        while self._copies:
            self._copies.popleft().result()
        starts = np.concatenate([*self._starts, [self._used]])
        return Records(self._data, starts, np.concatenate([*self._keys, np.empty(0, np.uint64)]))

    def _write_to(self, writer: BlockWriter, records: Records) -> None:
        writer.write(records.data, records.starts, sorted_order(records.keys, self._threads))

    def _begin_run(self) -> None:
        """Wait for the previous run, then start writing the records in memory as a run."""
        self._wait()
        path = self._folder / f"run{len(self._runs)}"
        self._runs.append(path)
        self._writing = self._pool.submit(self._write_run, path, self._stored())
        self._data = np.empty(self._bytes_a_run, np.uint8)
        self._starts, self._keys, self._used = [], [], 0

    def _wait(self) -> None:
        if self._writing is not None:
            self._writing.result()
            self._writing = None

    def _write_run(self, path: Path, records: Records) -> None:
        if self._duplicates is not None:
            self._duplicates.add(records)
        with run_file(path, self._threads, self._compression) as writer:
            self._write_to(writer, records)


@contextmanager
def run_file(path: Path, threads: int, compression: Compression) -> Iterator[BlockWriter]:
    """Write a sorted run: records without a header."""
    with open(path, "wb") as file:
        with BlockWriter(file, threads, compression).after(b"") as writer:
            yield writer
        file.write(END_OF_FILE)


def merge_runs(
    paths: list[Path],
    writer: BlockWriter,
    contig_starts: np.ndarray,
    most_bytes: int,
    threads: int,
    duplicates: DuplicateMarker | None = None,
) -> None:
    """Write the records of sorted runs in order; equal keys come in the order of the runs.

    Parameters
    ----------
    most_bytes : int
        Memory for the input buffers.
    duplicates : DuplicateMarker, optional
        Has the templates of all runs; the records are marked.
    """
    if duplicates is not None:
        duplicates.find()
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
        if duplicates is not None:
            duplicates.mark(records)
        writer.write(records.data, records.starts, order)

"""Sorting records on the GPU: they stay there, and only compressed blocks are downloaded.

    groups of records -> store on the GPU -> in order -> blocks -> file
    of this GPU or            |                                     ^
    of others                 '-> runs on disk ---------------------'  merged by the host

The file is the same as that of `bwarp.bam.external_sort`, which also merges the runs on disk. To
mark duplicates, the templates of each group are listed when it arrives, and records are marked in
the store after sorting, or when runs are merged.

The store is a single allocation; all arrays for sorting the records are cut out of it:

    coming      | bytes of the records ... >       free            < ... keys and starts |
    to sort     | bytes of the records | starts | numbers | numbers | keys    | keys     |
    in order    | bytes of the records | starts | order   |         | sources and bounds |

So no other allocation can take this memory, and all stored records can be sorted.
"""

from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from pathlib import Path

import numpy as np

from bwarp.bam.block_writer import BlockWriter
from bwarp.bam.compression_engine import ON_HOST, Compression
from bwarp.bam.duplicate_rules import Grouping, Marks, mark_record
from bwarp.bam.duplicates import DuplicateMarker
from bwarp.bam.duplicates_cuda import DeviceDuplicates
from bwarp.bam.external_sort import merge_runs, run_file
from bwarp.bam.record_order_cuda import BYTES_TO_SORT, SortedRecords
from bwarp.bam.records import Records
from bwarp.bam.sorted_blocks_cuda import (
    BLOCKS_A_WINDOW,
    DeviceRecords,
    records_from_gpu,
    records_on_gpu,
    with_memory,
    write_sorted,
)
from bwarp.gpu.available_memory import attempt
from bwarp.gpu.cuda import cuda, driver, int64, uint8, uint32, uint64
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import launch
from bwarp.gpu.memory_pool import ALIGNMENT, cut, room_for
from bwarp.gpu.sums_and_sorts import pair_sorter
from bwarp.runtime.timeline import on_timeline, span

#: Record numbers are uint32.
_MOST_RECORDS = (1 << 32) - 2

#: Bytes of a store in addition to those per record: arrays begin at multiples of `ALIGNMENT`, and
#: some have one element more than there are records.
_BESIDE = 16 * ALIGNMENT


class DeviceRecordSorter:
    """Takes records in any order, and finally writes them in order, on the current GPU.

    It is a context manager, which holds its GPU memory until it exits.

    Parameters
    ----------
    folder : Path
        Folder for the runs, used if the records do not fit into GPU memory.
    contig_starts : ndarray, shape=(n_contigs + 1,), dtype=int64
        Starts of the concatenated contigs of the header, and the end of the last.
    most_bytes : int
        GPU memory for storing and sorting the records, allocated when the first records arrive:
        less if not available, more if a group needs more. Writing additionally takes four times the
        bytes of two windows.
    threads : int
        Threads of the host.
    compression : Compression
        Compression of the runs.
    merge_bytes : int
        Host memory for merging runs.
    most_blocks : int
        Maximum number of blocks per window.
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
        merge_bytes: int = 1 << 30,
        most_blocks: int = BLOCKS_A_WINDOW,
        *,
        duplicates: DuplicateMarker | None = None,
    ):
        self._folder, self._contig_starts = folder, contig_starts
        self._most_bytes, self._merge_bytes = most_bytes, merge_bytes
        self._threads, self._compression, self._most_blocks = threads, compression, most_blocks
        #: The key of records without a position: greater than all others, with few bits.
        self._last_key = 2 * int(contig_starts[-1])
        self._runs: list[Path] = []
        self._store: _Store | None = None
        self._duplicates = duplicates
        self._templates = None if duplicates is None else DeviceDuplicates(duplicates, threads)

    def __enter__(self) -> "DeviceRecordSorter":
        return self

    def __exit__(self, *_) -> None:
        self._store = None
        if self._templates is not None:
            self._templates.stop()

    @on_timeline("keep records to sort")
    def add(self, records: DeviceRecords | Records) -> None:
        """Copy records; those on the host or on another GPU are sent to this one.

        The caller must not change them afterwards, because their templates may still be read.
        """
        if not records.count:
            return
        if isinstance(records, Records):
            records = self._sent(partial(records_on_gpu, records))
        elif records.gpu != cuda.get_current_device().id:
            records = self._sent(partial(records_from_gpu, records))
        if self._templates is not None:
            self._templates.add(records)
        count, n_bytes = records.count, records.n_bytes
        if not self._has_room(count, n_bytes):
            self._write_run()
            if not self._has_room(count, n_bytes):
                # Release the old store first: two may not fit.
                self._store = None
                least = _bytes_for(count, n_bytes)
                self._store = with_memory(_Store, max(self._most_bytes, least), least)
        self._store.append(records, self._last_key)

    def finish(self, writer: BlockWriter) -> None:
        """Write all records in order."""
        if not self._runs:
            self._write_to(writer, None if self._templates is None else self._templates.find())
            return
        self._write_run()
        self._store = None
        if self._templates is not None:
            self._templates.wait()
        merge_runs(
            self._runs, writer, self._contig_starts, self._merge_bytes, self._threads,
            self._duplicates,
        )  # fmt: skip

    def _sent(self, send: Callable[[], DeviceRecords]) -> DeviceRecords:
        """Return the result of ``send()``; write and release the store if memory runs out."""
        there = attempt(send)
        if there is not None:
            return there
        self._write_run()
        if self._store is not None:
            # The next store must leave room for such records.
            self._most_bytes = self._store.size // 2
            self._store = None
        return with_memory(lambda _: send())

    def _has_room(self, count: int, n_bytes: int) -> bool:
        return self._store is not None and self._store.has_room(count, n_bytes)

    def _write_run(self) -> None:
        """Write the store as a run and empty it, if it holds records."""
        if self._store is None or not self._store.count:
            return
        path = self._folder / f"run{len(self._runs)}"
        self._runs.append(path)
        with run_file(path, self._threads, self._compression) as writer:
            self._write_to(writer)

    def _write_to(self, writer: BlockWriter, found: Future | None = None) -> None:
        """Write the store and empty it; if duplicates are found in the meantime, mark them."""
        store = self._store if self._store is not None and self._store.count else None
        if store is not None:
            store.sort(max(1, self._last_key.bit_length()))
        if found is not None:
            with span("wait for duplicates"):
                found.result()
        if store is not None:
            if found is not None:
                store.mark_duplicates(self._templates.grouping, self._templates.marks())
            write_sorted(store.in_order(), writer, self._threads, self._most_blocks)
            store.empty()


class _Store:
    """GPU memory for storing and sorting records.

    Parameters
    ----------
    size : int
        Size in bytes; see `_bytes_for`.
    """

    def __init__(self, size: int):
        # A multiple of words and of table rows (two numbers each), which count from the end.
        self.size = -(-size // 16) * 16
        self._data = cuda.device_array(self.size, np.uint8)
        self._words = cut(self._data, 0, self.size // 4, np.uint32)
        self._table = cut(self._data, 0, self.size // 8, np.uint64)
        self.count = self._used = 0
        self._order: tuple | None = None

    def has_room(self, count: int, n_bytes: int) -> bool:
        """Return whether more records fit, including the memory to sort them all."""
        count += self.count
        return count <= _MOST_RECORDS and _bytes_for(count, self._used + n_bytes) <= self.size

    def append(self, records: DeviceRecords, last_key: int) -> None:
        """Append records, for which there must be room; keys are limited to `last_key`."""
        own = cut(self._data, self._used, records.n_bytes, np.uint8)
        driver.device_to_device(own, records.data, records.n_bytes)
        append_records[launch(records.count)](
            records.starts, records.keys, records.count, self.count, self._used, last_key,
            self._table,
        )  # fmt: skip
        self._used += records.n_bytes
        self.count += records.count

    @on_timeline("sort records")
    def sort(self, key_bits: int) -> None:
        """Sort all records by keys of `key_bits` bits; append nothing more before `empty`."""
        self._order = with_memory(lambda _: self._sorted(key_bits))

    def mark_duplicates(self, grouping: Grouping, marks: Marks) -> None:
        """Set or clear the duplicate flag of each record, after `sort`, and set its tag."""
        starts, _, _ = self._order
        mark_records[launch(self.count)](self._data, starts, self.count, grouping, marks)

    def in_order(self) -> SortedRecords:
        """Return the records in order, after `sort`; this overwrites its input."""
        starts, order, end = self._order
        common = self._data, self._words, starts, order, self.count
        return with_memory(lambda _: SortedRecords(*common, _Arrays(self._data, end).make))

    def empty(self) -> None:
        self.count = self._used = 0
        self._order = None

    def _sorted(self, key_bits: int) -> tuple:
        """Return the starts of the records, their sorted order, and the end of both in memory."""
        arrays, count = _Arrays(self._data, self._used), self.count
        starts = arrays.make(count + 1, np.int64)
        numbers = arrays.make(count, np.uint32), arrays.make(count, np.uint32)
        end = arrays.end
        # The second buffer may overlap the table, which has been read when the sort writes there.
        # The arrays written before take 24 bytes per record, and the table 16.
        keys = arrays.make(count, np.uint64), arrays.make(count, np.uint64)
        list_records[launch(count + 1)](self._table, count, self._used, starts, keys[0], numbers[0])
        return starts, pair_sorter()(keys, numbers, count, key_bits)[1][0], end


class _Arrays:
    """Cuts consecutive arrays out of memory, starting after a given byte."""

    def __init__(self, memory, end: int):
        self._memory, self.end = memory, room_for(end)

    def make(self, size: int, dtype):
        array = cut(self._memory, self.end, size, dtype)
        self.end += room_for(size * np.dtype(dtype).itemsize)
        return array


def _bytes_for(count: int, n_bytes: int) -> int:
    """Return the size of a store that can sort `count` records of `n_bytes` bytes in total."""
    return n_bytes + BYTES_TO_SORT * count + _BESIDE


@kernel
def append_records(
    group_starts: uint32[::1], group_keys: uint64[::1], count: int, first: int, offset: int,
    last_key: int, table: uint64[::1],
):  # fmt: skip
    """Add the records of a group to a table. One thread per record.

    `first` is the number of the group's first record, and `offset` its start. The i-th row of the
    table, counted from the end, holds key and start of record i.
    """
    i = int64(cuda.grid(1))
    if i < count:
        row = table.size - 2 * (first + i + 1)
        table[row] = min(group_keys[i], uint64(last_key))
        table[row + 1] = uint64(offset + int64(group_starts[i]))


@kernel
def mark_records(
    data: uint8[::1], starts: int64[::1], count: int, grouping: Grouping, marks: Marks
):
    """Set or clear the duplicate flag of each record, and set its tag. One thread per record; it
    reads flags and name, and the tags if there are several read groups, and looks up the name's
    hash."""
    i = int64(cuda.grid(1))
    if i < count:
        mark_record(data, starts[i], grouping, marks)


@kernel
def list_records(
    table: uint64[::1], count: int, end: int, starts: int64[::1], keys: uint64[::1],
    numbers: uint32[::1],
):  # fmt: skip
    """Copy the table of `append_records` to columns, and number the records. One thread per record,
    and one for the final end."""
    i = int64(cuda.grid(1))
    if i < count:
        row = table.size - 2 * (i + 1)
        keys[i] = table[row]
        starts[i] = int64(table[row + 1])
        numbers[i] = i
    elif i == count:
        starts[count] = end

"""Sorting records that lie on the GPU: they are kept there, and come down compressed.

    groups of records -> store on the GPU -> in order -> blocks -> file
    of this GPU or            |                                     ^
    of others                 '-> runs on disk ---------------------'  merged by the host

As `bwarp.bam.external_sort`, and with the same file in the end; where there are runs on disk,
they are merged by what is there.

The store is memory that is taken once, and all that sorting takes for the records is cut out of it:

    coming      | bytes of the records ... >       free            < ... keys and starts |
    to sort     | bytes of the records | starts | numbers | numbers | keys    | keys     |
    in order    | bytes of the records | starts | order   |         | sources and bounds |

So nobody else can take it in the meantime, and what was taken in can be put in order.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from bwarp.bam.block_writer import BlockWriter
from bwarp.bam.compression import ON_HOST, Compression
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
from bwarp.gpu.cuda import cuda, driver, int64, uint32, uint64
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import launch
from bwarp.gpu.memory import ALIGNMENT, cut, room_for
from bwarp.gpu.sums_and_sorts import pair_sorter
from bwarp.runtime.timeline import on_timeline

#: Their numbers are uint32.
_MOST_RECORDS = (1 << 32) - 2

#: What a store holds beside bytes for every record: its arrays begin at multiples of `ALIGNMENT`,
#: and some have a number more than there are records.
_BESIDE = 16 * ALIGNMENT


class DeviceRecordSorter:
    """Takes records in any order, and writes them in order in the end, on the current GPU.

    It is a context, in which its memory of the GPU is held.

    Parameters
    ----------
    folder : Path
        Where runs are written when the records do not fit into the GPU.
    contig_starts : ndarray, shape=(n_contigs + 1,), dtype=int64
        Of the contigs that the header names, end to end.
    most_bytes : int
        Of the GPU, for the records and to sort them, taken at the first of them; less if that is
        not there, more if a group takes more. To write them takes four times the bytes of two
        windows beside.
    threads : int
        Of the host.
    compression : Compression
        Of the runs.
    merge_bytes : int
        Of the host, to merge runs.
    most_blocks : int
        Of a window.
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
    ):
        self._folder, self._contig_starts = folder, contig_starts
        self._most_bytes, self._merge_bytes = most_bytes, merge_bytes
        self._threads, self._compression, self._most_blocks = threads, compression, most_blocks
        #: The key of records without a position: behind all that have one, and of few bits.
        self._last_key = 2 * int(contig_starts[-1])
        self._runs: list[Path] = []
        self._store: _Store | None = None

    def __enter__(self) -> "DeviceRecordSorter":
        return self

    def __exit__(self, *_) -> None:
        self._store = None

    @on_timeline("keep records to sort")
    def add(self, records: DeviceRecords | Records) -> None:
        """Take records, which may be changed afterwards; those of the host or of another GPU are
        sent to this one."""
        if not records.count:
            return
        if isinstance(records, Records):
            records = self._sent(partial(records_on_gpu, records))
        elif records.gpu != cuda.get_current_device().id:
            records = self._sent(partial(records_from_gpu, records))
        count, n_bytes = records.count, records.n_bytes
        if not self._has_room(count, n_bytes):
            self._write_run()
            if not self._has_room(count, n_bytes):
                # Two stores may be too much.
                self._store = None
                least = _bytes_for(count, n_bytes)
                self._store = with_memory(_Store, max(self._most_bytes, least), least)
        self._store.append(records, self._last_key)

    def finish(self, writer: BlockWriter) -> None:
        """Hand all records to the writer in order."""
        if not self._runs:
            self._write_to(writer)
            return
        self._write_run()
        self._store = None
        merge_runs(self._runs, writer, self._contig_starts, self._merge_bytes, self._threads)

    def _sent(self, send: Callable[[], DeviceRecords]) -> DeviceRecords:
        """What ``send()`` brings to this GPU, for which the store makes room if need be."""
        there = attempt(send)
        if there is not None:
            return there
        self._write_run()
        if self._store is not None:
            # The next one is to leave them this room.
            self._most_bytes = self._store.size // 2
            self._store = None
        return with_memory(lambda _: send())

    def _has_room(self, count: int, n_bytes: int) -> bool:
        return self._store is not None and self._store.has_room(count, n_bytes)

    def _write_run(self) -> None:
        """Empty the store, if there is anything in it."""
        if self._store is None or not self._store.count:
            return
        path = self._folder / f"run{len(self._runs)}"
        self._runs.append(path)
        with run_file(path, self._threads, self._compression) as writer:
            self._write_to(writer)

    def _write_to(self, writer: BlockWriter) -> None:
        if self._store is not None and self._store.count:
            records = self._store.in_order(max(1, self._last_key.bit_length()))
            write_sorted(records, writer, self._threads, self._most_blocks)
            self._store.empty()


class _Store:
    """Memory of the GPU for records and to sort them.

    Parameters
    ----------
    size : int
        In bytes; see `_bytes_for`.
    """

    def __init__(self, size: int):
        # Of whole words, and of rows of two numbers, which the table is counted in from the end.
        self.size = -(-size // 16) * 16
        self._data = cuda.device_array(self.size, np.uint8)
        self._words = cut(self._data, 0, self.size // 4, np.uint32)
        self._table = cut(self._data, 0, self.size // 8, np.uint64)
        self.count = self._used = 0

    def has_room(self, count: int, n_bytes: int) -> bool:
        """Whether more records have room, and can be sorted with those that are there."""
        count += self.count
        return count <= _MOST_RECORDS and _bytes_for(count, self._used + n_bytes) <= self.size

    def append(self, records: DeviceRecords, last_key: int) -> None:
        """Copy records, for which there must be room; none gets a higher key than the last."""
        own = cut(self._data, self._used, records.n_bytes, np.uint8)
        driver.device_to_device(own, records.data, records.n_bytes)
        append_records[launch(records.count)](
            records.starts, records.keys, records.count, self.count, self._used, last_key,
            self._table,
        )  # fmt: skip
        self._used += records.n_bytes
        self.count += records.count

    @on_timeline("sort records")
    def in_order(self, key_bits: int) -> SortedRecords:
        """All records, whose keys have so many bits; nothing may be appended before `empty`."""
        # One after the other: the second writes where the first has read.
        starts, order, end = with_memory(lambda _: self._sorted(key_bits))
        common = self._data, self._words, starts, order, self.count, self._used
        return with_memory(lambda _: SortedRecords(*common, _Arrays(self._data, end).make))

    def empty(self) -> None:
        self.count = self._used = 0

    def _sorted(self, key_bits: int) -> tuple:
        """Where records begin, their numbers in order, and where the memory of both ends."""
        arrays, count = _Arrays(self._data, self._used), self.count
        starts = arrays.make(count + 1, np.int64)
        numbers = arrays.make(count, np.uint32), arrays.make(count, np.uint32)
        end = arrays.end
        # The second ones may lie on the table, which has been read when the sort writes them. What
        # is written before takes 24 bytes a record, and the table 16.
        keys = arrays.make(count, np.uint64), arrays.make(count, np.uint64)
        list_records[launch(count + 1)](self._table, count, self._used, starts, keys[0], numbers[0])
        return starts, pair_sorter()(keys, numbers, count, key_bits)[1][0], end


class _Arrays:
    """Arrays that are cut out of memory one after another, behind a byte of it."""

    def __init__(self, memory, end: int):
        self._memory, self.end = memory, room_for(end)

    def make(self, size: int, dtype):
        array = cut(self._memory, self.end, size, dtype)
        self.end += room_for(size * np.dtype(dtype).itemsize)
        return array


def _bytes_for(count: int, n_bytes: int) -> int:
    """Of a store in which so many records, of so many bytes, can be put in order."""
    return n_bytes + BYTES_TO_SORT * count + _BESIDE


@kernel
def append_records(
    group_starts: uint32[::1], group_keys: uint64[::1], count: int, first: int, offset: int,
    last_key: int, table: uint64[::1],
):  # fmt: skip
    """Add the records of a group to a table, of which `first` is the number of the first and
    `offset` where it begins. A thread a record.

    The table has key and start of record i in its i-th row from the end.
    """
    i = int64(cuda.grid(1))
    if i < count:
        row = table.size - 2 * (first + i + 1)
        table[row] = min(group_keys[i], uint64(last_key))
        table[row + 1] = uint64(offset + int64(group_starts[i]))


@kernel
def list_records(
    table: uint64[::1], count: int, end: int, starts: int64[::1], keys: uint64[::1],
    numbers: uint32[::1],
):  # fmt: skip
    """What the table of `append_records` has, by columns, and the numbers of the records. A thread
    a record, and one for the end of all."""
    i = int64(cuda.grid(1))
    if i < count:
        row = table.size - 2 * (i + 1)
        keys[i] = table[row]
        starts[i] = int64(table[row + 1])
        numbers[i] = i
    elif i == count:
        starts[count] = end

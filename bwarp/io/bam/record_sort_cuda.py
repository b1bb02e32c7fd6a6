"""Sorting records that lie on the GPU: they are kept there, and come down compressed.

    groups of records -> store on the GPU -> in order -> blocks -> file
                              |                                     ^
                              '-> runs on disk ---------------------'  merged by the host

As `bwarp.io.bam.external_sort`, and with the same file in the end; where there are runs on disk,
they are merged by what is there.
"""

from functools import partial
from pathlib import Path

import numpy as np
from numba import cuda, int64, uint64
from numba.cuda import types
from numba.cuda.cudadrv import driver

from bwarp.gpu.launch import launch
from bwarp.gpu.radix_sort import pair_sorter
from bwarp.gpu.workspace import cut
from bwarp.io.bam.block_writer import BlockWriter
from bwarp.io.bam.compression import ON_HOST, Compression
from bwarp.io.bam.device_records_cuda import DeviceRecords, records_on_gpu
from bwarp.io.bam.external_sort import merge_runs, run_file
from bwarp.io.bam.record_order_cuda import SortedRecords
from bwarp.io.bam.records import Records
from bwarp.io.bam.sorted_blocks_cuda import BLOCKS_A_WINDOW, with_memory, write_sorted
from bwarp.runtime.timeline import on_timeline

__all__ = ["KERNEL_SIGNATURES", "DeviceRecordSorter"]

#: Their numbers are uint32.
_MOST_RECORDS = (1 << 32) - 2


class DeviceRecordSorter:
    """Takes records on the current GPU in any order, and writes them in order in the end.

    It is a context, in which its memory of the GPU is held.

    Parameters
    ----------
    folder : Path
        Where runs are written when the records do not fit into the GPU.
    contig_starts : ndarray, shape=(n_contigs + 1,), dtype=int64
        Of the contigs that the header names, end to end.
    most_bytes : int
        Of the GPU, for the records, taken at the first of them; less if that is not there. What is
        kept beside them and sorting them take up to `BYTES_TO_SORT` a record, and writing four
        times the bytes of two windows.
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
        self._data = self._words = None
        self._forget()

    def __enter__(self) -> "DeviceRecordSorter":
        return self

    def __exit__(self, *_) -> None:
        self._data = self._words = None
        self._forget()

    @on_timeline("keep records to sort")
    def add(self, records: DeviceRecords | Records) -> None:
        """Take records, which may be changed afterwards; those of the host are sent to the GPU."""
        if not records.count:
            return
        if isinstance(records, Records):
            records = records_on_gpu(records)
        count, n_bytes = records.count, records.n_bytes
        if self._count and (
            self._used + n_bytes > self._data.size or self._count + count > _MOST_RECORDS
        ):
            self._write_run()
        self._make_room(count, n_bytes)
        own = cut(self._data, self._used, n_bytes, np.uint8)
        driver.device_to_device(own, records.data, n_bytes)
        append_records[launch(count + 1)](
            records.starts, records.keys, count, self._count, self._used, self._last_key,
            self._starts, self._keys, self._numbers,
        )  # fmt: skip
        self._used += n_bytes
        self._count += count

    def finish(self, writer: BlockWriter) -> None:
        """Hand all records to the writer in order."""
        if not self._runs:
            self._write_to(writer)
            return
        if self._count:
            self._write_run()
        self._data = self._words = None
        merge_runs(self._runs, writer, self._contig_starts, self._merge_bytes, self._threads)

    def _make_room(self, count: int, n_bytes: int) -> None:
        if self._data is None or n_bytes > self._data.size:
            # Two stores may be too much.
            self._data = self._words = None
            self._data = with_memory(partial(_store, n_bytes), self._most_bytes)
            self._words = cut(self._data, 0, self._data.size // 4, np.uint32)
        room = 0 if self._keys is None else self._keys.size
        if self._count + count > room:
            # As if all records were like these, and some more.
            expected = count * (self._data.size // n_bytes + 1) * 9 // 8
            room = max(expected, self._count + count, room * 3 // 2)
            self._keys = _longer(self._keys, room, np.uint64, self._count)
            self._numbers = _longer(self._numbers, room, np.uint32, self._count)
            self._starts = _longer(self._starts, room + 1, np.int64, self._count)

    def _write_run(self) -> None:
        path = self._folder / f"run{len(self._runs)}"
        self._runs.append(path)
        with run_file(path, self._threads, self._compression) as writer:
            self._write_to(writer)

    def _write_to(self, writer: BlockWriter) -> None:
        if self._count:
            write_sorted(self._in_order(), writer, self._threads, self._most_blocks)

    @on_timeline("sort records")
    def _in_order(self) -> SortedRecords:
        """What is kept; its bytes stay, and the rest is forgotten."""
        keys, numbers, starts = self._keys, self._numbers, self._starts
        count, used = self._count, self._used
        self._forget()
        order = pair_sorter()(
            (keys, cuda.device_array(keys.size, np.uint64)),
            (numbers, cuda.device_array(numbers.size, np.uint32)),
            count,
            max(1, self._last_key.bit_length()),
        )[1][0]
        del keys, numbers
        return SortedRecords(self._data, self._words, starts, order, count, used)

    def _forget(self) -> None:
        self._keys = self._numbers = self._starts = None
        self._count = self._used = 0


def _store(least_bytes: int, n_bytes: int):
    """Memory for records, of whole words."""
    return cuda.device_array(-(-max(least_bytes, n_bytes) // 4) * 4, np.uint8)


def _longer(array, size: int, dtype, used: int):
    longer = cuda.device_array(size, dtype)
    if used:
        driver.device_to_device(longer, array, used * longer.dtype.itemsize)
    return longer


@cuda.jit(cache=True)
def append_records(group_starts, group_keys, count, first, offset, last_key, starts, keys, numbers):
    """Add what belongs to the records of a group, of which `first` is the number of the first and
    `offset` where it begins. A thread a record, and one for the end of all."""
    i = int64(cuda.grid(1))
    if i <= count:
        starts[first + i] = offset + int64(group_starts[i])
        if i < count:
            keys[first + i] = min(group_keys[i], uint64(last_key))
            numbers[first + i] = first + i


_COUNTS, _KEYS, _NUMBER = types.uint32[::1], types.uint64[::1], types.int64

#: The argument types that every kernel is compiled with.
KERNEL_SIGNATURES = {
    append_records: (_COUNTS, _KEYS, *[_NUMBER] * 4, types.int64[::1], _KEYS, _COUNTS),
}

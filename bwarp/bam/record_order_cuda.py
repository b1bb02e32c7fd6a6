"""BAM records on the GPU in sorted order: their positions in memory, and copies of them in order.

    order     7     2         9       0      numbers of the records, by key
    sources   of 7  of 2      of 9    of 0   start of each record in memory
    bounds    0     |rec 7    |rec 2  |...   start of each record in the sorted stream

One warp copies one piece of the stream. It finds the record in which its piece begins, and copies
words of four bytes. If source and target are aligned differently, each word combines two words of
the source.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bwarp.bam.fields import SIZE_BYTES
from bwarp.bam.index import read_locus
from bwarp.bam.records import get_int32
from bwarp.gpu.cuda import cuda, int32, int64, uint8, uint32
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import ALL_LANES, WARP, launch
from bwarp.gpu.sums_and_sorts import exclusive_sum

#: GPU bytes per record for sorting, in addition to the record: 12 in `starts` and `order`, 24 in
#: the arrays of `SortedRecords`, and 4 in the second buffer of the sort that made `order`.
BYTES_TO_SORT = 40

#: Bytes that a warp copies, a multiple of 4.
_PIECE = 2048

_UINT32 = 1 << 32


class SortedStream(NamedTuple):
    """Records in memory as words, and the start of each row there and in the sorted stream."""

    words: uint32[::1]
    sources: int64[::1]
    bounds: int64[::1]


class StreamPart(NamedTuple):
    """Bytes ``[first, stop)`` of the stream, which belong to rows ``[first_row, stop_row)``."""

    first_row: int
    stop_row: int
    first: int
    stop: int


class SortedRecords:
    """Records on the current GPU in sorted order.

    Parameters
    ----------
    data, words : device arrays, dtype=uint8 and uint32
        Concatenated records: the same memory as bytes and as words. A record may end before the
        next one starts.
    starts : device array, shape=(>= count + 1,), dtype=int64
        Start of each record, and the end of the last.
    order : device array, shape=(>= count,), dtype=uint32
        Numbers of the records in sorted order.
    count : int
    make_array : function of a size and a type, optional
        Allocates the device arrays, 24 bytes per record.

    Attributes
    ----------
    n_bytes : int
        Total size of the records.
    """

    def __init__(
        self,
        data,
        words,
        starts,
        order,
        count: int,
        make_array: Callable | None = None,
    ):
        make_array = make_array or cuda.device_array
        self._data, self._words = data, words
        self.count = count
        self._sources = make_array(count + 1, np.int64)
        lengths = make_array(count + 1, np.uint32)
        arrange[launch(count + 1)](data, order, starts, count, self._sources, lengths)
        self._bounds = bounds_of(lengths, make_array)
        self.n_bytes = int(self._bounds[count:].copy_to_host()[0])

    def rows_of_windows(self, step: int) -> tuple[np.ndarray, np.ndarray]:
        """Split the stream into windows of `step` bytes. Return the first row that begins in each
        window or after it, and the start of that row; the last elements are the total numbers of
        rows and of bytes."""
        n_windows = -(-self.n_bytes // step)
        rows = cuda.device_array(n_windows + 1, np.int64)
        begins = cuda.device_array(n_windows + 1, np.int64)
        find_rows[launch(n_windows + 1)](self._bounds, step, rows, begins)
        return rows.copy_to_host(), begins.copy_to_host()

    def copy(self, rows: tuple[int, int], first: int, stop: int, out, out_words, stream=0) -> None:
        """Copy bytes ``[first, stop)`` of the stream, which belong to these rows.

        `out` and `out_words` are the same memory as bytes and as words.
        """
        warps = -(-(stop - first) // _PIECE)
        blocks, threads = launch(warps * WARP)
        copy_records[blocks, threads, stream](
            SortedStream(self._words, self._sources, self._bounds),
            StreamPart(*rows, first, stop),
            out,
            out_words,
        )

    def bounds(self, rows: tuple[int, int]):
        """Return the start of each row in the stream, and the end of the last; a device array."""
        return self._bounds[rows[0] : rows[1] + 1]

    def loci(self, rows: tuple[int, int], loci: list, stream) -> None:
        """Write the loci of rows (see `bwarp.bam.index.RecordLoci`) to device arrays."""
        if rows[0] < rows[1]:
            blocks, threads = launch(rows[1] - rows[0])
            find_loci[blocks, threads, stream](self._data, self._sources, *rows, *loci)


def bounds_of(lengths, make_array: Callable):
    """Return the sums of the lengths before each row, int64; they replace the lengths (uint32), the
    last of which is 0."""
    # Sums modulo 2^32, and the number of overflows before each.
    low, n = lengths, lengths.size
    exclusive_sum(low)
    high = make_array(n, np.uint32)
    count_overflows[launch(n)](low, high)
    exclusive_sum(high)
    bounds = make_array(n, np.int64)
    join_sums[launch(n)](low, high, bounds)
    return bounds


@kernel
def arrange(
    data: uint8[::1], order: uint32[::1], starts: int64[::1], count: int, sources: int64[::1],
    lengths: uint32[::1],
):  # fmt: skip
    """Find the sources and lengths of the records in order. One thread per record, and one for the
    final end. It reads the size of its record."""
    row = int64(cuda.grid(1))
    if row < count:
        record = int64(order[row])
        sources[row] = starts[record]
        lengths[row] = SIZE_BYTES + get_int32(data, starts[record])
    elif row == count:
        sources[row] = starts[count]
        lengths[row] = 0


@kernel
def count_overflows(sums: uint32[::1], overflows: uint32[::1]):
    """Set to 1 where the next sum overflows 32 bits. One thread per sum."""
    row = int64(cuda.grid(1))
    if row < sums.size:
        is_last = row + 1 == sums.size
        overflows[row] = 0 if is_last or sums[row + 1] >= sums[row] else 1


@kernel
def join_sums(low: uint32[::1], high: uint32[::1], sums: int64[::1]):
    """Combine the halves to 64-bit sums. One thread per sum."""
    row = int64(cuda.grid(1))
    if row < sums.size:
        sums[row] = int64(high[row]) * _UINT32 + int64(low[row])


@kernel
def find_rows(bounds: int64[::1], step: int, rows: int64[::1], begins: int64[::1]):
    """Find the first row that begins in each window or after it, by binary search. One thread per
    window, and one for the end."""
    window = int64(cuda.grid(1))
    if window < rows.size:
        low, high = int64(0), int64(bounds.size - 1)
        while low < high:
            middle = (low + high) // 2
            if bounds[middle] < window * step:
                low = middle + 1
            else:
                high = middle
        rows[window] = low
        begins[window] = bounds[low]


@kernel
def copy_records(stream: SortedStream, part: StreamPart, out: uint8[::1], out_words: uint32[::1]):
    """Copy a part of the stream. One warp per piece: after a binary search, it reads each byte once
    (or twice, by neighbouring lanes) and writes it once. The lanes read the bounds of 32 records at
    a time."""
    lane = int64(cuda.laneid)
    words, sources, bounds = stream.words, stream.sources, stream.bounds
    first, stop_row = part.first, part.stop_row
    at = first + int64(cuda.grid(1)) // WARP * _PIECE
    if at >= part.stop:
        return
    end = min(at + _PIECE, part.stop)
    row, beyond = part.first_row, stop_row
    while row + 1 < beyond:
        middle = (row + beyond) // 2
        if bounds[middle] <= at:
            row = middle
        else:
            beyond = middle
    while row < stop_row:
        begin, finish, source = end, end, int64(0)
        if row + lane < stop_row:
            begin, finish = bounds[row + lane], bounds[row + lane + 1]
            source = sources[row + lane]
        for other in range(WARP):
            begins = cuda.shfl_sync(ALL_LANES, begin, other)
            if begins >= end:
                return
            ends = cuda.shfl_sync(ALL_LANES, finish, other)
            low = max(begins, at)
            begin_out, end_out = low - first, min(ends, end) - first
            # Added to an index of `out`, gives the index of the same byte in the source.
            shift = cuda.shfl_sync(ALL_LANES, source, other) - begins + first
            first_word, stop_word = (begin_out + 3) >> 2, end_out >> 2
            bit = uint32(8 * ((shift + 4 * first_word) & 3))
            for word in range(first_word + lane, stop_word, int64(WARP)):
                there = (4 * word + shift) >> 2
                value = uint32(words[there])
                if bit > 0:
                    value = value >> bit | words[there + 1] << (uint32(32) - bit)
                out_words[word] = uint32(value)
            # The bytes before the first word, and after the last.
            i = begin_out + lane
            if i < min(4 * first_word, end_out):
                out[i] = words[(i + shift) >> 2] >> uint32(8 * ((i + shift) & 3)) & 255
            i = 4 * stop_word + lane
            if first_word <= stop_word and i < end_out:
                out[i] = words[(i + shift) >> 2] >> uint32(8 * ((i + shift) & 3)) & 255
        row += WARP


@kernel
def find_loci(
    data: uint8[::1], sources: int64[::1], first_row: int, stop_row: int, contigs: int32[::1],
    firsts: int64[::1], stops: int64[::1], mapped: uint8[::1],
):  # fmt: skip
    """Find the loci of rows ``[first_row, stop_row)`` on the reference. One thread per record; it
    reads the fixed fields and the CIGAR."""
    i = int64(cuda.grid(1))
    if i < stop_row - first_row:
        contig, first, stop, is_mapped = read_locus(data, sources[first_row + i])
        contigs[i] = contig
        firsts[i] = first
        stops[i] = stop
        mapped[i] = is_mapped

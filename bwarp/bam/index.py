"""The index of a sorted BAM, built while the BAM is written: BAI, or CSI if a contig is too long.

The file is a stream of bytes in compressed blocks. While it grows, offsets count bytes of the
uncompressed stream. When all blocks are known, they become virtual offsets: the start of the block
in the file, and the offset inside the block.

    bins      the bin of a record is the smallest window of the binning scheme that holds it; the
              index lists the stretches of the stream that hold the records of each bin
    linear    per 16 kb of a contig, the start of the first record that overlaps it
"""

import struct
from typing import NamedTuple

import numpy as np

from bwarp.bam.bgzf import BLOCK_BYTES, END_OF_FILE, compressed_block
from bwarp.bam.fields import (
    FIXED_BYTES,
    FLAG_AT,
    NAME_BYTES_AT,
    OPERATIONS_AT,
    POSITION_AT,
    SIZE_BYTES,
    UNMAPPED,
)
from bwarp.bam.records import (
    consumes_reference,
    first_bin,
    get_int16,
    get_int32,
    put_int32,
    put_int64,
)
from bwarp.runtime.compiled_code import compiled

_SHIFT = 14
_BAI_DEPTH = 5


def index_ending(lengths: np.ndarray) -> str:
    """Return .bai, or .csi if a contig is too long for BAI."""
    return ".bai" if max(lengths, default=0) <= 1 << _SHIFT + 3 * _BAI_DEPTH else ".csi"


class RecordLoci(NamedTuple):
    """Loci of records on the reference.

    Attributes
    ----------
    contigs : ndarray, shape=(n,), dtype=int32
        -1 for a record without a position.
    firsts, stops : ndarray, shape=(n,), dtype=int64
        An unmapped record spans one base.
    mapped : ndarray, shape=(n,), dtype=bool
    """

    contigs: np.ndarray
    firsts: np.ndarray
    stops: np.ndarray
    mapped: np.ndarray


@compiled(inline="always")
def read_locus(data, start):
    """Return contig, first base, base after the last, and whether it is mapped, of one record."""
    at = start + SIZE_BYTES
    contig = get_int32(data, at)
    first = get_int32(data, at + POSITION_AT)
    n_operations = get_int16(data, at + OPERATIONS_AT)
    flag = get_int16(data, at + FLAG_AT)
    at += FIXED_BYTES + np.int64(data[at + NAME_BYTES_AT])
    span = np.int64(0)
    for operation in range(n_operations):
        value = get_int32(data, at + 4 * operation)
        kind = value & 15
        if consumes_reference(kind):
            span += (value & 0xFFFFFFFF) >> 4
    return contig, first, first + max(span, np.int64(1)), flag & UNMAPPED == 0


@compiled
def _read_loci(data, starts, loci):
    contigs, firsts, stops, mapped = loci
    for i in range(starts.size):
        contigs[i], firsts[i], stops[i], mapped[i] = read_locus(data, starts[i])


def record_loci(data: np.ndarray, starts: np.ndarray) -> RecordLoci:
    """Return the loci of the records at `starts` in `data`."""
    n = starts.size
    loci = RecordLoci(
        np.empty(n, np.int32), np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, bool)
    )
    _read_loci(data, starts, loci)
    return loci


class IndexBuilder:
    """Takes the records of a sorted stream in order, and finally returns the index."""

    def __init__(self, lengths: np.ndarray):
        lengths = np.asarray(lengths, np.int64)
        self._csi = index_ending(lengths) == ".csi"
        self._depth = _BAI_DEPTH
        while max(lengths, default=0) > 1 << _SHIFT + 3 * self._depth:
            self._depth += 1
        windows = (lengths >> _SHIFT) + 1
        self._window_starts = np.concatenate([[0], np.cumsum(windows)])
        self._linear = np.full(self._window_starts[-1], -1, np.int64)
        # Per contig: start and end of its records, and numbers of mapped and unmapped records.
        self._totals = np.zeros((lengths.size, 4), np.int64)
        self._stretches = np.empty((1024, 4), np.int64)
        # Numbers of stretches and of records without a position.
        self._counts = np.zeros(2, np.int64)

    def add(self, loci: RecordLoci, starts: np.ndarray) -> None:
        """Add records; `starts` (n + 1) holds their offsets in the stream, and the final end."""
        n = loci.contigs.size
        if self._counts[0] + n > len(self._stretches):
            more = np.empty((max(n, len(self._stretches)), 4), np.int64)
            self._stretches = np.concatenate([self._stretches, more])
        _add(
            loci, starts, self._depth, self._window_starts, self._linear, self._totals,
            self._stretches, self._counts,
        )  # fmt: skip

    def finish(self, block_addresses: np.ndarray) -> bytes:
        """Return the bytes of the index file.

        Parameters
        ----------
        block_addresses : ndarray, shape=(n_blocks + 1,), dtype=int64
            File offset of each block of the stream, and the end of the last.
        """
        stretches = self._stretches[: self._counts[0]]
        # Sort by contig and bin, and keep stream order within a bin.
        stretches = stretches[np.lexsort((stretches[:, 1], stretches[:, 0]))]
        stretches[:, 2:] = _virtual(stretches[:, 2:], block_addresses)
        known = self._linear >= 0
        self._linear[known] = _virtual(self._linear[known], block_addresses)
        totals = self._totals.copy()
        totals[:, :2] = _virtual(totals[:, :2], block_addresses)
        n_contigs = len(totals)
        out = np.empty(64 * n_contigs + 8 * self._linear.size + 32 * len(stretches) + 64, np.uint8)
        used = _write_index(
            stretches, self._window_starts, self._linear, totals, self._csi, self._depth,
            self._counts[1], out,
        )  # fmt: skip
        if not self._csi:
            return struct.pack("<4si", b"BAI\1", n_contigs) + out[:used].tobytes()
        head = struct.pack("<4siiii", b"CSI\1", _SHIFT, self._depth, 0, n_contigs)
        data = head + out[:used].tobytes()
        pieces = range(0, len(data), BLOCK_BYTES)
        return b"".join(compressed_block(data[at : at + BLOCK_BYTES]) for at in pieces) + (
            END_OF_FILE
        )


def _virtual(offsets: np.ndarray, block_addresses: np.ndarray) -> np.ndarray:
    return block_addresses[offsets // BLOCK_BYTES] << 16 | offsets % BLOCK_BYTES


@compiled
def _add(loci, starts, depth, window_starts, linear, totals, stretches, counts):
    contigs, firsts, stops, mapped = loci
    used = counts[0]
    for i in range(contigs.size):
        contig = contigs[i]
        if contig < 0:
            counts[1] += 1
            continue
        number = first_bin(firsts[i], stops[i], _SHIFT, depth)
        last = used - 1
        if used and stretches[last, 0] == contig and stretches[last, 1] == number:
            # A record of another bin would have started a new stretch.
            stretches[last, 3] = starts[i + 1]
        else:
            stretches[used, 0] = contig
            stretches[used, 1] = number
            stretches[used, 2] = starts[i]
            stretches[used, 3] = starts[i + 1]
            used += 1
        if totals[contig, 2] + totals[contig, 3] == 0:
            totals[contig, 0] = starts[i]
        totals[contig, 1] = starts[i + 1]
        totals[contig, 2 if mapped[i] else 3] += 1
        window = window_starts[contig] + (firsts[i] >> _SHIFT)
        beyond = min(
            window_starts[contig] + (stops[i] - 1 >> _SHIFT) + 1, window_starts[contig + 1]
        )
        # A record that reaches a later window has set the earlier ones.
        for at in range(window, beyond):
            if linear[at] < 0:
                linear[at] = starts[i]
    counts[0] = used


@compiled
def _first_window(number, depth):
    """Return the first 16 kb window of a bin."""
    level = 0
    first = 0
    while number >= first + (1 << 3 * level):
        first += 1 << 3 * level
        level += 1
    return (number - first) << 3 * (depth - level)


@compiled
def _write_index(stretches, window_starts, linear, totals, csi, depth, n_without_position, out):
    at = np.int64(0)
    row = 0
    for contig in range(window_starts.size - 1):
        first, stop = window_starts[contig], window_starts[contig + 1]
        while stop > first and linear[stop - 1] < 0:
            stop -= 1
        # A window without records takes the offset of the next one.
        for window in range(stop - 2, first - 1, -1):
            if linear[window] < 0:
                linear[window] = linear[window + 1]
        count_at = at
        at += 4
        n_bins = 0
        while row < len(stretches) and stretches[row, 0] == contig:
            number = stretches[row, 1]
            at = put_int32(out, at, number)
            if csi:
                window = min(first + _first_window(number, depth), stop - 1)
                at = put_int64(out, at, linear[window])
            stretch_count_at = at
            at += 4
            n_stretches = 0
            while (
                row < len(stretches)
                and stretches[row, 0] == contig
                and (stretches[row, 1] == number)
            ):
                begin, end = stretches[row, 2], stretches[row, 3]
                row += 1
                # Merge stretches that share a block: they are read together anyway.
                while (
                    row < len(stretches)
                    and stretches[row, 0] == contig
                    and stretches[row, 1] == number
                    and stretches[row, 2] >> 16 == end >> 16
                ):
                    end = stretches[row, 3]
                    row += 1
                at = put_int64(out, at, begin)
                at = put_int64(out, at, end)
                n_stretches += 1
            put_int32(out, stretch_count_at, n_stretches)
            n_bins += 1
        if n_bins:
            # A pseudo-bin holds the counts of the contig, for samtools idxstats.
            at = put_int32(out, at, ((1 << 3 * depth + 3) - 1) // 7 + 1)
            if csi:
                at = put_int64(out, at, 0)
            at = put_int32(out, at, 2)
            for column in range(4):
                at = put_int64(out, at, totals[contig, column])
            n_bins += 1
        put_int32(out, count_at, n_bins)
        if not csi:
            at = put_int32(out, at, stop - first)
            for window in range(first, stop):
                at = put_int64(out, at, linear[window])
    return put_int64(out, at, n_without_position)

"""BAM records of plain reads written on the GPU: the bytes that bam_records gives of them.

A plain read has one record, or is the unmapped mate of one; the records of the others come from the
host, and are copied to where they belong, so that all stand in the order of the reads:

    read       0         1         2 (host)            3
    records    | plain   | plain   | host    | host    | plain  |
    starts      0         1         2         3         4        5

How long a record is comes first: it is written into an empty array. Then a thread writes what
differs from read to read, and a warp the bases and qualities, which are most of a record.
"""

from typing import NamedTuple

import numpy as np
from numba import cuda, int64
from numba.cuda import types

from bwarp.alignment.pairs import INSERTION, SOFT_CLIP
from bwarp.gpu.launch import WARP, launch
from bwarp.gpu.prefix_sum import add_up
from bwarp.io.bam.device_records_cuda import DeviceRecords
from bwarp.io.bam.records import first_bin
from bwarp.io.bam.sort_order import NO_POSITION
from bwarp.mapping.extension.extension_cuda import DeviceGenome, contig_at
from bwarp.mapping.output.alignment_records import (
    FIRST,
    LAST,
    MATE_REVERSE,
    MATE_UNMAPPED,
    PAIRED,
    PROPER,
    REVERSE,
    UNMAPPED,
)
from bwarp.mapping.output.final_alignments_cuda import DeviceAlignments
from bwarp.mapping.output.record_text_cuda import (
    begin_tag,
    count_edits,
    put_byte,
    put_bytes,
    put_cigar,
    put_int16,
    put_int32,
    put_integer,
    put_md,
    put_number,
)
from bwarp.mapping.pairing.primary_hits_cuda import DevicePrimary
from bwarp.mapping.reads.device_reads_cuda import DeviceReads

__all__ = [
    "KERNEL_SIGNATURES",
    "HostRecords",
    "ReadTexts",
    "RecordConstants",
    "SecondaryOfReads",
    "array_on_gpu",
    "plain_records",
    "record_constants",
]

_NO_POSITION = int(NO_POSITION)

#: Bytes of a record before the read's name, its size included.
_HEAD = 36


class RecordConstants(NamedTuple):
    """What the records of all chunks have in common, on the GPU.

    Attributes
    ----------
    genome : device array, dtype=uint32
        Blocks of bases.
    contig_starts : device array, shape=(n_contigs + 1,), dtype=int64
    contig_numbers : device array, shape=(n_contigs,), dtype=int64
        In the header, which has no contigs without bases.
    contig_text : device array, dtype=uint8
    contig_bounds : device array, shape=(2 * n_contigs,), dtype=int64
        Where the name of each contig begins and ends in the text.
    group : device array, dtype=uint8
        The read group; empty for none.
    """

    genome: object
    contig_starts: object
    contig_numbers: object
    contig_text: object
    contig_bounds: object
    group: object


class ReadTexts(NamedTuple):
    """The names and qualities of reads, on the GPU.

    Attributes
    ----------
    names : device array, dtype=uint8
        Of the templates, one after another.
    name_offsets : device array, shape=(n_templates + 1,), dtype=int64
    qualities : device array, dtype=uint8
        As in FASTQ, where the bases are; empty for none.
    """

    names: object
    name_offsets: object
    qualities: object


class SecondaryOfReads(NamedTuple):
    """Secondary hits that the records of reads name: XA.

    Attributes
    ----------
    offsets : device array, shape=(n_reads + 1,), dtype=uint32
    alignments : DeviceAlignments
        A row a hit.
    """

    offsets: object
    alignments: DeviceAlignments


class HostRecords(NamedTuple):
    """Records that the host has made.

    Attributes
    ----------
    data : ndarray, dtype=uint8
    starts : ndarray, shape=(n + 1,), dtype=int64
    keys : ndarray, shape=(n,), dtype=uint64
    reads : ndarray, shape=(n,), dtype=int64
        The number of each record's read; they do not fall.
    """

    data: np.ndarray
    starts: np.ndarray
    keys: np.ndarray
    reads: np.ndarray


class _Tables(NamedTuple):
    """What the kernels read, an array each, as above."""

    codes: object
    blocks: object
    offsets: object
    names: object
    name_offsets: object
    qualities: object
    hits: object
    mapping_qualities: object
    suboptimal: object
    proper: object


def record_constants(
    genome: DeviceGenome, names: tuple[np.ndarray, np.ndarray], group: bytes
) -> RecordConstants:
    """Of `bwarp.io.names.Names` of the contigs, and the ID of the read group."""
    text, bounds = names
    contig_starts = genome.contig_starts.copy_to_host()
    return RecordConstants(
        genome.blocks,
        genome.contig_starts,
        cuda.to_device(np.cumsum(np.diff(contig_starts) > 0) - 1),
        cuda.to_device(np.array(text)),
        cuda.to_device(np.ascontiguousarray(bounds).reshape(-1)),
        array_on_gpu(np.frombuffer(group, np.uint8).copy()),
    )


def array_on_gpu(values: np.ndarray):
    """On the GPU; an empty one, too."""
    there = cuda.device_array(max(1, values.size), values.dtype)
    if values.size:
        there[: values.size].copy_to_device(values)
    return there[: values.size]


def plain_records(
    constants: RecordConstants,
    reads: DeviceReads,
    texts: ReadTexts,
    alignments: DeviceAlignments,
    primary: DevicePrimary,
    secondary: SecondaryOfReads,
    marks: np.ndarray,
    marks_there,
    by_host: HostRecords,
    ends: int,
) -> tuple[DeviceRecords, object]:
    """All records of some reads, in their order; and the edits of plain ones (NM), int32 a read.

    Parameters
    ----------
    marks : ndarray, shape=(n_reads,), dtype=uint8
        1 for the reads whose records `by_host` has; the two of a pair are marked alike.
    marks_there : device array
        The same.
    """
    counts = np.where(marks != 0, 0, 1) + np.bincount(by_host.reads, minlength=reads.n_reads)
    first_records = np.concatenate([[0], np.cumsum(counts)])
    n_records = int(first_records[-1])
    firsts = cuda.to_device(first_records.astype(np.uint32))
    tables = _Tables(
        reads.both, reads.blocks, reads.offsets, *texts, primary.hits, primary.qualities,
        primary.suboptimal, primary.proper,
    )  # fmt: skip
    edits = cuda.device_array(reads.n_reads, np.int32)
    starts = cuda.to_device(np.zeros(n_records + 1, np.uint32))
    common = constants, tables, alignments, *secondary, marks_there, ends, firsts
    size_records[launch(reads.n_reads)](*common, array_on_gpu(np.empty(0, np.uint8)), edits, starts)
    records, source = _sized_by_host(by_host, first_records, starts)
    n_bytes = add_up(starts)
    data = cuda.device_array(max(1, n_bytes), np.uint8)
    keys = cuda.device_array(max(1, n_records), np.uint64)
    write_heads[launch(reads.n_reads)](*common, edits, starts, data, keys)
    write_bases[launch(reads.n_reads * WARP)](
        tables, alignments, marks_there, ends, firsts, starts, data
    )
    if by_host.keys.size:
        copy_records[launch(by_host.keys.size * WARP)](*source, records, starts, data, keys)
    return DeviceRecords(data, starts, keys, n_records, n_bytes), edits


def _sized_by_host(by_host: HostRecords, first_records: np.ndarray, sizes):
    """Write the sizes of the host's records; returns their numbers among all, and themselves."""
    n = by_host.keys.size
    if not n:
        return None, ()
    first_of_read = np.searchsorted(by_host.reads, by_host.reads)
    records = cuda.to_device(first_records[by_host.reads] + np.arange(n) - first_of_read)
    source = tuple(map(cuda.to_device, (by_host.data, by_host.starts, by_host.keys)))
    size_copies[launch(n)](source[1], records, sizes)
    return records, source


@cuda.jit(device=True)
def _cigar_count(alignments, row, length):
    """Operations of a row's CIGAR with its clips."""
    first, last = int64(alignments.cigar_offsets[row]), int64(alignments.cigar_offsets[row + 1])
    if first == last:
        return int64(0)
    count = last - first
    count += 1 if alignments.read_starts[row] > 0 else 0
    return count + (1 if alignments.read_ends[row] < length else 0)


@cuda.jit(device=True)
def _span_of(alignments, row):
    """Reference bases that a row aligns."""
    span = int64(0)
    for i in range(int64(alignments.cigar_offsets[row]), int64(alignments.cigar_offsets[row + 1])):
        length, operation = int64(alignments.cigar[i]) >> 4, int64(alignments.cigar[i]) & 15
        if operation != INSERTION:
            span += length
    return span


@cuda.jit(device=True)
def _base_of(tables, alignments, row, read):
    """Where the read on the strand of an alignment begins among the bases of both strands."""
    base = tables.offsets[read]
    return base + tables.offsets[tables.offsets.size - 1] if alignments.strands[row] else base


@cuda.jit(device=True)
def _put_row_cigar(out, at, alignments, row, length):
    """The CIGAR of a row as text, with its clips."""
    return put_cigar(
        out, at, alignments.cigar, int64(alignments.cigar_offsets[row]),
        int64(alignments.cigar_offsets[row + 1]), int64(alignments.read_starts[row]),
        length - int64(alignments.read_ends[row]),
    )  # fmt: skip


@cuda.jit(device=True)
def _edits_of(constants, tables, alignments, row, read):
    base = _base_of(tables, alignments, row, read) + alignments.read_starts[row]
    return count_edits(
        constants.genome, alignments.positions[row], tables.blocks, base, alignments.cigar,
        int64(alignments.cigar_offsets[row]), int64(alignments.cigar_offsets[row + 1]),
    )  # fmt: skip


@cuda.jit(device=True)
def _put_tags(out, at, constants, tables, alignments, other_offsets, others, read, ends, n_edits):
    """All tags of a read's record."""
    position = alignments.positions[read]
    length = tables.offsets[read + 1] - tables.offsets[read]
    if position >= 0:
        at = put_integer(out, at, 78, 77, n_edits)  # NM
        at = begin_tag(out, at, 77, 68, 90)  # MD
        if n_edits > 0:
            base = _base_of(tables, alignments, read, read) + alignments.read_starts[read]
            at = put_md(
                out, at, constants.genome, position, tables.blocks, base, alignments.cigar,
                int64(alignments.cigar_offsets[read]), int64(alignments.cigar_offsets[read + 1]),
            )  # fmt: skip
        else:
            at = put_number(out, at, _span_of(alignments, read))
        at = put_byte(out, at, 0)
    mate = read ^ 1
    if ends == 2 and alignments.positions[mate] >= 0:
        mate_length = tables.offsets[mate + 1] - tables.offsets[mate]
        at = begin_tag(out, at, 77, 67, 90)  # MC
        at = put_byte(out, _put_row_cigar(out, at, alignments, mate, mate_length), 0)
        at = put_integer(out, at, 77, 81, int64(tables.mapping_qualities[mate]))  # MQ
    if position >= 0:
        at = put_integer(out, at, 65, 83, int64(alignments.scores[read]))  # AS
        at = put_integer(out, at, 88, 83, int64(tables.suboptimal[read]))  # XS
    if constants.group.size > 0:
        at = begin_tag(out, at, 82, 71, 90)  # RG
        at = put_bytes(out, at, constants.group, 0, constants.group.size)
        at = put_byte(out, at, 0)
    first, last = int64(other_offsets[read]), int64(other_offsets[read + 1])
    if first < last:
        at = begin_tag(out, at, 88, 65, 90)  # XA
        for row in range(first, last):
            at = _put_secondary(out, at, constants, tables, others, row, read, length)
        at = put_byte(out, at, 0)
    return at


@cuda.jit(device=True)
def _put_secondary(out, at, constants, tables, others, row, read, length):
    """A hit as contig,strand and position,CIGAR,NM;"""
    position = others.positions[row]
    contig = contig_at(constants.contig_starts, position)
    begin, end = constants.contig_bounds[2 * contig], constants.contig_bounds[2 * contig + 1]
    at = put_bytes(out, at, constants.contig_text, begin, end)
    at = put_byte(out, at, 44)
    at = put_byte(out, at, 45 if others.strands[row] else 43)
    at = put_number(out, at, position - constants.contig_starts[contig] + 1)
    at = put_byte(out, at, 44)
    at = _put_row_cigar(out, at, others, row, length)
    at = put_byte(out, at, 44)
    at = put_number(out, at, _edits_of(constants, tables, others, row, read))
    return put_byte(out, at, 59)


@cuda.jit(device=True)
def _bases_begin(tables, alignments, read, ends):
    """Where the bases begin in a read's record; and its name, which has a byte at least."""
    template = read // ends
    length = tables.offsets[read + 1] - tables.offsets[read]
    name = tables.name_offsets[template + 1] - tables.name_offsets[template]
    return _HEAD + max(name, int64(1)) + 1 + 4 * _cigar_count(alignments, read, length)


@cuda.jit(cache=True)
def size_records(
    constants, tables, alignments, other_offsets, others, marks, ends, firsts, nothing, edits, sizes
):  # fmt: skip
    """The edits of plain reads and the sizes of their records. One thread a read.

    It reads the bases and the genome under them; of a pair, the mate's CIGAR.
    """
    read = int64(cuda.grid(1))
    if read >= marks.size or marks[read]:
        return
    n_edits = int64(0)
    if alignments.positions[read] >= 0:
        n_edits = _edits_of(constants, tables, alignments, read, read)
    edits[read] = n_edits
    length = tables.offsets[read + 1] - tables.offsets[read]
    size = _bases_begin(tables, alignments, read, ends) + (length + 1) // 2 + length
    sizes[firsts[read]] = _put_tags(
        nothing, size, constants, tables, alignments, other_offsets, others, read, ends, n_edits
    )


@cuda.jit(cache=True)
def write_heads(
    constants, tables, alignments, other_offsets, others, marks, ends, firsts, edits, starts, data,
    keys,
):  # fmt: skip
    """All of plain reads' records but bases and qualities; and the keys. One thread a read."""
    read = int64(cuda.grid(1))
    if read >= marks.size or marks[read]:
        return
    record = int64(firsts[read])
    at = int64(starts[record])
    size = int64(starts[record + 1]) - at
    length = tables.offsets[read + 1] - tables.offsets[read]
    own_position = alignments.positions[read]
    is_mapped = own_position >= 0
    flag, stands_at, template_length = int64(UNMAPPED), own_position, int64(0)
    contig = contig_at(constants.contig_starts, own_position)
    span = _span_of(alignments, read)
    if is_mapped:
        flag = int64(REVERSE) if alignments.strands[read] else int64(0)
    mate_stands_at = int64(-1)
    if ends == 2:
        mate = read ^ 1
        mate_position = alignments.positions[mate]
        flag |= PAIRED | (LAST if read & 1 else FIRST)
        flag |= PROPER if tables.proper[read] else 0
        if mate_position < 0:
            flag |= MATE_UNMAPPED
        elif alignments.strands[mate]:
            flag |= MATE_REVERSE
        mate_stands_at = mate_position
        if mate_position < 0:
            # It stands where this one does.
            mate_stands_at = own_position
        if not is_mapped:
            stands_at = mate_position
        elif (
            mate_position >= constants.contig_starts[contig]
            and mate_position < constants.contig_starts[contig + 1]
        ):
            # From the outermost base of the one read to that of the other.
            template_length = mate_position - own_position
            if alignments.strands[mate]:
                template_length += _span_of(alignments, mate) - 1
            if alignments.strands[read]:
                template_length -= span - 1
            if template_length != 0:
                template_length += 1 if template_length > 0 else -1
    number, position = _stand(constants, stands_at)
    mate_number, in_mate_contig = _stand(constants, mate_stands_at)
    keys[record] = _NO_POSITION
    if stands_at >= 0:
        keys[record] = 2 * stands_at + (1 if flag & REVERSE else 0)
    n_operations = _cigar_count(alignments, read, length)
    template = read // ends
    name_begin, name_end = tables.name_offsets[template], tables.name_offsets[template + 1]
    at = put_int32(data, at, size - 4)
    at = put_int32(data, at, number)
    at = put_int32(data, at, position)
    at = put_byte(data, at, max(name_end - name_begin, int64(1)) + 1)
    at = put_byte(data, at, int64(tables.mapping_qualities[read]) if is_mapped else 0)
    at = put_int16(data, at, first_bin(position, position + max(span, int64(1)), 14, 5))
    at = put_int16(data, at, n_operations)
    at = put_int16(data, at, flag)
    at = put_int32(data, at, length)
    at = put_int32(data, at, mate_number)
    at = put_int32(data, at, in_mate_contig)
    at = put_int32(data, at, template_length)
    if name_begin == name_end:
        at = put_byte(data, at, 42)
    at = put_byte(data, put_bytes(data, at, tables.names, name_begin, name_end), 0)
    if n_operations > 0:
        clip = int64(alignments.read_starts[read])
        if clip > 0:
            at = put_int32(data, at, clip << 4 | SOFT_CLIP)
        for i in range(
            int64(alignments.cigar_offsets[read]), int64(alignments.cigar_offsets[read + 1])
        ):
            at = put_int32(data, at, int64(alignments.cigar[i]))
        clip = length - int64(alignments.read_ends[read])
        if clip > 0:
            at = put_int32(data, at, clip << 4 | SOFT_CLIP)
    at += (length + 1) // 2 + length
    _put_tags(
        data, at, constants, tables, alignments, other_offsets, others, read, ends,
        int64(edits[read]),
    )  # fmt: skip


@cuda.jit(device=True)
def _stand(constants, stands_at):
    """The number of the contig at a genome position, and the position in it; -1 for none."""
    if stands_at < 0:
        return int64(-1), int64(-1)
    contig = contig_at(constants.contig_starts, stands_at)
    return constants.contig_numbers[contig], stands_at - constants.contig_starts[contig]


@cuda.jit(cache=True)
def write_bases(tables, alignments, marks, ends, firsts, starts, data):
    """The bases and qualities of plain reads. One warp a read, a lane every 32nd byte."""
    read = int64(cuda.grid(1)) // WARP
    if read >= marks.size or marks[read]:
        return
    first = tables.offsets[read]
    length = tables.offsets[read + 1] - first
    is_turned = alignments.positions[read] >= 0 and alignments.strands[read] != 0
    base = first + (tables.offsets[tables.offsets.size - 1] if is_turned else int64(0))
    at = int64(starts[firsts[read]]) + _bases_begin(tables, alignments, read, ends)
    lane = int64(cuda.laneid)
    for i in range(lane, (length + 1) // 2, WARP):
        two = _bit_of(tables.codes[base + 2 * i]) << 4
        if 2 * i + 1 < length:
            two |= _bit_of(tables.codes[base + 2 * i + 1])
        data[at + i] = two
    at += (length + 1) // 2
    for i in range(lane, length, WARP):
        quality = int64(255)
        if tables.qualities.size > 0:
            source = first + length - 1 - i if is_turned else first + i
            quality = int64(tables.qualities[source]) - 33
        data[at + i] = quality & 255


@cuda.jit(device=True)
def _bit_of(code):
    """A, C, G, T are a bit each, and N is all of them."""
    return int64(1) << int64(code) if code < 4 else int64(15)


@cuda.jit(cache=True)
def size_copies(data_starts, records, sizes):
    """The sizes of the host's records. One thread a record."""
    i = cuda.grid(1)
    if i < records.size:
        sizes[records[i]] = data_starts[i + 1] - data_starts[i]


@cuda.jit(cache=True)
def copy_records(source, source_starts, source_keys, records, starts, data, keys):
    """Copy the host's records to where they belong. One warp a record."""
    i = int64(cuda.grid(1)) // WARP
    if i >= records.size:
        return
    record = records[i]
    begin, at = source_starts[i], int64(starts[record])
    for byte in range(int64(cuda.laneid), source_starts[i + 1] - begin, WARP):
        data[at + byte] = source[begin + byte]
    if cuda.laneid == 0:
        keys[record] = source_keys[i]


_INTEGER, _LONGS, _NUMBERS = types.int64, types.int64[::1], types.uint32[::1]
_SIGNED, _BYTES, _KEYS = types.int32[::1], types.uint8[::1], types.uint64[::1]

_CONSTANTS = types.NamedTuple((_NUMBERS, _LONGS, _LONGS, _BYTES, _LONGS, _BYTES), RecordConstants)
_TABLES = types.NamedTuple(
    (_BYTES, _NUMBERS, _LONGS, _BYTES, _LONGS, _BYTES, _SIGNED, _BYTES, _SIGNED, _BYTES), _Tables
)
_ALIGNMENTS = types.NamedTuple(
    (_LONGS, _BYTES, _SIGNED, _SIGNED, _SIGNED, _NUMBERS, _NUMBERS), DeviceAlignments
)
_COMMON = _CONSTANTS, _TABLES, _ALIGNMENTS, _NUMBERS, _ALIGNMENTS, _BYTES, _INTEGER, _NUMBERS

#: The argument types that every kernel is compiled with.
KERNEL_SIGNATURES = {
    size_records: (*_COMMON, _BYTES, _SIGNED, _NUMBERS),
    write_heads: (*_COMMON, _SIGNED, _NUMBERS, _BYTES, _KEYS),
    write_bases: (_TABLES, _ALIGNMENTS, _BYTES, _INTEGER, _NUMBERS, _NUMBERS, _BYTES),
    size_copies: (_LONGS, _LONGS, _NUMBERS),
    copy_records: (_BYTES, _LONGS, _KEYS, _LONGS, _NUMBERS, _BYTES, _KEYS),
}

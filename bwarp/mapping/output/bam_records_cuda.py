"""BAM records of plain reads written on the GPU: the bytes that bam_records gives of them.

A plain read has one record, or is the unmapped mate of one; the records of the others come from the
host, and are copied to where they belong, so that all stand in the order of the reads:

    read       0         1         2 (host)            3
    records    | plain   | plain   | host    | host    | plain  |
    starts      0         1         2         3         4        5

How long a record is comes first: it is written into an empty array. Then a thread writes what
differs from read to read, and a warp the bases and qualities, which are most of a record.
"""

import numpy as np

from bwarp.alignment.pairs import SOFT_CLIP
from bwarp.gpu.cuda import cuda, int32, int64, uint8, uint32, uint64
from bwarp.gpu.device_arrays import zeros
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import WARP, launch
from bwarp.gpu.prefix_sum import add_up
from bwarp.io.bam.device_records_cuda import DeviceRecords
from bwarp.io.bam.records import first_bin
from bwarp.io.bam.sort_order import NO_POSITION
from bwarp.mapping.extension.extension_cuda import contig_at
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
from bwarp.mapping.output.record_tables_cuda import (
    HostRecords,
    ReadTables,
    ReadTexts,
    RecordConstants,
    RecordNumbers,
    SecondaryOfReads,
    array_on_gpu,
    read_tables,
)
from bwarp.mapping.output.record_tags_cuda import edits_of, put_tags
from bwarp.mapping.output.record_text_cuda import (
    put_byte,
    put_bytes,
    put_int16,
    put_int32,
    reference_span,
)
from bwarp.mapping.pairing.primary_hits_cuda import DevicePrimary
from bwarp.mapping.reads.device_reads_cuda import DeviceReads

__all__ = ["plain_records"]

_NO_POSITION = int(NO_POSITION)

#: Bytes of a record before the read's name, its size included.
_HEAD = 36


def plain_records(
    constants: RecordConstants,
    reads: DeviceReads,
    texts: ReadTexts,
    alignments: DeviceAlignments,
    primary: DevicePrimary,
    secondary: SecondaryOfReads,
    marks,
    by_host: HostRecords,
    numbers: RecordNumbers,
    ends: int,
) -> tuple[DeviceRecords, object]:
    """All records of some reads, in their order; and the edits of plain ones (NM), int32 a read.

    Parameters
    ----------
    marks : device array, shape=(n_reads,), dtype=uint8
        1 for the reads whose records `by_host` has; the two of a pair are marked alike.
    """
    n_records = int(numbers.firsts[-1])
    firsts = cuda.to_device(numbers.firsts)
    tables = read_tables(reads, texts, primary)
    edits = cuda.device_array(reads.n_reads, np.int32)
    starts = zeros(n_records + 1, np.uint32)
    common = constants, tables, alignments, *secondary, marks, ends, firsts
    size_records[launch(reads.n_reads)](*common, array_on_gpu(np.empty(0, np.uint8)), edits, starts)
    numbers_there, source = _sized_by_host(by_host, numbers.of_host, starts)
    n_bytes = add_up(starts)
    data = cuda.device_array(max(1, n_bytes), np.uint8)
    keys = cuda.device_array(max(1, n_records), np.uint64)
    write_heads[launch(reads.n_reads)](*common, edits, starts, data, keys)
    write_bases[launch(reads.n_reads * WARP)](tables, alignments, marks, ends, firsts, starts, data)
    if by_host.keys.size:
        copy_records[launch(by_host.keys.size * WARP)](*source, numbers_there, starts, data, keys)
    gpu = cuda.get_current_device().id
    return DeviceRecords(data, starts, keys, n_records, n_bytes, gpu), edits


def _sized_by_host(by_host: HostRecords, of_host: np.ndarray, sizes):
    """Write the sizes of the host's records; returns their numbers and themselves on the GPU."""
    if not of_host.size:
        return None, ()
    numbers = cuda.to_device(of_host)
    source = tuple(map(cuda.to_device, (by_host.data, by_host.starts, by_host.keys)))
    size_copies[launch(of_host.size)](source[1], numbers, sizes)
    return numbers, source


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
def _bases_begin(tables, alignments, read, ends):
    """Where the bases begin in a read's record; and its name, which has a byte at least."""
    template = read // ends
    length = tables.offsets[read + 1] - tables.offsets[read]
    name = tables.name_offsets[template + 1] - tables.name_offsets[template]
    return _HEAD + max(name, int64(1)) + 1 + 4 * _cigar_count(alignments, read, length)


@kernel
def size_records(
    constants: RecordConstants, tables: ReadTables, alignments: DeviceAlignments,
    other_offsets: uint32[::1], others: DeviceAlignments, marks: uint8[::1], ends: int,
    firsts: uint32[::1], nothing: uint8[::1], edits: int32[::1], sizes: uint32[::1],
):  # fmt: skip
    """The edits of plain reads and the sizes of their records. One thread a read.

    It reads the bases and the genome under them; of a pair, the mate's CIGAR.
    """
    read = int64(cuda.grid(1))
    if read >= marks.size or marks[read]:
        return
    n_edits = int64(0)
    if alignments.positions[read] >= 0:
        n_edits = edits_of(constants, tables, alignments, read, read)
    edits[read] = n_edits
    length = tables.offsets[read + 1] - tables.offsets[read]
    size = _bases_begin(tables, alignments, read, ends) + (length + 1) // 2 + length
    sizes[firsts[read]] = put_tags(
        nothing, size, constants, tables, alignments, other_offsets, others, read, ends, n_edits
    )


@kernel
def write_heads(
    constants: RecordConstants, tables: ReadTables, alignments: DeviceAlignments,
    other_offsets: uint32[::1], others: DeviceAlignments, marks: uint8[::1], ends: int,
    firsts: uint32[::1], edits: int32[::1], starts: uint32[::1], data: uint8[::1],
    keys: uint64[::1],
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
    first_operation = int64(alignments.cigar_offsets[read])
    last_operation = int64(alignments.cigar_offsets[read + 1])
    span = reference_span(alignments.cigar, first_operation, last_operation)
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
                mate_span = reference_span(
                    alignments.cigar, int64(alignments.cigar_offsets[mate]),
                    int64(alignments.cigar_offsets[mate + 1]),
                )  # fmt: skip
                template_length += mate_span - 1
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
        for i in range(first_operation, last_operation):
            at = put_int32(data, at, int64(alignments.cigar[i]))
        clip = length - int64(alignments.read_ends[read])
        if clip > 0:
            at = put_int32(data, at, clip << 4 | SOFT_CLIP)
    at += (length + 1) // 2 + length
    put_tags(
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


@kernel
def write_bases(
    tables: ReadTables, alignments: DeviceAlignments, marks: uint8[::1], ends: int,
    firsts: uint32[::1], starts: uint32[::1], data: uint8[::1],
):  # fmt: skip
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


@kernel
def size_copies(data_starts: int64[::1], records: int64[::1], sizes: uint32[::1]):
    """The sizes of the host's records. One thread a record."""
    i = cuda.grid(1)
    if i < records.size:
        sizes[records[i]] = data_starts[i + 1] - data_starts[i]


@kernel
def copy_records(
    source: uint8[::1], source_starts: int64[::1], source_keys: uint64[::1], records: int64[::1],
    starts: uint32[::1], data: uint8[::1], keys: uint64[::1],
):  # fmt: skip
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

"""Write BAM records of plain reads on the GPU, byte-identical to those of bam_records.

A plain read has one record, or is the unmapped mate of one. The host writes the records of all
other reads, which are copied to their positions, so that records are in the order of the reads:

    read       0         1         2 (host)            3
    records    | plain   | plain   | host    | host    | plain  |
    starts      0         1         2         3         4        5

The length of a record is computed first by writing it into an empty array. Then one thread writes
the fields and tags of a record, and one warp its bases and qualities, which are most of it.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from bwarp.alignment.pairs import INSERTION, SOFT_CLIP
from bwarp.bam.duplicate_rules import counted_quality
from bwarp.bam.fields import (
    AS,
    FIXED_BYTES,
    MC,
    MD,
    MQ,
    MS,
    NM,
    NO_QUALITY,
    REVERSE,
    RG,
    SIZE_BYTES,
    TEXT,
    UNMAPPED,
    XA,
    XS,
)
from bwarp.bam.sort_keys import NO_POSITION
from bwarp.bam.sorted_blocks_cuda import DeviceRecords
from bwarp.gpu.cuda import cuda, int32, int64, uint8, uint32, uint64
from bwarp.gpu.device_arrays import zeros
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import WARP, launch
from bwarp.gpu.sums_and_sorts import add_up, total
from bwarp.mapping.extension_cuda import DeviceGenome, contig_at
from bwarp.mapping.final_alignments_cuda import DeviceAlignments
from bwarp.mapping.primary_hits_cuda import DevicePrimary
from bwarp.reads.base_bits_cuda import base_at, differing
from bwarp.reads.device_reads_cuda import DeviceReads
from bwarp.records.record_rules import (
    AlignedRead,
    EngineFunctions,
    nibble,
    pair_flags,
    part_functions,
    record_bin,
    template_length,
)
from bwarp.runtime.threads import offsets_of

# --------------------------------------------------------------------------------------------------
# Tables on the GPU that the kernels read, and their types.
#
# RecordConstants     genome, contigs, read group       the same for all chunks
# ReadTables          bases, names, qualities, hits     of the reads of a chunk
# SecondaryOfReads    hits listed in XA                 of these reads
# PlainTables         what the kernels take             of reads whose records the GPU writes
# HostRecords         records written by the host       of reads that are not plain
# RecordNumbers       positions of both                 among all records


class RecordConstants(NamedTuple):
    """Data shared by the records of all chunks, on the GPU.

    Attributes
    ----------
    genome : device array, dtype=uint32
        Blocks of bases.
    contig_starts : device array, shape=(n_contigs + 1,), dtype=int64
    contig_numbers : device array, shape=(n_contigs,), dtype=int64
        Numbers in the header, which omits contigs without bases.
    contig_text : device array, dtype=uint8
    contig_bounds : device array, shape=(2 * n_contigs,), dtype=int64
        Start and end of the name of each contig in the text.
    group : device array, dtype=uint8
        The read group; empty for none.
    """

    genome: uint32[::1]
    contig_starts: int64[::1]
    contig_numbers: int64[::1]
    contig_text: uint8[::1]
    contig_bounds: int64[::1]
    group: uint8[::1]


class ReadTexts(NamedTuple):
    """The names, qualities and further tags of reads, on the GPU.

    Attributes
    ----------
    names : device array, dtype=uint8
        Concatenated names of the templates.
    name_offsets : device array, shape=(n_templates + 1,), dtype=int64
    qualities : device array, dtype=uint8
        As in FASTQ, at the offsets of the bases; empty for none.
    tags : device array, dtype=uint8
        Further tags in the form of the records.
    tag_offsets : device array, shape=(n_reads + 1,), dtype=int64
        Start of the tags of each read, and the end of the last; empty for none.
    """

    names: uint8[::1]
    name_offsets: int64[::1]
    qualities: uint8[::1]
    tags: uint8[::1]
    tag_offsets: int64[::1]


class ReadTables(NamedTuple):
    """Data per read: arrays of `DeviceReads`, `ReadTexts` and `DevicePrimary`."""

    codes: uint8[::1]
    blocks: uint32[::1]
    offsets: int64[::1]
    names: uint8[::1]
    name_offsets: int64[::1]
    qualities: uint8[::1]
    tags: uint8[::1]
    tag_offsets: int64[::1]
    hits: int32[::1]
    mapping_qualities: uint8[::1]
    suboptimal: int32[::1]
    proper: uint8[::1]


class SecondaryOfReads(NamedTuple):
    """Secondary hits listed in the records of reads: XA.

    Attributes
    ----------
    offsets : device array, shape=(n_reads + 1,), dtype=uint32
    alignments : DeviceAlignments
        One row per hit.
    """

    offsets: uint32[::1]
    alignments: DeviceAlignments


class PlainTables(NamedTuple):
    """Tables of reads whose records the GPU writes.

    Attributes
    ----------
    marks : device array, shape=(n_reads,), dtype=uint8
        1 for reads without records by the GPU; both reads of a pair have the same mark.
    ends : int
    firsts : device array, shape=(n_reads + 1,), dtype=uint32
        The number of each read's first record.
    quality_sums : device array, dtype=int32
        Quality sums of the reads, written to their mates' records (ms); empty for none.
    orphans : device array, dtype=uint8
        1 for templates without a second read, if there are two ends; empty if there are none.
    """

    constants: RecordConstants
    tables: ReadTables
    alignments: DeviceAlignments
    secondary: SecondaryOfReads
    marks: uint8[::1]
    ends: int
    firsts: uint32[::1]
    quality_sums: int32[::1]
    orphans: uint8[::1]


class HostRecords(NamedTuple):
    """Records written by the host.

    Attributes
    ----------
    data : ndarray, dtype=uint8
    starts : ndarray, shape=(n + 1,), dtype=int64
    keys : ndarray, shape=(n,), dtype=uint64
    reads : ndarray, shape=(n,), dtype=int64
        The number of each record's read, in ascending order.
    """

    data: np.ndarray
    starts: np.ndarray
    keys: np.ndarray
    reads: np.ndarray


class RecordNumbers(NamedTuple):
    """Numbers of records among all records of some reads.

    Attributes
    ----------
    firsts : ndarray, shape=(n_reads + 1,), dtype=uint32
        The number of each read's first record.
    of_host : ndarray, shape=(n,), dtype=int64
        The numbers of the records written by the host.
    """

    firsts: np.ndarray
    of_host: np.ndarray


def record_numbers(by_host: HostRecords, marks: np.ndarray) -> RecordNumbers:
    """Number the records of the host and one record per unmarked read."""
    of_host_before = offsets_of(by_host.reads, marks.size)
    plain_before = np.concatenate([[0], np.cumsum(marks == 0)])
    firsts = (of_host_before + plain_before).astype(np.uint32)
    return RecordNumbers(firsts, np.arange(by_host.reads.size) + plain_before[by_host.reads])


def record_constants(
    genome: DeviceGenome, names: tuple[np.ndarray, np.ndarray], group: bytes
) -> RecordConstants:
    """Make the constants from the `Names` of the contigs and the ID of the read group."""
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


def read_tables(reads: DeviceReads, texts: ReadTexts, primary: DevicePrimary) -> ReadTables:
    return ReadTables(
        reads.both, reads.blocks, reads.offsets, *texts, primary.hits, primary.qualities,
        primary.suboptimal, primary.proper,
    )  # fmt: skip


def quality_sums(tables: ReadTables, wanted: bool):
    """Return the sum of each read's qualities that count for duplicates, as
    `bwarp.records.bam_records_cpu.quality_sums`; empty unless wanted."""
    if not wanted:
        return array_on_gpu(np.empty(0, np.int32))
    sums = zeros(tables.offsets.size - 1, np.int32)
    if tables.qualities.size:
        add_qualities(tables.qualities, tables.offsets, sums)
    return sums


@kernel(over="sums", per=WARP)
def add_qualities(qualities: uint8[::1], offsets: int64[::1], sums: int32[::1]):
    """Add up the qualities of each read that count for duplicates. One warp per read, every 32nd
    quality per lane."""
    read = int64(cuda.grid(1)) // WARP
    if read >= sums.size:
        return
    lane, own = int64(cuda.laneid), int32(0)
    for i in range(offsets[read] + lane, offsets[read + 1], int64(WARP)):
        own += int32(counted_quality(int64(qualities[i]) - 33))
    own = total(own)
    if lane == 0:
        sums[read] = own


def array_on_gpu(values: np.ndarray):
    """Copy an array, which may be empty, to the GPU."""
    there = cuda.device_array(max(1, values.size), values.dtype)
    if values.size:
        there[: values.size].copy_to_device(values)
    return there[: values.size]


# --------------------------------------------------------------------------------------------------
# Parts of BAM records on the GPU: numbers, CIGARs, MD and tags, as in record_text.
#
# The functions write into a byte array and return the end. Into an empty array they write nothing,
# and thus compute the length of a part.


@cuda.jit(device=True)
def put_byte(out, at, byte):
    if at < out.size:
        out[at] = byte & 255
    return at + 1


@cuda.jit(device=True)
def put_bytes(out, at, source, start, stop):
    """Copy ``source[start:stop]``."""
    for i in range(start, stop):
        put_byte(out, at + i - start, source[i])
    return at + stop - start


@cuda.jit(device=True)
def put_int16(out, at, number):
    return put_byte(out, put_byte(out, at, number), number >> 8)


@cuda.jit(device=True)
def put_int32(out, at, number):
    return put_int16(out, put_int16(out, at, number), number >> 16)


@cuda.jit(device=True)
def put_number(out, at, number):
    """Write a number of up to nine or ten digits in decimal."""
    if number < 0:
        at = put_byte(out, at, 45)
        number = -number
    digits, power = int64(1), uint64(10)
    rest = uint64(number)
    while rest >= power:
        digits += 1
        power *= uint64(10)
    for i in range(digits):
        put_byte(out, at + digits - 1 - i, int64(48) + int64(rest % uint64(10)))
        rest //= uint64(10)
    return at + digits


@cuda.jit(device=True)
def _differing(genome, position, both, base, n):
    """Return a mask of the `n` bases, 1 to 32, that differ or are ambiguous, the first lowest."""
    bits = uint64(differing(genome, position, both, base))
    return bits & ((uint64(1) << uint64(n)) - uint64(1))


@cuda.jit(device=True)
def _count_bits(word):
    return cuda.popc(word)


_functions = part_functions(
    EngineFunctions(
        partial(cuda.jit, device=True), put_byte, put_int16, put_int32, put_number, _differing,
        base_at, base_at, _count_bits, WARP,
    )
)  # fmt: skip
begin_tag, end_text = _functions.begin_tag, _functions.end_text
put_integer, put_letter = _functions.put_integer, _functions.put_letter
put_operation, put_operations = _functions.put_operation, _functions.put_cigar
count_edits, put_md = _functions.count_edits, _functions.put_md
split_matches = _functions.split_matches
paf_counts, put_share = _functions.paf_counts, _functions.put_share


@cuda.jit(device=True)
def put_cigar(out, at, cigar, first, last, clip_before, clip_after):
    """Write a CIGAR as text, with soft clips around it."""
    if clip_before > 0:
        at = put_operation(out, at, clip_before, SOFT_CLIP)
    at = put_operations(out, at, cigar, first, last)
    if clip_after > 0:
        at = put_operation(out, at, clip_after, SOFT_CLIP)
    return at


@cuda.jit(device=True)
def reference_span(cigar, first, last):
    """Return the number of reference bases of CIGAR operations `first` to `last`."""
    span = int64(0)
    for i in range(first, last):
        length, operation = int64(cigar[i]) >> 4, int64(cigar[i]) & 15
        if operation != INSERTION:
            span += length
    return span


# --------------------------------------------------------------------------------------------------
# Tags of plain reads' records on the GPU.
#
#     NM, MD      from the bases of the read and the genome
#     MC, MQ      from the mate's alignment
#     AS, XS      scores of this alignment and of the best other hit
#     ms          from the mate's qualities, if asked
#     RG          the same for all
#     XA          from further alignments of the read
#     others      from the comments of FASTQ
#
# Writing into an empty array computes the length.


@cuda.jit(device=True)
def _base_of(tables, alignments, row, read):
    """Return the start of the read on the strand of an alignment, in the bases of both strands."""
    base = tables.offsets[read]
    return base + tables.offsets[tables.offsets.size - 1] if alignments.strands[row] else base


@cuda.jit(device=True)
def put_name(out, at, tables, template):
    """Write the name of a template, or * if it is empty."""
    begin, end = tables.name_offsets[template], tables.name_offsets[template + 1]
    if begin == end:
        return put_byte(out, at, 42)
    return put_bytes(out, at, tables.names, begin, end)


@cuda.jit(device=True)
def put_row_cigar(out, at, alignments, row, length):
    """Write the CIGAR of a row as text, with its clips."""
    return put_cigar(
        out, at, alignments.cigar, int64(alignments.cigar_offsets[row]),
        int64(alignments.cigar_offsets[row + 1]), int64(alignments.read_starts[row]),
        length - int64(alignments.read_ends[row]),
    )  # fmt: skip


@cuda.jit(device=True)
def edits_of(constants, tables, alignments, row, read):
    """Return the number of edits of a row, an alignment of a read: NM."""
    return count_edits(aligned_read(constants, tables, alignments, row, read))


@cuda.jit(device=True)
def aligned_read(constants, tables, alignments, row, read):
    base = _base_of(tables, alignments, row, read) + alignments.read_starts[row]
    return AlignedRead(
        constants.genome, alignments.positions[row], tables.blocks, base, alignments.cigar,
        int64(alignments.cigar_offsets[row]), int64(alignments.cigar_offsets[row + 1]),
    )  # fmt: skip


@cuda.jit(device=True)
def _put_secondary(out, at, constants, tables, others, row, read, length):
    """Write a hit as contig,strand and position,CIGAR,NM;"""
    position = others.positions[row]
    contig = contig_at(constants.contig_starts, position)
    begin, end = constants.contig_bounds[2 * contig], constants.contig_bounds[2 * contig + 1]
    at = put_bytes(out, at, constants.contig_text, begin, end)
    at = put_byte(out, at, 44)
    at = put_byte(out, at, 45 if others.strands[row] else 43)
    at = put_number(out, at, position - constants.contig_starts[contig] + 1)
    at = put_byte(out, at, 44)
    at = put_row_cigar(out, at, others, row, length)
    at = put_byte(out, at, 44)
    at = put_number(out, at, edits_of(constants, tables, others, row, read))
    return put_byte(out, at, 59)


@cuda.jit(device=True)
def has_mate(plain, read):
    """Return whether a read belongs to a pair."""
    return plain.ends == 2 and (plain.orphans.size == 0 or plain.orphans[read >> 1] == 0)


def tags_writer(is_binary: bool):
    """Return the function that writes all tags of a read's record, for BAM or SAM."""

    @cuda.jit(device=True)
    def put_tags(out, at, plain, read, n_edits):
        constants, tables, alignments = plain.constants, plain.tables, plain.alignments
        position = alignments.positions[read]
        length = tables.offsets[read + 1] - tables.offsets[read]
        if position >= 0:
            at = put_integer(out, at, NM, n_edits, is_binary)
            at = begin_tag(out, at, MD, TEXT, is_binary)
            aligned = aligned_read(constants, tables, alignments, read, read)
            if n_edits > 0:
                at = put_md(out, at, aligned)
            else:
                span = reference_span(aligned.cigar, aligned.first, aligned.last)
                at = put_number(out, at, span)
            at = end_text(out, at, is_binary)
        mate = read ^ 1
        if has_mate(plain, read) and alignments.positions[mate] >= 0:
            mate_length = tables.offsets[mate + 1] - tables.offsets[mate]
            at = begin_tag(out, at, MC, TEXT, is_binary)
            at = put_row_cigar(out, at, alignments, mate, mate_length)
            at = end_text(out, at, is_binary)
            at = put_integer(out, at, MQ, int64(tables.mapping_qualities[mate]), is_binary)
        if position >= 0:
            at = put_integer(out, at, AS, int64(alignments.scores[read]), is_binary)
            at = put_integer(out, at, XS, int64(tables.suboptimal[read]), is_binary)
        if has_mate(plain, read) and plain.quality_sums.size > 0:
            at = put_integer(out, at, MS, int64(plain.quality_sums[mate]), is_binary)
        if constants.group.size > 0:
            at = begin_tag(out, at, RG, TEXT, is_binary)
            at = put_bytes(out, at, constants.group, 0, constants.group.size)
            at = end_text(out, at, is_binary)
        others = plain.secondary
        first, last = int64(others.offsets[read]), int64(others.offsets[read + 1])
        if first < last:
            at = begin_tag(out, at, XA, TEXT, is_binary)
            for row in range(first, last):
                at = _put_secondary(
                    out, at, constants, tables, others.alignments, row, read, length
                )
            at = end_text(out, at, is_binary)
        return put_further(out, at, tables, read, is_binary)

    return put_tags


@cuda.jit(device=True)
def put_further(out, at, tables, read, is_binary):
    """Write the further tags of a read."""
    if tables.tag_offsets.size > 0:
        begin, end = tables.tag_offsets[read], tables.tag_offsets[read + 1]
        if begin < end and not is_binary:
            at = put_byte(out, at, 9)
        at = put_bytes(out, at, tables.tags, begin, end)
    return at


_put_tags = tags_writer(is_binary=True)


_NO_POSITION = int(NO_POSITION)

#: Bytes of a record before the read's name, its size included.
_HEAD = SIZE_BYTES + FIXED_BYTES

#: Encodes records in a format: a function of `PlainTables`, edits and sizes that computes the edits
#: (NM) of plain reads and the sizes of their records, and returns a function of starts, data and
#: keys that writes these records.
RecordEncoder = Callable[[PlainTables, object, object], Callable[[object, object, object], None]]


def encode_bam(plain: PlainTables, edits, sizes) -> Callable[[object, object, object], None]:
    """Write BAM (`RecordEncoder`)."""
    size_records(plain, array_on_gpu(np.empty(0, np.uint8)), edits, sizes)

    def write(starts, data, keys) -> None:
        write_heads(plain, edits, starts, data, keys)
        write_bases(plain, starts, data)

    return write


def plain_records(
    plain: PlainTables,
    by_host: HostRecords,
    numbers: RecordNumbers,
    encode: RecordEncoder = encode_bam,
) -> tuple[DeviceRecords, object]:
    """Return all records of some reads in order, and the edits (NM) of plain ones: int32."""
    n_records = int(numbers.firsts[-1])
    edits = cuda.device_array(plain.marks.size, np.int32)
    starts = zeros(n_records + 1, np.uint32)
    write = encode(plain, edits, starts)
    numbers_there, source = _sized_by_host(by_host, numbers.of_host, starts)
    n_bytes = add_up(starts)
    data = cuda.device_array(max(1, n_bytes), np.uint8)
    keys = zeros(max(1, n_records), np.uint64)
    write(starts, data, keys)
    if by_host.keys.size:
        copy_records[launch(by_host.keys.size * WARP)](*source, numbers_there, starts, data, keys)
    gpu = cuda.get_current_device().id
    return DeviceRecords(data, starts, keys, n_records, n_bytes, gpu), edits


def _sized_by_host(by_host: HostRecords, of_host: np.ndarray, sizes):
    """Write the sizes of the host's records; return their numbers and contents on the GPU."""
    if not of_host.size:
        return None, ()
    numbers = cuda.to_device(of_host)
    source = tuple(map(cuda.to_device, (by_host.data, by_host.starts, by_host.keys)))
    size_copies[launch(of_host.size)](source[1], numbers, sizes)
    return numbers, source


@cuda.jit(device=True)
def _cigar_count(alignments, row, length):
    """Return the number of operations of a row's CIGAR, including clips."""
    first, last = int64(alignments.cigar_offsets[row]), int64(alignments.cigar_offsets[row + 1])
    if first == last:
        return int64(0)
    count = last - first
    count += 1 if alignments.read_starts[row] > 0 else 0
    return count + (1 if alignments.read_ends[row] < length else 0)


@cuda.jit(device=True)
def _bases_begin(tables, alignments, read, ends):
    """Return the start of the bases in a read's record, and its name of at least one byte."""
    template = read // ends
    length = tables.offsets[read + 1] - tables.offsets[read]
    name = tables.name_offsets[template + 1] - tables.name_offsets[template]
    return _HEAD + max(name, int64(1)) + 1 + 4 * _cigar_count(alignments, read, length)


@kernel(over="plain.marks")
def size_records(plain: PlainTables, nothing: uint8[::1], edits: int32[::1], sizes: uint32[::1]):
    """Compute the edits of plain reads and the sizes of their records. One thread per read.

    It reads the bases and the genome under them, and for pairs the mate's CIGAR.
    """
    read = int64(cuda.grid(1))
    if read >= plain.marks.size or plain.marks[read]:
        return
    tables, alignments = plain.tables, plain.alignments
    n_edits = int64(0)
    if alignments.positions[read] >= 0:
        n_edits = edits_of(plain.constants, tables, alignments, read, read)
    edits[read] = n_edits
    length = tables.offsets[read + 1] - tables.offsets[read]
    size = _bases_begin(tables, alignments, read, plain.ends) + (length + 1) // 2 + length
    sizes[plain.firsts[read]] = _put_tags(nothing, size, plain, read, n_edits)


@kernel(over="edits")
def count_all_edits(plain: PlainTables, edits: int32[::1]):
    """Compute the edits of all mapped reads. One thread per read, as in `size_records`."""
    read = int64(cuda.grid(1))
    if read < edits.size and plain.alignments.positions[read] >= 0:
        edits[read] = edits_of(plain.constants, plain.tables, plain.alignments, read, read)


class PlainRow(NamedTuple):
    """Fields of the record of a plain read, which all formats use; see SAM.

    Contigs and positions in them are -1 if there is none; `stands_at` is the position in the
    genome.
    """

    flag: int
    stands_at: int
    contig: int
    position: int
    span: int
    mate_contig: int
    mate_position: int
    template_length: int


@cuda.jit(device=True)
def plain_row(plain, read):
    """Return the `PlainRow` of a read."""
    constants, tables, alignments = plain.constants, plain.tables, plain.alignments
    own_position = alignments.positions[read]
    is_mapped = own_position >= 0
    flag, stands_at, length_of_template = int64(UNMAPPED), own_position, int64(0)
    contig = contig_at(constants.contig_starts, own_position)
    span = reference_span(
        alignments.cigar, int64(alignments.cigar_offsets[read]),
        int64(alignments.cigar_offsets[read + 1]),
    )  # fmt: skip
    if is_mapped:
        flag = int64(REVERSE) if alignments.strands[read] else int64(0)
    mate_stands_at = int64(-1)
    if has_mate(plain, read):
        mate = read ^ 1
        mate_position = alignments.positions[mate]
        flag |= pair_flags(read & 1, tables.proper[read], mate_position, alignments.strands[mate])
        mate_stands_at = mate_position
        if mate_position < 0:
            # The unmapped mate gets this position.
            mate_stands_at = own_position
        if not is_mapped:
            stands_at = mate_position
        elif (
            mate_position >= constants.contig_starts[contig]
            and mate_position < constants.contig_starts[contig + 1]
        ):
            mate_span = reference_span(
                alignments.cigar, int64(alignments.cigar_offsets[mate]),
                int64(alignments.cigar_offsets[mate + 1]),
            )  # fmt: skip
            length_of_template = template_length(
                own_position, alignments.strands[read], span, mate_position,
                alignments.strands[mate], mate_span,
            )  # fmt: skip
    contig, position = _stand(constants, stands_at)
    mate_contig, in_mate_contig = _stand(constants, mate_stands_at)
    return PlainRow(
        flag, stands_at, contig, position, span, mate_contig, in_mate_contig, length_of_template
    )


@cuda.jit(device=True)
def _stand(constants, stands_at):
    """Return the contig at a genome position and the position in it, or -1."""
    if stands_at < 0:
        return int64(-1), int64(-1)
    contig = contig_at(constants.contig_starts, stands_at)
    return contig, stands_at - constants.contig_starts[contig]


@cuda.jit(device=True)
def _number_of(constants, contig):
    """Return the number of a contig in the header, or -1."""
    return constants.contig_numbers[contig] if contig >= 0 else int64(-1)


@kernel(over="plain.marks")
def write_heads(
    plain: PlainTables, edits: int32[::1], starts: uint32[::1], data: uint8[::1], keys: uint64[::1]
):
    """Write records of plain reads except bases and qualities, and keys. One thread per read."""
    read = int64(cuda.grid(1))
    if read >= plain.marks.size or plain.marks[read]:
        return
    constants, tables, alignments = plain.constants, plain.tables, plain.alignments
    ends = plain.ends
    record = int64(plain.firsts[read])
    at = int64(starts[record])
    size = int64(starts[record + 1]) - at
    length = tables.offsets[read + 1] - tables.offsets[read]
    is_mapped = alignments.positions[read] >= 0
    row = plain_row(plain, read)
    keys[record] = _NO_POSITION
    if row.stands_at >= 0:
        keys[record] = 2 * row.stands_at + (1 if row.flag & REVERSE else 0)
    n_operations = _cigar_count(alignments, read, length)
    template = read // ends
    name_begin, name_end = tables.name_offsets[template], tables.name_offsets[template + 1]
    at = put_int32(data, at, size - SIZE_BYTES)
    at = put_int32(data, at, _number_of(constants, row.contig))
    at = put_int32(data, at, row.position)
    at = put_byte(data, at, max(name_end - name_begin, int64(1)) + 1)
    at = put_byte(data, at, int64(tables.mapping_qualities[read]) if is_mapped else 0)
    at = put_int16(data, at, record_bin(row.position, row.span))
    at = put_int16(data, at, n_operations)
    at = put_int16(data, at, row.flag)
    at = put_int32(data, at, length)
    at = put_int32(data, at, _number_of(constants, row.mate_contig))
    at = put_int32(data, at, row.mate_position)
    at = put_int32(data, at, row.template_length)
    at = put_byte(data, put_name(data, at, tables, template), 0)
    if n_operations > 0:
        clip = int64(alignments.read_starts[read])
        if clip > 0:
            at = put_int32(data, at, clip << 4 | SOFT_CLIP)
        first_operation = int64(alignments.cigar_offsets[read])
        for i in range(first_operation, int64(alignments.cigar_offsets[read + 1])):
            at = put_int32(data, at, int64(alignments.cigar[i]))
        clip = length - int64(alignments.read_ends[read])
        if clip > 0:
            at = put_int32(data, at, clip << 4 | SOFT_CLIP)
    at += (length + 1) // 2 + length
    _put_tags(data, at, plain, read, int64(edits[read]))


@kernel(over="plain.marks", per=WARP)
def write_bases(plain: PlainTables, starts: uint32[::1], data: uint8[::1]):
    """Write the bases and qualities of plain reads. One warp per read, every 32nd byte per lane."""
    read = int64(cuda.grid(1)) // WARP
    if read >= plain.marks.size or plain.marks[read]:
        return
    tables, alignments = plain.tables, plain.alignments
    first = tables.offsets[read]
    length = tables.offsets[read + 1] - first
    is_turned = alignments.positions[read] >= 0 and alignments.strands[read] != 0
    base = first + (tables.offsets[tables.offsets.size - 1] if is_turned else int64(0))
    at = int64(starts[plain.firsts[read]]) + _bases_begin(tables, alignments, read, plain.ends)
    lane = int64(cuda.laneid)
    for i in range(lane, (length + 1) // 2, WARP):
        two = nibble(tables.codes[base + 2 * i]) << np.uint8(4)
        if 2 * i + 1 < length:
            two |= nibble(tables.codes[base + 2 * i + 1])
        data[at + i] = two
    at += (length + 1) // 2
    for i in range(lane, length, WARP):
        quality = int64(NO_QUALITY)
        if tables.qualities.size > 0:
            source = first + length - 1 - i if is_turned else first + i
            quality = int64(tables.qualities[source]) - 33
        data[at + i] = quality & 255


@kernel
def size_copies(data_starts: int64[::1], records: int64[::1], sizes: uint32[::1]):
    """Write the sizes of the host's records. One thread per record."""
    i = cuda.grid(1)
    if i < records.size:
        sizes[records[i]] = data_starts[i + 1] - data_starts[i]


@kernel
def copy_records(
    source: uint8[::1], source_starts: int64[::1], source_keys: uint64[::1], records: int64[::1],
    starts: uint32[::1], data: uint8[::1], keys: uint64[::1],
):  # fmt: skip
    """Copy the host's records to their positions. One warp per record."""
    i = int64(cuda.grid(1)) // WARP
    if i >= records.size:
        return
    record = records[i]
    begin, at = source_starts[i], int64(starts[record])
    for byte in range(int64(cuda.laneid), source_starts[i + 1] - begin, WARP):
        data[at + byte] = source[begin + byte]
    if cuda.laneid == 0:
        keys[record] = source_keys[i]

"""Write SAM and BAM records of mapped reads directly to bytes, with the same tags in both.

There are two passes over a range of rows: one bounds the length of the records, one writes them. A
run compiles the second only for its format.

    SAM    name, flag, contig, position, MAPQ, CIGAR, mate's contig, mate's position, template
           length, bases, qualities, tags                            separated by tabs
    BAM    size | contig, position | name length, MAPQ, bin | CIGAR length, flag | bases | mate's
           contig, position | template length | name\0 | CIGAR | bases, 4 bits each | qualities |
           tags
"""

from typing import NamedTuple

import numpy as np

from bwarp.alignment.pairs import DELETION, HARD_CLIP
from bwarp.bam.duplicate_rules import counted_quality
from bwarp.bam.fields import (
    AS,
    FLOAT,
    MATE_UNMAPPED,
    MC,
    MD,
    MQ,
    MS,
    NM,
    PA,
    PAIRED,
    REVERSE,
    RG,
    SA,
    SECONDARY,
    SIZE_BYTES,
    SUPPLEMENTARY,
    TEXT,
    UNMAPPED,
    XA,
    XS,
)
from bwarp.bam.header import is_contig_name
from bwarp.bam.records import Records, put_int16, put_int32, unsorted_lines
from bwarp.bam.sort_keys import sort_keys
from bwarp.errors import InputError
from bwarp.io.names import put_bytes, put_field, put_number
from bwarp.reads.base_bits_cpu import prefetch_bases
from bwarp.reads.read_chunks import ReadChunk
from bwarp.records.alignment_records import RecordTables
from bwarp.records.record_rules import AlignedRead, record_bin
from bwarp.records.record_text import (
    begin_tag,
    count_edits,
    end_text,
    put_cigar,
    put_integer,
    put_letters,
    put_md,
    put_nibbles,
    put_raw_qualities,
    put_secondary,
    put_supplementary,
    put_thousandths,
    put_turned,
)
from bwarp.reference import Reference
from bwarp.runtime.compiled_code import compiled, inner
from bwarp.runtime.threads import for_each_range
from bwarp.runtime.timeline import on_timeline

_TAB, _NEWLINE, _STAR, _EQUAL = b"\t\n*="

#: Inlined by LLVM; passing the tables to a function would copy hundreds of numbers.
_inlined = inner(nogil=True, forceinline=True)


@on_timeline("write records")
def _written_records(
    tables: RecordTables, is_binary: bool, threads: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the bytes of all records, in parts, and the offsets of the records of each part."""
    # The header of BAM omits contigs without bases.
    contig_numbers = np.cumsum(np.diff(tables.genome.contig_starts) > 0) - 1
    fixed = tables.tags.group.size + 2 * tables.contigs.longest

    def write(first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
        out = np.empty(_most_bytes(first, last, fixed, tables), np.uint8)
        starts = np.empty(last - first + 1, np.int64)
        if is_binary:
            _write_bam(first, last, contig_numbers, tables, out, starts)
        else:
            _write_sam(first, last, tables, out, starts)
        return out[: starts[-1]], starts

    return for_each_range(write, tables.records.n_rows, threads)


#: Number of records by which the genome is prefetched ahead.
_AHEAD = 12


@compiled(counted=False)
def _most_bytes(first, last, fixed, tables):
    """Return an upper bound of the size of the records of some rows, with `fixed` bytes for each.

    A number takes at most 20 bytes, an operation of a CIGAR 12, a contig's name at most `fixed`.
    """
    _, _, of_reads, records, tags = tables
    ends, offsets, names = of_reads.ends, of_reads.offsets, of_reads.names
    tag_offsets, tag_numbers = tags.offsets, tags.numbers
    reads, mates = records.reads, records.mates
    first_rows, split_ends = records.first_rows, records.split_ends
    cigar_offsets, cigar = records.cigar_offsets, records.cigar
    secondary_offsets = records.secondary_offsets
    secondary_cigar_offsets = records.secondary_cigar_offsets
    total = 0
    for row in range(first, last):
        read, mate = reads[row], mates[row]
        template = read // ends
        total += names[template, 1] - names[template, 0] + fixed + 300
        # Bases, qualities, and an MD that at worst lists every base after a number.
        total += 5 * (offsets[read + 1] - offsets[read])
        total += tag_offsets[tag_numbers[row] + 1] - tag_offsets[tag_numbers[row]]
        for at in range(cigar_offsets[row], cigar_offsets[row + 1]):
            total += 12
            if cigar[at] & 15 == DELETION:
                total += cigar[at] >> 4
        if mate >= 0:
            total += 12 * (cigar_offsets[mate + 1] - cigar_offsets[mate])
        begin, end = first_rows[read], split_ends[read]
        if begin + 1 < end and row < end:
            total += (end - begin) * (fixed + 60)
            total += 12 * (cigar_offsets[end] - cigar_offsets[begin])
        begin, end = secondary_offsets[row], secondary_offsets[row + 1]
        total += (end - begin) * (fixed + 60)
        total += 12 * (secondary_cigar_offsets[end] - secondary_cigar_offsets[begin])
    return total


class _Row(NamedTuple):
    """What the records of both formats state of a row.

    Positions count from the start of the contig; they and contigs are -1 if there is none. The
    record has the bases ``[start, stop)`` of the read on its strand, which begins at `base` of the
    bases of both strands.
    """

    read: int
    flag: int
    contig: int
    position: int
    mate_contig: int
    mate_position: int
    base: int
    start: int
    stop: int


@_inlined
def _row_of(row, tables):
    genome, _, of_reads, records, _ = tables
    mate, flag = records.mates[row], np.int64(records.flags[row])
    contig_starts, read = genome.contig_starts, records.reads[row]
    contig, position = records.contigs[row], np.int64(-1)
    if contig >= 0:
        position = records.positions[row] - contig_starts[contig]
    mate_contig, mate_position = np.int64(-1), np.int64(-1)
    if mate >= 0 and records.contigs[mate] >= 0:
        mate_contig = records.contigs[mate]
        mate_position = records.positions[mate] - contig_starts[mate_contig]
    read_begin, read_end = of_reads.offsets[read], of_reads.offsets[read + 1]
    base = read_begin + (of_reads.both.size // 2 if flag & REVERSE != 0 else 0)
    start, stop = np.int64(0), read_end - read_begin
    if flag & UNMAPPED == 0:
        # Hard-clipped bases are not written.
        cigar = records.cigar
        first = np.int64(cigar[records.cigar_offsets[row]])
        last = np.int64(cigar[records.cigar_offsets[row + 1] - 1])
        start += first >> 4 if first & 15 == HARD_CLIP else 0
        stop -= last >> 4 if last & 15 == HARD_CLIP else 0
    if flag & SECONDARY != 0:
        # The primary record has the bases.
        stop = start
    return _Row(read, flag, contig, position, mate_contig, mate_position, base, start, stop)


@_inlined
def _prefetch(row, last_row, tables):
    """Prefetch the genome at a row, and at the hits that its record lists."""
    if row < last_row:
        blocks, records = tables.genome.blocks, tables.records
        if records.positions[row] >= 0:
            prefetch_bases(blocks, records.positions[row])
        for hit in range(records.secondary_offsets[row], records.secondary_offsets[row + 1]):
            prefetch_bases(blocks, records.secondary_positions[hit])


@_inlined
def _put_name(out, at, of_reads, read):
    """Write the name of a read, or * if it is empty."""
    template = read // of_reads.ends
    begin, end = of_reads.names[template, 0], of_reads.names[template, 1]
    return put_bytes(out, at, of_reads.text, begin, end) if begin < end else _put_star(out, at)


@_inlined
def _put_star(out, at):
    out[at] = _STAR
    return at + 1


@compiled(counted=False)
def _write_bam(first_row, last_row, contig_numbers, tables, out, starts):
    """Write the records of some rows in BAM format, and where each starts."""
    _, _, of_reads, records, _ = tables
    at = np.int64(0)
    for row in range(first_row, last_row):
        starts[row - first_row] = begin_of_record = at
        _prefetch(row + _AHEAD, last_row, tables)
        of_row = _row_of(row, tables)
        read, flag, contig, position, mate_contig, mate_position, base, start, stop = of_row
        begin, end = records.cigar_offsets[row], records.cigar_offsets[row + 1]
        at = put_int32(out, at + SIZE_BYTES, contig_numbers[contig] if contig >= 0 else -1)
        at = put_int32(out, at, position)
        out[at + 1] = records.mapping_qualities[row]
        length_at = at
        at = put_int16(out, at + 2, record_bin(position, records.spans[row]))
        at = put_int16(out, at, end - begin)
        at = put_int16(out, at, flag)
        at = put_int32(out, at, stop - start)
        at = put_int32(out, at, contig_numbers[mate_contig] if mate_contig >= 0 else -1)
        at = put_int32(out, at, mate_position)
        name_at = at = put_int32(out, at, records.template_lengths[row])
        at = end_text(out, _put_name(out, at, of_reads, read), True)
        out[length_at] = at - name_at
        for i in range(begin, end):
            at = put_int32(out, at, records.cigar[i])
        at = put_nibbles(out, at, of_reads.both, base + start, base + stop)
        at = put_raw_qualities(
            out, at, of_reads.qualities, start, stop, of_reads.offsets[read],
            of_reads.offsets[read + 1], flag & REVERSE != 0,
        )  # fmt: skip
        at = _put_tags(out, at, row, of_row, tables, True)
        put_int32(out, begin_of_record, at - begin_of_record - SIZE_BYTES)
    starts[last_row - first_row] = at


@compiled(counted=False)
def _write_sam(first_row, last_row, tables, out, starts):
    """Write the records of some rows in SAM format, and where each starts."""
    _, contigs, of_reads, records, _ = tables
    at = np.int64(0)
    for row in range(first_row, last_row):
        starts[row - first_row] = at
        _prefetch(row + _AHEAD, last_row, tables)
        of_row = _row_of(row, tables)
        read, flag, contig, position, mate_contig, mate_position, base, start, stop = of_row
        at = _put_name(out, at, of_reads, read)
        out[at] = _TAB
        at = put_field(out, at + 1, flag, _TAB)
        at = _put_contig(out, at, contig, contigs)
        at = put_field(out, at, position + 1, _TAB)
        at = put_field(out, at, np.int64(records.mapping_qualities[row]), _TAB)
        if flag & UNMAPPED == 0:
            begin, end = records.cigar_offsets[row], records.cigar_offsets[row + 1]
            at = put_cigar(out, at, records.cigar, begin, end)
        else:
            at = _put_star(out, at)
        out[at] = _TAB
        at += 1
        if mate_contig >= 0 and mate_contig == contig:
            out[at], out[at + 1] = _EQUAL, _TAB
            at += 2
        else:
            at = _put_contig(out, at, mate_contig, contigs)
        at = put_field(out, at, mate_position + 1, _TAB)
        at = put_field(out, at, np.int64(records.template_lengths[row]), _TAB)
        at = _put_star(out, at) if start == stop else at
        at = put_letters(out, at, of_reads.both, base + start, base + stop)
        out[at] = _TAB
        at += 1
        qualities = of_reads.qualities
        read_begin, read_end = of_reads.offsets[read], of_reads.offsets[read + 1]
        if qualities.size == 0 or start == stop:
            at = _put_star(out, at)
        elif flag & REVERSE != 0:
            at = put_turned(out, at, qualities, read_end - stop, read_end - start)
        else:
            at = put_bytes(out, at, qualities, read_begin + start, read_begin + stop)
        at = _put_tags(out, at, row, of_row, tables, False)
        out[at] = _NEWLINE
        at += 1
    starts[last_row - first_row] = at


@compiled(counted=False)
def _put_contig(out, at, contig, contigs):
    """Write the name of a contig, or * if there is none, and a tab."""
    if contig >= 0:
        at = put_bytes(out, at, contigs.text, contigs.bounds[contig, 0], contigs.bounds[contig, 1])
    else:
        at = _put_star(out, at)
    out[at] = _TAB
    return at + 1


@_inlined
def _put_tags(out, at, row, of_row, tables, is_binary):
    """Write the tags of the record of a row."""
    genome, contigs, of_reads, records, tags = tables
    read, flag, base, both = of_row.read, of_row.flag, of_row.base, of_reads.both
    cigar_offsets, cigar, mate = records.cigar_offsets, records.cigar, records.mates[row]
    is_mapped, is_secondary = flag & UNMAPPED == 0, flag & SECONDARY != 0
    read_begin = of_reads.offsets[read]
    if is_mapped:
        aligned = AlignedRead(
            genome.blocks, records.positions[row], both, base, cigar, cigar_offsets[row],
            cigar_offsets[row + 1],
        )  # fmt: skip
        edits = count_edits(aligned)
        at = put_integer(out, at, NM, edits, is_binary)
        at = begin_tag(out, at, MD, TEXT, is_binary)
        at = put_md(out, at, aligned) if edits else put_number(out, at, records.spans[row])
        at = end_text(out, at, is_binary)
    if tags.of_mates and flag & PAIRED and flag & MATE_UNMAPPED == 0:
        at = begin_tag(out, at, MC, TEXT, is_binary)
        at = put_cigar(out, at, cigar, cigar_offsets[mate], cigar_offsets[mate + 1])
        at = end_text(out, at, is_binary)
        at = put_integer(out, at, MQ, records.mapping_qualities[mate], is_binary)
    if is_mapped:
        at = put_integer(out, at, AS, records.scores[row], is_binary)
        if records.suboptimal.size and not is_secondary:
            at = put_integer(out, at, XS, records.suboptimal[row], is_binary)
    if tags.quality_sums.size and mate >= 0 and flag & (SECONDARY | SUPPLEMENTARY) == 0:
        at = put_integer(out, at, MS, tags.quality_sums[records.reads[mate]], is_binary)
    if tags.group.size:
        at = begin_tag(out, at, RG, TEXT, is_binary)
        at = put_bytes(out, at, tags.group, np.int64(0), tags.group.size)
        at = end_text(out, at, is_binary)
    if records.first_rows[read] + 1 < records.split_ends[read] and not is_secondary:
        at = begin_tag(out, at, SA, TEXT, is_binary)
        at = put_supplementary(out, at, row, records, genome, contigs, both, read_begin)
        at = end_text(out, at, is_binary)
    if records.alt_shares[row]:
        at = begin_tag(out, at, PA, FLOAT, is_binary)
        at = put_thousandths(out, at, records.alt_shares[row], is_binary)
    if records.secondary_offsets[row] < records.secondary_offsets[row + 1]:
        at = begin_tag(out, at, XA, TEXT, is_binary)
        at = put_secondary(out, at, row, records, genome, contigs, both, read_begin)
        at = end_text(out, at, is_binary)
    begin, end = tags.offsets[tags.numbers[row]], tags.offsets[tags.numbers[row] + 1]
    if begin < end:
        if not is_binary:
            out[at] = _TAB
            at += 1
        at = put_bytes(out, at, tags.further, begin, end)
    return at


# --------------------------------------------------------------------------------------------------
# SAM of mapped reads: the header, and records as text.


def sam_header(reference: Reference, program: str, read_group: str | None, order: str) -> bytes:
    """Return @HD, @SQ with lengths and checksums (ALT contigs with AH), @RG and @PG.

    `program` is the @PG record; `order` is the order stated in @HD, such as ``SO:coordinate``.

    Raises
    ------
    InputError
        If SAM does not allow the name of a contig.
    """
    for name in reference.names:
        if not is_contig_name(name):
            raise InputError(
                f"SAM does not allow the contig name {name!r} (printable ASCII, no comma, quote or "
                "bracket, no * or = at the start): rename it in the reference and index again"
            )
    lines = [f"@HD\tVN:1.6\t{order}"]
    lengths, alt = np.diff(reference.contig_starts), set(reference.alt)
    for number, (name, length, md5) in enumerate(
        zip(reference.names, lengths, reference.md5, strict=True)
    ):
        # SAM has no empty sequences; no read maps to one.
        if length:
            # AH marks an alternate locus; the primary locus is not stated.
            locus = "\tAH:*" if number in alt else ""
            lines.append(f"@SQ\tSN:{name}\tLN:{length}{locus}\tM5:{md5}")
    if read_group:
        lines.append(read_group)
    lines.append(program)
    return ("\n".join(lines) + "\n").encode()


def sam_records(tables: RecordTables, threads: int = 1) -> list[Records]:
    """Return the records in order, in consecutive parts, as lines of text."""
    return [unsorted_lines(*part) for part in _written_records(tables, False, threads)]


# --------------------------------------------------------------------------------------------------
# BAM records of mapped reads, byte-identical to those that samtools converts from SAM.


def quality_sums(chunk: ReadChunk) -> np.ndarray:
    """Return the sum of each read's qualities of at least 15, which ranks duplicates, int64."""
    sums = np.zeros(chunk.n_reads, np.int64)
    if chunk.qualities is None:
        return sums
    _sum_qualities(chunk.qualities, chunk.offsets, sums)
    return sums


@compiled
def _sum_qualities(qualities, offsets, sums):
    for read in range(sums.size):
        total = np.int64(0)
        for i in range(np.uint64(offsets[read]), np.uint64(offsets[read + 1])):
            total += counted_quality(np.int64(qualities[i]) - 33)
        sums[read] = total


def bam_records(tables: RecordTables, threads: int = 1) -> list[Records]:
    """Return the records in order, in consecutive parts."""
    records = tables.records
    keys = sort_keys(records.positions, records.flags & REVERSE != 0)
    parts = _written_records(tables, True, threads)
    edges = np.cumsum([0] + [starts.size - 1 for _, starts in parts])
    return [
        Records(*part, keys[first:last])
        for part, first, last in zip(parts, edges, edges[1:], strict=False)
    ]

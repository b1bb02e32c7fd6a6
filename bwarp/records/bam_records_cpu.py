"""Write SAM and BAM records of mapped reads directly to bytes, with one function for both.

There are two passes over a range of rows: one bounds the length of the records, one writes them.

    SAM    name, flag, contig, position, MAPQ, CIGAR, mate's contig, mate's position, template
           length, bases, qualities, tags                            separated by tabs
    BAM    size | contig, position | name length, MAPQ, bin | CIGAR length, flag | bases | mate's
           contig, position | template length | name\0 | CIGAR | bases, 4 bits each | qualities |
           tags
"""

import numpy as np

from bwarp.alignment.pairs import DELETION, HARD_CLIP
from bwarp.bam.external_sort import sort_keys
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
from bwarp.bam.records import Records, put_int16, put_int32
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
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.threads import for_each_range
from bwarp.runtime.timeline import on_timeline
from bwarp.runtime.uncounted import uncounted

_TAB, _NEWLINE, _STAR, _EQUAL = b"\t\n*="


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
        _write_records(first, last, is_binary, contig_numbers, tables, out, starts)
        return out[: starts[-1]], starts

    return for_each_range(write, tables.records.n_rows, threads)


#: Number of records by which the genome is prefetched ahead.
_AHEAD = 12


@compiled
def _most_bytes(first, last, fixed, tables):
    """Return an upper bound of the size of the records of some rows, with `fixed` bytes for each.

    A number takes at most 20 bytes, an operation of a CIGAR 12, a contig's name at most `fixed`.
    """
    _, _, of_reads, records, tags = uncounted(tables)
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


@compiled(inline="always")
def _put_star(out, at):
    out[at] = _STAR
    return at + 1


@compiled
def _write_records(first_row, last_row, is_binary, contig_numbers, tables, out, starts):
    out, contig_numbers, tables = uncounted((out, contig_numbers, tables))
    genome, contigs, of_reads, records, tags = tables
    # Unpack the tuples before the loop: unpacking inside takes twice the time.
    ends, offsets, text, names, qualities, both = of_reads
    group, tags_of_mates, quality_sums, further, tag_offsets, tag_numbers = tags
    blocks, contig_starts = genome
    contig_text, contig_bounds = contigs
    (
        reads, flags, contig_of, positions, spans, mapping_qualities, cigar_offsets, cigar, mates,
        template_lengths, scores, suboptimal, alt_shares, first_rows, split_ends,
        secondary_offsets, _, secondary_positions, _, _,
    ) = records  # fmt: skip
    at = np.int64(0)
    for row in range(first_row, last_row):
        starts[row - first_row] = begin_of_record = at
        if row + _AHEAD < last_row and positions[row + _AHEAD] >= 0:
            prefetch_bases(blocks, positions[row + _AHEAD])
        if row + _AHEAD < last_row:
            for hit in range(secondary_offsets[row + _AHEAD], secondary_offsets[row + _AHEAD + 1]):
                prefetch_bases(blocks, secondary_positions[hit])
        read, mate, flag = reads[row], mates[row], np.int64(flags[row])
        is_mapped, turned = flag & UNMAPPED == 0, flag & REVERSE != 0
        begin, end = cigar_offsets[row], cigar_offsets[row + 1]
        contig, position = contig_of[row], np.int64(-1)
        if contig >= 0:
            position = positions[row] - contig_starts[contig]
        mate_contig, mate_position = np.int64(-1), np.int64(-1)
        if mate >= 0 and contig_of[mate] >= 0:
            mate_contig = contig_of[mate]
            mate_position = positions[mate] - contig_starts[mate_contig]
        name_begin, name_end = names[read // ends, 0], names[read // ends, 1]
        read_begin, read_end = offsets[read], offsets[read + 1]
        base = read_begin + (both.size // 2 if turned else 0)
        # Hard-clipped bases are not written.
        start, stop = np.int64(0), read_end - read_begin
        if is_mapped:
            start += np.int64(cigar[begin] >> 4) if cigar[begin] & 15 == HARD_CLIP else 0
            stop -= np.int64(cigar[end - 1] >> 4) if cigar[end - 1] & 15 == HARD_CLIP else 0
        is_secondary = flag & SECONDARY != 0
        if is_secondary:
            # The primary record has the bases.
            stop = start
        if is_binary:
            at = put_int32(out, at + SIZE_BYTES, contig_numbers[contig] if contig >= 0 else -1)
            at = put_int32(out, at, position)
            out[at] = max(name_end - name_begin, 1) + 1
            out[at + 1] = mapping_qualities[row]
            at = put_int16(out, at + 2, record_bin(position, spans[row]))
            at = put_int16(out, at, end - begin)
            at = put_int16(out, at, flag)
            at = put_int32(out, at, stop - start)
            at = put_int32(out, at, contig_numbers[mate_contig] if mate_contig >= 0 else -1)
            at = put_int32(out, at, mate_position)
            at = put_int32(out, at, template_lengths[row])
            at = put_bytes(out, at, text, name_begin, name_end)
            at = _put_star(out, at) if name_begin == name_end else at
            at = end_text(out, at, True)
            for i in range(begin, end):
                at = put_int32(out, at, np.int64(cigar[i]))
            at = put_nibbles(out, at, both, base + start, base + stop)
            at = put_raw_qualities(out, at, qualities, start, stop, read_begin, read_end, turned)
        else:
            at = put_bytes(out, at, text, name_begin, name_end)
            at = _put_star(out, at) if name_begin == name_end else at
            out[at] = _TAB
            at = put_field(out, at + 1, flag, _TAB)
            if contig >= 0:
                at = put_bytes(
                    out, at, contig_text, contig_bounds[contig, 0], contig_bounds[contig, 1]
                )
            else:
                at = _put_star(out, at)
            out[at] = _TAB
            at = put_field(out, at + 1, position + 1, _TAB)
            at = put_field(out, at, mapping_qualities[row], _TAB)
            at = put_cigar(out, at, cigar, begin, end) if is_mapped else _put_star(out, at)
            out[at] = _TAB
            at += 1
            if mate_contig < 0:
                at = _put_star(out, at)
            elif mate_contig == contig:
                out[at] = _EQUAL
                at += 1
            else:
                at = put_bytes(
                    out, at, contig_text, contig_bounds[mate_contig, 0],
                    contig_bounds[mate_contig, 1],
                )  # fmt: skip
            out[at] = _TAB
            at = put_field(out, at + 1, mate_position + 1, _TAB)
            at = put_field(out, at, template_lengths[row], _TAB)
            at = _put_star(out, at) if start == stop else at
            at = put_letters(out, at, both, base + start, base + stop)
            out[at] = _TAB
            at += 1
            if qualities.size == 0 or start == stop:
                at = _put_star(out, at)
            elif turned:
                at = put_turned(out, at, qualities, read_end - stop, read_end - start)
            else:
                at = put_bytes(out, at, qualities, read_begin + start, read_begin + stop)
        if is_mapped:
            aligned = AlignedRead(blocks, positions[row], both, base, cigar, begin, end)
            edits = count_edits(aligned)
            at = put_integer(out, at, NM, edits, is_binary)
            at = begin_tag(out, at, MD, TEXT, is_binary)
            at = put_md(out, at, aligned) if edits else put_number(out, at, spans[row])
            at = end_text(out, at, is_binary)
        if tags_of_mates and flag & PAIRED and flag & MATE_UNMAPPED == 0:
            at = begin_tag(out, at, MC, TEXT, is_binary)
            at = put_cigar(out, at, cigar, cigar_offsets[mate], cigar_offsets[mate + 1])
            at = end_text(out, at, is_binary)
            at = put_integer(out, at, MQ, np.int64(mapping_qualities[mate]), is_binary)
        if is_mapped:
            at = put_integer(out, at, AS, np.int64(scores[row]), is_binary)
            if suboptimal.size and not is_secondary:
                at = put_integer(out, at, XS, np.int64(suboptimal[row]), is_binary)
        if quality_sums.size and mate >= 0 and flag & (SECONDARY | SUPPLEMENTARY) == 0:
            at = put_integer(out, at, MS, quality_sums[reads[mate]], is_binary)
        if group.size:
            at = begin_tag(out, at, RG, TEXT, is_binary)
            at = put_bytes(out, at, group, 0, group.size)
            at = end_text(out, at, is_binary)
        if first_rows[read] + 1 < split_ends[read] and not is_secondary:
            at = begin_tag(out, at, SA, TEXT, is_binary)
            at = put_supplementary(out, at, row, records, genome, contigs, both, read_begin)
            at = end_text(out, at, is_binary)
        if alt_shares[row]:
            at = begin_tag(out, at, PA, FLOAT, is_binary)
            at = put_thousandths(out, at, alt_shares[row], is_binary)
        if secondary_offsets[row] < secondary_offsets[row + 1]:
            at = begin_tag(out, at, XA, TEXT, is_binary)
            at = put_secondary(out, at, row, records, genome, contigs, both, read_begin)
            at = end_text(out, at, is_binary)
        begin, end = tag_offsets[tag_numbers[row]], tag_offsets[tag_numbers[row] + 1]
        if begin < end:
            if not is_binary:
                out[at] = _TAB
                at += 1
            at = put_bytes(out, at, further, begin, end)
        if is_binary:
            put_int32(out, begin_of_record, at - begin_of_record - SIZE_BYTES)
        else:
            out[at] = _NEWLINE
            at += 1
    starts[last_row - first_row] = at


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


def sam_records(tables: RecordTables, threads: int = 1) -> list[np.ndarray]:
    """Return the records in order, as arrays of bytes to write one after another."""
    return [text for text, _ in _written_records(tables, False, threads)]


# --------------------------------------------------------------------------------------------------
# BAM records of mapped reads, byte-identical to those that samtools converts from SAM.


#: Lower qualities do not count when the best duplicate is selected, as in samtools.
_LEAST_QUALITY = 15


def quality_sums(chunk: ReadChunk) -> np.ndarray:
    """Return the sum of each read's qualities of at least 15, which ranks duplicates, int64."""
    if chunk.qualities is None:
        # samtools treats missing qualities as 255.
        return 255 * np.diff(chunk.offsets)
    sums = np.empty(chunk.n_reads, np.int64)
    _sum_qualities(chunk.qualities, chunk.offsets, sums)
    return sums


@compiled
def _sum_qualities(qualities, offsets, sums):
    for read in range(sums.size):
        total = np.int64(0)
        for i in range(np.uint64(offsets[read]), np.uint64(offsets[read + 1])):
            quality = np.int64(qualities[i]) - 33
            total += quality if quality >= _LEAST_QUALITY else 0
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

"""BAM records of mapped reads, written straight into bytes: what samtools makes of our SAM lines.

Two passes over the rows of a range: one bounds how long the records can be, one writes them.

    size | contig, place | name length, MAPQ, bin | CIGAR length, flag | bases | mate's contig,
    place | template length | name\\0 | CIGAR | bases, 4 bits each | qualities | tags
"""

import numba
import numpy as np

from bwarp.io.bam.records import Records, first_bin, put_int16, put_int32, put_integer_tag, put_tag
from bwarp.io.bam.sort_order import sort_keys
from bwarp.io.put_text import put_bytes
from bwarp.mapping.extension.extension_cpu import Genome
from bwarp.mapping.output.alignment_records import (
    MATE_UNMAPPED,
    PAIRED,
    REVERSE,
    SUPPLEMENTARY,
    UNMAPPED,
    AlignmentRecords,
)
from bwarp.mapping.output.comment_tags import ReadTags
from bwarp.mapping.output.record_text import (
    ContigNames,
    count_edits,
    most_bytes,
    put_alternatives,
    put_cigar,
    put_md,
    put_split,
)
from bwarp.mapping.reads.read_chunks import ReadChunk
from bwarp.runtime.threads import for_each_range

__all__ = ["bam_records", "quality_sums"]

#: Qualities below this say nothing of a read's worth among its duplicates, as samtools has it.
_LEAST_QUALITY = 15


def quality_sums(chunk: ReadChunk) -> np.ndarray:
    """The sum of every read's qualities of 15 and more, by which duplicates are chosen, int64."""
    if chunk.qualities is None:
        # What samtools takes for the quality that says that there is none.
        return 255 * np.diff(chunk.offsets)
    sums = np.empty(chunk.n_reads, np.int64)
    _sum_qualities(chunk.qualities, chunk.offsets, sums)
    return sums


@numba.njit(cache=True, nogil=True)
def _sum_qualities(qualities, offsets, sums):
    for read in range(sums.size):
        total = np.int64(0)
        for i in range(np.uint64(offsets[read]), np.uint64(offsets[read + 1])):
            quality = np.int64(qualities[i]) - 33
            total += quality if quality >= _LEAST_QUALITY else 0
        sums[read] = total


def bam_records(
    genome: Genome,
    contigs: ContigNames,
    chunk: ReadChunk,
    both: np.ndarray,
    records: AlignmentRecords,
    read_group: bytes,
    quality_sums: np.ndarray,
    tags: ReadTags,
    threads: int = 1,
) -> list[Records]:
    """The records in order, in parts that lie one after another.

    `quality_sums` of the reads stand on the first lines of their mates (ms), if they are given.
    """
    qualities = np.empty(0, np.uint8) if chunk.qualities is None else chunk.qualities
    group = np.frombuffer(read_group, np.uint8)
    # The header has no contigs without bases.
    numbers = np.cumsum(np.diff(genome.contig_starts) > 0) - 1
    keys = sort_keys(records.positions, records.flags & REVERSE != 0)

    def write(first: int, last: int) -> Records:
        bound = most_bytes(
            first, last, chunk.ends, chunk.offsets, chunk.names, records.reads, records.mates,
            records.cigar_offsets, records.cigar, records.first_rows, records.alternative_offsets,
            records.alternative_cigar_offsets, contigs.starts, group.size, tags.binary_offsets,
        )  # fmt: skip
        out = np.empty(bound, np.uint8)
        starts = np.empty(last - first + 1, np.int64)
        _write_records(
            first, last, chunk.ends, chunk.offsets, chunk.text, chunk.names, both, qualities,
            genome.codes, genome.contig_starts, contigs.text, contigs.starts, numbers,
            records.reads, records.flags, records.contigs, records.positions, records.spans,
            records.mapping_qualities, records.cigar_offsets, records.cigar, records.mates,
            records.template_lengths, records.scores, records.suboptimal, records.first_rows,
            records.alternative_offsets, records.alternative_strands,
            records.alternative_positions, records.alternative_cigar_offsets,
            records.alternative_cigar, group, quality_sums, tags.binary, tags.binary_offsets, out,
            starts,
        )  # fmt: skip
        return Records(out[: starts[-1]], starts, keys[first:last])

    return for_each_range(write, records.n_rows, threads)


@numba.njit(cache=True, nogil=True, inline="always")
def _end_text(out, at):
    out[at] = 0
    return at + 1


@numba.njit(cache=True, nogil=True, inline="always")
def _nibble(code):
    """A, C, G, T are a bit each, and N is all of them."""
    return min(np.uint8(1) << code, np.uint8(15))


@numba.njit(cache=True, nogil=True)
def _put_bases(out, at, both, start, stop):
    """Two bases a byte, the first in the upper half."""
    to, begin = np.uint64(at), np.uint64(start)
    for i in range(np.uint64((stop - start) // 2)):
        two = begin + i + i
        high, low = both[two], both[two + np.uint64(1)]
        out[to + i] = _nibble(high) << np.uint8(4) | _nibble(low)
    at += (stop - start) // 2
    if (stop - start) % 2:
        out[at] = _nibble(both[stop - 1]) << np.uint8(4)
        at += 1
    return at


@numba.njit(cache=True, nogil=True)
def _put_qualities(out, at, qualities, start, stop, first, last, turned):
    """The qualities of ``[start, stop)`` of a read at ``[first, last)``, seen on its strand."""
    to, length = np.uint64(at), np.uint64(stop - start)
    if qualities.size == 0:
        for i in range(length):
            out[to + i] = 255
    elif turned:
        begin = np.uint64(last - 1 - start)
        for i in range(length):
            out[to + i] = qualities[begin - i] - np.uint8(33)
    else:
        begin = np.uint64(first + start)
        for i in range(length):
            out[to + i] = qualities[begin + i] - np.uint8(33)
    return at + stop - start


@numba.njit(cache=True, nogil=True)
def _write_records(
    first_row, last_row, ends, offsets, text, names, both, qualities,
    genome, contig_starts, contig_text, contig_names, numbers,
    reads, flags, contigs, positions, spans, mapping_qualities, cigar_offsets, cigar, mates,
    template_lengths, scores, suboptimal, first_rows,
    alternative_offsets, alternative_strands, alternative_positions, alternative_cigar_offsets,
    alternative_cigar, group, quality_sums, tags, tag_offsets, out, starts,
):  # fmt: skip
    at = np.int64(0)
    for row in range(first_row, last_row):
        starts[row - first_row] = at
        begin_of_record = at
        read = reads[row]
        template = read // ends
        mate = mates[row]
        flag = np.int64(flags[row])
        mapped = flag & UNMAPPED == 0
        mate_mapped = flag & PAIRED != 0 and flag & MATE_UNMAPPED == 0
        turned = flag & REVERSE != 0
        begin, end = cigar_offsets[row], cigar_offsets[row + 1]
        length = offsets[read + 1] - offsets[read]
        base = offsets[read] + (both.size // 2 if turned else 0)
        # Hard-clipped bases are not written.
        start, stop = np.int64(0), length
        if mapped:
            start += np.int64(cigar[begin] >> 4) if cigar[begin] & 15 == 5 else 0
            stop -= np.int64(cigar[end - 1] >> 4) if cigar[end - 1] & 15 == 5 else 0
        contig = contigs[row]
        place = positions[row] - contig_starts[contig] if contig >= 0 else np.int64(-1)
        mate_contig = contigs[mate] if mate >= 0 else np.int64(-1)
        name_length = names[template, 1] - names[template, 0]
        at = put_int32(out, at + 4, numbers[contig] if contig >= 0 else -1)
        at = put_int32(out, at, place)
        out[at] = max(name_length, 1) + 1
        out[at + 1] = mapping_qualities[row]
        at = put_int16(out, at + 2, first_bin(place, place + max(spans[row], 1)))
        at = put_int16(out, at, end - begin)
        at = put_int16(out, at, flag)
        at = put_int32(out, at, stop - start)
        if mate_contig >= 0:
            at = put_int32(out, at, numbers[mate_contig])
            at = put_int32(out, at, positions[mate] - contig_starts[mate_contig])
        else:
            at = put_int32(out, at, -1)
            at = put_int32(out, at, -1)
        at = put_int32(out, at, template_lengths[row])
        at = put_bytes(out, at, text, names[template, 0], names[template, 1])
        if name_length == 0:
            out[at] = 42
            at += 1
        at = _end_text(out, at)
        for i in range(begin, end):
            at = put_int32(out, at, np.int64(cigar[i]))
        at = _put_bases(out, at, both, base + start, base + stop)
        at = _put_qualities(
            out, at, qualities, start, stop, offsets[read], offsets[read + 1], turned
        )
        if mapped:
            edits = count_edits(genome, positions[row], both, base, cigar, begin, end)
            at = put_integer_tag(out, at, 78, 77, edits)
            at = put_tag(out, at, 77, 68, 90)
            at = put_md(out, at, genome, positions[row], both, base, cigar, begin, end)
            at = _end_text(out, at)
        if mate_mapped:
            at = put_tag(out, at, 77, 67, 90)
            at = put_cigar(out, at, cigar, cigar_offsets[mate], cigar_offsets[mate + 1])
            at = _end_text(out, at)
            at = put_integer_tag(out, at, 77, 81, np.int64(mapping_qualities[mate]))
        if mapped:
            at = put_integer_tag(out, at, 65, 83, np.int64(scores[row]))
            at = put_integer_tag(out, at, 88, 83, np.int64(suboptimal[row]))
        if quality_sums.size and mate >= 0 and flag & SUPPLEMENTARY == 0:
            at = put_integer_tag(out, at, 109, 115, quality_sums[reads[mate]])
        if group.size:
            at = put_tag(out, at, 82, 71, 90)
            at = put_bytes(out, at, group, 0, group.size)
            at = _end_text(out, at)
        if first_rows[read + 1] - first_rows[read] > 1:
            at = put_tag(out, at, 83, 65, 90)
            at = put_split(
                out, at, row, reads, flags, contigs, positions, mapping_qualities, cigar_offsets,
                cigar, first_rows, genome, contig_starts, contig_text, contig_names, both, offsets,
            )  # fmt: skip
            at = _end_text(out, at)
        if alternative_offsets[row] < alternative_offsets[row + 1]:
            at = put_tag(out, at, 88, 65, 90)
            at = put_alternatives(
                out, at, alternative_offsets[row], alternative_offsets[row + 1],
                alternative_strands, alternative_positions, alternative_cigar_offsets,
                alternative_cigar, genome, contig_starts, contig_text, contig_names, both,
                offsets[read],
            )  # fmt: skip
            at = _end_text(out, at)
        at = put_bytes(out, at, tags, tag_offsets[read], tag_offsets[read + 1])
        put_int32(out, begin_of_record, at - begin_of_record - 4)
    starts[last_row - first_row] = at

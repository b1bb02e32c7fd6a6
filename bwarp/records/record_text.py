"""Parts of SAM and BAM records: CIGARs, MD, SA, XA, NM, tags, bases and qualities.

The functions write into a byte array and return the end; the array must be long enough.
"""

from typing import NamedTuple

import numpy as np

from bwarp.alignment.pairs import HARD_CLIP, SOFT_CLIP
from bwarp.bam.fields import NO_QUALITY, REVERSE
from bwarp.bam.records import put_int16, put_int32
from bwarp.io.names import put_bytes, put_field, put_number
from bwarp.mapping.extension_cpu import Genome
from bwarp.reads.base_bits_cpu import base_at, differing
from bwarp.records.alignment_records import AlignmentRecords
from bwarp.records.record_rules import AlignedRead, EngineFunctions, nibble, part_functions
from bwarp.reference import interval_at
from bwarp.runtime.compiled_code import compiled, inner
from bwarp.runtime.simd import population_count

_COMMA, _SEMICOLON, _PLUS, _MINUS = b",;+-"


# Compiled into the functions below by LLVM, and into those of `bwarp.records.bam_records_cpu`.
_inlined = inner(nogil=True, forceinline=True)


@_inlined
def _put_byte(out, at, byte):
    out[at] = byte
    return at + 1


@_inlined
def _code_at(both, at):
    return both[at]


_functions = part_functions(
    EngineFunctions(
        _inlined, _put_byte, put_int16, put_int32, put_number, differing, base_at, _code_at,
        population_count, 64,
    )
)  # fmt: skip
put_tag, end_text = _functions.put_tag, _functions.end_text
_put_operation, _put_cigar = _functions.put_operation, _functions.put_cigar
_begin_tag, _put_integer = _functions.begin_tag, _functions.put_integer
_count_edits, _put_md = _functions.count_edits, _functions.put_md
_split_matches = _functions.split_matches
_paf_counts, _put_share = _functions.paf_counts, _functions.put_share


@compiled(counted=False)
def put_cigar(out, at, cigar, start, stop):
    return _put_cigar(out, at, cigar, start, stop)


@compiled(counted=False)
def count_edits(aligned):
    return _count_edits(aligned)


@compiled(counted=False)
def put_md(out, at, aligned):
    return _put_md(out, at, aligned)


@compiled(counted=False)
def paf_counts(aligned):
    return _paf_counts(aligned)


@compiled(counted=False)
def put_share(out, at, part, whole):
    return _put_share(out, at, part, whole)


@compiled(counted=False)
def put_supplementary(out, at, row, records, genome, contigs, both, base):
    """Write SA: the other parts of the row's read, as contig,position,strand,CIGAR,MAPQ,NM;

    `base` is the start of the read in `both`.
    """
    cigar, flags = records.cigar, records.flags
    read = records.reads[row]
    for other in range(records.first_rows[read], records.split_ends[read]):
        if other == row:
            continue
        reverse = flags[other] & REVERSE != 0
        begin, end = records.cigar_offsets[other], records.cigar_offsets[other + 1]
        position, contig = records.positions[other], records.contigs[other]
        at = _put_contig(out, at, contig, contigs)
        at = put_field(out, at, position - genome.contig_starts[contig] + 1, _COMMA)
        out[at] = _MINUS if reverse else _PLUS
        out[at + 1] = _COMMA
        at += 2
        for i in range(begin, end):
            # Hard and soft clips of the other record are written alike.
            operation = cigar[i] & 15
            operation = SOFT_CLIP if operation == HARD_CLIP else operation
            at = _put_operation(out, at, cigar[i] >> 4, operation)
        out[at] = _COMMA
        at = put_field(out, at + 1, records.mapping_qualities[other], _COMMA)
        on_strand = base + (both.size // 2 if reverse else 0)
        aligned = AlignedRead(genome.blocks, position, both, on_strand, cigar, begin, end)
        at = put_field(out, at, count_edits(aligned), _SEMICOLON)
    return at


@compiled(counted=False)
def put_secondary(out, at, row, records, genome, contigs, both, base):
    """Write XA: the row's hits as contig,strand and position,CIGAR,NM; `base` as above."""
    cigar = records.secondary_cigar
    contig_starts = genome.contig_starts
    for hit in range(records.secondary_offsets[row], records.secondary_offsets[row + 1]):
        position, reverse = records.secondary_positions[hit], records.secondary_strands[hit]
        begin = records.secondary_cigar_offsets[hit]
        end = records.secondary_cigar_offsets[hit + 1]
        on_strand = base + (both.size // 2 if reverse else 0)
        edits = count_edits(
            AlignedRead(genome.blocks, position, both, on_strand, cigar, begin, end)
        )
        hit = OtherHit(position, reverse, cigar, begin, end, edits)
        at = put_other_hit(out, at, contigs, contig_starts, hit)
    return at


class OtherHit(NamedTuple):
    """A hit listed in XA; its CIGAR is ``cigar[first:last]``."""

    position: int
    reverse: int
    cigar: np.ndarray
    first: int
    last: int
    edits: int


@compiled(counted=False)
def put_other_hit(out, at, contigs, contig_starts, hit):
    """Write a hit of XA: contig,strand and position,CIGAR,NM;"""
    contig = interval_at(contig_starts, hit.position)
    at = _put_contig(out, at, contig, contigs)
    out[at] = _MINUS if hit.reverse else _PLUS
    at = put_field(out, at + 1, hit.position - contig_starts[contig] + 1, _COMMA)
    at = put_cigar(out, at, hit.cigar, hit.first, hit.last)
    out[at] = _COMMA
    return put_field(out, at + 1, hit.edits, _SEMICOLON)


@compiled(counted=False)
def _put_contig(out, at, contig, contigs):
    """Write a contig's name and a comma."""
    at = put_bytes(out, at, contigs.text, contigs.bounds[contig, 0], contigs.bounds[contig, 1])
    out[at] = _COMMA
    return at + 1


# --------------------------------------------------------------------------------------------------
# Tags of records in SAM or BAM format.
#
# NM:i:3     text after a tab in SAM            NM C 3 in BAM


@compiled(counted=False)
def begin_tag(out, at, tag, kind, is_binary):
    return _begin_tag(out, at, tag, kind, is_binary)


@_inlined
def put_integer(out, at, tag, number, is_binary):
    """Write a tag with a number."""
    return _put_integer_of(out, at, tag, np.int64(number), is_binary)


@compiled(counted=False)
def _put_integer_of(out, at, tag, number, is_binary):
    return _put_integer(out, at, tag, number, is_binary)


@_inlined
def put_integer_tag(out, at, tag, number):
    """Write a BAM tag with a number in the fewest bytes that hold it."""
    return put_integer(out, at, tag, number, True)


@compiled(counted=False)
def put_thousandths(out, at, number, is_binary):
    """Write a number between 0 and 1, with up to three digits or as the bits of a float32."""
    if is_binary:
        return put_int32(out, at, np.int64(np.float32(number / 1000).view(np.int32)))
    for digit, power in ((48, 1000), (46, 0), (48, 100), (48, 10), (48, 1)):
        out[at] = digit + (number // power % 10 if power else 0)
        at += 1
    while out[at - 1] == 48:
        at -= 1
    return at


# --------------------------------------------------------------------------------------------------
# Bases and qualities of records on either strand, as letters in SAM and nibbles in BAM.
#
# Loops over bytes have unsigned indices, because LLVM vectorises only those.


@compiled(counted=False)
def put_letters(out, at, codes, start, stop):
    """Write codes as A, C, G, T and N, by sums of comparisons, which are vectorised."""
    to, begin = np.uint64(at), np.uint64(start)
    for i in range(np.uint64(stop - start)):
        code = codes[begin + i]
        base = np.uint8(65) + (code == 1) * np.uint8(2) + (code == 2) * np.uint8(6)
        out[to + i] = base + (code == 3) * np.uint8(19) + (code == 4) * np.uint8(13)
    return at + stop - start


@compiled(counted=False)
def put_turned(out, at, source, start, stop):
    """Write bytes from the last to the first."""
    to, last = np.uint64(at), np.uint64(stop - 1)
    for i in range(np.uint64(stop - start)):
        out[to + i] = source[last - i]
    return at + stop - start


@compiled(counted=False)
def put_nibbles(out, at, both, start, stop):
    """Write two bases per byte, the first in the upper half."""
    to, begin = np.uint64(at), np.uint64(start)
    for i in range(np.uint64((stop - start) // 2)):
        two = begin + i + i
        high, low = both[two], both[two + np.uint64(1)]
        out[to + i] = nibble(high) << np.uint8(4) | nibble(low)
    at += (stop - start) // 2
    if (stop - start) % 2:
        out[at] = nibble(both[stop - 1]) << np.uint8(4)
        at += 1
    return at


@compiled(counted=False)
def put_raw_qualities(out, at, qualities, start, stop, first, last, turned):
    """Write the qualities of ``[start, stop)``, on its strand, of a read at ``[first, last)``."""
    to, length = np.uint64(at), np.uint64(stop - start)
    if qualities.size == 0:
        for i in range(length):
            out[to + i] = NO_QUALITY
    elif turned:
        begin = np.uint64(last - 1 - start)
        for i in range(length):
            out[to + i] = qualities[begin - i] - np.uint8(33)
    else:
        begin = np.uint64(first + start)
        for i in range(length):
            out[to + i] = qualities[begin + i] - np.uint8(33)
    return at + stop - start


# --------------------------------------------------------------------------------------------------
# CIGARs that distinguish matches from mismatches: = and X instead of M.
#
# read       ACGTNACGT
# genome     ACCTAACGT          9M -> 2=1X1=1X4=      an ambiguous base is a mismatch


def with_mismatches(
    records: AlignmentRecords, genome: Genome, offsets: np.ndarray, both: np.ndarray
) -> AlignmentRecords:
    """Return the records, and the hits that they list, with = and X in their CIGARs.

    Parameters
    ----------
    offsets : ndarray, shape=(n_reads + 1,), dtype=int64
    both : ndarray, shape=(2 * n_bases,), dtype=uint8
        The reads, then their reverse complements.
    """

    def split(cigar_offsets, cigar, reads, reverse, positions):
        starts = offsets[reads] + reverse * (both.size // 2)
        counts = np.empty(reads.size, np.int64)
        nothing = np.empty(0, np.uint32)
        _split(genome.blocks, both, starts, positions, cigar_offsets, cigar, counts, nothing)
        out = np.empty(counts.sum(), np.uint32)
        _split(genome.blocks, both, starts, positions, cigar_offsets, cigar, counts, out)
        return np.concatenate([[0], np.cumsum(counts)]), out

    cigar_offsets, cigar = split(
        records.cigar_offsets, records.cigar, records.reads, records.flags & REVERSE != 0,
        records.positions,
    )  # fmt: skip
    hit_cigar_offsets, hit_cigar = split(
        records.secondary_cigar_offsets, records.secondary_cigar,
        np.repeat(records.reads, np.diff(records.secondary_offsets)),
        records.secondary_strands != 0, records.secondary_positions,
    )  # fmt: skip
    return records._replace(
        cigar_offsets=cigar_offsets,
        cigar=cigar,
        secondary_cigar_offsets=hit_cigar_offsets,
        secondary_cigar=hit_cigar,
    )


@compiled(counted=False)
def _split(blocks, both, starts, positions, offsets, cigar, counts, out):
    """Count the operations of each row, and write them if `out` has room."""
    used = np.int64(0)
    for row in range(starts.size):
        begin, end = offsets[row], offsets[row + 1]
        aligned = AlignedRead(blocks, positions[row], both, starts[row], cigar, begin, end)
        before = used
        used = _split_matches(out, used, aligned)
        counts[row] = used - before

"""Parts of SAM and BAM records that are text in both: CIGARs, MD, SA and XA; and NM.

The functions write into a byte array and return where they stopped; the array must be long enough.
"""

import numpy as np

from bwarp.io.put_text import put_bytes, put_field, put_number
from bwarp.mapping.output.alignment_records import REVERSE
from bwarp.mapping.reads.base_bits_cpu import base_at, differing
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.simd import population_count
from bwarp.runtime.uncounted import uncounted

__all__ = [
    "count_edits",
    "is_match",
    "put_cigar",
    "put_md",
    "put_secondary",
    "put_supplementary",
]

_BASES = np.frombuffer(b"ACGTN", np.uint8)
_OPERATIONS = np.frombuffer(b"MIDNSHP=X", np.uint8)
_SOFT_CLIP, _HARD_CLIP = 4, 5
_COMMA, _SEMICOLON, _PLUS, _MINUS = b",;+-"


@compiled(inline="always")
def is_match(operation):
    """Whether bases lie on bases, alike or not: M, = and X."""
    return operation == 0 or operation > 6


@compiled
def put_cigar(out, at, cigar, start, stop):
    out, cigar = uncounted((out, cigar))
    for i in range(start, stop):
        at = put_field(out, at, cigar[i] >> 4, _OPERATIONS[cigar[i] & 15])
    return at


@compiled
def count_edits(blocks, position, both, read, cigar, start, stop):
    """Mismatched, inserted and deleted bases: NM.

    `position` is that of the first aligned base in the genome's blocks; ``both[read]`` is the
    read's first base on its strand, clipped ones included. An ambiguous base is a mismatch.
    """
    blocks, both, cigar = uncounted((blocks, both, cigar))
    edits = np.int64(0)
    for i in range(start, stop):
        length = np.int64(cigar[i] >> 4)
        operation = cigar[i] & 15
        if is_match(operation):
            for at in range(0, length, 64):
                n = min(np.int64(64), length - at)
                edits += population_count(differing(blocks, position + at, both, read + at, n))
            read += length
            position += length
        elif operation == 2:
            edits += length
            position += length
        else:
            edits += length if operation == 1 else 0
            read += length
    return edits


@compiled
def put_md(out, at, blocks, position, both, read, cigar, start, stop):
    """MD: the reference's bases at mismatches and deletions, with how many agree between them.

    Parameters as of `count_edits`.
    """
    out, blocks, both, cigar = uncounted((out, blocks, both, cigar))
    same = np.int64(0)
    for i in range(start, stop):
        length = np.int64(cigar[i] >> 4)
        operation = cigar[i] & 15
        if is_match(operation):
            done = np.int64(0)
            for first in range(0, length, 64):
                n = min(np.int64(64), length - first)
                bits = differing(blocks, position + first, both, read + first, n)
                while bits:
                    found = first + np.int64(population_count(~bits & (bits - np.uint64(1))))
                    bits &= bits - np.uint64(1)
                    at = put_number(out, at, same + found - done)
                    out[at] = _BASES[base_at(blocks, position + found)]
                    at += 1
                    same, done = np.int64(0), found + 1
            same += length - done
            read += length
            position += length
        elif operation == 2:
            at = put_number(out, at, same)
            out[at] = 94
            at += 1
            for j in range(length):
                out[at] = _BASES[base_at(blocks, position + j)]
                at += 1
            same = np.int64(0)
            position += length
        else:
            read += length
    return put_number(out, at, same)


@compiled
def put_supplementary(out, at, row, records, genome, contigs, both, base):
    """SA: the other parts of the row's read, as contig,position,strand,CIGAR,MAPQ,NM;

    `base` is where `both` holds the read.
    """
    out, records, genome, contigs = uncounted((out, records, genome, contigs))
    both, cigar, flags = uncounted(both), records.cigar, records.flags
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
            # Whether the other record has its clipped bases does not matter here.
            operation = cigar[i] & 15
            operation = _SOFT_CLIP if operation == _HARD_CLIP else operation
            at = put_field(out, at, cigar[i] >> 4, _OPERATIONS[operation])
        out[at] = _COMMA
        at = put_field(out, at + 1, records.mapping_qualities[other], _COMMA)
        on_strand = base + (both.size // 2 if reverse else 0)
        edits = count_edits(genome.blocks, position, both, on_strand, cigar, begin, end)
        at = put_field(out, at, edits, _SEMICOLON)
    return at


@compiled
def put_secondary(out, at, row, records, genome, contigs, both, base):
    """XA: the row's hits as contig,strand and position,CIGAR,NM; `base` as above."""
    out, records, genome, contigs = uncounted((out, records, genome, contigs))
    both, cigar = uncounted(both), records.secondary_cigar
    contig_starts = genome.contig_starts
    for hit in range(records.secondary_offsets[row], records.secondary_offsets[row + 1]):
        position, reverse = records.secondary_positions[hit], records.secondary_strands[hit]
        contig = np.searchsorted(contig_starts, position, side="right") - 1
        begin = records.secondary_cigar_offsets[hit]
        end = records.secondary_cigar_offsets[hit + 1]
        at = _put_contig(out, at, contig, contigs)
        out[at] = _MINUS if reverse else _PLUS
        at = put_field(out, at + 1, position - contig_starts[contig] + 1, _COMMA)
        at = put_cigar(out, at, cigar, begin, end)
        out[at] = _COMMA
        on_strand = base + (both.size // 2 if reverse else 0)
        edits = count_edits(genome.blocks, position, both, on_strand, cigar, begin, end)
        at = put_field(out, at + 1, edits, _SEMICOLON)
    return at


@compiled
def _put_contig(out, at, contig, contigs):
    """A contig's name and a comma."""
    out, contigs = uncounted((out, contigs))
    at = put_bytes(out, at, contigs.text, contigs.bounds[contig, 0], contigs.bounds[contig, 1])
    out[at] = _COMMA
    return at + 1

"""PAF of mapped reads: one line per alignment, with the columns and tags of minimap2 -c.

    name length start end strand contig length start end matches columns quality NM AS nn tp de cg

Unmapped reads have no line. Start and end in the read are on the strand as sequenced. An ambiguous
base counts in ``nn`` and in ``NM``, not as a column.
"""

from typing import NamedTuple

import numpy as np

from bwarp.alignment.pairs import DELETION, HARD_CLIP, INSERTION, SOFT_CLIP
from bwarp.bam.fields import (
    AS,
    CG,
    CHARACTER,
    DE,
    FLOAT,
    NM,
    NN,
    REVERSE,
    SECONDARY,
    TEXT,
    TP,
    UNMAPPED,
)
from bwarp.io.names import put_bytes, put_field, put_number
from bwarp.reads.base_bits_cpu import base_at, differing
from bwarp.records.alignment_records import RecordTables
from bwarp.records.record_rules import is_match
from bwarp.records.record_text import begin_tag, put_cigar, put_integer
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.simd import population_count
from bwarp.runtime.uncounted import uncounted
from bwarp.sequence import AMBIGUOUS

_TAB, _NEWLINE, _STAR, _PLUS, _MINUS = np.frombuffer(b"\t\n*+-", np.uint8)
_PRIMARY, _SECONDARY = np.frombuffer(b"PS", np.uint8)

#: Bytes of a line without name, contig, CIGAR and comment, and per operation of its CIGAR.
_FIXED, _OPERATION = 320, 12


def paf_lines(tables: RecordTables) -> np.ndarray:
    """Return the lines of mapped records in order, as an array of bytes."""
    _, contigs, reads, records, tags = tables
    room = np.diff(reads.names).reshape(-1)[records.reads // reads.ends].sum()
    room += np.diff(tags.offsets)[tags.numbers].sum()
    room += records.n_rows * (contigs.longest + _FIXED) + records.cigar.size * _OPERATION
    out = np.empty(int(room), np.uint8)
    return out[: _write_lines(tables, out)]


@compiled
def _write_lines(tables, out):
    out, tables = uncounted((out, tables))
    genome, contigs, of_reads, records, tags = tables
    # Unpack the tuples before the loop: unpacking inside takes twice the time.
    ends, offsets, both = of_reads.ends, of_reads.offsets, of_reads.both
    text, names = of_reads.text, of_reads.names
    further, tag_offsets, tag_numbers = tags.further, tags.offsets, tags.numbers
    blocks, contig_starts = genome
    reads, flags, qualities = records.reads, records.flags, records.mapping_qualities
    contig_of, positions, spans = records.contigs, records.positions, records.spans
    cigar_offsets, cigar, scores = records.cigar_offsets, records.cigar, records.scores
    at = np.int64(0)
    for row in range(reads.size):
        read, flag = reads[row], np.int64(flags[row])
        if flag & UNMAPPED:
            continue
        reverse = flag & REVERSE != 0
        length = offsets[read + 1] - offsets[read]
        begin, end = cigar_offsets[row], cigar_offsets[row + 1]
        clipped = _clipped_bases(cigar[begin]), _clipped_bases(cigar[end - 1])
        template, start = read // ends, positions[row]
        at = put_bytes(out, at, text, names[template, 0], names[template, 1])
        if names[template, 0] == names[template, 1]:
            out[at] = _STAR
            at += 1
        columns_of_row = PafColumns(
            length, reverse, *clipped, contig_of[row], start, start + spans[row]
        )
        at = put_columns(out, at, contigs, contig_starts, columns_of_row)
        base = offsets[read] + (both.size // 2 if reverse else 0)
        same, columns, ambiguous, gaps, gap_bases = _counts(
            blocks, start, both, base, cigar, begin, end
        )
        at = put_field(out, at, same, _TAB)
        at = put_field(out, at, columns, _TAB)
        at = put_number(out, at, np.int64(qualities[row]))
        at = put_integer(out, at, NM, columns - same + ambiguous, False)
        at = put_integer(out, at, AS, np.int64(scores[row]), False)
        at = put_integer(out, at, NN, ambiguous, False)
        at = begin_tag(out, at, TP, CHARACTER, False)
        out[at] = _SECONDARY if flag & SECONDARY else _PRIMARY
        # A gap counts once.
        events = columns + ambiguous - gap_bases + gaps
        at = _put_share(out, begin_tag(out, at + 1, DE, FLOAT, False), events - same, events)
        at = begin_tag(out, at, CG, TEXT, False)
        for i in range(begin, end):
            if not _is_clip(cigar[i]):
                at = put_cigar(out, at, cigar, i, i + 1)
        begin, end = tag_offsets[tag_numbers[row]], tag_offsets[tag_numbers[row] + 1]
        if begin < end:
            out[at] = _TAB
            at = put_bytes(out, at + 1, further, begin, end)
        out[at] = _NEWLINE
        at += 1
    return at


class PafColumns(NamedTuple):
    """Columns 2 to 9 of a line; numbers of type int64.

    Attributes
    ----------
    length : int
        Bases of the read.
    reverse : bool
    clipped_before, clipped_after : int
        Bases that the CIGAR clips, in the order of the CIGAR.
    contig : int
    start, end : int
        In the concatenated reference.
    """

    length: int
    reverse: bool
    clipped_before: int
    clipped_after: int
    contig: int
    start: int
    end: int


@compiled
def put_columns(out, at, contigs, contig_starts, columns):
    """Write the columns between the name and the number of matches, with a tab on both sides."""
    out, contigs, contig_starts = uncounted((out, contigs, contig_starts))
    first, last = columns.clipped_before, columns.clipped_after
    if columns.reverse:
        first, last = last, first
    contig = columns.contig
    contig_start = contig_starts[contig]
    out[at] = _TAB
    at = put_field(out, at + 1, columns.length, _TAB)
    at = put_field(out, at, first, _TAB)
    at = put_field(out, at, columns.length - last, _TAB)
    out[at] = _MINUS if columns.reverse else _PLUS
    out[at + 1] = _TAB
    at = put_bytes(out, at + 2, contigs.text, contigs.bounds[contig, 0], contigs.bounds[contig, 1])
    out[at] = _TAB
    at = put_field(out, at + 1, contig_starts[contig + 1] - contig_start, _TAB)
    at = put_field(out, at, columns.start - contig_start, _TAB)
    return put_field(out, at, columns.end - contig_start, _TAB)


@compiled(forceinline=True)
def _is_clip(operation):
    return operation & 15 == SOFT_CLIP or operation & 15 == HARD_CLIP


@compiled(forceinline=True)
def _clipped_bases(operation):
    return np.int64(operation >> 4) if _is_clip(operation) else np.int64(0)


@compiled
def _put_share(out, at, part, whole):
    """Write part / whole with four digits, rounded half up; 0 and 1 without digits."""
    if part == 0 or part == whole:
        return put_number(out, at, np.int64(part > 0))
    digits = (2 * 10_000 * part + whole) // (2 * whole)
    out[at] = 48 + digits // 10_000
    out[at + 1] = 46
    for i in range(4):
        out[at + 5 - i] = 48 + digits % 10
        digits //= 10
    return at + 6


@compiled
def _counts(blocks, position, both, read, cigar, start, stop):
    """Count matches, columns without ambiguous bases, the others, gaps, and bases in gaps."""
    same = columns = ambiguous = gaps = gap_bases = np.int64(0)
    for i in range(start, stop):
        length, operation = np.int64(cigar[i] >> 4), cigar[i] & 15
        if is_match(operation):
            for first in range(0, length, 64):
                n = min(np.int64(64), length - first)
                bits = differing(blocks, position + first, both, read + first, n)
                same += n - np.int64(population_count(bits))
                columns += n
                while bits:
                    found = first + np.int64(population_count(~bits & (bits - np.uint64(1))))
                    bits &= bits - np.uint64(1)
                    is_ambiguous = (
                        both[read + found] == AMBIGUOUS
                        or base_at(blocks, position + found) == AMBIGUOUS
                    )
                    columns -= is_ambiguous
                    ambiguous += is_ambiguous
            read += length
            position += length
        elif operation in (INSERTION, DELETION):
            gaps += 1
            gap_bases += length
            columns += length
            for j in range(length):
                is_ambiguous = (
                    both[read + j] == AMBIGUOUS
                    if operation == INSERTION
                    else base_at(blocks, position + j) == AMBIGUOUS
                )
                columns -= is_ambiguous
                ambiguous += is_ambiguous
            read += length if operation == INSERTION else 0
            position += length if operation == DELETION else 0
        else:
            read += length
    return same, columns, ambiguous, gaps, gap_bases

"""PAF of mapped reads: one line per alignment, with the columns and tags of minimap2 -c.

    name length start end strand contig length start end matches columns quality NM AS nn tp de cg

Unmapped reads have no line. Start and end in the read are on the strand as sequenced. An ambiguous
base counts in ``nn`` and in ``NM``, not as a column.
"""

from typing import NamedTuple

import numpy as np

from bwarp.alignment.pairs import HARD_CLIP, SOFT_CLIP
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
from bwarp.bam.records import Records, unsorted_lines
from bwarp.io.names import put_bytes, put_field, put_number
from bwarp.records.alignment_records import RecordTables
from bwarp.records.record_rules import AlignedRead
from bwarp.records.record_text import begin_tag, paf_counts, put_cigar, put_integer, put_share
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.uncounted import uncounted

_TAB, _NEWLINE, _STAR, _PLUS, _MINUS = np.frombuffer(b"\t\n*+-", np.uint8)
_PRIMARY, _SECONDARY = np.frombuffer(b"PS", np.uint8)

#: Bytes of a line without name, contig, CIGAR and comment, and per operation of its CIGAR.
_FIXED, _OPERATION = 320, 12


def paf_lines(tables: RecordTables) -> Records:
    """Return the lines of records in order; unmapped reads have empty ones without line feeds."""
    _, contigs, reads, records, tags = tables
    room = np.diff(reads.names).reshape(-1)[records.reads // reads.ends].sum()
    room += np.diff(tags.offsets)[tags.numbers].sum()
    room += records.n_rows * (contigs.longest + _FIXED) + records.cigar.size * _OPERATION
    out = np.empty(int(room), np.uint8)
    starts = np.empty(records.n_rows + 1, np.int64)
    _write_lines(tables, out, starts)
    return unsorted_lines(out[: starts[-1]], starts)


@compiled
def _write_lines(tables, out, starts):
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
        starts[row] = at
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
        counts = paf_counts(AlignedRead(blocks, start, both, base, cigar, begin, end))
        same, columns, ambiguous, gaps, gap_bases = counts
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
        at = put_share(out, begin_tag(out, at + 1, DE, FLOAT, False), events - same, events)
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
    starts[reads.size] = at


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

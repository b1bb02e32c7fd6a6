"""Write PAF of plain reads on the GPU, byte-identical to the lines of paf_records.

Sizes of lines are computed by writing nothing, as in bam_records_cuda.
"""

from collections.abc import Callable

import numpy as np

from bwarp.bam.fields import AS, CG, CHARACTER, DE, FLOAT, NM, NN, TEXT, TP
from bwarp.gpu.cuda import cuda, int32, int64, uint8, uint32
from bwarp.gpu.kernel import kernel
from bwarp.mapping.extension_cuda import contig_at
from bwarp.records.bam_records_cuda import (
    PlainTables,
    aligned_read,
    array_on_gpu,
    begin_tag,
    paf_counts,
    put_byte,
    put_further,
    put_integer,
    put_name,
    put_number,
    put_operations,
    put_share,
    reference_span,
)
from bwarp.records.sam_records_cuda import put_contig, put_field

_TAB, _NEWLINE, _PLUS, _MINUS, _PRIMARY = b"\t\n+-P"


def encode_paf(plain: PlainTables, edits, sizes) -> Callable[[object, object, object], None]:
    """Write PAF (`bwarp.records.bam_records_cuda.RecordEncoder`)."""
    size_lines(plain, array_on_gpu(np.empty(0, np.uint8)), edits, sizes)
    return lambda starts, data, _keys: write_lines(plain, starts, data)


@cuda.jit(device=True)
def _put_line(out, at, plain, read, counts):
    """Write the line of a mapped read."""
    constants, tables, alignments = plain.constants, plain.tables, plain.alignments
    length = tables.offsets[read + 1] - tables.offsets[read]
    before, end = int64(alignments.read_starts[read]), int64(alignments.read_ends[read])
    reverse = alignments.strands[read] != 0
    first, last = int64(alignments.cigar_offsets[read]), int64(alignments.cigar_offsets[read + 1])
    position = alignments.positions[read]
    contig = contig_at(constants.contig_starts, position)
    contig_start = constants.contig_starts[contig]
    at = put_byte(out, put_name(out, at, tables, read // plain.ends), _TAB)
    at = put_field(out, at, length)
    at = put_field(out, at, length - end if reverse else before)
    at = put_field(out, at, length - before if reverse else end)
    at = put_byte(out, put_byte(out, at, _MINUS if reverse else _PLUS), _TAB)
    at = put_contig(out, at, constants, contig)
    at = put_field(out, at, constants.contig_starts[contig + 1] - contig_start)
    at = put_field(out, at, position - contig_start)
    span = reference_span(alignments.cigar, first, last)
    at = put_field(out, at, position + span - contig_start)
    at = put_field(out, at, counts.same)
    at = put_field(out, at, counts.columns)
    at = put_number(out, at, int64(tables.mapping_qualities[read]))
    at = put_integer(out, at, NM, counts.columns - counts.same + counts.ambiguous, False)
    at = put_integer(out, at, AS, int64(alignments.scores[read]), False)
    at = put_integer(out, at, NN, counts.ambiguous, False)
    at = put_byte(out, begin_tag(out, at, TP, CHARACTER, False), _PRIMARY)
    # A gap counts once.
    events = counts.columns + counts.ambiguous - counts.gap_bases + counts.gaps
    at = put_share(out, begin_tag(out, at, DE, FLOAT, False), events - counts.same, events)
    at = begin_tag(out, at, CG, TEXT, False)
    at = put_operations(out, at, alignments.cigar, first, last)
    return put_byte(out, put_further(out, at, tables, read, False), _NEWLINE)


@kernel(over="plain.marks")
def size_lines(plain: PlainTables, nothing: uint8[::1], edits: int32[::1], sizes: uint32[::1]):
    """Compute the edits of plain reads and the sizes of their lines, 0 for unmapped ones.

    One thread per read, which reads the bases and the genome under them.
    """
    read = int64(cuda.grid(1))
    if read >= plain.marks.size or plain.marks[read]:
        return
    size, n_edits = int64(0), int64(0)
    if plain.alignments.positions[read] >= 0:
        counts = paf_counts(
            aligned_read(plain.constants, plain.tables, plain.alignments, read, read)
        )
        n_edits = counts.columns - counts.same + counts.ambiguous
        size = _put_line(nothing, int64(0), plain, read, counts)
    edits[read] = n_edits
    sizes[plain.firsts[read]] = size


@kernel(over="plain.marks")
def write_lines(plain: PlainTables, starts: uint32[::1], data: uint8[::1]):
    """Write the lines of plain reads. One thread per read."""
    read = int64(cuda.grid(1))
    if read >= plain.marks.size or plain.marks[read]:
        return
    if plain.alignments.positions[read] >= 0:
        counts = paf_counts(
            aligned_read(plain.constants, plain.tables, plain.alignments, read, read)
        )
        _put_line(data, int64(starts[plain.firsts[read]]), plain, read, counts)

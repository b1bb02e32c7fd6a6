"""Tags of plain reads' records, written on the GPU.

    NM, MD      from the bases of the read and of the genome under it
    MC, MQ      from the mate's alignment
    AS, XS      scores of this alignment and of the best other hit
    RG          the same for all
    XA          from further alignments of the read

As in record_text_cuda, writing into an empty array tells how long they are.
"""

from bwarp.gpu.cuda import cuda, int64
from bwarp.mapping.extension.extension_cuda import contig_at
from bwarp.mapping.output.record_text_cuda import (
    begin_tag,
    count_edits,
    put_byte,
    put_bytes,
    put_cigar,
    put_integer,
    put_md,
    put_number,
    reference_span,
)

__all__ = ["edits_of", "put_tags"]


@cuda.jit(device=True)
def _base_of(tables, alignments, row, read):
    """Where the read on the strand of an alignment begins among the bases of both strands."""
    base = tables.offsets[read]
    return base + tables.offsets[tables.offsets.size - 1] if alignments.strands[row] else base


@cuda.jit(device=True)
def _put_row_cigar(out, at, alignments, row, length):
    """The CIGAR of a row as text, with its clips."""
    return put_cigar(
        out, at, alignments.cigar, int64(alignments.cigar_offsets[row]),
        int64(alignments.cigar_offsets[row + 1]), int64(alignments.read_starts[row]),
        length - int64(alignments.read_ends[row]),
    )  # fmt: skip


@cuda.jit(device=True)
def edits_of(constants, tables, alignments, row, read):
    """Mismatched, inserted and deleted bases of a row, an alignment of a read: NM."""
    base = _base_of(tables, alignments, row, read) + alignments.read_starts[row]
    return count_edits(
        constants.genome, alignments.positions[row], tables.blocks, base, alignments.cigar,
        int64(alignments.cigar_offsets[row]), int64(alignments.cigar_offsets[row + 1]),
    )  # fmt: skip


@cuda.jit(device=True)
def put_tags(out, at, constants, tables, alignments, other_offsets, others, read, ends, n_edits):
    """All tags of a read's record."""
    position = alignments.positions[read]
    length = tables.offsets[read + 1] - tables.offsets[read]
    if position >= 0:
        at = put_integer(out, at, 78, 77, n_edits)  # NM
        at = begin_tag(out, at, 77, 68, 90)  # MD
        begin = int64(alignments.cigar_offsets[read])
        end = int64(alignments.cigar_offsets[read + 1])
        if n_edits > 0:
            base = _base_of(tables, alignments, read, read) + alignments.read_starts[read]
            at = put_md(
                out, at, constants.genome, position, tables.blocks, base, alignments.cigar, begin,
                end,
            )  # fmt: skip
        else:
            at = put_number(out, at, reference_span(alignments.cigar, begin, end))
        at = put_byte(out, at, 0)
    mate = read ^ 1
    if ends == 2 and alignments.positions[mate] >= 0:
        mate_length = tables.offsets[mate + 1] - tables.offsets[mate]
        at = begin_tag(out, at, 77, 67, 90)  # MC
        at = put_byte(out, _put_row_cigar(out, at, alignments, mate, mate_length), 0)
        at = put_integer(out, at, 77, 81, int64(tables.mapping_qualities[mate]))  # MQ
    if position >= 0:
        at = put_integer(out, at, 65, 83, int64(alignments.scores[read]))  # AS
        at = put_integer(out, at, 88, 83, int64(tables.suboptimal[read]))  # XS
    if constants.group.size > 0:
        at = begin_tag(out, at, 82, 71, 90)  # RG
        at = put_bytes(out, at, constants.group, 0, constants.group.size)
        at = put_byte(out, at, 0)
    first, last = int64(other_offsets[read]), int64(other_offsets[read + 1])
    if first < last:
        at = begin_tag(out, at, 88, 65, 90)  # XA
        for row in range(first, last):
            at = _put_secondary(out, at, constants, tables, others, row, read, length)
        at = put_byte(out, at, 0)
    return at


@cuda.jit(device=True)
def _put_secondary(out, at, constants, tables, others, row, read, length):
    """A hit as contig,strand and position,CIGAR,NM;"""
    position = others.positions[row]
    contig = contig_at(constants.contig_starts, position)
    begin, end = constants.contig_bounds[2 * contig], constants.contig_bounds[2 * contig + 1]
    at = put_bytes(out, at, constants.contig_text, begin, end)
    at = put_byte(out, at, 44)
    at = put_byte(out, at, 45 if others.strands[row] else 43)
    at = put_number(out, at, position - constants.contig_starts[contig] + 1)
    at = put_byte(out, at, 44)
    at = _put_row_cigar(out, at, others, row, length)
    at = put_byte(out, at, 44)
    at = put_number(out, at, edits_of(constants, tables, others, row, read))
    return put_byte(out, at, 59)

"""Write SAM records of plain reads on the GPU, byte-identical to those of sam_records.

As in bam_records_cuda, sizes of lines are computed by writing nothing. One thread writes the fields
and tags of a line, and one warp its bases and qualities.

    name ... TLEN | bases | qualities | tags
    head          | a warp            | the thread that wrote the head
"""

from collections.abc import Callable

import numpy as np

from bwarp.gpu.cuda import cuda, int32, int64, uint8, uint32
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import WARP
from bwarp.records.bam_records_cuda import (
    PlainTables,
    array_on_gpu,
    edits_of,
    plain_row,
    put_byte,
    put_bytes,
    put_letter,
    put_name,
    put_number,
    put_row_cigar,
    tags_writer,
)

_TAB, _NEWLINE, _STAR, _EQUAL = b"\t\n*="

_put_tags = tags_writer(is_binary=False)


def encode_sam(plain: PlainTables, edits, sizes) -> Callable[[object, object, object], None]:
    """Write SAM (`bwarp.records.bam_records_cuda.RecordEncoder`)."""
    heads = cuda.device_array(plain.marks.size, np.uint32)
    size_lines(plain, array_on_gpu(np.empty(0, np.uint8)), edits, heads, sizes)

    def write(starts, data, _keys) -> None:
        write_fields(plain, edits, heads, starts, data)
        write_letters(plain, heads, starts, data)

    return write


@cuda.jit(device=True)
def put_field(out, at, number):
    return put_byte(out, put_number(out, at, number), _TAB)


@cuda.jit(device=True)
def put_contig(out, at, constants, contig):
    """Write the name of a contig, or * if there is none, and a tab."""
    if contig >= 0:
        begin, end = constants.contig_bounds[2 * contig], constants.contig_bounds[2 * contig + 1]
        at = put_bytes(out, at, constants.contig_text, begin, end)
    else:
        at = put_byte(out, at, _STAR)
    return put_byte(out, at, _TAB)


@cuda.jit(device=True)
def _put_head(out, at, plain, read):
    """Write the fields before the bases."""
    constants, tables, alignments = plain.constants, plain.tables, plain.alignments
    is_mapped = alignments.positions[read] >= 0
    row = plain_row(plain, read)
    at = put_byte(out, put_name(out, at, tables, read // plain.ends), _TAB)
    at = put_field(out, at, row.flag)
    at = put_contig(out, at, constants, row.contig)
    at = put_field(out, at, row.position + 1)
    at = put_field(out, at, int64(tables.mapping_qualities[read]) if is_mapped else int64(0))
    if is_mapped:
        length = tables.offsets[read + 1] - tables.offsets[read]
        at = put_row_cigar(out, at, alignments, read, length)
    else:
        at = put_byte(out, at, _STAR)
    at = put_byte(out, at, _TAB)
    if row.mate_contig >= 0 and row.mate_contig == row.contig:
        at = put_byte(out, put_byte(out, at, _EQUAL), _TAB)
    else:
        at = put_contig(out, at, constants, row.mate_contig)
    at = put_field(out, at, row.mate_position + 1)
    return put_field(out, at, row.template_length)


@cuda.jit(device=True)
def _shown_bases(tables, read):
    """Return the number of letters for the bases: at least a *."""
    return max(tables.offsets[read + 1] - tables.offsets[read], int64(1))


@cuda.jit(device=True)
def _shown_qualities(tables, read):
    return _shown_bases(tables, read) if tables.qualities.size > 0 else int64(1)


@kernel(over="plain.marks")
def size_lines(
    plain: PlainTables, nothing: uint8[::1], edits: int32[::1], heads: uint32[::1],
    sizes: uint32[::1],
):  # fmt: skip
    """Compute the edits of plain reads and the sizes of their lines and of the fields before the
    bases. One thread per read.

    The thread reads the bases, the genome below them, and for pairs the mate's CIGAR.
    """
    read = int64(cuda.grid(1))
    if read >= plain.marks.size or plain.marks[read]:
        return
    tables, alignments = plain.tables, plain.alignments
    n_edits = int64(0)
    if alignments.positions[read] >= 0:
        n_edits = edits_of(plain.constants, tables, alignments, read, read)
    edits[read] = n_edits
    head = _put_head(nothing, int64(0), plain, read)
    heads[read] = head
    size = head + _shown_bases(tables, read) + 1 + _shown_qualities(tables, read)
    sizes[plain.firsts[read]] = _put_tags(nothing, size, plain, read, n_edits) + 1


@kernel(over="plain.marks")
def write_fields(
    plain: PlainTables, edits: int32[::1], heads: uint32[::1], starts: uint32[::1],
    data: uint8[::1],
):  # fmt: skip
    """Write lines of plain reads except bases and qualities. One thread per read."""
    read = int64(cuda.grid(1))
    if read >= plain.marks.size or plain.marks[read]:
        return
    tables = plain.tables
    at = int64(starts[plain.firsts[read]])
    _put_head(data, at, plain, read)
    at += int64(heads[read])
    has_bases = tables.offsets[read + 1] > tables.offsets[read]
    if not has_bases:
        put_byte(data, at, _STAR)
    at = put_byte(data, at + _shown_bases(tables, read), _TAB)
    if not has_bases or tables.qualities.size == 0:
        put_byte(data, at, _STAR)
    at = _put_tags(data, at + _shown_qualities(tables, read), plain, read, int64(edits[read]))
    put_byte(data, at, _NEWLINE)


@kernel(over="plain.marks", per=WARP)
def write_letters(plain: PlainTables, heads: uint32[::1], starts: uint32[::1], data: uint8[::1]):
    """Write bases and qualities of plain reads. One warp per read, every 32nd letter per lane."""
    read = int64(cuda.grid(1)) // WARP
    if read >= plain.marks.size or plain.marks[read]:
        return
    tables, alignments = plain.tables, plain.alignments
    first = tables.offsets[read]
    length = tables.offsets[read + 1] - first
    is_turned = alignments.positions[read] >= 0 and alignments.strands[read] != 0
    base = first + (tables.offsets[tables.offsets.size - 1] if is_turned else int64(0))
    at = int64(starts[plain.firsts[read]]) + int64(heads[read])
    for i in range(int64(cuda.laneid), length, WARP):
        put_letter(data, at + i, tables.codes[base + i])
        if tables.qualities.size > 0:
            source = first + length - 1 - i if is_turned else first + i
            data[at + length + 1 + i] = tables.qualities[source]

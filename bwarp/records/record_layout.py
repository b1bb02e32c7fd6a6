"""Build the table of records of a chunk from the alignments of its reads.

Columns are filled in one pass over the rows; filling one column after another takes at least half
as long again. A row's mate is the first row of the other read of its template, which is near.
"""

import numpy as np

from bwarp.alignment.pairs import HARD_CLIP, INSERTION, SOFT_CLIP
from bwarp.bam.fields import REVERSE, SECONDARY, SUPPLEMENTARY, UNMAPPED
from bwarp.reads.read_chunks import ReadChunk
from bwarp.records.alignment_records import (
    AlignmentRecords,
    ReadAlignments,
    joined_alignments,
    no_secondary_hits,
)
from bwarp.records.record_rules import pair_flags, template_length
from bwarp.reference import interval_at
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.threads import offsets_of
from bwarp.runtime.timeline import on_timeline

#: The columns that `_put_columns` fills, in its order.
_COLUMNS = {
    "flags": np.uint16,
    "contigs": np.int64,
    "positions": np.int64,
    "mapping_qualities": np.uint8,
    "mates": np.int64,
    "template_lengths": np.int64,
    "scores": np.int32,
    "suboptimal": np.int32,
}


@on_timeline("lay out records")
def alignment_records(
    contig_starts: np.ndarray,
    chunk: ReadChunk,
    of_reads: ReadAlignments,
    soft_clip: bool = False,
) -> AlignmentRecords:
    """Return the records of a chunk's reads.

    Parameters
    ----------
    contig_starts : ndarray, shape=(n_contigs + 1,), dtype=int64
    chunk : ReadChunk
    of_reads : ReadAlignments
    soft_clip : bool
        Soft-clip all records.
    """
    mapped, primary, supplementary, secondary, better_scores, recorded = of_reads
    lengths = np.diff(chunk.offsets)
    reads, qualities, suboptimal = np.arange(chunk.n_reads), primary.qualities, primary.suboptimal
    alignments = mapped
    order = reads
    soft = np.ones(chunk.n_reads, bool)
    rows_of_read = np.ones(chunk.n_reads, np.int64)
    if supplementary is not None and supplementary.reads.size:
        reads = np.concatenate([reads, supplementary.reads])
        qualities = np.concatenate([qualities, supplementary.qualities])
        suboptimal = np.concatenate([suboptimal, supplementary.suboptimal])
        soft = np.concatenate([soft, supplementary.soft])
        alignments = joined_alignments(mapped, supplementary.alignments)
        rows_of_read += np.bincount(supplementary.reads, minlength=chunk.n_reads)
    if recorded is not None and recorded.reads.size:
        nothing = np.zeros(recorded.reads.size, np.uint8)
        reads = np.concatenate([reads, recorded.reads])
        qualities = np.concatenate([qualities, nothing])
        suboptimal = np.concatenate([suboptimal, nothing.astype(suboptimal.dtype)])
        soft = np.concatenate([soft, nothing.astype(bool)])
        alignments = joined_alignments(alignments, recorded.alignments)
    if alignments is not mapped:
        order = np.argsort(reads, kind="stable")
        reads = reads[order]
        soft = soft[order]
    if chunk.orphans is not None:
        # The second read of an orphan does not exist.
        rows_of_read[1::2][chunk.orphans] = 0
        there = ~((reads % 2 == 1) & chunk.orphans[reads // 2])
        order, reads, soft = order[there], reads[there], soft[there]
    first_rows = offsets_of(reads, chunk.n_reads)
    split_ends = first_rows[:-1] + rows_of_read
    cigar_offsets, cigar, spans = _clipped(
        order, lengths[reads], soft | soft_clip, alignments.read_starts, alignments.read_ends,
        alignments.cigar_offsets, alignments.cigar,
    )  # fmt: skip
    columns = {name: np.empty(reads.size, dtype) for name, dtype in _COLUMNS.items()}
    _put_columns(
        (alignments.positions, alignments.strands, alignments.scores),
        (qualities, suboptimal, primary.proper),
        (reads, order, spans, first_rows, split_ends),
        contig_starts, np.empty(0, bool) if chunk.orphans is None else chunk.orphans, chunk.ends,
        tuple(columns.values()),
    )  # fmt: skip
    columns |= no_secondary_hits(reads.size)
    if secondary is not None and secondary.reads.size:
        rows_of = np.full(alignments.positions.size, -1)
        rows_of[order] = np.arange(order.size)
        rows = np.where(
            secondary.named_by < 0,
            first_rows[secondary.reads],
            rows_of[secondary.named_by + chunk.n_reads],
        )
        columns["secondary_offsets"][1:] = np.cumsum(np.bincount(rows, minlength=reads.size))
        by_row = np.argsort(rows, kind="stable")
        found = secondary.alignments
        hit_cigar_offsets, hit_cigar, _ = _clipped(
            by_row, lengths[secondary.reads[by_row]], np.ones(rows.size, bool),
            found.read_starts, found.read_ends, found.cigar_offsets, found.cigar,
        )  # fmt: skip
        columns |= {
            "secondary_strands": found.strands[by_row],
            "secondary_positions": found.positions[by_row],
            "secondary_cigar_offsets": hit_cigar_offsets,
            "secondary_cigar": hit_cigar,
        }
    alt_shares = np.zeros(reads.size, np.int64)
    if better_scores is not None:
        has_better = np.flatnonzero(better_scores)
        shares = 1000 * mapped.scores[has_better] / better_scores[has_better]
        alt_shares[first_rows[has_better]] = np.rint(shares)
    return AlignmentRecords(
        **columns,
        reads=reads,
        spans=spans,
        cigar_offsets=cigar_offsets,
        cigar=cigar,
        alt_shares=alt_shares,
        first_rows=first_rows,
        split_ends=split_ends,
    )


@compiled
def _clipped(order, lengths, soft, read_starts, read_ends, offsets, cigar):
    """Return the CIGARs of alignments in `order` with clips, and their reference spans."""
    out_offsets = np.zeros(order.size + 1, np.int64)
    out = np.empty(cigar.size + 2 * order.size, np.uint32)
    spans = np.zeros(order.size, np.int64)
    used = 0
    for row in range(order.size):
        source = order[row]
        clip = SOFT_CLIP if soft[row] else HARD_CLIP
        if offsets[source] < offsets[source + 1]:
            if read_starts[source] > 0:
                out[used] = read_starts[source] << 4 | clip
                used += 1
            for at in range(offsets[source], offsets[source + 1]):
                out[used] = cigar[at]
                used += 1
                # All but insertions lie on the reference.
                spans[row] += 0 if cigar[at] & 15 == INSERTION else cigar[at] >> 4
            if read_ends[source] < lengths[row]:
                out[used] = (lengths[row] - read_ends[source]) << 4 | clip
                used += 1
        out_offsets[row + 1] = used
    return out_offsets, out[:used].copy(), spans


@compiled(counted=False)
def _put_columns(alignments, selected, rows, contig_starts, orphans, ends, columns):
    """Fill the columns of each row from its alignment and its mate's.

    Parameters
    ----------
    alignments : tuple of ndarray
        Positions, strands and scores.
    selected : tuple of ndarray
        Mapping qualities, suboptimal scores, and whether reads are in proper pairs.
    rows : tuple of ndarray
        Reads, alignments and reference bases of rows; first rows and split ends of reads.
    orphans : ndarray, dtype=bool
        Empty if there are none.
    """
    positions, strands, all_scores = alignments
    qualities, all_suboptimal, proper = selected
    reads, order, spans, first_rows, split_ends = rows
    (
        flags, contigs, own_positions, mapping_qualities, mates, template_lengths, scores,
        suboptimal,
    ) = columns  # fmt: skip
    for row in range(reads.size):
        read, source = reads[row], order[row]
        position, reverse = positions[source], np.int64(strands[source])
        is_mapped = position >= 0
        flag = UNMAPPED
        if is_mapped:
            flag = reverse * REVERSE
        if row >= split_ends[read]:
            flag |= SECONDARY
        elif row > first_rows[read]:
            flag |= SUPPLEMENTARY
        mate, length, stands_at = np.int64(-1), np.int64(0), position
        contig = interval_at(contig_starts, position)
        if ends == 2 and not (orphans.size and orphans[read >> 1]):
            mate = first_rows[read ^ 1]
            mate_position = positions[order[mate]]
            mate_reverse = np.int64(strands[order[mate]])
            flag |= pair_flags(read & 1, proper[read], mate_position, mate_reverse)
            if not is_mapped:
                # It gets the position of its mate, so that sorting keeps them together.
                stands_at, contig = mate_position, interval_at(contig_starts, mate_position)
            elif contig_starts[contig] <= mate_position < contig_starts[contig + 1]:
                length = template_length(
                    position, reverse, spans[row], mate_position, mate_reverse, spans[mate]
                )
        flags[row], contigs[row], own_positions[row] = flag, contig, stands_at
        mapping_qualities[row] = qualities[source] if is_mapped else 0
        mates[row], template_lengths[row] = mate, length
        scores[row], suboptimal[row] = all_scores[source], all_suboptimal[source]

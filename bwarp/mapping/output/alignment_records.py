"""The records of an output as a table, a row a record, whatever the format of the file.

A chunk of pairs, of which the second end of the first is split and the second pair is unmapped:

    row    read   flags             mates   first_rows
    0      0      first             1       0 -.  read 0: row 0
    1      1      last              0       1  |- read 1: rows 1 and 2, which name each other in SA
    2      1      supplementary     0       3 -'  ...
    3      2      first, unmapped   4
    4      3      last, unmapped    3

A read's secondary records, if hits get any, come after its supplementary ones; SA names none.

`record_writer` turns rows into text or bytes; it counts edits (NM, MD), too, as it has the bases.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numba
import numpy as np

from bwarp.mapping.output.final_alignments import MappedReads
from bwarp.mapping.pairing.primary_and_mapq_cpu import PrimarySelection
from bwarp.mapping.reads.read_chunks import ReadChunk
from bwarp.runtime.ranges import offsets_of
from bwarp.runtime.timeline import on_timeline

__all__ = [
    "FIRST",
    "LAST",
    "MATE_REVERSE",
    "MATE_UNMAPPED",
    "PAIRED",
    "PROPER",
    "REVERSE",
    "SECONDARY",
    "SUPPLEMENTARY",
    "UNMAPPED",
    "AlignmentRecords",
    "SecondaryHits",
    "SecondaryRecords",
    "Supplementary",
    "alignment_records",
    "joined_alignments",
    "selected_rows",
]

PAIRED, PROPER, UNMAPPED, MATE_UNMAPPED = 1, 2, 4, 8
REVERSE, MATE_REVERSE, FIRST, LAST = 16, 32, 64, 128
SECONDARY, SUPPLEMENTARY = 256, 2048

_SOFT_CLIP, _HARD_CLIP = 4, 5


@dataclass(frozen=True)
class Supplementary:
    """Alignments of other parts of split reads, which get records of their own.

    Attributes
    ----------
    reads : ndarray, shape=(n,), dtype=int64
        The records of a read come in this order, after its primary one.
    alignments : MappedReads
        Row i is of read ``reads[i]``.
    qualities : ndarray, shape=(n,), dtype=uint8
    suboptimal : ndarray, shape=(n,), dtype=int32
        As in `PrimarySelection`.
    soft : ndarray, shape=(n,), dtype=bool
        Whether the record keeps its clipped bases.
    hits : ndarray, shape=(n,), dtype=int64
        The index of the hit that each is.
    """

    reads: np.ndarray
    alignments: MappedReads
    qualities: np.ndarray
    suboptimal: np.ndarray
    soft: np.ndarray
    hits: np.ndarray


@dataclass(frozen=True)
class SecondaryHits:
    """Secondary hits of mapped reads, which one of their records names: XA.

    Attributes
    ----------
    reads : ndarray, shape=(n,), dtype=int64
        A record's are named in this order.
    alignments : MappedReads
        Row i is of read ``reads[i]``.
    named_by : ndarray, shape=(n,), dtype=int64
        The row of `Supplementary` whose record names it; -1 for the read's primary record.
    """

    reads: np.ndarray
    alignments: MappedReads
    named_by: np.ndarray


@dataclass(frozen=True)
class SecondaryRecords:
    """Secondary hits of mapped reads that get records of their own.

    Attributes
    ----------
    reads : ndarray, shape=(n,), dtype=int64
        The records of a read come in this order, after its supplementary ones.
    alignments : MappedReads
        Row i is of read ``reads[i]``.
    """

    reads: np.ndarray
    alignments: MappedReads


class AlignmentRecords(NamedTuple):
    """A row a record, in the order of the output: reads in order, each read's primary record first.

    Attributes
    ----------
    reads : ndarray, shape=(n,), dtype=int64
        Number of the read in its chunk.
    flags : ndarray, shape=(n,), dtype=uint16
        As in SAM.
    contigs : ndarray, shape=(n,), dtype=int64
        Number of the contig at which the record stands, or -1.
    positions : ndarray, shape=(n,), dtype=int64
        Genome position of the first aligned base; of the mate's, for an unmapped read; or -1.
    spans : ndarray, shape=(n,), dtype=int64
        Reference bases that are aligned; 0 for an unmapped read.
    mapping_qualities : ndarray, shape=(n,), dtype=uint8
    cigar_offsets : ndarray, shape=(n + 1,), dtype=int64
    cigar : ndarray, dtype=uint32
        ``length << 4 | operation`` as in BAM, clips included: S in primary records, H in others
        unless these were to be soft-clipped.
    mates : ndarray, shape=(n,), dtype=int64
        The row of the mate's primary record; -1 for single reads.
    template_lengths : ndarray, shape=(n,), dtype=int64
    scores, suboptimal : ndarray, shape=(n,), dtype=int32
        AS and XS.
    alt_shares : ndarray, shape=(n,), dtype=int64
        Thousandths of the score of a better hit on an ALT contig; 0 where there is none: pa.
    first_rows : ndarray, shape=(n_reads + 1,), dtype=int64
        The rows of a read.
    split_ends : ndarray, shape=(n_reads,), dtype=int64
        Where those of its rows end that are primary or supplementary; the others are secondary.
    secondary_offsets : ndarray, shape=(n + 1,), dtype=int64
        Where the hits that a row names in XA begin in the following.
    secondary_strands, secondary_positions : ndarray, dtype=uint8, int64
    secondary_cigar_offsets, secondary_cigar : ndarray, dtype=int64, uint32
        Clips included, all S.
    """

    reads: np.ndarray
    flags: np.ndarray
    contigs: np.ndarray
    positions: np.ndarray
    spans: np.ndarray
    mapping_qualities: np.ndarray
    cigar_offsets: np.ndarray
    cigar: np.ndarray
    mates: np.ndarray
    template_lengths: np.ndarray
    scores: np.ndarray
    suboptimal: np.ndarray
    alt_shares: np.ndarray
    first_rows: np.ndarray
    split_ends: np.ndarray
    secondary_offsets: np.ndarray
    secondary_strands: np.ndarray
    secondary_positions: np.ndarray
    secondary_cigar_offsets: np.ndarray
    secondary_cigar: np.ndarray

    @property
    def n_rows(self) -> int:
        return len(self.reads)


@on_timeline("lay out records")
def alignment_records(
    contig_starts: np.ndarray,
    chunk: ReadChunk,
    mapped: MappedReads,
    primary: PrimarySelection,
    supplementary: Supplementary | None = None,
    secondary: SecondaryHits | None = None,
    better_scores: np.ndarray | None = None,
    recorded: SecondaryRecords | None = None,
    soft_clip: bool = False,
) -> AlignmentRecords:
    """The records of a chunk's reads.

    Parameters
    ----------
    contig_starts : ndarray, shape=(n_contigs + 1,), dtype=int64
    chunk : ReadChunk
    mapped : MappedReads
        The primary alignment of every read.
    primary : PrimarySelection
    supplementary, secondary : optional
        Further alignments of some of the reads that are mapped.
    better_scores : ndarray, shape=(n_reads,), dtype=int64, optional
        Of better hits of the reads on ALT contigs, 0 for none.
    recorded : optional
        Secondary hits that get records.
    soft_clip : bool
        All records keep their clipped bases.
    """
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
        # The second read of an orphan is not there.
        rows_of_read[1::2][chunk.orphans] = 0
        there = ~((reads % 2 == 1) & chunk.orphans[reads // 2])
        order, reads, soft = order[there], reads[there], soft[there]
    first_rows = offsets_of(reads, chunk.n_reads)
    split_ends = first_rows[:-1] + rows_of_read
    is_primary = np.diff(reads, prepend=-1) > 0
    is_secondary = np.arange(reads.size) >= split_ends[reads]
    cigar_offsets, cigar, spans = _clipped(
        order, lengths[reads], soft | soft_clip, alignments.read_starts, alignments.read_ends,
        alignments.cigar_offsets, alignments.cigar,
    )  # fmt: skip
    own = alignments.positions[order]
    is_mapped = own >= 0
    reverse = is_mapped & (alignments.strands[order] == 1)
    flags = np.where(is_mapped, 0, UNMAPPED) + reverse * REVERSE + is_secondary * SECONDARY
    flags += ~(is_primary | is_secondary) * SUPPLEMENTARY
    mates = np.full(reads.size, -1)
    positions = own
    template_lengths = np.zeros(reads.size, np.int64)
    if chunk.ends == 2:
        mates = first_rows[reads ^ 1]
        if chunk.orphans is not None:
            mates[chunk.orphans[reads // 2]] = -1
        has_mate = mates >= 0
        of_pairs = PAIRED + np.where(reads & 1, LAST, FIRST) + primary.proper[reads] * PROPER
        of_pairs += ~is_mapped[mates] * MATE_UNMAPPED + reverse[mates] * MATE_REVERSE
        flags += has_mate * of_pairs
        # An unmapped read stands where its mate does, so that sorting keeps them together.
        positions = np.where(is_mapped | ~has_mate, own, own[mates])
    contigs = np.searchsorted(contig_starts, positions, side="right") - 1
    if chunk.ends == 2:
        # From the outermost base of the one read to that of the other.
        ends = own + reverse * (spans - 1)
        distances = ends[mates] - ends
        together = has_mate & is_mapped & is_mapped[mates] & (contigs == contigs[mates])
        template_lengths[together] = (distances + np.sign(distances))[together]
    offsets = np.zeros(reads.size + 1, np.int64)
    hit_strands, hit_positions = np.empty(0, np.uint8), np.empty(0, np.int64)
    hit_cigar_offsets, hit_cigar = np.zeros(1, np.int64), np.empty(0, np.uint32)
    if secondary is not None and secondary.reads.size:
        rows_of = np.full(alignments.positions.size, -1)
        rows_of[order] = np.arange(order.size)
        rows = np.where(
            secondary.named_by < 0,
            first_rows[secondary.reads],
            rows_of[secondary.named_by + chunk.n_reads],
        )
        offsets[1:] = np.cumsum(np.bincount(rows, minlength=reads.size))
        by_row = np.argsort(rows, kind="stable")
        found = secondary.alignments
        hit_strands, hit_positions = found.strands[by_row], found.positions[by_row]
        hit_cigar_offsets, hit_cigar, _ = _clipped(
            by_row, lengths[secondary.reads[by_row]], np.ones(rows.size, bool),
            found.read_starts, found.read_ends, found.cigar_offsets, found.cigar,
        )  # fmt: skip
    alt_shares = np.zeros(reads.size, np.int64)
    if better_scores is not None:
        has_better = np.flatnonzero(better_scores)
        shares = 1000 * mapped.scores[has_better] / better_scores[has_better]
        alt_shares[first_rows[has_better]] = np.rint(shares)
    return AlignmentRecords(
        reads=reads,
        flags=flags.astype(np.uint16),
        contigs=contigs,
        positions=positions,
        spans=spans,
        mapping_qualities=np.where(is_mapped, qualities[order], 0).astype(np.uint8),
        cigar_offsets=cigar_offsets,
        cigar=cigar,
        mates=mates,
        template_lengths=template_lengths,
        scores=alignments.scores[order],
        suboptimal=suboptimal[order],
        alt_shares=alt_shares,
        first_rows=first_rows,
        split_ends=split_ends,
        secondary_offsets=offsets,
        secondary_strands=hit_strands,
        secondary_positions=hit_positions,
        secondary_cigar_offsets=hit_cigar_offsets,
        secondary_cigar=hit_cigar,
    )


def selected_rows(records: AlignmentRecords, kept: np.ndarray) -> AlignmentRecords:
    """Those rows that `kept` (bool, one a row) marks: all of a template, or none."""
    rows = np.flatnonzero(kept)
    before = np.concatenate([[0], np.cumsum(kept)])
    mates = records.mates[rows]
    cigar_offsets, cigar_items = _stretches(records.cigar_offsets, rows)
    offsets, hits = _stretches(records.secondary_offsets, rows)
    hit_cigar_offsets, hit_cigar_items = _stretches(records.secondary_cigar_offsets, hits)
    columns = (
        "reads", "flags", "contigs", "positions", "spans", "mapping_qualities",
        "template_lengths", "scores", "suboptimal", "alt_shares",
    )  # fmt: skip
    return records._replace(
        **{name: getattr(records, name)[rows] for name in columns},
        cigar_offsets=cigar_offsets,
        cigar=records.cigar[cigar_items],
        mates=np.where(mates < 0, -1, before[mates]),
        first_rows=before[records.first_rows],
        split_ends=before[records.split_ends],
        secondary_offsets=offsets,
        secondary_strands=records.secondary_strands[hits],
        secondary_positions=records.secondary_positions[hits],
        secondary_cigar_offsets=hit_cigar_offsets,
        secondary_cigar=records.secondary_cigar[hit_cigar_items],
    )


def _stretches(offsets: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The offsets that the items of some rows get, and the items' numbers."""
    counts = np.diff(offsets)[rows]
    out = np.concatenate([[0], np.cumsum(counts)])
    return out, np.repeat(offsets[:-1][rows] - out[:-1], counts) + np.arange(out[-1])


def joined_alignments(one: MappedReads, two: MappedReads) -> MappedReads:
    """The rows of both, one after the other."""
    fields = ("positions", "strands", "read_starts", "read_ends", "scores", "cigar")
    joined = {name: np.concatenate([getattr(one, name), getattr(two, name)]) for name in fields}
    offsets = np.concatenate([one.cigar_offsets, two.cigar_offsets[1:] + one.cigar_offsets[-1]])
    return MappedReads(**joined, cigar_offsets=offsets)


@numba.njit(cache=True, nogil=True)
def _clipped(order, lengths, soft, read_starts, read_ends, offsets, cigar):
    """The CIGARs of the alignments in `order` with their clips, and the reference bases of each."""
    out_offsets = np.zeros(order.size + 1, np.int64)
    out = np.empty(cigar.size + 2 * order.size, np.uint32)
    spans = np.zeros(order.size, np.int64)
    used = 0
    for row in range(order.size):
        source = order[row]
        clip = _SOFT_CLIP if soft[row] else _HARD_CLIP
        if offsets[source] < offsets[source + 1]:
            if read_starts[source] > 0:
                out[used] = read_starts[source] << 4 | clip
                used += 1
            for at in range(offsets[source], offsets[source + 1]):
                out[used] = cigar[at]
                used += 1
                # All but insertions lie on the reference.
                spans[row] += 0 if cigar[at] & 15 == 1 else cigar[at] >> 4
            if read_ends[source] < lengths[row]:
                out[used] = (lengths[row] - read_ends[source]) << 4 | clip
                used += 1
        out_offsets[row + 1] = used
    return out_offsets, out[:used].copy(), spans

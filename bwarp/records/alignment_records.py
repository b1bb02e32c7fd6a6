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

import numpy as np

from bwarp.mapping.final_alignments import MappedReads


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

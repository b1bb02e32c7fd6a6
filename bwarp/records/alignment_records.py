"""The records of an output as a table with one row per record, for any file format.

Example: a chunk of two pairs, in which the second end of the first pair is split and the second
pair is unmapped:

    row    read   flags             mates   first_rows
    0      0      first             1       0 -.  read 0: row 0
    1      1      last              0       1  |- read 1: rows 1 and 2, which name each other in SA
    2      1      supplementary     0       3 -'  ...
    3      2      first, unmapped   4
    4      3      last, unmapped    3

Secondary records of a read, if requested, follow its supplementary ones; SA does not list them.

`bam_records_cpu` converts rows to text or bytes; it also counts edits (NM, MD), because it has the
bases.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bwarp.io.names import Names
from bwarp.mapping.extension_cpu import Genome
from bwarp.mapping.final_alignments import MappedReads
from bwarp.mapping.primary_hits_cpu import PrimarySelection
from bwarp.reads.read_chunks import ReadChunk
from bwarp.runtime.compiled_code import read_only


@dataclass(frozen=True)
class Supplementary:
    """Alignments of other parts of split reads, which get supplementary records.

    Attributes
    ----------
    reads : ndarray, shape=(n,), dtype=int64
        The records of a read are in this order, after its primary record.
    alignments : MappedReads
        Row i is of read ``reads[i]``.
    qualities : ndarray, shape=(n,), dtype=uint8
    suboptimal : ndarray, shape=(n,), dtype=int32
        As in `PrimarySelection`.
    soft : ndarray, shape=(n,), dtype=bool
        Whether the record keeps its clipped bases.
    hits : ndarray, shape=(n,), dtype=int64
        The index of the hit of each alignment.
    """

    reads: np.ndarray
    alignments: MappedReads
    qualities: np.ndarray
    suboptimal: np.ndarray
    soft: np.ndarray
    hits: np.ndarray


@dataclass(frozen=True)
class SecondaryHits:
    """Secondary hits of mapped reads, listed in the tag XA of one of their records.

    Attributes
    ----------
    reads : ndarray, shape=(n,), dtype=int64
        The hits of a record are listed in this order.
    alignments : MappedReads
        Row i is of read ``reads[i]``.
    named_by : ndarray, shape=(n,), dtype=int64
        The row of `Supplementary` whose record lists the hit; -1 for the read's primary record.
    """

    reads: np.ndarray
    alignments: MappedReads
    named_by: np.ndarray


@dataclass(frozen=True)
class SecondaryRecords:
    """Secondary hits of mapped reads that get secondary records.

    Attributes
    ----------
    reads : ndarray, shape=(n,), dtype=int64
        The records of a read are in this order, after its supplementary records.
    alignments : MappedReads
        Row i is of read ``reads[i]``.
    """

    reads: np.ndarray
    alignments: MappedReads


class ReadAlignments(NamedTuple):
    """The alignments of a chunk's reads, from which records are made.

    Attributes
    ----------
    mapped : MappedReads
        The primary alignment of each read.
    primary : PrimarySelection
    supplementary, secondary : optional
        Further alignments of mapped reads.
    better_scores : ndarray, shape=(n_reads,), dtype=int64, optional
        Scores of better hits on ALT contigs, 0 for none.
    recorded : optional
        Secondary hits that get records.
    """

    mapped: MappedReads
    primary: PrimarySelection
    supplementary: Supplementary | None = None
    secondary: SecondaryHits | None = None
    better_scores: np.ndarray | None = None
    recorded: SecondaryRecords | None = None


class AlignmentRecords(NamedTuple):
    """One row per record, in output order: read by read, the primary record first.

    Attributes
    ----------
    reads : ndarray, shape=(n,), dtype=int64
        Number of the read in its chunk.
    flags : ndarray, shape=(n,), dtype=uint16
        As in SAM.
    contigs : ndarray, shape=(n,), dtype=int64
        Number of the record's contig, or -1.
    positions : ndarray, shape=(n,), dtype=int64
        Genome position of the first aligned base, or the mate's for an unmapped read, or -1.
    spans : ndarray, shape=(n,), dtype=int64
        Number of aligned reference bases; 0 for an unmapped read.
    mapping_qualities : ndarray, shape=(n,), dtype=uint8
    cigar_offsets : ndarray, shape=(n + 1,), dtype=int64
    cigar : ndarray, dtype=uint32
        ``length << 4 | operation`` as in BAM, clips included: S in primary records, H in
        others, unless soft clips were requested.
    mates : ndarray, shape=(n,), dtype=int64
        The row of the record named as mate: the mate's primary record, or for a pair of loci of
        `allmap`, that of the other locus. -1 for single reads.
    template_lengths : ndarray, shape=(n,), dtype=int64
    scores, suboptimal : ndarray, shape=(n,), dtype=int32
        AS and XS; `suboptimal` is empty if records have no XS.
    alt_shares : ndarray, shape=(n,), dtype=int64
        Score in thousandths of the score of a better hit on an ALT contig (tag pa); 0 without one.
    first_rows : ndarray, shape=(n_reads + 1,), dtype=int64
        First row of each read.
    split_ends : ndarray, shape=(n_reads,), dtype=int64
        End of the primary and supplementary rows of each read; the rest are secondary.
    secondary_offsets : ndarray, shape=(n + 1,), dtype=int64
        Start of the hits listed in XA of a row in the following arrays.
    secondary_strands, secondary_positions : ndarray, dtype=uint8, int64
    secondary_cigar_offsets, secondary_cigar : ndarray, dtype=int64, uint32
        With clips, all S.
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


def no_secondary_hits(n_rows: int) -> dict[str, np.ndarray]:
    """Return the columns of secondary hits for records without XA."""
    return {
        "secondary_offsets": np.zeros(n_rows + 1, np.int64),
        "secondary_strands": np.empty(0, np.uint8),
        "secondary_positions": np.empty(0, np.int64),
        "secondary_cigar_offsets": np.zeros(1, np.int64),
        "secondary_cigar": np.empty(0, np.uint32),
    }


class ReadArrays(NamedTuple):
    """The reads of a chunk, for compiled functions.

    Attributes
    ----------
    ends : int
        Reads per template.
    offsets : ndarray, shape=(n_reads + 1,), dtype=int64
    text : ndarray, dtype=uint8
        Contains the names.
    names : ndarray, shape=(n_templates, 2), dtype=int64
    qualities : ndarray, dtype=uint8
        As in FASTQ; empty for none.
    both : ndarray, dtype=uint8
        The reads, then their reverse complements, as codes.
    """

    ends: int
    offsets: np.ndarray
    text: np.ndarray
    names: np.ndarray
    qualities: np.ndarray
    both: np.ndarray

    @classmethod
    def of(cls, chunk: ReadChunk, both: np.ndarray) -> "ReadArrays":
        qualities = np.empty(0, np.uint8) if chunk.qualities is None else chunk.qualities
        text = read_only(chunk.text)
        return cls(chunk.ends, chunk.offsets, text, chunk.names, qualities, both)


class RecordTags(NamedTuple):
    """Tags of records that do not follow from the table.

    Attributes
    ----------
    group : ndarray, dtype=uint8
        ID of the read group (RG); empty for none.
    of_mates : bool
        Whether records have the CIGAR and the mapping quality of the mate (MC, MQ).
    quality_sums : ndarray, dtype=int64
        Quality sums of the reads, written to their mates' primary records (ms); empty for none.
    further : ndarray, dtype=uint8
        Further tags in the format of the output, which stand at the end of records.
    offsets : ndarray, dtype=int64
        Where tags of different records begin in `further`, and the end of the last.
    numbers : ndarray, shape=(n,), dtype=int64
        The further tags of row i begin at ``offsets[numbers[i]]``.
    """

    group: np.ndarray
    of_mates: bool
    quality_sums: np.ndarray
    further: np.ndarray
    offsets: np.ndarray
    numbers: np.ndarray


class RecordTables(NamedTuple):
    """All that records are written from."""

    genome: Genome
    contigs: Names
    reads: ReadArrays
    records: AlignmentRecords
    tags: RecordTags


def mapped_tables(
    genome: Genome,
    contigs: Names,
    reads: ReadArrays,
    records: AlignmentRecords,
    read_group: bytes = b"",
    further: tuple[np.ndarray, np.ndarray] | None = None,
    quality_sums: np.ndarray | None = None,
) -> RecordTables:
    """Return the tables of records of mapped reads.

    Parameters
    ----------
    read_group : bytes
        ID of the read group; empty for none.
    further : tuple of ndarray, dtype=uint8, int64, optional
        Further tags of each read in the format of the output, and their offsets.
    quality_sums : ndarray, shape=(n_reads,), dtype=int64, optional
        If given, records have the tag ms.
    """
    if further is None:
        further = np.empty(0, np.uint8), np.zeros(reads.offsets.size, np.int64)
    sums = np.empty(0, np.int64) if quality_sums is None else quality_sums
    tags = RecordTags(np.frombuffer(read_group, np.uint8), True, sums, *further, records.reads)
    return RecordTables(genome, contigs, reads, records, tags)


def selected_rows(records: AlignmentRecords, kept: np.ndarray) -> AlignmentRecords:
    """Return the rows marked in `kept` (bool per row): all rows of a template, or none."""
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
    """Return the new offsets of the items of some rows, and the items' numbers."""
    counts = np.diff(offsets)[rows]
    out = np.concatenate([[0], np.cumsum(counts)])
    return out, np.repeat(offsets[:-1][rows] - out[:-1], counts) + np.arange(out[-1])


def joined_alignments(one: MappedReads, two: MappedReads) -> MappedReads:
    """Concatenate the rows of both."""
    fields = ("positions", "strands", "read_starts", "read_ends", "scores", "cigar")
    joined = {name: np.concatenate([getattr(one, name), getattr(two, name)]) for name in fields}
    offsets = np.concatenate([one.cigar_offsets, two.cigar_offsets[1:] + one.cigar_offsets[-1]])
    return MappedReads(**joined, cigar_offsets=offsets)

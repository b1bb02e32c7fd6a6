"""Write loci as a sorted BAM with its index, plus tables of the reads without loci in it.

Takes chunks with loci and alignments; ranks the loci of each read, encodes them as BAM records, and
records the counters of the search in the header.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np

from bwarp.allmap.alignments_cpu import LocusAlignments
from bwarp.allmap.find import Certificate, FoundChunk
from bwarp.allmap.locus_ranks import LocusRanks, rank_loci
from bwarp.allmap.locus_text import SIBLING_HEADERS, SIBLINGS, over_lines, skipped_lines
from bwarp.allmap.options import FoundLoci
from bwarp.bam.compression_engine import ON_HOST, STORED_BLOCKS, WHEN_MAPPED, Compression
from bwarp.bam.external_sort import RecordSorter
from bwarp.bam.fields import HI, NH, REVERSE, RG, SECONDARY, TEXT, UNMAPPED, X0, X1, XA, XD, XE, XO
from bwarp.bam.sorted_file import bam_to_merge, sorted_file
from bwarp.io.atomic_output import atomic_files, private_folder
from bwarp.io.names import Names, put_bytes
from bwarp.mapping.extension_cpu import Genome
from bwarp.records.alignment_file import bam_header, put_in_place
from bwarp.records.alignment_records import (
    AlignmentRecords,
    ReadArrays,
    RecordTables,
    RecordTags,
    no_secondary_hits,
)
from bwarp.records.bam_records_cpu import bam_records, sam_header
from bwarp.records.record_rules import pair_flags, template_length
from bwarp.records.record_text import OtherHit, end_text, put_integer_tag, put_other_hit, put_tag
from bwarp.reference import Reference, interval_at
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.threads import joined_stretches
from bwarp.runtime.timeline import on_timeline
from bwarp.seeding.seed_tables import sibling

# Loci as BAM records: one per locus, and one for each read without loci.
#
# The primary record holds the bases and qualities of the read; secondary records do not. A template
# with proper pairs has two records per pair, each naming the other as its mate. Tags:
#
#     NM, MD, AS    edits; where they are; the score, or the negated edits
#     NH, HI        loci of the read and the index of this one (by edits, then position); or pairs
#     X0, X1        loci with the fewest edits, and other loci, as in bwa and Yara; or pairs
#     Xd            edits of the locus, if the alignment by scores has a different number
#     XA            with `in_tag`, the other loci as in bwa, instead of secondary records
#     Xo            1 for a read with more loci than the limit, which are not listed
#     Xe            edits up to which every locus is known


class _Rows(NamedTuple):
    """One row per record; `loci` is -1 for a read without loci, and `numbers` become HI."""

    reads: np.ndarray
    loci: np.ndarray
    numbers: np.ndarray
    first_rows: np.ndarray


@on_timeline("lay out records")
def locus_tables(
    found: FoundChunk,
    genome: Genome,
    contigs: Names,
    read_group: bytes = b"",
    in_tag: bool = False,
) -> RecordTables:
    """Return the tables of a chunk's records, read by read, the primary record of each read first.

    Parameters
    ----------
    read_group : bytes
        Empty for none.
    in_tag : bool
        List the other loci in the XA tag of the primary record instead of in separate records.
    """
    chunk, loci = found.chunk, found.loci
    ranks = rank_loci(loci, chunk.first_template * chunk.ends, found.pairs)
    rows = _rows_of(ranks, in_tag)
    records = _records_of(found, genome.contig_starts, rows, ranks.mapping_qualities)
    tags = _TagTables(
        rows, found.n_loci, loci.searched, ranks.best, ranks.others,
        _listed_loci(loci, ranks) if in_tag else _no_loci(chunk.n_reads), loci.strands,
        loci.distances, found.alignments, contigs, genome.contig_starts,
        np.frombuffer(read_group, np.uint8),
    )  # fmt: skip
    reads = ReadArrays.of(chunk, found.both)
    return RecordTables(genome, contigs, reads, records, _tags_of(tags))


def _rows_of(ranks: LocusRanks, in_tag: bool) -> _Rows:
    n_loci = np.diff(ranks.first_loci)
    n_rows = np.ones(n_loci.size, np.int64) if in_tag else np.maximum(n_loci, 1)
    first_rows = np.concatenate([[0], np.cumsum(n_rows)])
    rows = _Rows(*np.empty((3, first_rows[-1]), np.int64), first_rows)
    _list_rows(ranks, rows)
    return rows


@compiled(counted=False)
def _list_rows(ranks, rows):
    """List the primary locus of each read, then those that precede it and those that follow it."""
    reads, loci, numbers, first_rows = rows
    for read in range(first_rows.size - 1):
        first, last = first_rows[read], first_rows[read + 1]
        first_locus, primary = ranks.first_loci[read], ranks.primary[read]
        for row in range(first, last):
            reads[row] = read
            ranked = first_locus + row - first
            if row == first:
                ranked = primary
            elif ranked <= primary:
                ranked -= 1
            loci[row] = ranks.order[ranked] if primary >= 0 else -1
            numbers[row] = ranked - first_locus + 1


class _Columns(NamedTuple):
    """The columns of `AlignmentRecords` that loci have, as written."""

    flags: np.ndarray
    contigs: np.ndarray
    positions: np.ndarray
    spans: np.ndarray
    mapping_qualities: np.ndarray
    mates: np.ndarray
    template_lengths: np.ndarray
    scores: np.ndarray


class _Given(NamedTuple):
    """What records are made of: loci, alignments and ranks; and the pairs of loci, empty if they
    are not paired.
    """

    strands: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    scores: np.ndarray
    mapping_qualities: np.ndarray
    pair_numbers: np.ndarray
    mates: np.ndarray


def _records_of(
    found: FoundChunk, contig_starts: np.ndarray, rows: _Rows, mapping_qualities: np.ndarray
) -> AlignmentRecords:
    loci, alignments, pairs = found.loci, found.alignments, found.pairs
    n_rows, integers = rows.reads.size, np.empty(0, np.int64)
    given = _Given(
        loci.strands, alignments.starts, alignments.ends, alignments.scores, mapping_qualities,
        *((integers, integers) if pairs is None else (pairs.numbers, pairs.mates)),
    )  # fmt: skip
    kinds = np.uint16, np.int64, np.int64, np.int64, np.uint8, np.int64, np.int64, np.int32
    columns = _Columns(*(np.empty(n_rows, kind) for kind in kinds))
    _fill_records(given, rows, contig_starts, columns)
    if found.chunk.ends == 2:
        rows_of_loci = np.empty(loci.reads.size, np.int64)
        _name_mates(given, rows, contig_starts, rows_of_loci, columns)
    lengths = np.append(np.diff(alignments.offsets), 0)[rows.loci]
    cigar_offsets = np.concatenate([[0], np.cumsum(lengths)])
    cigar = joined_stretches(
        alignments.cigar.view(np.uint8), 4 * alignments.offsets[rows.loci], 4 * cigar_offsets
    )
    return AlignmentRecords(
        reads=rows.reads,
        cigar_offsets=cigar_offsets,
        cigar=cigar.view(np.uint32),
        suboptimal=np.empty(0, np.int32),
        alt_shares=np.zeros(n_rows, np.int64),
        first_rows=rows.first_rows,
        split_ends=rows.first_rows[:-1] + 1,
        **columns._asdict(),
        **no_secondary_hits(n_rows),
    )


@compiled(counted=False)
def _fill_records(given, rows, contig_starts, columns):
    """Fill the columns of single reads."""
    reads, loci, _, first_rows = rows
    for row in range(reads.size):
        locus, is_primary = loci[row], row == first_rows[reads[row]]
        columns.flags[row] = 0 if is_primary else SECONDARY
        columns.mapping_qualities[row] = given.mapping_qualities[reads[row]] if is_primary else 0
        columns.mates[row], columns.template_lengths[row] = -1, 0
        if locus < 0:
            columns.flags[row] |= UNMAPPED
            columns.contigs[row], columns.positions[row] = -1, -1
            columns.spans[row], columns.scores[row] = 0, 0
            continue
        start = given.starts[locus]
        columns.flags[row] |= REVERSE if given.strands[locus] else 0
        columns.contigs[row] = interval_at(contig_starts, start)
        columns.positions[row], columns.spans[row] = start, given.ends[locus] - start
        columns.scores[row] = given.scores[locus]


@compiled(counted=False)
def _name_mates(given, rows, contig_starts, rows_of_loci, columns):
    """Fill the columns that name mates: the other locus of a proper pair, or the mate's primary
    record. A read without a locus is at the position of its mate.
    """
    reads, loci, _, first_rows = rows
    for row in range(reads.size):
        if loci[row] >= 0:
            rows_of_loci[loci[row]] = row
    for row in range(reads.size):
        read, locus = reads[row], loci[row]
        mate = first_rows[read ^ 1]
        is_proper = locus >= 0 and given.pair_numbers.size > 0 and given.pair_numbers[locus] > 0
        if is_proper:
            mate = rows_of_loci[given.mates[locus]]
        columns.mates[row] = mate
        other = loci[mate]
        start, reverse = np.int64(-1), np.uint8(0)
        if other >= 0:
            start, reverse = given.starts[other], given.strands[other]
        columns.flags[row] |= pair_flags(read & 1, is_proper, start, reverse)
        if is_proper:
            columns.template_lengths[row] = template_length(
                given.starts[locus], given.strands[locus], columns.spans[row],
                start, reverse, columns.spans[mate],
            )  # fmt: skip
        elif locus < 0 <= other:
            columns.positions[row] = start
            columns.contigs[row] = interval_at(contig_starts, start)


class _ListedLoci(NamedTuple):
    """Loci listed in XA; those of read i are in offsets[i] to offsets[i + 1]."""

    offsets: np.ndarray
    loci: np.ndarray


def _no_loci(n_reads: int) -> _ListedLoci:
    return _ListedLoci(np.zeros(n_reads + 1, np.int64), np.empty(0, np.int64))


def _listed_loci(loci: FoundLoci, ranks: LocusRanks) -> _ListedLoci:
    """List the loci other than the primary one, by edits and then by position, each once."""
    n_reads = len(loci.searched)
    if not len(loci.reads):
        return _no_loci(n_reads)
    order = np.lexsort((loci.strands, loci.starts, loci.distances, loci.reads))
    reads, strands, starts = loci.reads[order], loci.strands[order], loci.starts[order]
    primary = ranks.order[ranks.primary[reads]]
    kept = (loci.starts[primary] != starts) | (loci.strands[primary] != strands)
    # A locus may belong to several pairs.
    kept[1:] &= (np.diff(reads) != 0) | (np.diff(starts) != 0) | (strands[1:] != strands[:-1])
    return _ListedLoci(np.searchsorted(reads[kept], np.arange(n_reads + 1)), order[kept])


class _TagTables(NamedTuple):
    """What tags are written from: per record, per read, per locus, and the same for all."""

    rows: _Rows
    n_loci: np.ndarray
    searched: np.ndarray
    best: np.ndarray
    others: np.ndarray
    listed: _ListedLoci
    strands: np.ndarray
    locus_edits: np.ndarray
    alignments: LocusAlignments
    contigs: Names
    contig_starts: np.ndarray
    group: np.ndarray


def _tags_of(tables: _TagTables) -> RecordTags:
    n_rows, listed = tables.rows.reads.size, tables.listed.loci
    # Six numbers, and the names of texts. Per listed locus: commas, a sign, the digits of position
    # and edits, and operations.
    room = n_rows * (64 + tables.group.size) + listed.size * (tables.contigs.longest + 30)
    room += 11 * np.diff(tables.alignments.offsets)[listed].sum()
    out, offsets = np.empty(int(room), np.uint8), np.zeros(n_rows + 1, np.int64)
    _put_tags(tables, out, offsets)
    # Read-only, as in map: the encoder is compiled once for both.
    no_group, no_sums = np.frombuffer(b"", np.uint8), np.empty(0, np.int64)
    return RecordTags(no_group, False, no_sums, out[: offsets[-1]], offsets, np.arange(n_rows))


@compiled(counted=False)
def _put_tags(tables, out, offsets):
    (
        rows, n_loci, searched, best, others, listed, strands, locus_edits, alignments, contigs,
        contig_starts, group,
    ) = tables  # fmt: skip
    reads, loci, numbers, _ = rows
    cigar_offsets, cigar, starts, _, distances, _ = alignments
    at = np.int64(0)
    for row in range(reads.size):
        read, locus = reads[row], loci[row]
        if locus >= 0:
            at = put_integer_tag(out, at, NH, n_loci[read])
            at = put_integer_tag(out, at, HI, numbers[row])
            at = put_integer_tag(out, at, X0, best[read])
            at = put_integer_tag(out, at, X1, others[read])
            if locus_edits[locus] != distances[locus]:
                at = put_integer_tag(out, at, XD, locus_edits[locus])
            first, last = listed.offsets[read], listed.offsets[read + 1]
            if first < last:
                at = put_tag(out, at, XA, TEXT)
                for other in listed.loci[first:last]:
                    hit = OtherHit(
                        starts[other], strands[other], cigar, cigar_offsets[other],
                        cigar_offsets[other + 1], np.int64(distances[other]),
                    )  # fmt: skip
                    at = put_other_hit(out, at, contigs, contig_starts, hit)
                at = end_text(out, at, True)
        elif n_loci[read]:
            at = put_integer_tag(out, at, NH, n_loci[read])
            at = put_integer_tag(out, at, XO, np.int64(1))
        if searched[read] >= 0:
            at = put_integer_tag(out, at, XE, np.int64(searched[read]))
        if group.size:
            at = put_tag(out, at, RG, TEXT)
            at = end_text(out, put_bytes(out, at, group, 0, group.size), True)
        offsets[row + 1] = at


#: The start of the header line with the counters.
CERTIFICATE = b"@CO\tbwarp allmap: "

#: Counters that do not depend on how the loci were found.
_REPORTED = ("reads", "aligned", "over", "without", "skipped", "loci", "loci_over")


def certificate_line(certificate: Certificate) -> bytes:
    """Return the header line that records how the loci were found."""
    counts = asdict(certificate)
    names = [*_REPORTED, "pairs"] if certificate.highest_insert_size else _REPORTED
    reported = " ".join(f"{name}={counts[name]}" for name in names)
    return CERTIFICATE + f"{reported}\n".encode()


@dataclass(frozen=True)
class BamOptions:
    """Contents of the header and of every record, and the memory for sorting.

    Attributes
    ----------
    program : str
        The @PG record.
    read_group : str or None
        The @RG record.
    read_group_id : bytes
    sort_bytes : int
        Memory for records while they are sorted.
    in_tag : bool
        List all but the primary locus of a read in the XA tag.
    compression : Compression
    to_merge : bool
        Write a file for `merge_files`, uncompressed and without an index.
    """

    program: str
    read_group: str | None
    read_group_id: bytes
    sort_bytes: int
    in_tag: bool = False
    compression: Compression = ON_HOST
    to_merge: bool = False


@contextmanager
def open_bam(
    path: str | os.PathLike,
    options: BamOptions,
    reference: Reference,
    genome: np.ndarray,
    certificate: Certificate,
    threads: int,
) -> Iterator[tuple[Callable, Callable]]:
    """Open a BAM; yield a function that encodes a chunk and one that takes encoded chunks in order.

    The header reports the certificate as it is at the end of the block.
    """
    text = sam_header(reference, options.program, options.read_group, "SO:coordinate")
    with (
        atomic_files([sibling(path, kind) for kind in SIBLINGS]) as others,
        private_folder(path) as folder,
    ):
        for other, header in zip(others, SIBLING_HEADERS, strict=True):
            other.write(header)
        made = folder.absolute() / "out.bam"
        starts = bam_header(text, reference).contig_starts
        contigs, bases = Names.of(reference.names), Genome(genome, reference.contig_starts)
        group = options.read_group_id
        compression = STORED_BLOCKS if options.to_merge else options.compression

        def encode(found: FoundChunk) -> list:
            tables = locus_tables(found, bases, contigs, group, options.in_tag)
            return [over_lines(found), skipped_lines(found), bam_records(tables)]

        def write(parts: list) -> None:
            *tables, records = parts
            for other, lines in zip(others, tables, strict=True):
                other.write(lines)
            for part in records:
                sorter.add(part)

        with RecordSorter(folder, starts, options.sort_bytes, threads, compression) as sorter:
            yield encode, write
            compression.begin(WHEN_MAPPED)
            header = bam_header(text + certificate_line(certificate), reference)
            if options.to_merge:
                opened = bam_to_merge(made, header, threads)
            else:
                opened = sorted_file(made, header, threads, os.fspath(path), compression)
            with opened as writer:
                sorter.finish(writer)
        put_in_place(made, os.path.realpath(path))

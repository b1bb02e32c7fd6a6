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
from bwarp.allmap.locus_text import SIBLING_HEADERS, SIBLINGS, over_lines, skipped_lines
from bwarp.allmap.options import FoundLoci
from bwarp.allmap.pairs_cpu import LocusPairs
from bwarp.bam.compression_engine import ON_HOST, WHEN_MAPPED, Compression
from bwarp.bam.external_sort import RecordSorter
from bwarp.bam.fields import (
    FIRST,
    HI,
    LAST,
    MATE_REVERSE,
    MATE_UNMAPPED,
    NH,
    PAIRED,
    PROPER,
    REVERSE,
    RG,
    SECONDARY,
    TEXT,
    UNMAPPED,
    X0,
    X1,
    XA,
    XD,
    XE,
    XO,
)
from bwarp.bam.sorted_file import sorted_file
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
from bwarp.records.record_text import OtherHit, end_text, put_integer_tag, put_other_hit, put_tag
from bwarp.reference import Reference
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.threads import joined_stretches
from bwarp.runtime.timeline import on_timeline
from bwarp.runtime.uncounted import uncounted
from bwarp.seeding.seed_tables import sibling

# Ranks of loci: the primary locus of a read, and its mapping quality.
#
# The primary locus is one with the fewest edits; the read's number draws one from several. The
# mapping quality is the probability that the read comes from there, if each additional edit is a
# thousand times less likely. Besides the loci found, one more locus is assumed, with one edit more
# than searched:
#
#     p = 1 / (sum over loci of 10^(-3 (distance - least)) + 10^(-3 (searched + 1 - least)))
#
# For a template with proper pairs, the primary pair is one with the fewest edits; among several,
# the one whose insert size is closest to the mean. Pairs are weighted by edits and insert size; the
# probability of a locus is the sum over the pairs that contain it. Unpaired ends count as having
# two edits more than their best loci together.


#: The maximum mapping quality, as in bwa mem.
_HIGHEST = 60

#: The number of edits added to ends that are not a pair.
_APART = 2

_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


class LocusRanks(NamedTuple):
    """Ranks of the loci of each read.

    Attributes
    ----------
    order : ndarray, shape=(n_loci,), dtype=int64
        Loci grouped by read, then ordered by distance and position, or by the number of their pair.
    first_loci : ndarray, shape=(n_reads + 1,), dtype=int64
        Where the loci of each read begin in `order`.
    primary : ndarray, shape=(n_reads,), dtype=int64
        The index in `order` of the primary locus of each read; -1 for a read without loci.
    best, others : ndarray, shape=(n_reads,), dtype=int64
        The numbers of loci with the fewest edits and of other loci (X0 and X1); or of pairs.
    mapping_qualities : ndarray, shape=(n_reads,), dtype=uint8
        Mapping qualities of the primary loci.
    """

    order: np.ndarray
    first_loci: np.ndarray
    primary: np.ndarray
    best: np.ndarray
    others: np.ndarray
    mapping_qualities: np.ndarray


def rank_loci(loci: FoundLoci, first_read: int, pairs: LocusPairs | None = None) -> LocusRanks:
    """Rank all loci; `first_read` is the number of the first read within the run."""
    n_reads = len(loci.searched)
    edits, far, by = loci.distances.astype(np.int64), np.zeros(len(loci.reads)), loci.distances
    paired = np.zeros(n_reads, bool)
    if pairs is not None:
        edits += np.where(pairs.numbers > 0, np.append(loci.distances, 0)[pairs.mates], 0)
        far, by = pairs.far, np.where(pairs.numbers > 0, pairs.numbers, loci.distances)
        paired[loci.reads[pairs.numbers > 0]] = True
    order = np.lexsort((loci.strands, loci.starts, by, loci.reads))
    reads, edits, far = loci.reads[order], edits[order], far[order]
    first_loci = np.searchsorted(reads, np.arange(n_reads + 1))
    aligned = np.flatnonzero(np.diff(first_loci))
    least, nearest = np.zeros(n_reads, np.int64), np.zeros(n_reads)
    least[aligned], nearest[aligned] = edits[first_loci[aligned]], far[first_loci[aligned]]
    more = edits - least[reads]
    best = np.bincount(reads[more == 0], minlength=n_reads)
    equal = np.bincount(reads[(more == 0) & (far == nearest[reads])], minlength=n_reads)
    # Both ends of a pair draw the same number.
    numbers = np.arange(first_read, first_read + n_reads, dtype=np.uint64)
    drawn = _hash(numbers - (paired & (np.arange(n_reads) % 2 == 1)).astype(np.uint64))
    chosen = first_loci[:-1] + (drawn % np.maximum(equal, 1).astype(np.uint64)).astype(np.int64)
    primary = np.full(n_reads, -1, np.int64)
    primary[aligned] = chosen[aligned]
    weights = 10.0 ** (-3 * more) * np.exp((nearest[reads] ** 2 - far**2) / 2)
    # Keep integers if there are no loci.
    total = np.bincount(reads, weights, minlength=n_reads).astype(np.float64)
    total += _not_searched(loci, order, primary, paired, least, pairs)
    # A locus may belong to several pairs.
    locus = np.append(order, 0)[primary]
    same = (loci.starts[order] == np.append(loci.starts, 0)[locus][reads]) & (
        loci.strands[order] == np.append(loci.strands, 0)[locus][reads]
    )
    right = np.bincount(reads, weights * same, minlength=n_reads).astype(np.float64)
    wrong = 1 - right / np.maximum(total, 1.0)
    qualities = np.full(n_reads, _HIGHEST, np.float64)
    some = wrong > 10 ** (-_HIGHEST / 10)
    qualities[some] = np.rint(-10 * np.log10(wrong[some]))
    qualities[np.setdiff1d(np.arange(n_reads), aligned)] = 0
    return LocusRanks(
        order, first_loci, primary, best, np.diff(first_loci) - best,
        np.minimum(qualities, _HIGHEST).astype(np.uint8),
    )  # fmt: skip


def _not_searched(loci, order, primary, paired, least, pairs) -> np.ndarray:
    """Return, per read, the weight of loci beyond the search and of ends that are not a pair."""
    missing = 10.0 ** (-3.0 * (loci.searched + 1 - least))
    if pairs is None or not paired.any():
        return missing
    locus = order[primary[paired]]
    of_end = 10.0 ** (-3.0 * (loci.searched[paired] + 1 - loci.distances[locus]))
    alone = pairs.least.reshape(-1, 2).sum(1).repeat(2)[paired] + _APART
    missing[paired] = of_end.reshape(-1, 2).sum(1).repeat(2)
    missing[paired] += 10.0 ** (-3.0 * (alone - least[paired]))
    return missing


def _hash(numbers: np.ndarray) -> np.ndarray:
    """Return pseudo-random hashes of the numbers (the finalizer of splitmix64)."""
    for factor, shift in zip(_MIX, (30, 27), strict=True):
        numbers = (numbers ^ (numbers >> np.uint64(shift))) * factor
    return numbers ^ (numbers >> np.uint64(31))


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
    reads = np.repeat(np.arange(n_loci.size), n_rows)
    first_rows = np.concatenate([[0], np.cumsum(n_rows)])
    rank = np.arange(reads.size) - first_rows[reads]
    # The primary locus comes first, followed by those that preceded it.
    primary_rank = ranks.primary[reads] - ranks.first_loci[reads]
    rank = np.where(rank == 0, primary_rank, np.where(rank <= primary_rank, rank - 1, rank))
    aligned = n_loci[reads] > 0
    loci = np.full(reads.size, -1, np.int64)
    loci[aligned] = ranks.order[(ranks.first_loci[reads] + rank)[aligned]]
    return _Rows(reads, loci, rank + 1, first_rows)


def _records_of(
    found: FoundChunk, contig_starts: np.ndarray, rows: _Rows, mapping_qualities: np.ndarray
) -> AlignmentRecords:
    loci, alignments, pairs = found.loci, found.alignments, found.pairs
    reads, first_rows, aligned = rows.reads, rows.first_rows, rows.loci >= 0

    def of_rows(column: np.ndarray, without: int = 0) -> np.ndarray:
        return np.append(column, without)[rows.loci]

    starts, ends = of_rows(alignments.starts, -1), of_rows(alignments.ends, -1)
    strands = of_rows(loci.strands)
    is_primary = np.zeros(reads.size, bool)
    is_primary[first_rows[:-1]] = True
    flags = np.where(aligned, strands * REVERSE, UNMAPPED) | np.where(is_primary, 0, SECONDARY)
    mates, template_lengths = np.full(reads.size, -1), np.zeros(reads.size, np.int64)
    positions = starts
    if found.chunk.ends == 2:
        mates = first_rows[reads ^ 1]
        if pairs is not None:
            proper = of_rows(pairs.numbers) > 0
            rows_of_loci = np.full(loci.reads.size, -1)
            rows_of_loci[rows.loci[aligned]] = np.flatnonzero(aligned)
            mates[proper] = rows_of_loci[pairs.mates[rows.loci[proper]]]
            flags |= np.where(proper, PROPER, 0)
            firsts = np.where(strands == 1, ends - 1, starts)
            ahead = firsts[mates] - firsts
            # From the outermost base to that of the mate, both included, as in `map`.
            template_lengths[proper] = (ahead + np.sign(ahead))[proper]
        flags |= np.where(reads % 2 == 0, PAIRED | FIRST, PAIRED | LAST)
        flags |= np.where(aligned[mates], strands[mates] * MATE_REVERSE, MATE_UNMAPPED)
        # A read without a locus is placed at the position of its mate.
        positions = np.where(aligned, starts, starts[mates])
    cigar_offsets = np.concatenate([[0], np.cumsum(of_rows(np.diff(alignments.offsets)))])
    cigar = joined_stretches(
        alignments.cigar.view(np.uint8), 4 * of_rows(alignments.offsets[:-1]), 4 * cigar_offsets
    )
    return AlignmentRecords(
        reads=reads,
        flags=flags.astype(np.uint16),
        contigs=np.searchsorted(contig_starts, positions, side="right") - 1,
        positions=positions,
        spans=ends - starts,
        mapping_qualities=np.where(is_primary, mapping_qualities[reads], 0).astype(np.uint8),
        cigar_offsets=cigar_offsets,
        cigar=cigar.view(np.uint32),
        mates=mates,
        template_lengths=template_lengths,
        scores=of_rows(alignments.scores).astype(np.int32),
        suboptimal=np.empty(0, np.int32),
        alt_shares=np.zeros(reads.size, np.int64),
        first_rows=first_rows,
        split_ends=first_rows[:-1] + 1,
        **no_secondary_hits(reads.size),
    )


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


@compiled
def _put_tags(tables, out, offsets):
    tables, out = uncounted((tables, out))
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
    """

    program: str
    read_group: str | None
    read_group_id: bytes
    sort_bytes: int
    in_tag: bool = False
    compression: Compression = ON_HOST


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
        group, compression = options.read_group_id, options.compression

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
            with sorted_file(made, header, threads, os.fspath(path), compression) as writer:
                sorter.finish(writer)
        put_in_place(made, os.path.realpath(path))

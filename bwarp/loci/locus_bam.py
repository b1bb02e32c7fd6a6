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

from bwarp.bam.compression import ON_HOST, WHEN_MAPPED, Compression
from bwarp.bam.external_sort import RecordSorter, sort_keys
from bwarp.bam.fields import (
    AS,
    FIRST,
    HI,
    LAST,
    MATE_REVERSE,
    MATE_UNMAPPED,
    MD,
    NH,
    NM,
    PAIRED,
    PROPER,
    REVERSE,
    RG,
    SECONDARY,
    SIZE_BYTES,
    TEXT,
    UNMAPPED,
    X0,
    X1,
    XA,
    XD,
    XE,
    XO,
)
from bwarp.bam.records import (
    Records,
    put_int16,
    put_int32,
)
from bwarp.bam.sorted_file import sorted_file
from bwarp.io.atomic_output import atomic_files, private_folder
from bwarp.io.names import Names, put_bytes
from bwarp.loci.find import Certificate, FoundChunk
from bwarp.loci.locus_text import SIBLING_HEADERS, SIBLINGS, over_lines, skipped_lines
from bwarp.loci.options import FoundLoci
from bwarp.loci.pairs_cpu import LocusPairs
from bwarp.records.alignment_file import bam_header, put_in_place
from bwarp.records.record_parts import AlignedRead, record_bin
from bwarp.records.record_text import (
    OtherHit,
    put_integer_tag,
    put_md,
    put_nibbles,
    put_other_hit,
    put_raw_qualities,
    put_tag,
)
from bwarp.records.record_writer import sam_header
from bwarp.reference import Reference
from bwarp.runtime.compiled_code import compiled, read_only
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
#     Xd            edits of the locus, if the alignment by scores has a different number
#     NH, HI        loci of the read and the index of this one (by edits, then position); or pairs
#     X0, X1        loci with the fewest edits, and other loci, as in bwa and Yara; or pairs
#     XA            with `in_tag`, the other loci as in bwa, instead of secondary records
#     Xe            edits up to which every locus is known
#     Xo            1 for a read with more loci than the limit, which are not listed


_STAR = 42


class _Reads(NamedTuple):
    text: np.ndarray
    names: np.ndarray
    offsets: np.ndarray
    qualities: np.ndarray
    both: np.ndarray
    searched: np.ndarray
    n_loci: np.ndarray


class _Rows(NamedTuple):
    """One row per record."""

    reads: np.ndarray
    loci: np.ndarray
    flags: np.ndarray
    mapping_qualities: np.ndarray
    numbers: np.ndarray
    mates: np.ndarray
    template_lengths: np.ndarray


class _Others(NamedTuple):
    """Loci listed in tags; those of read i are in offsets[i] to offsets[i + 1]."""

    offsets: np.ndarray
    loci: np.ndarray
    contigs: Names


@on_timeline("make records")
def locus_records(
    found: FoundChunk,
    genome: np.ndarray,
    contig_starts: np.ndarray,
    read_group: bytes,
    contigs: Names,
    in_tag: bool = False,
) -> Records:
    """Make the records of a chunk, read by read, the primary record of each read first.

    Parameters
    ----------
    genome : ndarray, dtype=uint64
        Blocks of the genome.
    contig_starts : ndarray, shape=(n_contigs + 1,), dtype=int64
    read_group : bytes
        Empty for none.
    contigs : Names
    in_tag : bool
        List the other loci in the XA tag of the primary record instead of in separate records.
    """
    chunk, loci = found.chunk, found.loci
    ranks = rank_loci(loci, chunk.first_template * chunk.ends, found.pairs)
    rows = _rows_of(chunk.ends, loci, ranks, found.pairs, found.alignments)
    if in_tag:
        rows = _Rows(*(column[rows.flags & SECONDARY == 0] for column in rows))
    others = _others_of(loci, ranks, contigs, in_tag)
    qualities = np.empty(0, np.uint8) if chunk.qualities is None else chunk.qualities
    reads = _Reads(
        read_only(chunk.text), chunk.names, chunk.offsets, qualities, found.both, loci.searched,
        found.n_loci,
    )  # fmt: skip
    # The header omits contigs without bases.
    contig_numbers = np.cumsum(np.diff(contig_starts) > 0) - 1
    lengths = np.diff(chunk.offsets)[rows.reads]
    names = np.diff(chunk.names).reshape(-1)[rows.reads // chunk.ends]
    operations = np.append(np.diff(found.alignments.offsets), 0)[rows.loci]
    starts, ends = found.alignments.starts, found.alignments.ends
    spans = np.append(ends - starts, 0)[rows.loci]
    # Bases and qualities, and an MD that in the worst case lists every base with a number before
    # it.
    most = 260 + len(read_group) + names + 4 * operations + 2 * lengths + 3 * spans
    if in_tag:
        # Commas, a sign, the digits of position and edits, and operations.
        entries = np.diff(found.alignments.offsets)[others.loci] * 11 + contigs.longest + 30
        before = np.concatenate([[0], np.cumsum(entries)])
        most += (before[others.offsets[1:]] - before[others.offsets[:-1]])[rows.reads] + 4
    out = np.empty(int(most.sum()), np.uint8)
    begins = np.empty(rows.reads.size + 1, np.int64)
    _write(
        out, begins, chunk.ends, reads, rows, loci.strands, loci.distances, found.alignments,
        ranks.best, ranks.others, others, genome, contig_starts, contig_numbers,
        np.frombuffer(read_group, np.uint8),
    )  # fmt: skip
    # A read without a locus is placed at the position of its mate.
    at = np.where(rows.loci >= 0, rows.loci, rows.mates)
    positions = np.where(at >= 0, np.append(starts, -1)[at], -1)
    keys = sort_keys(positions, rows.flags & REVERSE != 0)
    return Records(out[: begins[-1]], begins, keys)


def _others_of(loci, ranks: LocusRanks, contigs: Names, in_tag: bool) -> _Others:
    """List the loci other than the primary one, by edits and then by position, each once."""
    n_reads = len(loci.searched)
    rows = np.empty(0, np.int64)
    if in_tag and len(loci.reads):
        rows = np.lexsort((loci.strands, loci.starts, loci.distances, loci.reads))
        reads, strands, starts = loci.reads[rows], loci.strands[rows], loci.starts[rows]
        primary = ranks.order[ranks.primary[reads]]
        kept = (loci.starts[primary] != starts) | (loci.strands[primary] != strands)
        # A locus may belong to several pairs.
        kept[1:] &= (np.diff(reads) != 0) | (np.diff(starts) != 0) | (strands[1:] != strands[:-1])
        rows = rows[kept]
    offsets = np.searchsorted(loci.reads[rows], np.arange(n_reads + 1))
    return _Others(offsets, rows, contigs)


def _rows_of(ends: int, loci, ranks: LocusRanks, pairs: LocusPairs | None, alignments) -> _Rows:
    n_reads = len(loci.searched)
    n_loci = np.diff(ranks.first_loci)
    reads = np.repeat(np.arange(n_reads), np.maximum(n_loci, 1))
    first_rows = np.concatenate([[0], np.cumsum(np.maximum(n_loci, 1))])
    rank = np.arange(reads.size) - first_rows[reads]
    # The primary locus comes first, followed by those that preceded it.
    primary_rank = ranks.primary[reads] - ranks.first_loci[reads]
    rank = np.where(rank == 0, primary_rank, np.where(rank <= primary_rank, rank - 1, rank))
    aligned = n_loci[reads] > 0
    rows = np.full(reads.size, -1, np.int64)
    rows[aligned] = ranks.order[(ranks.first_loci[reads] + rank)[aligned]]
    is_primary = np.zeros(reads.size, bool)
    is_primary[first_rows[:-1]] = True
    reverse = np.append(loci.strands, 0)[rows] == 1
    flags = np.where(aligned, 0, UNMAPPED) | np.where(is_primary, 0, SECONDARY)
    flags |= np.where(reverse, REVERSE, 0)
    mates = np.full(reads.size, -1, np.int64)
    template_lengths = np.zeros(reads.size, np.int64)
    if ends == 2:
        mates = rows[first_rows[reads ^ 1]]
        if pairs is not None:
            proper = aligned & (np.append(pairs.numbers, 0)[rows] > 0)
            mates[proper] = pairs.mates[rows[proper]]
            flags |= np.where(proper, PROPER, 0)
            firsts = np.where(loci.strands == 1, alignments.ends - 1, alignments.starts)
            ahead = firsts[mates[proper]] - firsts[rows[proper]]
            # From the outermost base to that of the mate, both included, as in `map`.
            template_lengths[proper] = ahead + np.sign(ahead)
        flags |= np.where(reads % 2 == 0, PAIRED | FIRST, PAIRED | LAST)
        flags |= np.where(mates < 0, MATE_UNMAPPED, 0)
        flags |= np.where(np.append(loci.strands, 0)[mates] == 1, MATE_REVERSE, 0)
    qualities = np.where(is_primary, ranks.mapping_qualities[reads], 0).astype(np.uint8)
    return _Rows(reads, rows, flags.astype(np.int64), qualities, rank + 1, mates, template_lengths)


@compiled
def _write(
    out, begins, ends_a_template, of_reads, rows, strands, locus_edits, alignments, best, others,
    in_tags, genome, contig_starts, contig_numbers, group,
):  # fmt: skip
    out, genome = uncounted((out, genome))
    cigar_offsets, cigar, starts, ends, distances, scores = uncounted(alignments)
    text, names, offsets, qualities, both, searched, n_loci = uncounted(of_reads)
    reads, loci, flags, mapping_qualities, numbers, mates, template_lengths = uncounted(rows)
    tag_offsets, tag_loci, contigs = uncounted(in_tags)
    at = np.int64(0)
    for row in range(reads.size):
        begins[row] = begin_of_record = at
        read, locus, mate, flag = reads[row], loci[row], mates[row], flags[row]
        name_begin = names[read // ends_a_template, 0]
        name_end = names[read // ends_a_template, 1]
        begin = end = np.int64(0)
        contig = position = mate_contig = mate_position = np.int64(-1)
        span = np.int64(1)
        if locus >= 0:
            begin, end = cigar_offsets[locus], cigar_offsets[locus + 1]
            span = ends[locus] - starts[locus]
        if mate >= 0:
            mate_contig = np.searchsorted(contig_starts, starts[mate], side="right") - 1
            mate_position = starts[mate] - contig_starts[mate_contig]
            contig, position = mate_contig, mate_position
        if locus >= 0:
            contig = np.searchsorted(contig_starts, starts[locus], side="right") - 1
            position = starts[locus] - contig_starts[contig]
            if mate < 0 and ends_a_template == 2:
                mate_contig, mate_position = contig, position
        has_bases = flag & SECONDARY == 0
        first, last = offsets[read], offsets[read + 1]
        turned = flag & REVERSE != 0
        base = first + (both.size // 2 if turned else 0)
        at = put_int32(
            out, at + SIZE_BYTES, contig_numbers[contig] if contig >= 0 else np.int64(-1)
        )
        at = put_int32(out, at, position)
        out[at] = max(name_end - name_begin, 1) + 1
        out[at + 1] = mapping_qualities[row]
        at = put_int16(out, at + 2, record_bin(position, span))
        at = put_int16(out, at, end - begin)
        at = put_int16(out, at, flag)
        at = put_int32(out, at, last - first if has_bases else np.int64(0))
        at = put_int32(out, at, contig_numbers[mate_contig] if mate_contig >= 0 else np.int64(-1))
        at = put_int32(out, at, mate_position)
        at = put_int32(out, at, template_lengths[row])
        at = put_bytes(out, at, text, name_begin, name_end)
        if name_begin == name_end:
            out[at] = _STAR
            at += 1
        out[at] = 0
        at += 1
        for i in range(begin, end):
            at = put_int32(out, at, np.int64(cigar[i]))
        if has_bases:
            length = last - first
            at = put_nibbles(out, at, both, base, base + length)
            at = put_raw_qualities(out, at, qualities, 0, length, first, last, turned)
        if locus >= 0:
            at = put_integer_tag(out, at, NM, distances[locus])
            at = put_tag(out, at, MD, TEXT)
            aligned = AlignedRead(genome, starts[locus], both, base, cigar, begin, end)
            at = put_md(out, at, aligned)
            out[at] = 0
            at = put_integer_tag(out, at + 1, AS, scores[locus])
            at = put_integer_tag(out, at, NH, n_loci[read])
            at = put_integer_tag(out, at, HI, numbers[row])
            at = put_integer_tag(out, at, X0, best[read])
            at = put_integer_tag(out, at, X1, others[read])
            if locus_edits[locus] != distances[locus]:
                at = put_integer_tag(out, at, XD, locus_edits[locus])
            if tag_offsets[read] < tag_offsets[read + 1]:
                at = put_tag(out, at, XA, TEXT)
                for i in range(tag_offsets[read], tag_offsets[read + 1]):
                    other = tag_loci[i]
                    first, last = cigar_offsets[other], cigar_offsets[other + 1]
                    hit = OtherHit(
                        starts[other], strands[other], cigar, first, last,
                        np.int64(distances[other]),
                    )  # fmt: skip
                    at = put_other_hit(out, at, contigs, contig_starts, hit)
                out[at] = 0
                at += 1
        elif n_loci[read]:
            at = put_integer_tag(out, at, NH, n_loci[read])
            at = put_integer_tag(out, at, XO, np.int64(1))
        if searched[read] >= 0:
            at = put_integer_tag(out, at, XE, np.int64(searched[read]))
        if group.size:
            at = put_tag(out, at, RG, TEXT)
            at = put_bytes(out, at, group, 0, group.size)
            out[at] = 0
            at += 1
        put_int32(out, begin_of_record, at - begin_of_record - SIZE_BYTES)
    begins[reads.size] = at


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
        contigs = Names.of(reference.names)
        compression = options.compression

        def encode(found: FoundChunk) -> list:
            records = locus_records(
                found, genome, reference.contig_starts, options.read_group_id, contigs,
                options.in_tag,
            )  # fmt: skip
            return [over_lines(found), skipped_lines(found), records]

        def write(parts: list) -> None:
            *tables, records = parts
            for other, lines in zip(others, tables, strict=True):
                other.write(lines)
            sorter.add(records)

        with RecordSorter(folder, starts, options.sort_bytes, threads, compression) as sorter:
            yield encode, write
            compression.begin(WHEN_MAPPED)
            header = bam_header(text + certificate_line(certificate), reference)
            with sorted_file(made, header, threads, os.fspath(path), compression) as writer:
                sorter.finish(writer)
        put_in_place(made, os.path.realpath(path))

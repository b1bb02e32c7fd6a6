"""Loci as BAM records: one a locus, and one for a read without any.

The primary record holds the read's bases and qualities; the others, secondary, do not. Of a
template with proper pairs each pair is two records that name each other. Tags:

    NM, MD, AS    edits; where they are; the score, or the edits with a minus
    Xd            edits of the locus, where an alignment by scores has others
    NH, HI        loci of the read, and the number of this one: by edits, then by position; or pairs
    X0, X1        loci with fewest edits, and the others, as bwa and Yara have them; or pairs
    XA            with `in_tag` the other loci, as bwa has them, and no secondary records
    Xe            edits up to which every locus is known
    Xo            1 for a read with more loci than the limit, which are not listed
"""

from typing import NamedTuple

import numpy as np

from bwarp.io.bam.records import (
    Records,
    first_bin,
    put_int16,
    put_int32,
    put_integer_tag,
    put_tag,
)
from bwarp.io.bam.sort_order import sort_keys
from bwarp.io.names import Names
from bwarp.io.put_text import put_bytes, put_field
from bwarp.loci.find import FoundChunk
from bwarp.loci.output.primary_and_mapq import LocusRanks, rank_loci
from bwarp.loci.pairs_cpu import LocusPairs
from bwarp.mapping.output.alignment_records import (
    FIRST,
    LAST,
    MATE_REVERSE,
    MATE_UNMAPPED,
    PAIRED,
    PROPER,
    REVERSE,
    UNMAPPED,
)
from bwarp.mapping.output.record_bases import put_nibbles, put_raw_qualities
from bwarp.mapping.output.record_text import put_cigar, put_md
from bwarp.runtime.compiled_code import compiled, read_only
from bwarp.runtime.timeline import on_timeline
from bwarp.runtime.uncounted import uncounted

__all__ = ["SECONDARY", "locus_records"]

SECONDARY = 256

_TEXT, _STAR = 90, 42  # Z, *
# As numbers of one type: for each literal number Numba would compile a function again.
_COMMA, _SEMICOLON, _PLUS, _MINUS = np.frombuffer(b",;+-", np.uint8)


class _Reads(NamedTuple):
    text: np.ndarray
    names: np.ndarray
    offsets: np.ndarray
    qualities: np.ndarray
    both: np.ndarray
    searched: np.ndarray
    n_loci: np.ndarray


class _Rows(NamedTuple):
    """A row a record."""

    reads: np.ndarray
    loci: np.ndarray
    flags: np.ndarray
    mapping_qualities: np.ndarray
    numbers: np.ndarray
    mates: np.ndarray
    template_lengths: np.ndarray


class _Others(NamedTuple):
    """Loci of reads that are named in tags: those of read i from offsets[i] to offsets[i + 1]."""

    offsets: np.ndarray
    loci: np.ndarray
    contig_text: np.ndarray
    contig_bounds: np.ndarray


@on_timeline("make records")
def locus_records(
    found: FoundChunk,
    genome: np.ndarray,
    contig_starts: np.ndarray,
    read_group: bytes,
    contigs: Names,
    in_tag: bool = False,
) -> Records:
    """The records of a chunk, read by read, the primary one of each first.

    Parameters
    ----------
    genome : ndarray, dtype=uint64
        Blocks of the genome.
    contig_starts : ndarray, shape=(n_contigs + 1,), dtype=int64
    read_group : bytes
        Empty for none.
    contigs : Names
    in_tag : bool
        Name loci in the tag XA of the primary record, not in records of their own.
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
    # The header has no contigs without bases.
    contig_numbers = np.cumsum(np.diff(contig_starts) > 0) - 1
    lengths = np.diff(chunk.offsets)[rows.reads]
    names = np.diff(chunk.names).reshape(-1)[rows.reads // chunk.ends]
    operations = np.append(np.diff(found.alignments.offsets), 0)[rows.loci]
    starts, ends = found.alignments.starts, found.alignments.ends
    spans = np.append(ends - starts, 0)[rows.loci]
    # Bases and qualities; an MD that at worst names every base with a number before it.
    most = 260 + len(read_group) + names + 4 * operations + 2 * lengths + 3 * spans
    if in_tag:
        # Commas, a sign, numbers of a position and edits; and operations.
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
    # A read without a locus stands where its mate does.
    at = np.where(rows.loci >= 0, rows.loci, rows.mates)
    positions = np.where(at >= 0, np.append(starts, -1)[at], -1)
    keys = sort_keys(positions, rows.flags & REVERSE != 0)
    return Records(out[: begins[-1]], begins, keys)


def _others_of(loci, ranks: LocusRanks, contigs: Names, in_tag: bool) -> _Others:
    """Loci besides the primary one, by edits and then by position; each once."""
    n_reads = len(loci.searched)
    rows = np.empty(0, np.int64)
    if in_tag and len(loci.reads):
        rows = np.lexsort((loci.strands, loci.starts, loci.distances, loci.reads))
        reads, strands, starts = loci.reads[rows], loci.strands[rows], loci.starts[rows]
        primary = ranks.order[ranks.primary[reads]]
        kept = (loci.starts[primary] != starts) | (loci.strands[primary] != strands)
        # A locus may be in several pairs.
        kept[1:] &= (np.diff(reads) != 0) | (np.diff(starts) != 0) | (strands[1:] != strands[:-1])
        rows = rows[kept]
    offsets = np.searchsorted(loci.reads[rows], np.arange(n_reads + 1))
    return _Others(offsets, rows, contigs.text, contigs.bounds)


def _rows_of(ends: int, loci, ranks: LocusRanks, pairs: LocusPairs | None, alignments) -> _Rows:
    n_reads = len(loci.searched)
    n_loci = np.diff(ranks.first_loci)
    reads = np.repeat(np.arange(n_reads), np.maximum(n_loci, 1))
    first_rows = np.concatenate([[0], np.cumsum(np.maximum(n_loci, 1))])
    rank = np.arange(reads.size) - first_rows[reads]
    # The primary locus comes first, those before it in the order after it.
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
            # From the first base to that of the mate, both included, as `map` has them.
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
    tag_offsets, tag_loci, contig_text, contig_bounds = uncounted(in_tags)
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
        at = put_int32(out, at + 4, contig_numbers[contig] if contig >= 0 else np.int64(-1))
        at = put_int32(out, at, position)
        out[at] = max(name_end - name_begin, 1) + 1
        out[at + 1] = mapping_qualities[row]
        at = put_int16(out, at + 2, first_bin(position, position + span))
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
            at = put_integer_tag(out, at, 78, 77, distances[locus])
            at = put_tag(out, at, 77, 68, _TEXT)
            at = put_md(out, at, genome, starts[locus], both, base, cigar, begin, end)
            out[at] = 0
            at = put_integer_tag(out, at + 1, 65, 83, scores[locus])
            at = put_integer_tag(out, at, 78, 72, n_loci[read])
            at = put_integer_tag(out, at, 72, 73, numbers[row])
            at = put_integer_tag(out, at, 88, 48, best[read])
            at = put_integer_tag(out, at, 88, 49, others[read])
            if locus_edits[locus] != distances[locus]:
                at = put_integer_tag(out, at, 88, 100, locus_edits[locus])
            if tag_offsets[read] < tag_offsets[read + 1]:
                at = put_tag(out, at, 88, 65, _TEXT)
                for i in range(tag_offsets[read], tag_offsets[read + 1]):
                    other = tag_loci[i]
                    start = starts[other]
                    other_contig = np.searchsorted(contig_starts, start, side="right") - 1
                    first, last = contig_bounds[other_contig, 0], contig_bounds[other_contig, 1]
                    at = put_bytes(out, at, contig_text, first, last)
                    out[at] = _COMMA
                    out[at + 1] = _MINUS if strands[other] else _PLUS
                    position = start - contig_starts[other_contig] + 1
                    at = put_field(out, at + 2, position, _COMMA)
                    first, last = cigar_offsets[other], cigar_offsets[other + 1]
                    at = put_cigar(out, at, cigar, first, last)
                    out[at] = _COMMA
                    at = put_field(out, at + 1, distances[other], _SEMICOLON)
                out[at] = 0
                at += 1
        elif n_loci[read]:
            at = put_integer_tag(out, at, 78, 72, n_loci[read])
            at = put_integer_tag(out, at, 88, 111, np.int64(1))
        if searched[read] >= 0:
            at = put_integer_tag(out, at, 88, 101, np.int64(searched[read]))
        if group.size:
            at = put_tag(out, at, 82, 71, _TEXT)
            at = put_bytes(out, at, group, 0, group.size)
            out[at] = 0
            at += 1
        put_int32(out, begin_of_record, at - begin_of_record - 4)
    begins[reads.size] = at

"""Find proper pairs: two loci of a template with the orientation and insert size of the run.

    loci of end 1     A            B                C
    loci of end 2        a   a'                          c
    proper pairs      A-a  A-a'                     C-c

A template with proper pairs is reported pair by pair, each locus as often as it is in a pair; a
template without them, by the loci of its ends. Pairs are compared by the total edits of both ends.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bwarp.allmap.options import FoundLoci
from bwarp.mapping.insert_size import InsertSize, five_prime, mate_lies, sizes_of_pairs
from bwarp.options.mapping import ALL
from bwarp.runtime.compiled_code import compiled, inner
from bwarp.runtime.uncounted import uncounted

#: The maximum edits of both ends together.
MOST_EDITS = 64

#: The maximum difference between the lengths of a locus and its read.
_MOST_GAPS = 32


@dataclass(frozen=True)
class PairOptions:
    """The expected insert size and orientation of pairs.

    Attributes
    ----------
    insert : InsertSize or None
        None to estimate it from the first pairs.
    orientation : str or None
        The orientation to estimate for; None for the most common one.
    """

    insert: InsertSize | None = None
    orientation: str | None = None


@dataclass(frozen=True)
class LocusPairs:
    """Pair information of loci that are listed pair by pair.

    Attributes
    ----------
    numbers : ndarray, shape=(n_loci,), dtype=int64
        The number of the pair within its template, from 1: ordered by edits, then by the difference
        of the insert size from the mean, then by position. 0 for a locus of a template without a
        proper pair.
    mates : ndarray, shape=(n_loci,), dtype=int64
        The other locus of the pair; -1 if there is none.
    far : ndarray, shape=(n_loci,), dtype=float64
        The distance of the insert size from the mean, in standard deviations; 0 without a pair.
    least : ndarray, shape=(n_reads,), dtype=int64
        The fewest edits of any locus of each read; 0 without a locus.
    """

    numbers: np.ndarray
    mates: np.ndarray
    far: np.ndarray
    least: np.ndarray


def single_insert_sizes(
    loci: FoundLoci, contig_starts: np.ndarray, most_pairs: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return insert sizes and orientations of pairs in which both ends have exactly one locus.

    Only the first `most_pairs` pairs are used.
    """
    n_reads = len(loci.searched)
    counts = np.bincount(loci.reads, minlength=n_reads)
    firsts = np.cumsum(counts) - counts
    templates = np.flatnonzero(((counts[0::2] == 1) & (counts[1::2] == 1))[:most_pairs])
    one, two = firsts[2 * templates], firsts[2 * templates + 1]
    five_primes = np.where(loci.strands == 0, loci.starts, loci.ends)
    return sizes_of_pairs(one, two, loci.strands, loci.starts, five_primes, contig_starts)


def pair_loci(
    loci: FoundLoci,
    lengths: np.ndarray,
    contig_starts: np.ndarray,
    insert: InsertSize,
    strata: int,
    max_places: int,
) -> tuple[FoundLoci, LocusPairs]:
    """List loci pair by pair for templates with proper pairs.

    Parameters
    ----------
    loci : FoundLoci
        All loci of the reads; reads 2 i and 2 i + 1 are the ends of template i.
    lengths : ndarray, shape=(n_reads,), dtype=int64
        Bases of the reads.
    contig_starts : ndarray, shape=(n_contigs + 1,), dtype=int64
    insert : InsertSize
    strata : int
        List pairs with up to this many more edits than the best of their template, and loci of
        other reads with up to this many more than their best; `ALL` for all.
    max_places : int
        Templates with more pairs are only counted; 0 means no limit.

    Returns
    -------
    listed : FoundLoci
        For a template with proper pairs, the loci of end 1 in the order of pairs, then those of end
        2.
    pairs : LocusPairs
    n_loci : ndarray, shape=(n_reads,), dtype=int64
        The number of proper pairs of each read's template, or of loci of an unpaired read, listed
        or not.
    """
    n_reads = len(loci.searched)
    firsts = np.searchsorted(loci.reads, np.arange(n_reads + 1))
    contigs = np.searchsorted(contig_starts, loci.starts, side="right")
    ends = _Ends(firsts, loci.strands, loci.starts, loci.ends, loci.distances, contigs, lengths)
    n_pairs, most_edits = np.zeros((2, n_reads // 2), np.int64)
    if insert.highest:
        _count(ends, insert, strata, n_pairs, most_edits)
    listed = _within(n_pairs, max_places)
    offsets = np.concatenate([[0], np.cumsum(listed)])
    one, two = np.empty((2, offsets[-1]), np.int64)
    if offsets[-1]:
        _list(ends, insert, offsets, most_edits, one, two)
    template = np.repeat(np.arange(n_reads // 2), listed)
    far = _far(loci, one, two, insert)
    edits = loci.distances[one] + loci.distances[two]
    order = np.lexsort(
        (loci.strands[one], loci.starts[two], loci.starts[one], far, edits, template)
    )
    one, two, far = one[order], two[order], far[order]
    number = np.arange(template.size) - offsets[template] + 1
    least, alone, n_alone = _without_pairs(loci, n_pairs, strata, max_places)
    # Loci of ends 1, of ends 2 and of reads without a pair, in the order of reads.
    rows = np.concatenate([one, two, alone])
    order = np.argsort(loci.reads[rows], kind="stable")
    row_of = np.empty(rows.size, np.int64)
    row_of[order] = np.arange(rows.size)
    mates = np.full(rows.size, -1)
    mates[: 2 * one.size] = np.roll(row_of[: 2 * one.size], one.size)
    numbers = np.concatenate([number, number, np.zeros(alone.size, np.int64)])
    far = np.concatenate([far, far, np.zeros(alone.size)])
    table = (loci.reads, loci.strands, loci.starts, loci.ends, loci.distances)
    return (
        FoundLoci(*(column[rows[order]] for column in table), loci.searched),
        LocusPairs(numbers[order], mates[order], far[order], least),
        np.where(np.repeat(n_pairs, 2) > 0, np.repeat(n_pairs, 2), n_alone),
    )


def _within(counts: np.ndarray, most: int) -> np.ndarray:
    """Set counts over the limit to 0; a limit of 0 is none."""
    return np.where(counts <= most, counts, 0) if most else counts


def _far(loci: FoundLoci, one: np.ndarray, two: np.ndarray, insert: InsertSize) -> np.ndarray:
    first_bases = np.where(loci.strands == 0, loci.starts, loci.ends)
    sizes = np.abs(first_bases[two] - first_bases[one])
    return np.abs(sizes - insert.mean) / max(insert.standard_deviation, 1.0)


def _without_pairs(loci: FoundLoci, n_pairs: np.ndarray, strata: int, max_places: int) -> tuple:
    """Return the fewest edits of every read, the listed loci of reads without a pair, and how many
    loci these reads would list without the limit.
    """
    n_reads = len(loci.searched)
    least = np.full(n_reads, MOST_EDITS, np.int64)
    np.minimum.at(least, loci.reads, loci.distances)
    alone = n_pairs[loci.reads >> 1] == 0
    if strata != ALL:
        alone &= loci.distances <= least[loci.reads] + strata
    n_alone = np.bincount(loci.reads[alone], minlength=n_reads)
    alone &= _within(n_alone, max_places)[loci.reads] > 0
    return np.where(least < MOST_EDITS, least, 0), np.flatnonzero(alone), n_alone


class _Ends(NamedTuple):
    """The loci of both ends of templates: `firsts` has the first of each read, `contigs` their
    contigs, and `lengths` the bases of the reads."""

    firsts: np.ndarray
    strands: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    distances: np.ndarray
    contigs: np.ndarray
    lengths: np.ndarray


@inner(nogil=True, forceinline=True)
def _mates_begin(loci, insert, i, read):
    """Return the first locus of `read` that may be the mate of a locus of end 1, its strand, and
    the minimum and maximum position of its first base; loci are sorted by strand and start.
    """
    strands, starts = loci.strands, loci.starts
    strand, side = mate_lies(insert.orientation, 0, strands[i])
    base = five_prime(strands[i], starts[i], loci.ends[i], 0, 0, 0)
    low, high = base + insert.lowest, base + insert.highest
    if side < 0:
        low, high = base - insert.highest, base - insert.lowest
    # The first base of a locus on the reverse strand is its last one in the genome.
    start = low - (loci.lengths[read] + _MOST_GAPS if strand else 0)
    first, last = loci.firsts[read], loci.firsts[read + 1]
    while first < last:
        middle = (first + last) >> 1
        if strands[middle] < strand or (strands[middle] == strand and starts[middle] < start):
            first = middle + 1
        else:
            last = middle
    return first, strand, low, high


@inner(nogil=True, forceinline=True)
def _is_mate(loci, i, j, low, high):
    base = five_prime(loci.strands[j], loci.starts[j], loci.ends[j], 0, 0, 0)
    return low <= base <= high and loci.contigs[i] == loci.contigs[j]


@compiled
def _count(loci, insert, strata, counts, most_edits):
    """Count the proper pairs of each template within the strata, and their fewest edits."""
    loci = uncounted(loci)
    firsts, strands, starts, distances = loci.firsts, loci.strands, loci.starts, loci.distances
    with_edits = np.zeros(MOST_EDITS, np.int64)
    for template in range(counts.size):
        with_edits[:] = 0
        read = 2 * template + 1
        for i in range(firsts[read - 1], firsts[read]):
            j, strand, low, high = _mates_begin(loci, insert, i, read)
            while j < firsts[read + 1] and strands[j] == strand and starts[j] <= high:
                if _is_mate(loci, i, j, low, high):
                    with_edits[distances[i] + distances[j]] += 1
                j += 1
        least = 0
        while least < MOST_EDITS and with_edits[least] == 0:
            least += 1
        most = MOST_EDITS - 1 if strata < 0 else min(least + strata, MOST_EDITS - 1)
        most_edits[template] = most
        for edits in range(least, most + 1):
            counts[template] += with_edits[edits]


@compiled(counted=False)
def _list(loci, insert, offsets, most_edits, one, two):
    """List the loci of the proper pairs of each template that is within the limit."""
    firsts, strands, starts, distances = loci.firsts, loci.strands, loci.starts, loci.distances
    for template in range(most_edits.size):
        at = offsets[template]
        if at == offsets[template + 1]:
            continue
        read = 2 * template + 1
        for i in range(firsts[read - 1], firsts[read]):
            j, strand, low, high = _mates_begin(loci, insert, i, read)
            while j < firsts[read + 1] and strands[j] == strand and starts[j] <= high:
                within = distances[i] + distances[j] <= most_edits[template]
                if within and _is_mate(loci, i, j, low, high):
                    one[at], two[at] = i, j
                    at += 1
                j += 1

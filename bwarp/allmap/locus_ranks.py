"""Rank the loci of each read: the primary one, and its mapping quality.

The primary locus has the fewest edits; among several, a hash of the read's number selects one. The
mapping quality is the probability that the read comes from this locus, if each additional edit is a
thousand times less likely. Besides the loci found, one more locus is assumed, with one edit more
than the search allowed:

    p = 1 / (sum over loci of 10^(-3 (distance - least)) + 10^(-3 (searched + 1 - least)))

For a template with proper pairs, the primary pair is one with the fewest edits; among several, the
one whose insert size is closest to the mean. Pairs are weighted by edits and insert size; the
probability of a locus is the sum over the pairs that contain it. Unpaired ends count as having two
edits more than their best loci together.
"""

import math
from typing import NamedTuple

import numpy as np

from bwarp.allmap.options import FoundLoci
from bwarp.allmap.pairs_cpu import MOST_EDITS, LocusPairs
from bwarp.runtime.compiled_code import compiled, inner
from bwarp.runtime.uncounted import uncounted

#: The maximum mapping quality, as in bwa mem.
_HIGHEST = 60

#: The number of edits added to ends that are not a pair.
_APART = 2

#: How likely a locus is, by its edits minus those of the best one: from `-_FEWER` on.
_FEWER = 2 * MOST_EDITS
_WEIGHTS = 10.0 ** (-3.0 * np.arange(-_FEWER, 2 * _FEWER).clip(-100, 100))


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


class _Loci(NamedTuple):
    """Loci in the order of reads, and the numbers, mates and insert sizes of their pairs; `numbers`
    is empty if no pairs are reported.
    """

    strands: np.ndarray
    starts: np.ndarray
    distances: np.ndarray
    searched: np.ndarray
    numbers: np.ndarray
    mates: np.ndarray
    far: np.ndarray
    least: np.ndarray


def rank_loci(loci: FoundLoci, first_read: int, pairs: LocusPairs | None = None) -> LocusRanks:
    """Rank all loci; `first_read` is the number of the first read within the run."""
    n_reads = len(loci.searched)
    table = _Loci(
        loci.strands, loci.starts, loci.distances, loci.searched,
        *(_no_pairs() if pairs is None else (pairs.numbers, pairs.mates, pairs.far, pairs.least)),
    )  # fmt: skip
    first_loci = np.searchsorted(loci.reads, np.arange(n_reads + 1))
    order = np.empty(len(loci.reads), np.int64)
    primary, best, others = np.empty((3, n_reads), np.int64)
    ranks = LocusRanks(order, first_loci, primary, best, others, np.empty(n_reads, np.uint8))
    _choose(table, first_read, ranks)
    _weigh(table, _WEIGHTS, ranks)
    return ranks


def _no_pairs() -> tuple[np.ndarray, ...]:
    integers = np.empty(0, np.int64)
    return integers, integers, np.empty(0, np.float64), integers


@inner(nogil=True, forceinline=True)
def _is_paired(loci, first, last):
    """Return whether the loci of a read are listed pair by pair."""
    return first < last and loci.numbers.size > 0 and loci.numbers[first] > 0


@inner(nogil=True, forceinline=True)
def _edits(loci, locus, is_paired):
    """Return the edits of a locus, or of both loci of its pair."""
    edits = np.int64(loci.distances[locus])
    return edits + loci.distances[loci.mates[locus]] if is_paired else edits


@compiled
def _choose(loci, first_read, ranks):
    """Order the loci of each read, count the best ones, and draw the primary one."""
    loci, ranks = uncounted((loci, ranks))
    order, first_loci, primary, best, others, _ = ranks
    n_with = np.empty(MOST_EDITS + 1, np.int64)
    for read in range(primary.size):
        first, last = first_loci[read], first_loci[read + 1]
        primary[read], best[read], others[read] = -1, 0, 0
        if first == last:
            continue
        is_paired = _is_paired(loci, first, last)
        if is_paired:
            for locus in range(first, last):
                order[locus] = locus
        else:
            _by_edits(loci, first, last, n_with, order)
        least, nearest = _edits(loci, order[first], is_paired), 0.0
        if is_paired:
            nearest = loci.far[first]
        equal = np.int64(0)
        for locus in order[first:last]:
            if _edits(loci, locus, is_paired) == least:
                best[read] += 1
                equal += 1 if not is_paired or loci.far[locus] == nearest else 0
        others[read] = last - first - best[read]
        # Both ends of a pair draw the same number.
        number = first_read + read - (read & 1 if is_paired else 0)
        primary[read] = first + np.int64(_hash(np.uint64(number)) % np.uint64(equal))


@inner(nogil=True)
def _by_edits(loci, first, last, n_with, order):
    """Order loci by edits, start and strand; they are ordered by strand and start before."""
    n_with[:] = 0
    for locus in range(first, last):
        n_with[loci.distances[locus] + 1] += 1
    for edits in range(MOST_EDITS):
        n_with[edits + 1] += n_with[edits]
    reverse = first
    while reverse < last and loci.strands[reverse] == 0:
        reverse += 1
    i, j = first, reverse
    while i < reverse or j < last:
        if j == last or (i < reverse and loci.starts[i] <= loci.starts[j]):
            locus, i = i, i + 1
        else:
            locus, j = j, j + 1
        edits = loci.distances[locus]
        order[first + n_with[edits]] = locus
        n_with[edits] += 1


@inner(nogil=True, forceinline=True)
def _hash(number):
    """Return a pseudo-random hash of a number (the finalizer of splitmix64)."""
    number = (number ^ (number >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    number = (number ^ (number >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return number ^ (number >> np.uint64(31))


@compiled(counted=False)
def _weigh(loci, weights, ranks):
    """Compute the mapping quality of the primary locus of each read."""
    order, first_loci, primary, _, _, qualities = ranks
    for read in range(primary.size):
        first, last = first_loci[read], first_loci[read + 1]
        qualities[read] = 0
        if first == last:
            continue
        is_paired = _is_paired(loci, first, last)
        least = _edits(loci, order[first], is_paired)
        chosen = order[primary[read]]
        # A locus may belong to several pairs.
        total = right = 0.0
        for locus in order[first:last]:
            weight = weights[_FEWER + _edits(loci, locus, is_paired) - least]
            if is_paired:
                weight *= math.exp((loci.far[first] ** 2 - loci.far[locus] ** 2) / 2)
            total += weight
            same = loci.starts[locus] == loci.starts[chosen]
            if same and loci.strands[locus] == loci.strands[chosen]:
                right += weight
        total += _not_searched(loci, weights, ranks, read, is_paired, least)
        wrong = 1 - right / max(total, 1.0)
        quality = np.float64(_HIGHEST)
        if wrong > 10 ** (-_HIGHEST / 10):
            quality = min(quality, np.rint(-10 * math.log10(wrong)))
        qualities[read] = np.uint8(quality)


@inner(nogil=True, forceinline=True)
def _not_searched(loci, weights, ranks, read, is_paired, least):
    """Return the weight of loci beyond the search, and of ends that are not a pair."""
    if not is_paired:
        return weights[_FEWER + loci.searched[read] + 1 - least]
    missing, alone = 0.0, np.int64(_APART)
    for end in (read & ~1, read | 1):
        locus = ranks.order[ranks.primary[end]]
        missing += weights[_FEWER + loci.searched[end] + 1 - loci.distances[locus]]
        alone += loci.least[end]
    return missing + weights[_FEWER + alone - least]

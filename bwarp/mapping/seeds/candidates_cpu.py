"""Candidate places of reads: seeds, located and gathered by strand and diagonal.

A seed at base o of a read (of the read's reverse complement, on the other strand) that lies at
genome position g is on diagonal g - o: where the read would begin. Seeds of one alignment without
gaps share a diagonal; a gap moves the rest by its length.

    key of a hit     bits 63 ... 36    35        34 ... 0
                     read              strand    diagonal + DIAGONAL_SHIFT

The rules, the same on every engine, a read by itself:

1. A read of n >= k bases has max(1, min(n // step, n - k + 1)) seeds; seed i begins at base
   i * (n - k) // (seeds - 1). One with an ambiguous base has no hits.
2. An item is a seed (even number) or its reverse complement (the odd number after it). Items are
   taken from the rarest on, equally rare ones by number; each that fits what is left of `hits` is
   located in full. The first that does not fit while fewer than `least_hits` are used fills the
   rest with hits evenly spread over its rows.
3. Hits in the order of strand and diagonal are one group while the next is not more than
   `largest_gap` away. Its main diagonal is the one with most hits, the first of several; any other
   with half as many is a candidate of its own as well.
4. The candidates_a_read groups with most hits stay, equal ones by strand and diagonal.

What a place that is not among them can score at most follows from the seeds located in full: it
differs from the read in every one of them.

    read        |=======|   |=======|   |=======|   |=======|
    hits            3        10,000         5          812        16 are located: of two seeds all
                                                                  unlisted: two differences or more
"""

from collections.abc import Callable
from dataclasses import dataclass

import numba
import numpy as np

from bwarp.index.fm_index import FMIndex
from bwarp.index.locate_cpu import locate
from bwarp.mapping.parameters import MappingParameters, SeedRound
from bwarp.mapping.seeds.seed_selection_cpu import BLOCK, SeedRows, seed_rows_of
from bwarp.runtime.threads import for_each_range

__all__ = ["Candidates", "find_candidates", "locate_candidates"]

DIAGONAL_SHIFT = 1 << 16

#: A place that shares but a frequent word with a read is mostly an old copy: it differs this many
#: times as often as it must. Measured: wrong places get no more confidence, right ones do.
LIKELY = 2


@dataclass(frozen=True)
class Candidates:
    """Places where reads may belong, in the order of reads, most seeds first.

    Attributes
    ----------
    reads : ndarray, shape=(n,), dtype=int32
    strands : ndarray, shape=(n,), dtype=uint8
    diagonals : ndarray, shape=(n,), dtype=int64
        The genome position of the read's first base by the diagonal with most seeds; it may lie
        before a contig's start.
    lowest, highest : ndarray, shape=(n,), dtype=int64
        The outermost diagonals with seeds.
    seeds : ndarray, shape=(n,), dtype=int32
        How many seeds lie there.
    offsets : ndarray, shape=(n_reads + 1,), dtype=int64
        The candidates of read i are those from offsets[i] to offsets[i + 1].
    score_bounds : ndarray, shape=(n_reads,), dtype=int32
        What a place of the read that is not among the candidates can score at most, its clipped
        ends paid for.
    unlocated : ndarray, shape=(n_reads,), dtype=int32
        Where hits of the read's seeds were left out, what such a place is likely to score; else 0.
    searched : ndarray, shape=(3,), dtype=int64, or None
        Seeds that were searched, hits of them that were located, and candidates that these made;
        None of candidates that come from no seeds.
    """

    reads: np.ndarray
    strands: np.ndarray
    diagonals: np.ndarray
    lowest: np.ndarray
    highest: np.ndarray
    seeds: np.ndarray
    offsets: np.ndarray
    score_bounds: np.ndarray
    unlocated: np.ndarray
    searched: np.ndarray | None = None


def find_candidates(
    index: FMIndex,
    codes: np.ndarray,
    offsets: np.ndarray,
    reads: np.ndarray,
    seeds: SeedRound,
    parameters: MappingParameters,
    threads: int = 1,
) -> Candidates:
    """The candidates of some reads from exact seeds.

    Parameters
    ----------
    codes : ndarray, shape=(total,), dtype=uint8
    offsets : ndarray, shape=(n_reads + 1,), dtype=int64
        Read i is ``codes[offsets[i] : offsets[i + 1]]``.
    reads : ndarray, dtype=int64
        The numbers of the reads to search, in order; the others have no candidates.
    """

    def search(first: int, last: int) -> SeedRows:
        return seed_rows_of(index, codes, offsets, reads[first:last], seeds)

    return _in_blocks(index, offsets, reads, search, seeds, parameters, threads)


def locate_candidates(
    index: FMIndex,
    offsets: np.ndarray,
    rows: SeedRows,
    seeds: SeedRound,
    parameters: MappingParameters,
    threads: int = 1,
) -> Candidates:
    """What `find_candidates` finds of all reads, whose seeds have been searched before."""
    reads = np.arange(len(offsets) - 1)
    return _in_blocks(index, offsets, reads, rows.part, seeds, parameters, threads)


def _in_blocks(
    index: FMIndex,
    offsets: np.ndarray,
    reads: np.ndarray,
    rows_between: Callable[[int, int], SeedRows],
    seeds: SeedRound,
    parameters: MappingParameters,
    threads: int,
) -> Candidates:
    """Candidates of reads, a few at a time: their arrays stay in the processor's cache."""
    n_reads = len(offsets) - 1
    score_bounds, unlocated = np.zeros((2, n_reads), np.int32)

    def gather(start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        blocks = []
        searched = np.zeros(2, np.int64)
        for first in range(start, stop, BLOCK):
            last = min(first + BLOCK, stop)
            rows = rows_between(first, last)
            searched += rows.read_positions.size, rows.taken.sum(dtype=np.int64)
            blocks.append(
                _of_block(
                    index, offsets, reads[first:last], rows, seeds.length, parameters, score_bounds,
                    unlocated,
                )
            )  # fmt: skip
        return np.concatenate(blocks), searched

    parts = for_each_range(gather, len(reads), threads)
    found = np.concatenate([*(part for part, _ in parts), np.empty((0, 6), np.int64)])
    searched = sum((some for _, some in parts), np.zeros(2, np.int64))
    return Candidates(
        reads=found[:, 0].astype(np.int32),
        strands=found[:, 1].astype(np.uint8),
        diagonals=found[:, 2].copy(),
        lowest=found[:, 3].copy(),
        highest=found[:, 4].copy(),
        seeds=found[:, 5].astype(np.int32),
        offsets=np.searchsorted(found[:, 0], np.arange(n_reads + 1)),
        score_bounds=score_bounds,
        unlocated=unlocated,
        searched=np.append(searched, len(found)),
    )


def _of_block(index, offsets, reads, seeds, k, parameters, score_bounds, unlocated) -> np.ndarray:
    """Candidates of reads, a row each, from the rows of their seeds."""
    n_hits = int(seeds.taken.sum(dtype=np.int64))
    hit_firsts = np.empty(seeds.taken.size + 1, np.int64)
    rows = np.empty(n_hits, np.uint32)
    _list_rows(seeds.starts, seeds.counts, seeds.taken, hit_firsts, rows)
    positions = locate(index, rows)
    keys = np.empty(n_hits, np.uint64)
    reference = index.reference
    _make_keys(
        offsets, reads, k, seeds.firsts, seeds.read_positions, hit_firsts, positions,
        reference.segment_text, reference.segment_genome, keys,
    )  # fmt: skip
    keys.sort()
    found = np.empty((n_hits, 6), np.int64)
    n_found = _group(
        keys, offsets, reads, k, seeds.firsts, seeds.counts, seeds.taken, seeds.differences,
        parameters.largest_gap, parameters.candidates_a_read, parameters.match,
        min(parameters.match - parameters.mismatch, parameters.gap_open + parameters.gap_extend),
        found, score_bounds, unlocated,
    )  # fmt: skip
    return found[:n_found]


@numba.njit(cache=True, nogil=True)
def _list_rows(starts, counts, taken, hit_firsts, rows):
    """The rows of the hits to locate, and where those of each item begin."""
    hit = 0
    for item in range(taken.size):
        hit_firsts[item] = hit
        n = np.int64(taken[item])
        for i in range(n):
            rows[hit] = np.int64(starts[item]) + i * np.int64(counts[item]) // n
            hit += 1
    hit_firsts[taken.size] = hit


@numba.njit(cache=True, nogil=True)
def _make_keys(
    offsets,
    reads,
    k,
    firsts,
    read_positions,
    hit_firsts,
    positions,
    segment_text,
    segment_genome,
    keys,
):
    n_segments = segment_genome.size
    segment = 0
    for i in range(reads.size):
        room = offsets[reads[i] + 1] - offsets[reads[i]] - k
        for item in range(2 * firsts[i], 2 * firsts[i + 1]):
            read_position = np.int64(read_positions[item >> 1])
            offset = room - read_position if item & 1 else read_position
            head = np.uint64(2 * i + (item & 1)) << np.uint64(35)
            for hit in range(hit_firsts[item], hit_firsts[item + 1]):
                position = np.int64(positions[hit])
                if position < segment_text[segment] or position >= segment_text[segment + 1]:
                    segment = np.searchsorted(segment_text[:n_segments], position, side="right") - 1
                genome = np.int64(segment_genome[segment]) + position - segment_text[segment]
                keys[hit] = head | np.uint64(genome - offset + DIAGONAL_SHIFT)


@numba.njit(cache=True, nogil=True)
def _group(
    keys, offsets, reads, k, firsts, counts, taken, differences, largest_gap, most, match, loss,
    found, score_bounds, unlocated,
):  # fmt: skip
    """Gather sorted keys of reads; keep the `most` groups of each with most seeds.

    A diagonal with half as many seeds as the group's main one is a candidate of its own, too: in
    a tandem repeat it is another place, and with an indel it will turn out to be the same one.
    """
    n_found = 0
    at = 0
    for i in range(reads.size):
        first_found = n_found
        while at < keys.size and np.int64(keys[at] >> np.uint64(36)) == i:
            head = keys[at] >> np.uint64(35)
            group_start = at
            best, best_count = _diagonal(keys[at]), 0
            last = best
            run_start = at
            while at < keys.size and keys[at] >> np.uint64(35) == head:
                diagonal = _diagonal(keys[at])
                if diagonal - last > largest_gap:
                    break
                if diagonal != last:
                    run_start = at
                if at - run_start + 1 > best_count:
                    best, best_count = diagonal, at - run_start + 1
                last = diagonal
                at += 1
            strand = np.int64(head & np.uint64(1))
            _insert(
                found, first_found, n_found, reads[i], strand, best,
                _diagonal(keys[group_start]), last, at - group_start,
            )  # fmt: skip
            n_found += 1
            if best_count == at - group_start or best_count == 1:
                continue
            run_start = group_start
            for j in range(group_start, at):
                diagonal = _diagonal(keys[j])
                if j + 1 < at and _diagonal(keys[j + 1]) == diagonal:
                    continue
                count = j + 1 - run_start
                run_start = j + 1
                if diagonal != best and 2 * count >= best_count:
                    _insert(
                        found, first_found, n_found, reads[i], strand, diagonal, diagonal,
                        diagonal, count,
                    )  # fmt: skip
                    n_found += 1
        n_seeds = firsts[i + 1] - firsts[i]
        length = offsets[reads[i] + 1] - offsets[reads[i]]
        differing = np.int64(differences[i])
        all_seen = True
        for item in range(2 * firsts[i], 2 * firsts[i + 1]):
            all_seen = all_seen and taken[item] == counts[item]
        if n_found - first_found > most:
            # A base lies in so many seeds at most, so what a group lacks in seeds says how much
            # it differs at least.
            overlap = 1
            if n_seeds > 1:
                overlap += (k - 1) // ((length - k) // (n_seeds - 1))
            lacking = n_seeds - found[first_found + most, 5]
            differing = min(differing, max(0, lacking + overlap - 1) // overlap)
            all_seen = False
            n_found = first_found + most
        score_bounds[reads[i]] = max(0, match * length - loss * differing)
        if not all_seen:
            unlocated[reads[i]] = max(0, match * length - LIKELY * loss * differing)
    return n_found


@numba.njit(cache=True, nogil=True, inline="always")
def _diagonal(key):
    return np.int64(key & np.uint64((1 << 35) - 1)) - DIAGONAL_SHIFT


@numba.njit(cache=True, nogil=True)
def _insert(found, first, n_found, read, strand, diagonal, lowest, highest, count):
    """Insert by the number of seeds; on equal numbers the order of strand and place stays."""
    read_position = n_found
    while read_position > first and found[read_position - 1, 5] < count:
        found[read_position] = found[read_position - 1]
        read_position -= 1
    found[read_position, 0] = read
    found[read_position, 1] = strand
    found[read_position, 2] = diagonal
    found[read_position, 3] = lowest
    found[read_position, 4] = highest
    found[read_position, 5] = count

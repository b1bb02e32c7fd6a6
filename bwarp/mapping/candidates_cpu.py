"""Candidate places of reads: seeds, located and gathered by strand and diagonal.

A seed at base o of a read (of the read's reverse complement, on the other strand) that lies at
genome position g is on diagonal g - o: where the read would begin. Seeds of one alignment without
gaps share a diagonal; a gap moves the rest by its length.

    key of a hit     bits 63 ... 36    35        34 ... 0
                     read              strand    diagonal + DIAGONAL_SHIFT

Rare seeds are located first. A read whose seeds are all frequent gets a part of their hits, evenly
spread. What a place that was not looked at can score at most is then known from the seeds that were
located in full: it differs from the read in every one of them.

    read        |=======|   |=======|   |=======|   |=======|
    hits            3        10,000         5          812        64 are located: of two seeds all
                                                                  unseen: two differences or more
"""

from dataclasses import dataclass

import numba
import numpy as np

from bwarp.index.fm_index import FMIndex
from bwarp.index.locate_cpu import locate
from bwarp.mapping.parameters import MappingParameters
from bwarp.seeding.exact_cpu import exact_rows
from bwarp.threads import for_each_range

__all__ = ["Candidates", "find_candidates"]

DIAGONAL_SHIFT = 1 << 16

#: In place of a number of differences: no place of the read was left out.
ALL_SEEN = 1 << 30


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
    unseen : ndarray, shape=(n_reads,), dtype=int32
        What a place of the read that was not looked at can score at most, its clipped ends paid
        for; 0 for most reads: all hits of their seeds were located.
    """

    reads: np.ndarray
    strands: np.ndarray
    diagonals: np.ndarray
    lowest: np.ndarray
    highest: np.ndarray
    seeds: np.ndarray
    offsets: np.ndarray
    unseen: np.ndarray


def find_candidates(
    index: FMIndex,
    codes: np.ndarray,
    offsets: np.ndarray,
    seed_length: int,
    seed_step: int,
    hits_a_read: int,
    parameters: MappingParameters,
    threads: int = 1,
) -> Candidates:
    """The candidates of reads (flat codes and offsets) from exact seeds."""
    n_reads = len(offsets) - 1
    firsts = np.concatenate([[0], np.cumsum(_seeds_a_read(offsets, seed_length, seed_step))])
    words = np.zeros((firsts[-1], 1), np.uint64)
    places = np.empty(firsts[-1], np.int32)
    for_each_range(
        lambda start, stop: _cut_seeds(
            codes, offsets, seed_length, seed_step, firsts, start, stop, words, places
        ),
        n_reads,
        threads,
    )
    starts, stops = exact_rows(index, words, seed_length, threads)
    # A seed over an ambiguous base was searched as if that were A: it has no hits.
    counts = np.where(np.repeat(places < 0, 2), 0, stops - starts).astype(np.uint32)
    taken = np.zeros(counts.size, np.uint32)
    differences = np.full(n_reads, ALL_SEEN, np.int32)
    for_each_range(
        lambda start, stop: _choose_seeds(
            firsts, places, seed_length, counts, hits_a_read, start, stop, taken, differences
        ),
        n_reads,
        threads,
    )
    hit_firsts = np.concatenate([[0], np.cumsum(taken, dtype=np.int64)])
    rows = np.empty(hit_firsts[-1], np.uint32)
    for_each_range(
        lambda start, stop: _list_rows(starts, counts, taken, hit_firsts, start, stop, rows),
        counts.size,
        threads,
    )
    positions = locate(index, rows, threads)
    keys = np.empty(rows.size, np.uint64)
    reference = index.reference
    for_each_range(
        lambda start, stop: _make_keys(
            offsets,
            seed_length,
            firsts,
            places,
            hit_firsts,
            positions,
            reference.segment_text,
            reference.segment_genome,
            start,
            stop,
            keys,
        ),
        n_reads,
        threads,
    )

    def group(start: int, stop: int):
        part = keys[hit_firsts[2 * firsts[start]] : hit_firsts[2 * firsts[stop]]]
        part.sort()
        found = np.empty((part.size, 6), np.int64)
        ends = np.empty(stop - start, np.int64)
        n_found = _group(
            part,
            start,
            stop,
            parameters.largest_gap,
            parameters.candidates_a_read,
            -(-seed_length // seed_step),
            firsts,
            found,
            ends,
            differences,
        )
        return found[:n_found], ends

    groups = for_each_range(group, n_reads, threads, smallest=256)
    found = np.concatenate([part for part, _ in groups] or [np.empty((0, 6), np.int64)])
    sizes = np.cumsum([0] + [len(part) for part, _ in groups])
    ends = [ends + size for (_, ends), size in zip(groups, sizes, strict=False)]
    return Candidates(
        reads=found[:, 0].astype(np.int32),
        strands=found[:, 1].astype(np.uint8),
        diagonals=found[:, 2].copy(),
        lowest=found[:, 3].copy(),
        highest=found[:, 4].copy(),
        seeds=found[:, 5].astype(np.int32),
        offsets=np.concatenate([[0], *ends]).astype(np.int64),
        unseen=_best_unseen(np.diff(offsets), differences, parameters),
    )


def _best_unseen(lengths, differences, parameters: MappingParameters) -> np.ndarray:
    """The best score with so many differences."""
    loss = min(parameters.match - parameters.mismatch, parameters.gap_open + parameters.gap_extend)
    scores = parameters.match * lengths - loss * differences.astype(np.int64)
    return np.where(differences == ALL_SEEN, 0, np.maximum(scores, 0)).astype(np.int32)


def _seeds_a_read(offsets: np.ndarray, k: int, step: int) -> np.ndarray:
    """Seeds every `step` bases, and one that ends with the read."""
    room = np.diff(offsets) - k
    return np.where(room < 0, 0, room // step + 1 + (room % step > 0))


@numba.njit(cache=True, nogil=True)
def _cut_seeds(codes, offsets, k, step, firsts, start, stop, words, places):
    """Pack the seeds of reads; a place of -1 tells of an ambiguous base."""
    for read in range(start, stop):
        room = offsets[read + 1] - offsets[read] - k
        for seed in range(firsts[read], firsts[read + 1]):
            place = min((seed - firsts[read]) * step, room)
            word = np.uint64(0)
            worst = np.uint8(0)
            for i in range(offsets[read] + place, offsets[read] + place + k):
                worst = max(worst, codes[i])
                word = word << np.uint64(2) | np.uint64(codes[i] & 3)
            words[seed, 0] = word << np.uint64(64 - 2 * k)
            places[seed] = place if worst < 4 else -1


@numba.njit(cache=True, nogil=True)
def _choose_seeds(firsts, places, k, counts, budget, start, stop, taken, differences):
    """How many hits of each seed to locate: of the rarest all, until a read has its budget."""
    for read in range(start, stop):
        first, last = 2 * firsts[read], 2 * firsts[read + 1]
        total = np.int64(0)
        for item in range(first, last):
            total += counts[item]
        if total <= budget:
            for item in range(first, last):
                taken[item] = counts[item]
            continue
        order = np.argsort(counts[first:last], kind="mergesort")
        used = np.int64(0)
        for i in order:
            count = np.int64(counts[first + i])
            if count == 0:
                continue
            if used + count <= budget:
                taken[first + i] = count
                used += count
            elif used < budget // 2:
                # Nothing rare enough: some hits of this one, evenly spread over its rows.
                taken[first + i] = budget - used
                used = budget
        # A place not seen differs in every seed located in full; count seeds side by side.
        apart, end = 0, 0
        for seed in range(firsts[read], firsts[read + 1]):
            full = taken[2 * seed] == counts[2 * seed]
            full = full and taken[2 * seed + 1] == counts[2 * seed + 1]
            if full and places[seed] >= end:
                apart += 1
                end = places[seed] + k
        differences[read] = apart


@numba.njit(cache=True, nogil=True)
def _list_rows(starts, counts, taken, firsts, start, stop, rows):
    for item in range(start, stop):
        n = np.int64(taken[item])
        for i in range(n):
            rows[firsts[item] + i] = np.int64(starts[item]) + i * np.int64(counts[item]) // n


@numba.njit(cache=True, nogil=True)
def _make_keys(
    offsets,
    k,
    firsts,
    places,
    hit_firsts,
    positions,
    segment_text,
    segment_genome,
    start,
    stop,
    keys,
):
    n_segments = segment_genome.size
    segment = 0
    for read in range(start, stop):
        length = offsets[read + 1] - offsets[read]
        for item in range(2 * firsts[read], 2 * firsts[read + 1]):
            place = np.int64(places[item >> 1])
            offset = length - k - place if item & 1 else place
            head = np.uint64(2 * read + (item & 1)) << np.uint64(35)
            for hit in range(hit_firsts[item], hit_firsts[item + 1]):
                position = np.int64(positions[hit])
                if position < segment_text[segment] or position >= segment_text[segment + 1]:
                    segment = np.searchsorted(segment_text[:n_segments], position, side="right") - 1
                genome = np.int64(segment_genome[segment]) + position - segment_text[segment]
                keys[hit] = head | np.uint64(genome - offset + DIAGONAL_SHIFT)


@numba.njit(cache=True, nogil=True)
def _group(keys, start, stop, largest_gap, most, overlap, firsts, found, ends, differences):
    """Gather sorted keys of reads start to stop; keep the `most` groups of each with most seeds.

    A base lies in at most `overlap` seeds, or in one more at the read's end, so what a group that
    is not kept lacks in seeds says how much it differs at least.

    A diagonal with half as many seeds as the group's main one is a candidate of its own, too: in
    a tandem repeat it is another place, and with an indel it will turn out to be the same one.
    """
    n_found = 0
    at = 0
    for read in range(start, stop):
        first_found = n_found
        while at < keys.size and np.int64(keys[at] >> np.uint64(36)) == read:
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
                found, first_found, n_found, read, strand, best,
                _diagonal(keys[group_start]), last, at - group_start,
            )  # fmt: skip
            n_found += 1
            if best_count == at - group_start or best_count == 1:
                continue
            run_start = group_start
            for i in range(group_start, at):
                diagonal = _diagonal(keys[i])
                if i + 1 < at and _diagonal(keys[i + 1]) == diagonal:
                    continue
                count = i + 1 - run_start
                run_start = i + 1
                if diagonal != best and 2 * count >= best_count:
                    _insert(
                        found, first_found, n_found, read, strand, diagonal, diagonal, diagonal,
                        count,
                    )  # fmt: skip
                    n_found += 1
        if n_found - first_found > most:
            lacking = firsts[read + 1] - firsts[read] - found[first_found + most, 5]
            least = max(0, lacking - 1 + overlap - 1) // overlap
            differences[read] = min(differences[read], least)
            n_found = first_found + most
        ends[read - start] = n_found
    return n_found


@numba.njit(cache=True, nogil=True, inline="always")
def _diagonal(key):
    return np.int64(key & np.uint64((1 << 35) - 1)) - DIAGONAL_SHIFT


@numba.njit(cache=True, nogil=True)
def _insert(found, first, n_found, read, strand, diagonal, lowest, highest, count):
    """Insert by the number of seeds; on equal numbers the order of strand and place stays."""
    place = n_found
    while place > first and found[place - 1, 5] < count:
        found[place] = found[place - 1]
        place -= 1
    found[place, 0] = read
    found[place, 1] = strand
    found[place, 2] = diagonal
    found[place, 3] = lowest
    found[place, 4] = highest
    found[place, 5] = count

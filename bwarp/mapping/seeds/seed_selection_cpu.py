"""Seeds of reads, searched: their SA intervals, and how many hits of each are located.

An item is a seed (even number) or its reverse complement (the odd number after it). Which seeds a
read has, and which of their hits are located, is defined in candidates_cpu.py.

    read         0                       1
    firsts       0                       3             5
    seeds        0       1       2       3      4
    items        0   1   2   3   4   5   6   7  8   9
"""

from typing import NamedTuple

import numpy as np
from numba import int64, uint8, uint64

from bwarp.index.fm_index import FMIndex
from bwarp.mapping.parameters import SeedRound
from bwarp.runtime.compiled_code import compiled
from bwarp.seeding.algorithms.exact_cpu import exact_intervals

__all__ = [
    "BLOCK",
    "SeedRows",
    "seed_count",
    "seed_kmer",
    "seed_position",
    "seed_rows_of",
]

#: Reads that are searched together: their arrays stay in the processor's cache.
BLOCK = 4096


class SeedRows(NamedTuple):
    """Where the seeds of some reads match in the index.

    Attributes
    ----------
    firsts : ndarray, shape=(n_reads + 1,), dtype=int64
        The seeds of read i are those from firsts[i] to firsts[i + 1].
    read_positions : ndarray, shape=(n_seeds,), dtype=int32
        The base of the read that a seed begins at; -1 for one over an ambiguous base.
    starts, counts : ndarray, shape=(2 * n_seeds,), dtype=uint32
        The first SA row of every item, and how many there are.
    taken : ndarray, shape=(2 * n_seeds,), dtype=uint32
        How many of them are located.
    differences : ndarray, shape=(n_reads,), dtype=int32
        In how many bases a locus without located hits differs at least.
    """

    firsts: np.ndarray
    read_positions: np.ndarray
    starts: np.ndarray
    counts: np.ndarray
    taken: np.ndarray
    differences: np.ndarray


def seed_rows_of(
    index: FMIndex, codes: np.ndarray, offsets: np.ndarray, reads: np.ndarray, seeds: SeedRound
) -> SeedRows:
    """Search the seeds of the reads of these numbers (int64)."""
    n, k = len(reads), seeds.length
    firsts = np.empty(n + 1, np.int64)
    n_seeds = _count_seeds(offsets, reads, k, seeds.step, firsts)
    kmers = np.empty((n_seeds, 1), np.uint64)
    read_positions = np.empty(n_seeds, np.int32)
    _cut_seeds(codes, offsets, reads, k, firsts, kmers, read_positions)
    starts, stops = exact_intervals(index, kmers, k)
    taken, differences = np.zeros(2 * n_seeds, np.uint32), np.zeros(n, np.int32)
    rows = SeedRows(firsts, read_positions, starts, stops - starts, taken, differences)
    _select_hits(rows, k, seeds.hits, seeds.least_hits)
    return rows


@compiled(inline="always")
def seed_count(length, k, step):
    """How many seeds a read of `length` bases has; both engines use it."""
    return max(int64(1), min(length // step, length - k + 1)) if length >= k else int64(0)


@compiled(inline="always")
def seed_position(number, n_seeds, length, k):
    """The base that a seed of a read begins at; both engines use it."""
    return number * (length - k) // max(int64(1), n_seeds - 1)


@compiled(inline="always")
def seed_kmer(codes, start, k):
    """The k-mer from a base on, in the low bits, and the highest of its codes; for both engines."""
    kmer, worst = uint64(0), uint8(0)
    for at in range(start, start + k):
        code = codes[at]
        worst = max(worst, code)
        kmer = uint64(uint64(kmer << uint64(2)) | uint64(code & 3))
    return kmer, worst


@compiled
def _count_seeds(offsets, reads, k, step, firsts):
    """Where each read's seeds begin in a list of all; returns how many there are."""
    n_seeds = 0
    for i in range(reads.size):
        firsts[i] = n_seeds
        n_seeds += seed_count(offsets[reads[i] + 1] - offsets[reads[i]], k, step)
    firsts[reads.size] = n_seeds
    return n_seeds


@compiled
def _cut_seeds(codes, offsets, reads, k, firsts, kmers, read_positions):
    """Pack the seeds of reads, the first base in the highest bits."""
    for i in range(reads.size):
        begin = offsets[reads[i]]
        length = offsets[reads[i] + 1] - begin
        n_seeds = firsts[i + 1] - firsts[i]
        for number in range(n_seeds):
            position = seed_position(number, n_seeds, length, k)
            kmer, worst = seed_kmer(codes, begin + position, k)
            kmers[firsts[i] + number, 0] = kmer << np.uint64(64 - 2 * k)
            read_positions[firsts[i] + number] = position if worst < 4 else -1


@compiled
def _select_hits(seeds, k, most, least):
    """How many hits of each item to locate: of the rarest all, until a read has `most`."""
    firsts, read_positions, counts = seeds.firsts, seeds.read_positions, seeds.counts
    taken, differences = seeds.taken, seeds.differences
    for i in range(firsts.size - 1):
        first, last = 2 * firsts[i], 2 * firsts[i + 1]
        total = np.int64(0)
        for item in range(first, last):
            # A seed over an ambiguous base was searched as if that were A: it has no hits.
            if read_positions[item >> 1] < 0:
                counts[item] = 0
            total += counts[item]
        if total <= most:
            for item in range(first, last):
                taken[item] = counts[item]
        else:
            used = np.int64(0)
            for item in np.argsort(counts[first:last], kind="mergesort"):
                count = np.int64(counts[first + item])
                if used + count <= most:
                    taken[first + item] = count
                    used += count
                elif used < least:
                    # Nothing rare enough: some hits of this one, evenly spread over its rows.
                    taken[first + item] = most - used
                    used = most
        # A locus that is not found differs in every seed located in full that overlaps no other.
        end = 0
        for item in range(first, last, 2):
            position = read_positions[item >> 1]
            full = taken[item] == counts[item] and taken[item + 1] == counts[item + 1]
            if full and position >= end:
                differences[i] += 1
                end = position + k

"""Seeds of reads, searched: the rows of the index they match in, and how many hits are located.

An item is a seed (even number) or its reverse complement (the odd number after it); which seeds a
read has, and which of their hits are taken, is said in candidates_cpu.py.

    read         0                       1
    firsts       0                       3             5
    seeds        0       1       2       3      4
    items        0   1   2   3   4   5   6   7  8   9
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numba
import numpy as np

from bwarp.index.fm_index import FMIndex
from bwarp.mapping.parameters import SeedRound
from bwarp.runtime.threads import for_each_range
from bwarp.seeding.algorithms.exact_cpu import exact_intervals

__all__ = ["BLOCK", "SeedRows", "search_seeds", "seed_rows_of"]

#: Reads that are searched together: their arrays stay in the processor's cache.
BLOCK = 2048


@dataclass(frozen=True)
class SeedRows:
    """Where the seeds of some reads match in the index.

    Attributes
    ----------
    firsts : ndarray, shape=(n_reads + 1,), dtype=int64
        The seeds of read i are those from firsts[i] to firsts[i + 1].
    read_positions : ndarray, shape=(n_seeds,), dtype=int32
        The base of the read that a seed begins at; -1 for one over an ambiguous base.
    starts, counts : ndarray, shape=(2 * n_seeds,), dtype=uint32
        The first row of every item, and how many there are.
    taken : ndarray, shape=(2 * n_seeds,), dtype=uint32
        How many of them are located.
    differences : ndarray, shape=(n_reads,), dtype=int32
        In how many bases a place without hits that are located differs at least.
    """

    firsts: np.ndarray
    read_positions: np.ndarray
    starts: np.ndarray
    counts: np.ndarray
    taken: np.ndarray
    differences: np.ndarray

    def part(self, start: int, stop: int) -> "SeedRows":
        """The rows of the reads from `start` to `stop`."""
        first, last = self.firsts[start], self.firsts[stop]
        items = slice(2 * first, 2 * last)
        return SeedRows(
            self.firsts[start : stop + 1] - first,
            self.read_positions[first:last],
            self.starts[items],
            self.counts[items],
            self.taken[items],
            self.differences[start:stop],
        )


def search_seeds(
    index: FMIndex, codes: np.ndarray, offsets: np.ndarray, seeds: SeedRound, threads: int = 1
) -> SeedRows:
    """Search the seeds of all reads (flat codes and offsets)."""
    reads = np.arange(len(offsets) - 1)

    def search(start: int, stop: int) -> list[SeedRows]:
        return [
            seed_rows_of(index, codes, offsets, reads[first : min(first + BLOCK, stop)], seeds)
            for first in range(start, stop, BLOCK)
        ]

    parts = for_each_range(search, len(reads), threads)
    blocks = [block for part in parts for block in part]
    return _joined(blocks or [seed_rows_of(index, codes, offsets, reads, seeds)])


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
    counts = stops - starts
    taken = np.zeros(counts.size, np.uint32)
    differences = np.zeros(n, np.int32)
    _select_hits(
        firsts, read_positions, k, counts, seeds.hits, seeds.least_hits, taken, differences
    )
    return SeedRows(firsts, read_positions, starts, counts, taken, differences)


def _joined(parts: Sequence[SeedRows]) -> SeedRows:
    """The rows of reads, one part after another."""
    before = np.cumsum([0, *(part.read_positions.size for part in parts)])
    firsts = [part.firsts[:-1] + shift for part, shift in zip(parts, before, strict=False)]
    return SeedRows(
        np.concatenate([*firsts, before[-1:]]),
        np.concatenate([part.read_positions for part in parts]),
        np.concatenate([part.starts for part in parts]),
        np.concatenate([part.counts for part in parts]),
        np.concatenate([part.taken for part in parts]),
        np.concatenate([part.differences for part in parts]),
    )


@numba.njit(cache=True, nogil=True)
def _count_seeds(offsets, reads, k, step, firsts):
    """Where each read's seeds begin in a list of all; returns how many there are."""
    n_seeds = 0
    for i in range(reads.size):
        firsts[i] = n_seeds
        length = offsets[reads[i] + 1] - offsets[reads[i]]
        if length >= k:
            n_seeds += max(1, min(length // step, length - k + 1))
    firsts[reads.size] = n_seeds
    return n_seeds


@numba.njit(cache=True, nogil=True)
def _cut_seeds(codes, offsets, reads, k, firsts, kmers, read_positions):
    """Pack the seeds of reads; a place of -1 tells of an ambiguous base."""
    for i in range(reads.size):
        begin = offsets[reads[i]]
        room = offsets[reads[i] + 1] - begin - k
        n_steps = max(1, firsts[i + 1] - firsts[i] - 1)
        for seed in range(firsts[i], firsts[i + 1]):
            read_position = (seed - firsts[i]) * room // n_steps
            kmer = np.uint64(0)
            worst = np.uint8(0)
            for at in range(begin + read_position, begin + read_position + k):
                worst = max(worst, codes[at])
                kmer = kmer << np.uint64(2) | np.uint64(codes[at] & 3)
            kmers[seed, 0] = kmer << np.uint64(64 - 2 * k)
            read_positions[seed] = read_position if worst < 4 else -1


@numba.njit(cache=True, nogil=True)
def _select_hits(firsts, read_positions, k, counts, most, least, taken, differences):
    """How many hits of each seed to locate: of the rarest all, until a read has `most`.

    An item is a seed on a strand: 2 * seed, or 2 * seed + 1 for its reverse complement. Equally
    rare ones are taken in that order.
    """
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
        # A place that is not found differs in every seed located in full: those side by side.
        end = 0
        for seed in range(firsts[i], firsts[i + 1]):
            full = taken[2 * seed] == counts[2 * seed]
            full = full and taken[2 * seed + 1] == counts[2 * seed + 1]
            if full and read_positions[seed] >= end:
                differences[i] += 1
                end = read_positions[seed] + k

"""Seeds of reads: their SA intervals, how many hits of each are located, and candidates.

An item is a seed (even number) or its reverse complement (the odd number after it). The comment
below, at "Candidate loci of reads", defines which seeds a read has, and which of their hits are
located.

    read         0                       1
    firsts       0                       3             5
    seeds        0       1       2       3      4
    items        0   1   2   3   4   5   6   7  8   9
"""

from typing import NamedTuple

import numpy as np
from numpy import int64, uint8, uint64

from bwarp.index.fm_index import FMIndex
from bwarp.index.locate_cpu import check_hit, locate
from bwarp.mapping.parameters import SHORT_READ, MappingParameters, SeedRound
from bwarp.reference import interval_at
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.threads import offsets_of
from bwarp.runtime.timeline import on_timeline
from bwarp.seeding.exact_cpu import exact_intervals

#: Reads that are searched together, so that their arrays stay in the processor's cache.
BLOCK = 4096


class SeedRows(NamedTuple):
    """Matches of the seeds of some reads in the index.

    Attributes
    ----------
    firsts : ndarray, shape=(n_reads + 1,), dtype=int64
        The seeds of read i are those from firsts[i] to firsts[i + 1].
    read_positions : ndarray, shape=(n_seeds,), dtype=int32
        Start of each seed in its read; -1 for a seed with an ambiguous base.
    starts, counts : ndarray, shape=(2 * n_seeds,), dtype=uint32
        The first SA row of each item, and its number of rows.
    taken : ndarray, shape=(2 * n_seeds,), dtype=uint32
        Number of rows that are located.
    differences : ndarray, shape=(n_reads,), dtype=int32
        Minimum differences between the read and a locus without located hits.
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
    """Search the seeds of `reads` (read numbers, int64)."""
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
    """Return the number of seeds of a read of `length` bases; both engines use it."""
    return max(int64(1), min(length // step, length - k + 1)) if length >= k else int64(0)


@compiled(inline="always")
def seed_position(number, n_seeds, length, k):
    """Return the base of a read at which a seed begins; both engines use it."""
    return number * (length - k) // max(int64(1), n_seeds - 1)


@compiled(inline="always")
def seed_kmer(codes, start, k):
    """Return the k-mer at a base, in the low bits, and its highest code; both engines use it."""
    kmer, worst = uint64(0), uint8(0)
    for at in range(start, start + k):
        code = codes[at]
        worst = max(worst, code)
        kmer = uint64(uint64(kmer << uint64(2)) | uint64(code & 3))
    return kmer, worst


@compiled
def _count_seeds(offsets, reads, k, step, firsts):
    """Write the start of each read's seeds in a list of all; return their number."""
    n_seeds = 0
    for i in range(reads.size):
        firsts[i] = n_seeds
        n_seeds += seed_count(offsets[reads[i] + 1] - offsets[reads[i]], k, step)
    firsts[reads.size] = n_seeds
    return n_seeds


@compiled
def _cut_seeds(codes, offsets, reads, k, firsts, kmers, read_positions):
    """Pack the seeds of reads into integers, with the first base in the highest bits."""
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
    """Choose how many hits of each item to locate: all of the rarest, until a read has `most`."""
    firsts, read_positions, counts = seeds.firsts, seeds.read_positions, seeds.counts
    taken, differences = seeds.taken, seeds.differences
    for i in range(firsts.size - 1):
        first, last = 2 * firsts[i], 2 * firsts[i + 1]
        total = np.int64(0)
        for item in range(first, last):
            # A seed with an ambiguous base, which was searched as A, has no hits.
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
                    # No item is rare enough: take some hits of this one, evenly spread over its
                    # rows.
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


# --------------------------------------------------------------------------------------------------
# Candidate loci of reads: seeds, located and grouped by strand and diagonal.
#
# A seed at base o of a read (of the read's reverse complement, on the other strand) that lies at
# genome position g is on diagonal g - o, which is where the read would begin. All seeds of an
# alignment without gaps share a diagonal; after a gap, the diagonal differs by its length.
#
#     key of a hit     bits 63 ... 36    35        34 ... 0
#                      read              strand    diagonal + DIAGONAL_SHIFT
#
# The rules, the same on both engines; each read is handled by itself:
#
# 1. A read of n >= k bases has max(1, min(n // step, n - k + 1)) seeds; seed i begins at base
#    i * (n - k) // (seeds - 1). A seed with an ambiguous base has no hits.
# 2. An item is a seed (even number) or its reverse complement (the odd number after it). Items are
#    taken from the rarest on, equally rare ones by number. Each item whose hits fit into the rest
#    of `hits` is located in full. If an item does not fit and fewer than `least_hits` are used,
#    hits evenly spread over its SA rows fill the rest.
# 3. Hits are sorted by strand and diagonal; hits at most `largest_gap` apart form a group. The main
#    diagonal of a group is the first one with the most hits; any other with at least half as many
#    is a separate candidate.
# 4. The `candidates_a_read` groups with the most hits are kept; ties are broken by strand and
#    diagonal.
#
# The maximum score of a locus that is not a candidate follows from the seeds located in full: the
# locus differs from the read in each of them.
#
#     read        |=======|   |=======|   |=======|   |=======|
#     hits            3        10,000         5          812        16 are located: all of two seeds
#                                                                   bound: two differences or more


DIAGONAL_SHIFT = 1 << 16

#: A locus that shares only a frequent k-mer with a read is usually an old copy, with this many
#: times the minimum number of differences. Measured: correct hits get higher MAPQ, incorrect ones
#: do not.
LIKELY = 2

#: Columns of a candidate before they become separate arrays.
_READ, _STRAND, _DIAGONAL, _LOWEST, _HIGHEST, _SEEDS = range(6)


class Candidates(NamedTuple):
    """Candidate loci, in the order of reads, most seeds first.

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
        Number of seeds on these diagonals.
    offsets : ndarray, shape=(n_reads + 1,), dtype=int64
        The candidates of read i are those in ``[offsets[i], offsets[i + 1])``.
    score_bounds : ndarray, shape=(n_reads,), dtype=int32
        The maximum score of a locus that is not a candidate, with a penalty for clipped ends.
    unlocated : ndarray, shape=(n_reads,), dtype=int32
        The likely score of an unlocated hit of the read's seeds; 0 if there is none.
    searched : ndarray, shape=(3,), dtype=int64
        Number of seeds searched, of hits located, and of candidates found.
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
    searched: np.ndarray


class GroupRules(NamedTuple):
    """Seed length, maximum span of a group, candidates per read, match score, minimum loss."""

    k: int
    largest_gap: int
    most: int
    match: int
    loss: int


def group_rules(k: int, parameters: MappingParameters) -> GroupRules:
    p = parameters
    return GroupRules(k, p.largest_gap, p.candidates_a_read, p.match, p.least_loss)


@on_timeline("find candidates")
def find_candidates(
    index: FMIndex,
    codes: np.ndarray,
    offsets: np.ndarray,
    reads: np.ndarray,
    seeds: SeedRound,
    parameters: MappingParameters,
) -> Candidates:
    """Return the candidates of some reads from exact seeds.

    A few reads are searched at a time, so that their arrays stay in the processor's cache.

    Parameters
    ----------
    codes : ndarray, shape=(total,), dtype=uint8
    offsets : ndarray, shape=(n_reads + 1,), dtype=int64
        Read i is ``codes[offsets[i] : offsets[i + 1]]``.
    reads : ndarray, dtype=int64
        The numbers of the reads to search, in order; the others have no candidates.
    """

    score_bounds, unlocated = np.zeros((2, len(offsets) - 1), np.int32)
    searched = np.zeros(2, np.int64)
    blocks = [np.empty((0, 6), np.int64)]
    for first in range(0, len(reads), BLOCK):
        last = min(first + BLOCK, len(reads))
        rows = seed_rows_of(index, codes, offsets, reads[first:last], seeds)
        searched += rows.read_positions.size, rows.taken.sum(dtype=np.int64)
        blocks.append(
            _of_block(
                index,
                offsets,
                reads[first:last],
                rows,
                seeds.length,
                parameters,
                score_bounds,
                unlocated,
            )
        )
    return candidates_of(np.concatenate(blocks), score_bounds, unlocated, searched)


def candidates_of(
    found: np.ndarray, score_bounds: np.ndarray, unlocated: np.ndarray, searched: np.ndarray
) -> Candidates:
    """Return candidates from rows of six numbers each, in the order of reads."""
    return Candidates(
        reads=found[:, _READ].astype(np.int32),
        strands=found[:, _STRAND].astype(np.uint8),
        diagonals=found[:, _DIAGONAL].copy(),
        lowest=found[:, _LOWEST].copy(),
        highest=found[:, _HIGHEST].copy(),
        seeds=found[:, _SEEDS].astype(np.int32),
        offsets=offsets_of(found[:, _READ], len(score_bounds)),
        score_bounds=score_bounds,
        unlocated=unlocated,
        searched=np.append(searched, len(found)),
    )


def _of_block(index, offsets, reads, seeds, k, parameters, score_bounds, unlocated) -> np.ndarray:
    """Return the candidates of reads, one per row, from the SA rows of their seeds."""
    n_hits = int(seeds.taken.sum(dtype=np.int64))
    rows, keys = np.empty(n_hits, np.uint32), np.empty(n_hits, np.uint64)
    _list_rows(seeds, rows)
    reference = index.reference
    _make_keys(
        offsets, reads, k, seeds, locate(index, rows), reference.segment_text,
        reference.segment_genome, keys,
    )  # fmt: skip
    keys.sort()
    found = np.empty((n_hits, 6), np.int64)
    rules = group_rules(k, parameters)
    n_found = _group(keys, offsets, reads, seeds, rules, found, score_bounds, unlocated)
    return found[:n_found]


@compiled(inline="always")
def diagonal_of(key):
    """Return the diagonal in a key; both engines use it."""
    return int64(key & uint64((1 << 35) - 1)) - DIAGONAL_SHIFT


@compiled(inline="always")
def differences_of_rest(differences, all_located, n_seeds, n_shared, length, k):
    """Return the minimum differences of a locus with at most `n_shared` located seeds.

    A difference destroys at most as many seeds as overlap at a base. If some seeds are not located,
    only the `differences` non-overlapping seeds located in full count, less those that the locus
    shares. The result is at most `differences`, the bound of loci without located hits. Both
    engines use it.
    """
    if not all_located:
        return max(int64(0), differences - n_shared)
    overlap = int64(1)
    if n_seeds > 1:
        overlap += (k - 1) // ((length - k) // (n_seeds - 1))
    return min(differences, max(int64(0), n_seeds - n_shared + overlap - 1) // overlap)


@compiled(forceinline=True)
def likely_score(bound, length, match):
    """Return the likely score of a locus that was not located; both engines use it.

    For a short read, this is the bound itself: the locus may have only the mismatches that it must
    have.
    """
    times = LIKELY if length >= SHORT_READ else 1
    return max(int64(0), times * bound - (times - 1) * match * length)


@compiled(forceinline=True)
def score_bound_of(likely, length, match):
    """Invert `likely_score`: return the score bound for a `likely` other than 0."""
    times = LIKELY if length >= SHORT_READ else 1
    return (likely + (times - 1) * match * length) // times


@compiled(inline="always")
def put_bounds(read, length, differences, all_located, match, loss, score_bounds, unlocated):
    """Write the score bounds of loci that are not candidates; both engines use it."""
    bound = max(int64(0), match * length - loss * differences)
    score_bounds[read] = bound
    if not all_located:
        unlocated[read] = likely_score(bound, length, match)


@compiled
def _list_rows(seeds, rows):
    """List the SA rows of the hits to locate, evenly spread over those of their item."""
    starts, counts, taken = seeds.starts, seeds.counts, seeds.taken
    hit = 0
    for item in range(taken.size):
        n = np.int64(taken[item])
        for i in range(n):
            rows[hit] = np.int64(starts[item]) + i * np.int64(counts[item]) // n
            hit += 1


@compiled
def _make_keys(offsets, reads, k, seeds, positions, segment_text, segment_genome, keys):
    firsts, read_positions, taken = seeds.firsts, seeds.read_positions, seeds.taken
    n_segments = segment_genome.size
    segment = 0
    hit = 0
    for i in range(reads.size):
        room = offsets[reads[i] + 1] - offsets[reads[i]] - k
        for item in range(2 * firsts[i], 2 * firsts[i + 1]):
            read_position = np.int64(read_positions[item >> 1])
            offset = room - read_position if item & 1 else read_position
            head = np.uint64(2 * i + (item & 1)) << np.uint64(35)
            for _ in range(np.int64(taken[item])):
                position = np.int64(positions[hit])
                if position < segment_text[segment] or position >= segment_text[segment + 1]:
                    segment = interval_at(segment_text[:n_segments], position)
                check_hit(position, k, segment_text[segment + 1])
                genome = np.int64(segment_genome[segment]) + position - segment_text[segment]
                keys[hit] = head | np.uint64(genome - offset + DIAGONAL_SHIFT)
                hit += 1


@compiled(counted=False)
def _group(keys, offsets, reads, seeds, rules, found, score_bounds, unlocated):
    """Group sorted keys of reads; keep the `most` groups of each with most seeds.

    A diagonal with at least half as many seeds as the main one is a separate candidate: in a tandem
    repeat it is another locus; with an indel it will turn out to be the same locus.
    """
    firsts, counts, taken = seeds.firsts, seeds.counts, seeds.taken
    n_found = 0
    at = 0
    for i in range(reads.size):
        first_found = n_found
        while at < keys.size and np.int64(keys[at] >> np.uint64(36)) == i:
            head = keys[at] >> np.uint64(35)
            group_start = at
            best, best_count = diagonal_of(keys[at]), 0
            last = best
            run_start = at
            while at < keys.size and keys[at] >> np.uint64(35) == head:
                diagonal = diagonal_of(keys[at])
                if diagonal - last > rules.largest_gap:
                    break
                if diagonal != last:
                    run_start = at
                if at - run_start + 1 > best_count:
                    best, best_count = diagonal, at - run_start + 1
                last = diagonal
                at += 1
            strand = np.int64(head & np.uint64(1))
            lowest = diagonal_of(keys[group_start])
            candidate = reads[i], strand, best, lowest, last, at - group_start
            _insert(found, first_found, n_found, candidate)
            n_found += 1
            if best_count == at - group_start or best_count == 1:
                continue
            run_start = group_start
            for j in range(group_start, at):
                diagonal = diagonal_of(keys[j])
                if j + 1 < at and diagonal_of(keys[j + 1]) == diagonal:
                    continue
                count = j + 1 - run_start
                run_start = j + 1
                if diagonal != best and 2 * count >= best_count:
                    candidate = reads[i], strand, diagonal, diagonal, diagonal, count
                    _insert(found, first_found, n_found, candidate)
                    n_found += 1
        n_seeds = firsts[i + 1] - firsts[i]
        length = offsets[reads[i] + 1] - offsets[reads[i]]
        differences = np.int64(seeds.differences[i])
        all_located = True
        for item in range(2 * firsts[i], 2 * firsts[i + 1]):
            all_located = all_located and taken[item] == counts[item]
        if n_found - first_found > rules.most:
            n_found = first_found + rules.most
            n_shared = np.int64(found[n_found, _SEEDS])
            differences = differences_of_rest(
                differences, all_located, n_seeds, n_shared, length, rules.k
            )
            all_located = False
        put_bounds(
            reads[i], length, differences, all_located, rules.match, rules.loss, score_bounds,
            unlocated,
        )  # fmt: skip
    return n_found


@compiled
def _insert(found, first, n_found, candidate):
    """Insert a row by number of seeds; ties keep the order of strand and diagonal."""
    slot = n_found
    while slot > first and found[slot - 1, _SEEDS] < candidate[_SEEDS]:
        for column in range(6):
            found[slot, column] = found[slot - 1, column]
        slot -= 1
    for column in range(6):
        found[slot, column] = candidate[column]

"""Candidate places of reads on the card: those that candidates_cpu gathers, from the same keys.

keys of a read, in order  ->  candidates, most seeds first  ->  side by side with all others
                    (group_keys)                    (write_candidates)
"""

import numpy as np
from numba import cuda, int64, uint64
from numba.cuda import types

from bwarp.index.device_cuda import DeviceIndex
from bwarp.mapping.candidates_cpu import DIAGONAL_SHIFT, LIKELY, Candidates
from bwarp.mapping.parameters import MappingParameters, SeedRound
from bwarp.mapping.reads_cuda import DeviceReads
from bwarp.mapping.seed_keys_cuda import add_up, find_keys, hits_of

__all__ = ["KERNEL_SIGNATURES", "find_candidates"]

#: Threads a block.
BLOCK = 128

#: Numbers that `group_keys` keeps of a candidate: diagonal, lowest, highest, seeds and strand.
_FIELDS = 4


def find_candidates(
    device: DeviceIndex,
    reads: DeviceReads,
    wanted,
    n_wanted: int,
    seeds: SeedRound,
    parameters: MappingParameters,
) -> Candidates:
    """The candidates of some reads from exact seeds, as arrays on the card.

    Parameters
    ----------
    wanted : device array, shape=(n_wanted,), dtype=int32
        The reads to search, in order; the others have no candidates.

    Returns
    -------
    candidates : Candidates
        With `offsets` of dtype uint32; `searched` is on the host.
    """
    n_reads = reads.n_reads
    found_keys = find_keys(device, reads, wanted, n_wanted, seeds)
    found = cuda.device_array(max(1, _FIELDS * found_keys.n_hits), np.int64)
    offsets = cuda.to_device(np.zeros(n_reads + 1, np.uint32))
    unlisted, unseen = (cuda.to_device(np.zeros(n_reads, np.int32)) for _ in range(2))
    gap = parameters.gap_open + parameters.gap_extend
    group_keys[_blocks(n_wanted), BLOCK](
        found_keys.keys, found_keys.seed_firsts, found_keys.places, found_keys.n_rows,
        found_keys.hit_firsts, reads.offsets, wanted, n_wanted, seeds.length,
        found_keys.differences, parameters.largest_gap, parameters.candidates_a_read,
        parameters.match, min(parameters.match - parameters.mismatch, gap), found, offsets,
        unlisted, unseen,
    )  # fmt: skip
    n_found = add_up(offsets)
    candidates = Candidates(
        reads=cuda.device_array(max(1, n_found), np.int32),
        strands=cuda.device_array(max(1, n_found), np.uint8),
        diagonals=cuda.device_array(max(1, n_found), np.int64),
        lowest=cuda.device_array(max(1, n_found), np.int64),
        highest=cuda.device_array(max(1, n_found), np.int64),
        seeds=cuda.device_array(max(1, n_found), np.int32),
        offsets=offsets,
        unlisted=unlisted,
        unseen=unseen,
        searched=np.array([found_keys.n_seeds, found_keys.n_hits, n_found]),
    )
    if n_found:
        write_candidates[_blocks(n_wanted), BLOCK](
            found, found_keys.seed_firsts, found_keys.hit_firsts, wanted, n_wanted, offsets,
            candidates.reads, candidates.strands, candidates.diagonals, candidates.lowest,
            candidates.highest, candidates.seeds,
        )  # fmt: skip
    return candidates


def _blocks(threads: int) -> int:
    return max(1, -(-threads // BLOCK))


@cuda.jit(device=True)
def diagonal_of(key):
    return int64(key & uint64((1 << 35) - 1)) - DIAGONAL_SHIFT


@cuda.jit(device=True)
def insert(found, first, n_found, strand, diagonal, lowest, highest, count):
    """Insert by the number of seeds; on equal numbers the order of strand and place stays."""
    place = first + n_found
    while place > first and found[_FIELDS * place - 1] >> 1 < count:
        for field in range(_FIELDS):
            found[_FIELDS * place + field] = found[_FIELDS * (place - 1) + field]
        place -= 1
    found[_FIELDS * place] = diagonal
    found[_FIELDS * place + 1] = lowest
    found[_FIELDS * place + 2] = highest
    found[_FIELDS * place + 3] = 2 * count + strand


@cuda.jit(cache=True)
def group_keys(
    keys, firsts, places, n_rows, hit_firsts, offsets, wanted, n_wanted, k, differences,
    largest_gap, most, match, loss, found, counts, unlisted, unseen,
):  # fmt: skip
    """Gather the keys of every read into candidates, as candidates_cpu says.

    One thread a read, its candidates where its keys are: there are never more. Reads every key
    twice or three times.
    """
    i = cuda.grid(1)
    if i >= n_wanted:
        return
    begin = int64(hit_firsts[2 * int64(firsts[i])])
    end = int64(hit_firsts[2 * int64(firsts[i + 1])])
    n_found = int64(0)
    at = begin
    while at < end:
        head = keys[at] >> uint64(35)
        group_start = at
        best, best_count = diagonal_of(keys[at]), int64(0)
        last = best
        run_start = at
        while at < end and keys[at] >> uint64(35) == head:
            diagonal = diagonal_of(keys[at])
            if diagonal - last > largest_gap:
                break
            if diagonal != last:
                run_start = at
            if at - run_start + 1 > best_count:
                best, best_count = diagonal, at - run_start + 1
            last = diagonal
            at += 1
        strand = int64(head & uint64(1))
        lowest = diagonal_of(keys[group_start])
        insert(found, begin, n_found, strand, best, lowest, last, at - group_start)
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
                insert(found, begin, n_found, strand, diagonal, diagonal, diagonal, count)
                n_found += 1
    read = wanted[i]
    n_seeds = int64(firsts[i + 1]) - int64(firsts[i])
    length = offsets[read + 1] - offsets[read]
    all_seen = True
    for item in range(2 * int64(firsts[i]), 2 * int64(firsts[i + 1])):
        taken = int64(hit_firsts[item + 1]) - int64(hit_firsts[item])
        all_seen = all_seen and taken == hits_of(places, n_rows, item)
    n_different = int64(differences[i])
    if n_found > most:
        # A base lies in so many seeds at most, so what a group lacks in seeds says how much it
        # differs at least.
        overlap = int64(1)
        if n_seeds > 1:
            overlap += (k - 1) // ((length - k) // (n_seeds - 1))
        lacking = n_seeds - (found[_FIELDS * (begin + most) + 3] >> 1)
        n_different = min(n_different, max(int64(0), lacking + overlap - 1) // overlap)
        all_seen = False
        n_found = int64(most)
    counts[read] = n_found
    unlisted[read] = max(int64(0), match * length - loss * n_different)
    if not all_seen:
        unseen[read] = max(int64(0), match * length - LIKELY * loss * n_different)


@cuda.jit(cache=True)
def write_candidates(
    found, firsts, hit_firsts, wanted, n_wanted, offsets, reads, strands, diagonals, lowest,
    highest, seeds,
):  # fmt: skip
    """Copy the candidates to where the running sums say. One thread a read."""
    i = cuda.grid(1)
    if i >= n_wanted:
        return
    read = wanted[i]
    source = _FIELDS * int64(hit_firsts[2 * int64(firsts[i])])
    for place in range(int64(offsets[read]), int64(offsets[read + 1])):
        reads[place] = read
        diagonals[place] = found[source]
        lowest[place] = found[source + 1]
        highest[place] = found[source + 2]
        strands[place] = found[source + 3] & 1
        seeds[place] = found[source + 3] >> 1
        source += _FIELDS


_INTEGER, _LONGS, _WORDS = types.int64, types.int64[::1], types.uint64[::1]
_NUMBERS, _SIGNED, _BYTES = types.uint32[::1], types.int32[::1], types.uint8[::1]

#: The argument types that every kernel is compiled with.
KERNEL_SIGNATURES = {
    group_keys: (
        _WORDS, _NUMBERS, _SIGNED, _NUMBERS, _NUMBERS, _LONGS, _SIGNED, _INTEGER, _INTEGER, _SIGNED,
        _INTEGER, _INTEGER, _INTEGER, _INTEGER, _LONGS, _NUMBERS, _SIGNED, _SIGNED,
    ),
    write_candidates: (
        _LONGS, _NUMBERS, _NUMBERS, _SIGNED, _INTEGER, _NUMBERS, _SIGNED, _BYTES, _LONGS, _LONGS,
        _LONGS, _SIGNED,
    ),
}  # fmt: skip

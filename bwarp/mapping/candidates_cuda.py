"""Find candidate loci of reads on the GPU, the same as candidates_cpu finds from the same keys.

    keys of a read, in order  ->  candidates, most seeds first  ->  candidates of all reads
                        (group_keys)                    (write_candidates)

A warp groups a read's keys, 32 at a time, one per lane. Ballots find the starts of groups and
diagonals, and running maxima the diagonal with most keys in each group:

    diagonals   7  7  9 | 80 | 310 310 311 311 311 313 | ...       opens a group 2, a diagonal 1
    opens       2  0  1 | 2  | 2   0   1   0   0   1   | 2
    keys so far -  2  1   1    -   2   -   -   3   1               at the last key of a diagonal
    most        -  2  2   1    -   2   -   -   3   3

A candidate is stored as one number, so that sorting numbers sorts candidates: most seeds first,
then by their first key.

    bits    62 ... 32               31 ... 1               0
            MOST_SEEDS - seeds      index of its key       0 for a group, 1 for a further diagonal
"""

from typing import NamedTuple

import numpy as np

from bwarp.gpu.cuda import cuda, int32, int64, uint8, uint32, uint64
from bwarp.gpu.device_arrays import columns, zeros
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import ALL_LANES, WARP
from bwarp.gpu.sums_and_sorts import add_up, sort_list
from bwarp.index.device_index_cuda import DeviceIndex
from bwarp.mapping.parameters import MappingParameters, SeedRound
from bwarp.mapping.seed_selection_cuda import SeedKeys, find_keys, hits_of
from bwarp.mapping.seeds_cpu import (
    GroupRules,
    diagonal_of,
    differences_of_rest,
    group_rules,
    put_bounds,
)
from bwarp.reads.device_reads_cuda import DeviceReads

#: The low half of a number.
_LOW = 0xFFFFFFFF

#: Maximum number of seeds of a candidate.
MOST_SEEDS = (1 << 31) - 1

#: What a key opens: nothing, a diagonal of its group, or a group.
_DIAGONAL, _GROUP = 1, 2


class DeviceCandidates(NamedTuple):
    """The rows of `Candidates` on the GPU, and the offsets per read."""

    reads: int32[::1]
    strands: uint8[::1]
    diagonals: int64[::1]
    lowest: int64[::1]
    highest: int64[::1]
    seeds: int32[::1]
    offsets: uint32[::1]


class ScoreBounds(NamedTuple):
    """Score bounds per read, as in `Candidates`."""

    score_bounds: int32[::1]
    unlocated: int32[::1]


class FoundCandidates(NamedTuple):
    """Candidates, and further data of the reads; `searched` as in `Candidates`."""

    candidates: DeviceCandidates
    bounds: ScoreBounds
    searched: np.ndarray


class Grouped(NamedTuple):
    """The candidates of each read, stored at its keys; and main diagonals (`list_groups`)."""

    entries: uint64[::1]
    longest: int64[::1]


def find_candidates(
    device: DeviceIndex,
    reads: DeviceReads,
    wanted,
    n_wanted: int,
    seeds: SeedRound,
    parameters: MappingParameters,
) -> FoundCandidates:
    """Return the candidates of some reads from exact seeds.

    Parameters
    ----------
    wanted : device array, shape=(n_wanted,), dtype=int32
        The reads to search, in order; other reads get no candidates.
    """
    keys = find_keys(device, reads, wanted, n_wanted, seeds)
    return group(keys, reads, wanted, seeds.length, parameters)


def group(
    found: SeedKeys,
    reads: DeviceReads,
    wanted,
    k: int,
    parameters: MappingParameters,
) -> FoundCandidates:
    """Return the candidates from keys of seeds of k bases."""
    n_reads = reads.n_reads
    grouped = columns(Grouped, max(1, found.n_hits))
    offsets = zeros(n_reads + 1, np.uint32)
    bounds = ScoreBounds(*(zeros(n_reads, np.int32) for _ in range(2)))
    rules = group_rules(k, parameters)
    group_keys(found, reads, wanted, rules, grouped, offsets, bounds)
    n_found = add_up(offsets)
    candidates = columns(DeviceCandidates, max(1, n_found), offsets=offsets)
    if n_found:
        write_candidates(found, grouped, wanted, candidates)
    return FoundCandidates(candidates, bounds, np.array([found.n_seeds, found.n_hits, n_found]))


@cuda.jit(device=True)
def opened(keys, begin, end, at, largest_gap):
    """Return what the key at an index opens; after a read's last key, a group."""
    if at <= begin or at >= end:
        return _GROUP
    key, before = int64(keys[at]), int64(keys[at - 1])
    if key == before:
        return 0
    # Keys of different strands are farther apart than any two loci of a genome.
    return _GROUP if key - before > largest_gap else _DIAGONAL


@cuda.jit(device=True)
def last_opened(opens, step, before):
    """Return where the group or diagonal of this lane's key opened: at the last lane up to this one
    that opens it, or `before` this step. All lanes of a warp call it."""
    lanes = int64(cuda.ballot_sync(ALL_LANES, opens)) & ((int64(2) << cuda.laneid) - 1)
    return step + 63 - int64(cuda.clz(lanes)) if lanes != 0 else before


@cuda.jit(device=True)
def lanes_before(truth):
    """Return the number of true lanes before this one, and of all. All lanes of a warp call it."""
    lanes = int64(cuda.ballot_sync(ALL_LANES, truth)) & ALL_LANES
    return cuda.popc(lanes & ((int64(1) << cuda.laneid) - 1)), cuda.popc(lanes)


@cuda.jit(device=True)
def list_groups(keys, begin, end, largest_gap, entries, longest):
    """List a read's groups in order from entries[begin] on.

    The main diagonal of each group is written to `longest` at the start of the group: its number of
    keys times 2**32, plus a number that is larger the earlier its last key. Return the number of
    groups, and whether any has further diagonals that may be candidates.
    """
    lane = int64(cuda.laneid)
    n_groups = int64(0)
    has_more = False
    group, diagonal, most = begin, begin, int64(0)
    for step in range(begin, end, WARP):
        at = step + lane
        opens = opened(keys, begin, end, at, largest_gap)
        closes = opened(keys, begin, end, at + 1, largest_gap)
        group = last_opened(opens == _GROUP, step, cuda.shfl_sync(ALL_LANES, group, WARP - 1))
        diagonal = last_opened(opens > 0, step, cuda.shfl_sync(ALL_LANES, diagonal, WARP - 1))
        most_before = cuda.shfl_sync(ALL_LANES, most, WARP - 1)
        most = int64(0)
        if at < end and closes > 0:
            most = ((at + 1 - diagonal) << 32) | (_LOW - (at - begin))
        for distance in (1, 2, 4, 8, 16):
            other = cuda.shfl_up_sync(ALL_LANES, most, distance)
            if lane >= distance and at - distance >= group:
                most = max(most, other)
        if group < step:
            most = max(most, most_before)
        is_last = at < end and closes == _GROUP
        before, n_here = lanes_before(is_last)
        if is_last:
            n_keys = at + 1 - group
            entries[begin + n_groups + before] = ((MOST_SEEDS - n_keys) << 32) | (
                2 * (group - begin)
            )
            longest[group] = most
            has_more = has_more or 1 < most >> 32 < n_keys
        n_groups += n_here
    return n_groups, cuda.any_sync(ALL_LANES, has_more)


@cuda.jit(device=True)
def list_more(keys, begin, end, largest_gap, longest, entries, n_listed):
    """List diagonals with at least half the keys of the main one; return the number listed."""
    group, diagonal = begin, begin
    for step in range(begin, end, WARP):
        at = step + int64(cuda.laneid)
        opens = opened(keys, begin, end, at, largest_gap)
        closes = opened(keys, begin, end, at + 1, largest_gap)
        group = last_opened(opens == _GROUP, step, cuda.shfl_sync(ALL_LANES, group, WARP - 1))
        diagonal = last_opened(opens > 0, step, cuda.shfl_sync(ALL_LANES, diagonal, WARP - 1))
        n_keys = at + 1 - diagonal
        is_one = False
        if at < end and closes > 0:
            most = longest[group]
            is_main = most & _LOW == _LOW - (at - begin)
            is_one = not is_main and most >> 32 > 1 and 2 * n_keys >= most >> 32
        before, n_here = lanes_before(is_one)
        if is_one:
            entries[begin + n_listed + before] = ((MOST_SEEDS - n_keys) << 32) | (
                2 * (at - begin) + 1
            )
        n_listed += n_here
    return n_listed


@kernel(over="found.differences", per=WARP)
def group_keys(
    found: SeedKeys, reads: DeviceReads, wanted: int32[::1], rules: GroupRules, grouped: Grouped,
    counts: uint32[::1], bounds: ScoreBounds,
):  # fmt: skip
    """Group the keys of every read into candidates by the rules of candidates_cpu, and sort them.

    One warp per read. Candidates are stored at the read's keys, which are never fewer. Each key is
    read once, or twice if a group has several diagonals.
    """
    keys, firsts, hit_firsts = found.keys, found.seed_firsts, found.hit_firsts
    i = cuda.grid(1) // WARP
    if i >= found.differences.size:
        return
    begin = int64(hit_firsts[2 * int64(firsts[i])])
    end = int64(hit_firsts[2 * int64(firsts[i + 1])])
    n_found, has_more = list_groups(
        keys, begin, end, rules.largest_gap, grouped.entries, grouped.longest
    )
    if has_more:
        cuda.syncwarp()
        n_found = list_more(
            keys, begin, end, rules.largest_gap, grouped.longest, grouped.entries, n_found
        )
    if n_found > 1:
        cuda.syncwarp()
        sort_list(grouped.entries, found.spare, begin, begin + n_found)
    is_left_out = False
    for item in range(2 * int64(firsts[i]) + cuda.laneid, 2 * int64(firsts[i + 1]), int64(WARP)):
        taken = int64(hit_firsts[item + 1]) - int64(hit_firsts[item])
        is_left_out = is_left_out or taken != hits_of(found, item)
    is_left_out = cuda.any_sync(ALL_LANES, is_left_out)
    if cuda.laneid > 0:
        return
    read = wanted[i]
    n_seeds = int64(firsts[i + 1]) - int64(firsts[i])
    length = reads.offsets[read + 1] - reads.offsets[read]
    n_different = int64(found.differences[i])
    if n_found > rules.most:
        n_shared = MOST_SEEDS - (int64(grouped.entries[begin + rules.most]) >> 32)
        n_different = differences_of_rest(
            n_different, not is_left_out, n_seeds, n_shared, length, rules.k
        )
        is_left_out = True
        n_found = int64(rules.most)
    counts[read] = n_found
    put_bounds(
        read, length, n_different, not is_left_out, rules.match, rules.loss, bounds.score_bounds,
        bounds.unlocated,
    )  # fmt: skip


@kernel(over="found.differences", per=WARP)
def write_candidates(found: SeedKeys, grouped: Grouped, wanted: int32[::1], to: DeviceCandidates):
    """Write candidates to their offsets. One warp per read, one lane per candidate."""
    i = cuda.grid(1) // WARP
    if i >= found.differences.size:
        return
    read = wanted[i]
    begin = int64(found.hit_firsts[2 * int64(found.seed_firsts[i])])
    first = int64(to.offsets[read])
    for read_position in range(first + cuda.laneid, int64(to.offsets[read + 1]), int64(WARP)):
        entry = int64(grouped.entries[begin + read_position - first])
        n_keys = MOST_SEEDS - (entry >> 32)
        at = begin + ((entry & _LOW) >> 1)
        key = found.keys[at]
        main, last = key, key
        if entry & 1 == 0:
            main = found.keys[begin + _LOW - (grouped.longest[at] & _LOW)]
            last = found.keys[at + n_keys - 1]
        to.reads[read_position] = read
        to.strands[read_position] = (key >> uint64(35)) & uint64(1)
        to.diagonals[read_position] = diagonal_of(main)
        to.lowest[read_position] = diagonal_of(key)
        to.highest[read_position] = diagonal_of(last)
        to.seeds[read_position] = n_keys

"""Candidate loci of reads on the GPU: those that candidates_cpu finds, from the same keys.

    keys of a read, in order  ->  candidates, most seeds first  ->  candidates of all reads
                        (group_keys)                    (write_candidates)

A warp groups a read's keys, 32 at a time, each lane one. Votes of the lanes find where groups and
diagonals begin, and running maxima the diagonal of a group with most keys:

    diagonals   7  7  9 | 80 | 310 310 311 311 311 313 | ...       opens a group 2, a diagonal 1
    opens       2  0  1 | 2  | 2   0   1   0   0   1   | 2
    keys so far -  2  1   1    -   2   -   -   3   1               at the last key of a diagonal
    most        -  2  2   1    -   2   -   -   3   3

A candidate is kept as one number, so that candidates in order are numbers in order: most seeds
first, then those whose first key comes first.

    bits    62 ... 32               31 ... 1               0
            MOST_SEEDS - seeds      where its key is       0 of a group, 1 of one more diagonal
"""

import numpy as np
from numba import cuda, int64, uint64
from numba.cuda import types

from bwarp.gpu.device_arrays import zeros
from bwarp.gpu.kernel_loading import compiled_kernel
from bwarp.gpu.launch import ALL_LANES, WARP, launch
from bwarp.gpu.list_sort import sort_list
from bwarp.gpu.prefix_sum import add_up
from bwarp.index.device_index_cuda import DeviceIndex
from bwarp.mapping.parameters import MappingParameters, SeedRound
from bwarp.mapping.reads.device_reads_cuda import DeviceReads
from bwarp.mapping.seeds.candidates_cpu import (
    Candidates,
    diagonal_of,
    differences_of_rest,
    put_bounds,
)
from bwarp.mapping.seeds.seed_selection_cuda import SeedKeys, find_keys, hits_of

__all__ = ["KERNEL_SIGNATURES", "find_candidates"]

#: The low half of a number.
_LOW = 0xFFFFFFFF

#: Of a candidate.
MOST_SEEDS = (1 << 31) - 1

#: What a key opens: nothing, a diagonal of its group, or a group.
_DIAGONAL, _GROUP = 1, 2


def find_candidates(
    device: DeviceIndex,
    reads: DeviceReads,
    wanted,
    n_wanted: int,
    seeds: SeedRound,
    parameters: MappingParameters,
) -> Candidates:
    """The candidates of some reads from exact seeds, as arrays on the GPU.

    Parameters
    ----------
    wanted : device array, shape=(n_wanted,), dtype=int32
        The reads to search, in order; the others have no candidates.

    Returns
    -------
    candidates : Candidates
        With `offsets` of dtype uint32; `searched` is on the host.
    """
    keys = find_keys(device, reads, wanted, n_wanted, seeds)
    return group(keys, reads, wanted, n_wanted, seeds.length, parameters)


def group(
    found: SeedKeys,
    reads: DeviceReads,
    wanted,
    n_wanted: int,
    k: int,
    parameters: MappingParameters,
) -> Candidates:
    """The candidates that keys of seeds of k bases make."""
    n_reads = reads.n_reads
    entries = cuda.device_array(max(1, found.n_hits), np.uint64)
    longest = cuda.device_array(max(1, found.n_hits), np.int64)
    offsets = zeros(n_reads + 1, np.uint32)
    score_bounds, unlocated = (zeros(n_reads, np.int32) for _ in range(2))
    group_keys[launch(n_wanted * WARP)](
        found.keys, found.seed_firsts, found.read_positions, found.n_rows, found.hit_firsts,
        reads.offsets, wanted, n_wanted, k, found.differences, parameters.largest_gap,
        parameters.candidates_a_read, parameters.match,
        parameters.least_loss, entries, found.spare, longest, offsets, score_bounds, unlocated,
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
        score_bounds=score_bounds,
        unlocated=unlocated,
        searched=np.array([found.n_seeds, found.n_hits, n_found]),
    )
    if n_found:
        write_candidates[launch(n_wanted * WARP)](
            entries, longest, found.keys, found.seed_firsts, found.hit_firsts, wanted, n_wanted,
            offsets, candidates.reads, candidates.strands, candidates.diagonals, candidates.lowest,
            candidates.highest, candidates.seeds,
        )  # fmt: skip
    return candidates


@cuda.jit(device=True)
def opened(keys, begin, end, at, largest_gap):
    """What the key at an index opens; after a read's last key, a group."""
    if at <= begin or at >= end:
        return _GROUP
    key, before = int64(keys[at]), int64(keys[at - 1])
    if key == before:
        return 0
    # Keys of the two strands are farther apart than any two loci of a genome.
    return _GROUP if key - before > largest_gap else _DIAGONAL


@cuda.jit(device=True)
def last_opened(opens, step, before):
    """Where what this lane's key belongs to was opened: by the last lane up to this one that opens
    it, or `before` this step. All lanes of a warp call it."""
    lanes = int64(cuda.ballot_sync(ALL_LANES, opens)) & ((int64(2) << cuda.laneid) - 1)
    return step + 63 - int64(cuda.clz(lanes)) if lanes != 0 else before


@cuda.jit(device=True)
def lanes_before(truth):
    """How many lanes before this one have it true, and how many of all. A whole warp calls it."""
    lanes = int64(cuda.ballot_sync(ALL_LANES, truth)) & ALL_LANES
    return cuda.popc(lanes & ((int64(1) << cuda.laneid) - 1)), cuda.popc(lanes)


@cuda.jit(device=True)
def list_groups(keys, begin, end, largest_gap, entries, longest):
    """List a read's groups from entries[begin] on, in their order.

    Into `longest`, where a group begins, goes its main diagonal: how many keys it has, times 2**32,
    and the larger the earlier its last key. Returns the number of groups, and whether any has
    diagonals besides that may be candidates.
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
    """List diagonals with half as many keys as their group's main one; how many are listed now."""
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


@compiled_kernel
def group_keys(
    keys, firsts, read_positions, n_rows, hit_firsts, offsets, wanted, n_wanted, k, differences,
    largest_gap, most, match, loss, entries, spare, longest, counts, score_bounds, unlocated,
):  # fmt: skip
    """Group the keys of every read into candidates by the rules of candidates_cpu, and sort those.

    One warp a read, its candidates where its keys are: there are never more. Reads every key once,
    or twice where a group has several diagonals.
    """
    i = cuda.grid(1) // WARP
    if i >= n_wanted:
        return
    begin = int64(hit_firsts[2 * int64(firsts[i])])
    end = int64(hit_firsts[2 * int64(firsts[i + 1])])
    n_found, has_more = list_groups(keys, begin, end, largest_gap, entries, longest)
    if has_more:
        cuda.syncwarp()
        n_found = list_more(keys, begin, end, largest_gap, longest, entries, n_found)
    if n_found > 1:
        cuda.syncwarp()
        sort_list(entries, spare, begin, begin + n_found)
    is_left_out = False
    for item in range(2 * int64(firsts[i]) + cuda.laneid, 2 * int64(firsts[i + 1]), int64(WARP)):
        taken = int64(hit_firsts[item + 1]) - int64(hit_firsts[item])
        is_left_out = is_left_out or taken != hits_of(read_positions, n_rows, item)
    is_left_out = cuda.any_sync(ALL_LANES, is_left_out)
    if cuda.laneid > 0:
        return
    read = wanted[i]
    n_seeds = int64(firsts[i + 1]) - int64(firsts[i])
    length = offsets[read + 1] - offsets[read]
    n_different = int64(differences[i])
    if n_found > most:
        n_shared = MOST_SEEDS - (int64(entries[begin + most]) >> 32)
        n_different = differences_of_rest(
            n_different, not is_left_out, n_seeds, n_shared, length, k
        )
        is_left_out = True
        n_found = int64(most)
    counts[read] = n_found
    put_bounds(read, length, n_different, not is_left_out, match, loss, score_bounds, unlocated)


@compiled_kernel
def write_candidates(
    entries, longest, keys, firsts, hit_firsts, wanted, n_wanted, offsets, reads, strands,
    diagonals, lowest, highest, seeds,
):  # fmt: skip
    """Write candidates out to where the running sums say. One warp a read, a lane a candidate."""
    i = cuda.grid(1) // WARP
    if i >= n_wanted:
        return
    read = wanted[i]
    begin = int64(hit_firsts[2 * int64(firsts[i])])
    first = int64(offsets[read])
    for read_position in range(first + cuda.laneid, int64(offsets[read + 1]), int64(WARP)):
        entry = int64(entries[begin + read_position - first])
        n_keys = MOST_SEEDS - (entry >> 32)
        at = begin + ((entry & _LOW) >> 1)
        key = keys[at]
        main, last = key, key
        if entry & 1 == 0:
            main = keys[begin + _LOW - (longest[at] & _LOW)]
            last = keys[at + n_keys - 1]
        reads[read_position] = read
        strands[read_position] = (key >> uint64(35)) & uint64(1)
        diagonals[read_position] = diagonal_of(main)
        lowest[read_position] = diagonal_of(key)
        highest[read_position] = diagonal_of(last)
        seeds[read_position] = n_keys


_INTEGER, _LONGS, _WORDS = types.int64, types.int64[::1], types.uint64[::1]
_NUMBERS, _SIGNED, _BYTES = types.uint32[::1], types.int32[::1], types.uint8[::1]

#: The argument types that every kernel is compiled with.
KERNEL_SIGNATURES = {
    group_keys: (
        _WORDS, _NUMBERS, _SIGNED, _NUMBERS, _NUMBERS, _LONGS, _SIGNED, _INTEGER, _INTEGER, _SIGNED,
        _INTEGER, _INTEGER, _INTEGER, _INTEGER, _WORDS, _WORDS, _LONGS, _NUMBERS, _SIGNED, _SIGNED,
    ),
    write_candidates: (
        _WORDS, _LONGS, _WORDS, _NUMBERS, _NUMBERS, _SIGNED, _INTEGER, _NUMBERS, _SIGNED, _BYTES,
        _LONGS, _LONGS, _LONGS, _SIGNED,
    ),
}  # fmt: skip

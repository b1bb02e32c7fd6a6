"""Seeds of reads and their hits on the GPU, as sorted keys: the first half of candidates_cuda.

    reads  ->  seeds, both strands  ->  SA rows  ->  how many hits to take  ->  positions  ->  keys
               (cut_seeds)      (exact_cuda)     (select_hits)         (list_hits, locate_hits)

A key has the bits that seeds_cpu describes, with the read's index in the list of reads searched.
The keys of a read are contiguous. Usually they are few, but there may be thousands; a warp sorts
them. The number of seeds and hits has no bound, so they are counted first; the running sums of the
counts say where to write them.
"""

from typing import NamedTuple

import numpy as np

from bwarp.gpu.cuda import cuda, int32, int64, uint32, uint64
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import ALL_LANES, WARP, launch
from bwarp.gpu.sums_and_sorts import add_up, sort_list
from bwarp.index.device_index_cuda import DeviceIndex
from bwarp.index.locate_cuda import (
    Segments,
    Suffixes,
    genome_position,
    position_of,
    step_to_sampled,
)
from bwarp.mapping.parameters import SeedRound
from bwarp.mapping.seeds_cpu import DIAGONAL_SHIFT, seed_count, seed_kmer, seed_position
from bwarp.reads.device_reads_cuda import DeviceReads
from bwarp.seeding.exact_cuda import LOCATED, SearchItems, exact_intervals
from bwarp.sequence import reverse_complement_kmer

#: Maximum hits of an item that a single thread lists.
FEW = 4

#: The low bits of an item's sort key: its index among the items of its read.
_ITEM = (1 << 31) - 1

#: Marks a key that has its genome position already; read numbers are too small for this bit.
_IS_LOCATED = 1 << 63


class Seeds(NamedTuple):
    """The seeds of some reads before the search: the k-mers of both strands."""

    items: uint64[::1]
    read_positions: int32[::1]
    owners: int32[::1]


class SearchedSeeds(NamedTuple):
    """The seeds after the search; fields as in `SeedKeys` and `Seeds`."""

    seed_firsts: uint32[::1]
    read_positions: int32[::1]
    owners: int32[::1]
    first_rows: uint32[::1]
    n_rows: uint32[::1]


class SeedKeys(NamedTuple):
    """The located hits of some reads' seeds; device arrays.

    An item is a seed on a strand: 2 * seed, or 2 * seed + 1 for its reverse complement.

    Attributes
    ----------
    seed_firsts : shape=(n_wanted + 1,)
        Start of each read's seeds.
    read_positions : shape=(n_seeds,)
        Start of each seed in its read; -1 for a seed with an ambiguous base.
    n_rows : shape=(2 * n_seeds,)
        Number of hits of each item, as `hits_of` reads them.
    hit_firsts : shape=(2 * n_seeds + 1,)
        Start of each item's keys before sorting; a read's first item gives the start of its keys.
    differences : shape=(n_wanted,)
        Minimum differences of any locus that is not located.
    keys, spare : shape=(n_hits,)
        `spare` is memory to sort in.
    """

    seed_firsts: uint32[::1]
    read_positions: int32[::1]
    n_rows: uint32[::1]
    hit_firsts: uint32[::1]
    differences: int32[::1]
    keys: uint64[::1]
    spare: uint64[::1]
    n_hits: int
    n_seeds: int


def find_keys(
    device: DeviceIndex, reads: DeviceReads, wanted, n_wanted: int, seeds: SeedRound
) -> SeedKeys:
    """Search the seeds of `reads` (device array, dtype=int32), and locate their hits."""
    k = seeds.length
    firsts = cuda.device_array(n_wanted + 1, np.uint32)
    count_seeds(reads, wanted, k, seeds.step, firsts)
    n_seeds = add_up(firsts)
    items = cuda.device_array(2 * n_seeds + 1, np.uint64)
    read_positions, owners = (cuda.device_array(max(1, n_seeds), np.int32) for _ in range(2))
    first_rows, n_rows = (cuda.device_array(max(1, 2 * n_seeds), np.uint32) for _ in range(2))
    if n_seeds:
        cut_seeds[launch(n_wanted * WARP)](
            reads, wanted, k, firsts, Seeds(items, read_positions, owners)
        )
        exact_intervals(device, SearchItems(items, 1, k, 2 * n_seeds), first_rows, n_rows)
    hit_firsts = cuda.device_array(2 * n_seeds + 1, np.uint32)
    differences = cuda.device_array(n_wanted, np.int32)
    # The search is done, so the memory of the seeds is free.
    spare_items = cuda.device_array(2 * n_seeds + 1, np.uint64)
    found = SearchedSeeds(firsts, read_positions, owners, first_rows, n_rows)
    select_hits(found, k, seeds.hits, seeds.least_hits, items, spare_items, hit_firsts, differences)
    n_hits = add_up(hit_firsts)
    keys, spare = (cuda.device_array(max(1, n_hits), np.uint64) for _ in range(2))
    if n_hits:
        rows, steps = (cuda.device_array(n_hits, np.uint32) for _ in range(2))
        list_hits(found, reads, wanted, k, hit_firsts, rows, keys)
        step_to_sampled(device.forward, device.suffixes.rate, rows, steps, n_hits)
        locate_hits(device.suffixes, device.segments, rows, steps, keys)
        sort_keys[launch(n_wanted * WARP)](keys, spare, firsts, hit_firsts)
    return SeedKeys(
        firsts, read_positions, n_rows, hit_firsts, differences, keys, spare, n_hits, n_seeds
    )


@kernel(over="counts")
def count_seeds(reads: DeviceReads, wanted: int32[::1], k: int, step: int, counts: uint32[::1]):
    """Count the seeds of each read, by the rule of seeds_cpu. One thread per read."""
    i = cuda.grid(1)
    if i < counts.size:
        n = int64(0)
        if i < counts.size - 1:
            n = seed_count(reads.offsets[wanted[i] + 1] - reads.offsets[wanted[i]], k, step)
        counts[i] = n


@kernel
def cut_seeds(reads: DeviceReads, wanted: int32[::1], k: int, firsts: uint32[::1], seeds: Seeds):
    """Pack the seeds of reads and their reverse complements.

    One warp per read; each thread takes every 32nd seed. It reads k bytes per seed, mostly from the
    cache.
    """
    i = cuda.grid(1) // WARP
    if i >= firsts.size - 1:
        return
    read = wanted[i]
    length = reads.offsets[read + 1] - reads.offsets[read]
    first, last = int64(firsts[i]), int64(firsts[i + 1])
    for seed in range(first + cuda.laneid, last, WARP):
        read_position = seed_position(seed - first, last - first, length, k)
        kmer, worst = seed_kmer(reads.both, reads.offsets[read] + read_position, k)
        shift = uint64(64 - 2 * k)
        seeds.items[2 * seed] = uint64(kmer << shift)
        seeds.items[2 * seed + 1] = uint64(uint64(reverse_complement_kmer(kmer, k)) << shift)
        seeds.read_positions[seed] = read_position if worst < 4 else -1
        seeds.owners[seed] = i


@cuda.jit(device=True)
def hits_of(seeds, item):
    """Return the number of hits of an item; 0 for a seed with an ambiguous base."""
    if seeds.read_positions[item >> 1] < 0:
        return int64(0)
    rows = seeds.n_rows[item]
    return int64(1) if rows == uint32(LOCATED) else int64(rows)


@cuda.jit(device=True)
def take_rarest(seeds, first, last, most, least, order, spare, taken):
    """Take all hits of the rarest items while they fit in `most`. Called by a whole warp.

    If fewer than `least` are taken, hits of the next item, evenly spread over its rows, fill the
    rest.
    """
    lane = int64(cuda.laneid)
    for item in range(first + lane, last, WARP):
        order[item] = (hits_of(seeds, item) << 31) | (item - first)
        taken[item] = 0
    cuda.syncwarp()
    sort_list(order, spare, first, last)
    used = int64(0)
    for step in range(first, last, WARP):
        item, count = int64(0), int64(most + 1)
        if step + lane < last:
            kmer = int64(order[step + lane])
            item, count = first + (kmer & _ITEM), kmer >> 31
        total = count
        for distance in (1, 2, 4, 8, 16):
            other = cuda.shfl_up_sync(ALL_LANES, total, distance)
            total += other if lane >= distance else 0
        fits = used + total <= most
        if fits:
            taken[item] = count
        n_fitting = cuda.popc(int64(cuda.ballot_sync(ALL_LANES, fits)) & ALL_LANES)
        last_total = cuda.shfl_sync(ALL_LANES, total, max(n_fitting - 1, 0))
        used += last_total if n_fitting > 0 else 0
        if n_fitting < WARP:
            if lane == n_fitting and step + lane < last and used < least:
                taken[item] = most - used
            break


@kernel(over="differences", per=WARP)
def select_hits(
    seeds: SearchedSeeds, k: int, most: int, least: int, order: uint64[::1], spare: uint64[::1],
    taken: uint32[::1], differences: int32[::1],
):  # fmt: skip
    """Choose how many hits of each item to locate: all of the rarest, until a read has `most`.

    One warp per read. The element of `taken` after the last is set to 0; `order` and `spare` have
    one number per item.
    """
    i = cuda.grid(1) // WARP
    if i >= differences.size:
        return
    lane = int64(cuda.laneid)
    first, last = 2 * int64(seeds.seed_firsts[i]), 2 * int64(seeds.seed_firsts[i + 1])
    if i == differences.size - 1 and lane == 0:
        taken[last] = 0
    total = int64(0)
    for item in range(first + lane, last, WARP):
        count = hits_of(seeds, item)
        taken[item] = count
        total += count
    for distance in (16, 8, 4, 2, 1):
        total += cuda.shfl_xor_sync(ALL_LANES, total, distance)
    if total > most:
        take_rarest(seeds, first, last, most, least, order, spare, taken)
    cuda.syncwarp()
    # A locus that is not found differs in each fully located seed that overlaps no other.
    n_different, end = int32(0), int64(0)
    for step in range(first, last, 2 * WARP):
        item = step + 2 * lane
        read_position = int64(-1)
        if item < last:
            is_full = taken[item] == hits_of(seeds, item)
            if is_full and taken[item + 1] == hits_of(seeds, item + 1):
                read_position = int64(seeds.read_positions[item >> 1])
        while True:
            waiting = int64(cuda.ballot_sync(ALL_LANES, read_position >= end)) & ALL_LANES
            if waiting == 0:
                break
            n_different = int32(n_different + 1)
            end = cuda.shfl_sync(ALL_LANES, read_position, int32(cuda.ffs(waiting) - 1)) + k
    if lane == 0:
        differences[i] = n_different


@cuda.jit(device=True)
def hit_row(first_row, count, n, hit):
    """Return the row of one of n hits that are evenly spread over the `count` rows of an item."""
    return first_row + (hit if n == count else hit * count // n)


@kernel(over="hit_firsts")
def list_hits(
    seeds: SearchedSeeds, reads: DeviceReads, wanted: int32[::1], k: int, hit_firsts: uint32[::1],
    rows: uint32[::1], keys: uint64[::1],
):  # fmt: skip
    """List the rows of the hits to locate, evenly spread over each item's rows, and begin their
    keys.

    One thread per item, which usually has no hit or one; the whole warp lists the hits of an item
    with more than `FEW`. Keys do not have their genome positions yet, except those of hits that the
    search has located, which are marked with `_IS_LOCATED`.
    """
    item = int64(cuda.grid(1))
    first_hit, n = int64(0), int64(0)
    if item < hit_firsts.size - 1:
        first_hit = int64(hit_firsts[item])
        n = int64(hit_firsts[item + 1]) - first_hit
    key, first_row, count = int64(0), int64(0), int64(0)
    if n > 0:
        i = int64(seeds.owners[item >> 1])
        offset = int64(seeds.read_positions[item >> 1])
        if item & 1:
            read = wanted[i]
            offset = reads.offsets[read + 1] - reads.offsets[read] - k - offset
        key = ((2 * i + (item & 1)) << 35) | (DIAGONAL_SHIFT - offset)
        first_row, count = int64(seeds.first_rows[item]), int64(seeds.n_rows[item])
        if count == LOCATED:
            rows[first_hit] = 0
            keys[first_hit] = uint64(key + first_row) | uint64(_IS_LOCATED)
        elif n <= FEW:
            for hit in range(n):
                rows[first_hit + hit] = hit_row(first_row, count, n, hit)
                keys[first_hit + hit] = key
    waiting = int64(cuda.ballot_sync(ALL_LANES, n > FEW)) & ALL_LANES
    while waiting != 0:
        lane = int32(cuda.ffs(waiting) - 1)
        waiting &= waiting - 1
        first_hit_of = cuda.shfl_sync(ALL_LANES, first_hit, lane)
        n_of = cuda.shfl_sync(ALL_LANES, n, lane)
        key_of = cuda.shfl_sync(ALL_LANES, key, lane)
        first_row_of = cuda.shfl_sync(ALL_LANES, first_row, lane)
        count_of = cuda.shfl_sync(ALL_LANES, count, lane)
        for hit in range(int64(cuda.laneid), n_of, WARP):
            rows[first_hit_of + hit] = hit_row(first_row_of, count_of, n_of, hit)
            keys[first_hit_of + hit] = key_of


@kernel(over="rows")
def locate_hits(
    suffixes: Suffixes, segments: Segments, rows: uint32[::1], steps: uint32[::1], keys: uint64[::1]
):
    """Add genome positions to the keys. One thread per hit."""
    hit = cuda.grid(1)
    if hit >= rows.size:
        return
    key = keys[hit]
    if key & uint64(_IS_LOCATED):
        keys[hit] = key & uint64(_IS_LOCATED - 1)
        return
    position = position_of(suffixes, rows[hit], steps[hit])
    keys[hit] = key + uint64(genome_position(segments, position))


@kernel
def sort_keys(keys: uint64[::1], spare: uint64[::1], firsts: uint32[::1], hit_firsts: uint32[::1]):
    """Sort the keys of each read. One warp per read."""
    i = cuda.grid(1) // WARP
    if i < firsts.size - 1:
        begin = int64(hit_firsts[2 * int64(firsts[i])])
        end = int64(hit_firsts[2 * int64(firsts[i + 1])])
        if end - begin > 1:
            sort_list(keys, spare, begin, end)

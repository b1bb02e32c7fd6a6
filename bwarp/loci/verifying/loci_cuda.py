"""From hits to loci on the GPU, by the rules of loci_cpu: a thread for each cluster of hits.

    keys in order    7 7 8 | 80 | 310 312 | ...      clusters: stretches of no two have a start or
                                                     an end in common
    small clusters   a thread each, which works in its local memory
    others           a thread each, which works in a share of global memory: long tandem repeats,
                     and reads with many gaps

Loci are written in any order, and sorted afterwards: most clusters have one, some have thousands.
"""

import functools
from dataclasses import dataclass, replace

import numpy as np

from bwarp.gpu.cuda import cuda, int32, int64, uint8, uint32, uint64
from bwarp.gpu.device_arrays import number_at, zeros
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import ALL_LANES, launch
from bwarp.gpu.prefix_sum import exclusive_sum
from bwarp.loci.searching.device_parts_cuda import DeviceItems, DeviceParts
from bwarp.loci.verifying.clusters_cuda import CONFIRMED, LARGE, VERIFIED, find_in_cluster
from bwarp.loci.verifying.device_text_cuda import DeviceText
from bwarp.loci.verifying.edits_cuda import room_with_few_gaps, room_with_gaps
from bwarp.loci.verifying.hits_cuda import PART_BITS, Keys
from bwarp.runtime.ranges import bounded_ranges

__all__ = ["LOCAL_MEMORY", "FoundOnGpu", "loci_of_keys", "sorted_loci"]

#: Kinds of small clusters: the most gaps, whether they may be fewer than edits, and bytes of
#: distances.
SMALL = ((1, True, 128), (4, True, 512), (8, False, 1024))

#: Bytes that large clusters are given at once, unless one takes more.
_SCRATCH_BYTES = 256 << 20

#: Loci for which there is room beside one for every hit.
_MORE_LOCI = 1024

#: Threads that large clusters share.
_LARGE_THREADS = 1 << 13


@dataclass(frozen=True)
class FoundOnGpu:
    """Loci of items, and what it took.

    Attributes
    ----------
    loci : device array, shape=(at least count,), dtype=uint64
        Item and start.
    shapes : device array, shape=(at least count,), dtype=uint32
        Length and distance.
    count, verified, confirmed : int
    """

    loci: object
    shapes: object
    count: int
    verified: int
    confirmed: int


def loci_of_keys(
    text: DeviceText, reads, items: DeviceItems, parts: DeviceParts, hits: Keys
) -> FoundOnGpu:
    """The loci of items from their hits, in any order."""
    if not hits.count:
        return FoundOnGpu(None, None, 0, 0, 0)
    on_host = items.on_host
    most_gaps = int(on_host.gaps.max())
    has_few = bool(((on_host.gaps > 0) & (on_host.gaps < on_host.edits)).any())
    kind = next(
        (one for one in SMALL if most_gaps <= one[0] and (one[1] or not has_few)), (0, False, 0)
    )
    ends = cuda.device_array(hits.count + 1, np.uint32)
    mark_clusters[launch(hits.count + 1)](
        hits.keys, hits.count, hits.layout.item_shift, items.gaps, ends
    )
    exclusive_sum(ends)
    clusters = cuda.device_array(hits.count + 1, np.uint32)
    list_clusters[launch(hits.count + 1)](ends, hits.count, clusters)
    n_clusters = ends[hits.count :]
    given = (
        text.blocks, reads, items.begins, items.lengths, items.edits, items.gaps,
        items.mismatches, parts.offsets, parts.starts, parts.ends, text.segment_text,
        text.segment_genome,
        hits.keys, hits.segments, hits.layout.spread, hits.layout.item_shift, clusters,
    )  # fmt: skip
    large, sizes = (cuda.device_array(hits.count, np.uint32) for _ in range(2))
    capacity = max(hits.count + _MORE_LOCI, 1)
    while True:
        loci, shapes = (
            cuda.device_array(capacity, np.uint64),
            cuda.device_array(capacity, np.uint32),
        )
        counters = zeros(4, np.uint32)
        out = loci, shapes, counters
        list_large[launch(hits.count)](*given, n_clusters, kind[2], large, sizes, counters)
        if kind[2]:
            small_clusters(*kind)[launch(hits.count)](*given, n_clusters, *out)
        n_large = number_at(counters, LARGE)
        if n_large:
            _find_in_large(given, items, large, sizes, n_large, out)
        count, verified, confirmed, _ = counters.copy_to_host().tolist()
        if count <= capacity:
            break
        # Seldom: in tandem repeats a hit may lie in several loci.
        capacity = count
    return FoundOnGpu(loci, shapes, count, verified, confirmed)


def sorted_loci(text: DeviceText, n_items: int, found: FoundOnGpu) -> FoundOnGpu:
    """Loci by item and start."""
    if found.count < 2:
        return found
    size = found.loci.size
    spare = cuda.device_array(size, np.uint64), cuda.device_array(size, np.uint32)
    bits = 32 + max(1, n_items.bit_length())
    (loci, _), (shapes, _) = text.sort_pairs(
        (found.loci, spare[0]), (found.shapes, spare[1]), found.count, bits
    )
    return replace(found, loci=loci, shapes=shapes)


def _find_in_large(given, items: DeviceItems, large, sizes, n_large: int, out) -> None:
    """Look at large clusters, as many at a time as have room."""
    order = np.argsort(large[:n_large].copy_to_host(), kind="stable")
    numbers = large[:n_large].copy_to_host()[order]
    offsets = np.concatenate(
        [[0], np.cumsum(sizes[:n_large].copy_to_host()[order], dtype=np.int64)]
    )
    most_gaps = int(items.on_host.gaps.max())
    reach_size = room_with_few_gaps(most_gaps)
    n_threads = min(_LARGE_THREADS, n_large)
    shape = launch(n_threads)
    n_threads = shape[0] * shape[1]
    reach = cuda.device_array(n_threads * reach_size, np.int32)
    sides = cuda.device_array(n_threads * 2 * (2 * most_gaps + 1), np.uint8)
    for first, last in bounded_ranges(offsets, _SCRATCH_BYTES):
        here = offsets[first : last + 1] - offsets[first]
        distances = cuda.device_array(max(1, int(here[-1])), np.uint8)
        large_clusters[shape](
            *given, cuda.to_device(numbers[first:last]), cuda.to_device(here), reach_size,
            2 * most_gaps + 1, reach, sides, distances, *out,
        )  # fmt: skip


@cuda.jit(device=True)
def is_first(keys, i, item_shift, gaps):
    """Whether a cluster begins at a hit: no locus of one before it can be compared with its."""
    if i == 0:
        return True
    key = keys[i]
    apart = int64((key >> uint64(PART_BITS)) - (keys[i - 1] >> uint64(PART_BITS)))
    return apart > 4 * int64(gaps[key >> uint64(item_shift)]) + 1


@kernel
def mark_clusters(
    keys: uint64[::1], n_hits: int, item_shift: int, gaps: int32[::1], firsts: uint32[::1]
):
    """1 where a cluster begins, and a 0 after the last hit. One thread a hit."""
    i = cuda.grid(1)
    if i <= n_hits:
        firsts[i] = 1 if i < n_hits and is_first(keys, i, item_shift, gaps) else 0


@kernel
def list_clusters(sums: uint32[::1], n_hits: int, clusters: uint32[::1]):
    """Where clusters begin, and where the last one ends. One thread a hit."""
    i = cuda.grid(1)
    if i < n_hits and sums[i + 1] != sums[i]:
        clusters[sums[i]] = i
    if i == n_hits:
        clusters[sums[i]] = n_hits


@cuda.jit(device=True)
def room_of(keys, clusters, cluster, item_shift, gaps):
    """Bytes of the distances of a cluster: a row for every start, a column for every length."""
    first, last = keys[clusters[cluster]], keys[clusters[cluster + 1] - 1]
    g = int64(gaps[first >> uint64(item_shift)])
    span = int64((last >> uint64(PART_BITS)) - (first >> uint64(PART_BITS)))
    return (span + 2 * g + 1) * (2 * g + 1)


@kernel
def list_large(
    genome: uint32[::1], reads: uint32[::1], begins: int64[::1], lengths: int32[::1],
    edits: int32[::1], gaps: int32[::1], mismatches: int32[::1], part_offsets: uint32[::1],
    part_starts: int32[::1], part_ends: int32[::1], segment_text: uint32[::1],
    segment_genome: uint32[::1], keys: uint64[::1], segments: uint32[::1], spread: int,
    item_shift: int, clusters: uint32[::1], n_clusters: uint32[::1], most: int, large: uint32[::1],
    sizes: uint32[::1], counters: uint32[::1],
):  # fmt: skip
    """List the clusters that take more than so many bytes, in any order. One thread a cluster."""
    cluster = cuda.grid(1)
    if cluster < n_clusters[0]:
        room = room_of(keys, clusters, cluster, item_shift, gaps)
        if room > most:
            slot = cuda.atomic.add(counters, LARGE, uint32(1))
            large[slot] = cluster
            sizes[slot] = room


@cuda.jit(device=True)
def count_up(counters, which, number):
    """Add the numbers of a warp's threads to a counter: all of them call it."""
    total = int32(number)
    for distance in (16, 8, 4, 2, 1):
        total = int32(total + cuda.shfl_xor_sync(ALL_LANES, total, distance))
    if cuda.laneid == 0 and total > 0:
        cuda.atomic.add(counters, which, uint32(total))


@functools.cache
def small_clusters(most_gaps, with_few_gaps, n_bytes):
    """A kernel for clusters of reads with at most so many gaps that take at most so many bytes.

    Parameters
    ----------
    with_few_gaps : bool
        Whether gaps may be fewer than edits.

    Notes
    -----
    One thread a cluster. For a hit that is verified it reads the read and as many bases of the
    genome, once for each diagonal on which it goes on.
    """
    room = room_with_few_gaps(most_gaps) if with_few_gaps else room_with_gaps(most_gaps)
    n_sides = 2 * (2 * most_gaps + 1)

    @kernel
    def find_in_small(
        genome: uint32[::1], reads: uint32[::1], begins: int64[::1], lengths: int32[::1],
        edits: int32[::1], gaps: int32[::1], mismatches: int32[::1], part_offsets: uint32[::1],
        part_starts: int32[::1], part_ends: int32[::1], segment_text: uint32[::1],
        segment_genome: uint32[::1], keys: uint64[::1], segments: uint32[::1], spread: int,
        item_shift: int, clusters: uint32[::1], n_clusters: uint32[::1], loci: uint64[::1],
        shapes: uint32[::1], counters: uint32[::1],
    ):  # fmt: skip
        reach = cuda.local.array(room, int32)
        sides = cuda.local.array(n_sides, uint8)
        distances = cuda.local.array(n_bytes, uint8)
        cluster = cuda.grid(1)
        verified, confirmed = uint32(0), uint32(0)
        is_small = False
        if cluster < n_clusters[0]:
            is_small = room_of(keys, clusters, cluster, item_shift, gaps) <= n_bytes
        if is_small:
            verified, confirmed = find_in_cluster(
                genome, reads, begins, lengths, edits, gaps, mismatches, part_offsets,
                part_starts, part_ends, segment_text, segment_genome, keys, segments, spread,
                item_shift, int64(clusters[cluster]), int64(clusters[cluster + 1]), reach, 0,
                sides, 0, distances, 0, loci, shapes, counters,
            )  # fmt: skip
        count_up(counters, VERIFIED, verified)
        count_up(counters, CONFIRMED, confirmed)

    return find_in_small


@kernel
def large_clusters(
    genome: uint32[::1], reads: uint32[::1], begins: int64[::1], lengths: int32[::1],
    edits: int32[::1], gaps: int32[::1], mismatches: int32[::1], part_offsets: uint32[::1],
    part_starts: int32[::1], part_ends: int32[::1], segment_text: uint32[::1],
    segment_genome: uint32[::1], keys: uint64[::1], segments: uint32[::1], spread: int,
    item_shift: int, clusters: uint32[::1], numbers: uint32[::1], offsets: int64[::1],
    reach_size: int, side_size: int, reach: int32[::1], sides: uint8[::1], distances: uint8[::1],
    loci: uint64[::1], shapes: uint32[::1], counters: uint32[::1],
):  # fmt: skip
    """Clusters of any size, some of them a thread, which works in global memory."""
    thread = int64(cuda.grid(1))
    verified, confirmed = uint32(0), uint32(0)
    for i in range(thread, numbers.size, int64(cuda.gridsize(1))):
        cluster = numbers[i]
        more_verified, more_confirmed = find_in_cluster(
            genome, reads, begins, lengths, edits, gaps, mismatches, part_offsets, part_starts,
            part_ends, segment_text, segment_genome, keys, segments, spread, item_shift,
            int64(clusters[cluster]), int64(clusters[cluster + 1]), reach, thread * reach_size,
            sides, thread * 2 * side_size, distances, offsets[i], loci, shapes, counters,
        )  # fmt: skip
        verified = uint32(verified + more_verified)
        confirmed = uint32(confirmed + more_confirmed)
    count_up(counters, VERIFIED, verified)
    count_up(counters, CONFIRMED, confirmed)


MADE_KERNELS = tuple(small_clusters(*kind) for kind in SMALL)

#: What a thread works in, and the arguments of what it calls.
LOCAL_MEMORY = {small_clusters(*kind): 2 * kind[2] for kind in SMALL}

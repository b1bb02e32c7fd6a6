"""Turn sorted hits into loci on the GPU, by the rules of verify_cpu, one thread per cluster.

    keys in order    7 7 8 | 80 | 310 312 | ...      clusters: no stretches of two clusters share a
                                                     start or an end
    small clusters   one thread each, using its local memory
    others           one thread each, using a share of global memory: long tandem repeats,
                     and reads with many gaps

Loci are written in any order and sorted afterwards: most clusters have one, some have thousands.
"""

import functools
from typing import NamedTuple

import numpy as np

from bwarp.allmap.clusters_cuda import CONFIRMED, LARGE, VERIFIED, find_in_cluster
from bwarp.allmap.device_text_cuda import DeviceText, TextArrays
from bwarp.allmap.edits_cuda import WorkRoom, room_with_few_gaps, room_with_gaps
from bwarp.allmap.hits_cuda import PART_BITS, Keys
from bwarp.allmap.parts_cuda import (
    DeviceItems,
    DeviceParts,
    ItemArrays,
    PartArrays,
)
from bwarp.gpu.cuda import cuda, int32, int64, uint8, uint32, uint64
from bwarp.gpu.device_arrays import columns, number_at, zeros
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import ALL_LANES, launch
from bwarp.gpu.sums_and_sorts import exclusive_sum
from bwarp.runtime.threads import bounded_ranges

#: Kinds of small clusters: maximum gaps, whether gaps may be fewer than edits, and bytes of
#: distances.
SMALL = ((1, True, 128), (4, True, 512), (8, False, 1024))

#: Memory for large clusters at once, unless one of them needs more.
_SCRATCH_BYTES = 256 << 20

#: Space for loci in addition to one per hit.
_MORE_LOCI = 1024

#: Threads that share the large clusters.
_LARGE_THREADS = 1 << 13


class FoundLoci(NamedTuple):
    """Where loci are written, and their number (`clusters_cuda`)."""

    loci: uint64[::1]
    shapes: uint32[::1]
    counters: uint32[::1]


class Clusters(NamedTuple):
    """Where clusters of hits begin, the end of the last one, and their number."""

    firsts: uint32[::1]
    count: uint32[::1]


class LargeClusters(NamedTuple):
    """The numbers of large clusters, and the bytes that each needs."""

    numbers: uint32[::1]
    sizes: uint32[::1]


class Clustered(NamedTuple):
    """Clusters of hits, and what they are verified with: blocks of the reads on both strands."""

    text: TextArrays
    reads: uint32[::1]
    items: ItemArrays
    parts: PartArrays
    hits: Keys
    clusters: Clusters


class SharedRoom(NamedTuple):
    """Working memory for large clusters: distances at an offset per cluster, and shares of the
    other arrays per thread.
    """

    offsets: int64[::1]
    distances: uint8[::1]
    reach: int32[::1]
    sides: uint8[::1]
    reach_size: int
    side_size: int


class FoundOnGpu(NamedTuple):
    """Loci of items, and the counters of the search.

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
    """Find the loci of items from their hits, in any order."""
    if not hits.count:
        return FoundOnGpu(None, None, 0, 0, 0)
    on_host = items.on_host
    most_gaps = int(on_host.gaps.max())
    has_few = bool(((on_host.gaps > 0) & (on_host.gaps < on_host.edits)).any())
    kind = next(
        (one for one in SMALL if most_gaps <= one[0] and (one[1] or not has_few)), (0, False, 0)
    )
    ends = cuda.device_array(hits.count + 1, np.uint32)
    mark_clusters(hits, items.arrays, ends)
    exclusive_sum(ends)
    clusters = Clusters(cuda.device_array(hits.count + 1, np.uint32), ends[hits.count :])
    list_clusters(ends, clusters.firsts)
    given = Clustered(text.arrays, reads, items.arrays, parts.arrays, hits, clusters)
    large = columns(LargeClusters, hits.count)
    capacity = max(hits.count + _MORE_LOCI, 1)
    while True:
        found = columns(FoundLoci, capacity, counters=zeros(4, np.uint32))
        list_large(hits, items.arrays, clusters, kind[2], large, found.counters)
        if kind[2]:
            small_clusters(*kind)[launch(hits.count)](given, found)
        n_large = number_at(found.counters, LARGE)
        if n_large:
            _find_in_large(given, items, large, n_large, found)
        count, verified, confirmed, _ = found.counters.copy_to_host().tolist()
        if count <= capacity:
            break
        # Rare: in tandem repeats a hit may lie in several loci.
        capacity = count
    return FoundOnGpu(found.loci, found.shapes, count, verified, confirmed)


def sorted_loci(text: DeviceText, n_items: int, found: FoundOnGpu) -> FoundOnGpu:
    """Sort loci by item and start."""
    if found.count < 2:
        return found
    size = found.loci.size
    spare = cuda.device_array(size, np.uint64), cuda.device_array(size, np.uint32)
    bits = 32 + max(1, n_items.bit_length())
    (loci, _), (shapes, _) = text.sort_pairs(
        (found.loci, spare[0]), (found.shapes, spare[1]), found.count, bits
    )
    return found._replace(loci=loci, shapes=shapes)


def _find_in_large(given, items: DeviceItems, large: LargeClusters, n_large: int, out) -> None:
    """Verify large clusters, as many at a time as fit in memory."""
    numbers, sizes = (column[:n_large].copy_to_host() for column in large)
    order = np.argsort(numbers, kind="stable")
    numbers = numbers[order]
    offsets = np.concatenate([[0], np.cumsum(sizes[order], dtype=np.int64)])
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
        room = SharedRoom(
            cuda.to_device(here), distances, reach, sides, reach_size, 2 * most_gaps + 1
        )
        large_clusters[shape](given, cuda.to_device(numbers[first:last]), room, out)


@cuda.jit(device=True)
def is_first(hits, i, gaps):
    """Return whether a cluster begins at a hit: no earlier locus is comparable with its loci."""
    if i == 0:
        return True
    key = hits.keys[i]
    apart = int64((key >> uint64(PART_BITS)) - (hits.keys[i - 1] >> uint64(PART_BITS)))
    return apart > 4 * int64(gaps[key >> uint64(hits.layout.item_shift)]) + 1


@kernel(over="firsts")
def mark_clusters(hits: Keys, items: ItemArrays, firsts: uint32[::1]):
    """Write 1 where a cluster begins, and a 0 after the last hit. One thread per hit."""
    i = cuda.grid(1)
    if i <= hits.count:
        firsts[i] = 1 if i < hits.count and is_first(hits, i, items.gaps) else 0


@kernel(over="sums")
def list_clusters(sums: uint32[::1], clusters: uint32[::1]):
    """List where clusters begin, and where the last one ends. One thread per hit."""
    i, n_hits = cuda.grid(1), sums.size - 1
    if i < n_hits and sums[i + 1] != sums[i]:
        clusters[sums[i]] = i
    if i == n_hits:
        clusters[sums[i]] = n_hits


@cuda.jit(device=True)
def room_of(hits, clusters, cluster, gaps):
    """Return the bytes of distances of a cluster: a row per start, a column per length."""
    first, last = hits.keys[clusters.firsts[cluster]], hits.keys[clusters.firsts[cluster + 1] - 1]
    g = int64(gaps[first >> uint64(hits.layout.item_shift)])
    span = int64((last >> uint64(PART_BITS)) - (first >> uint64(PART_BITS)))
    return (span + 2 * g + 1) * (2 * g + 1)


@kernel(over="large.numbers")
def list_large(
    hits: Keys, items: ItemArrays, clusters: Clusters, most: int, large: LargeClusters,
    counters: uint32[::1],
):  # fmt: skip
    """List the clusters that need more than `most` bytes, in any order. One thread per cluster."""
    cluster = cuda.grid(1)
    if cluster < clusters.count[0]:
        room = room_of(hits, clusters, cluster, items.gaps)
        if room > most:
            slot = cuda.atomic.add(counters, LARGE, uint32(1))
            large.numbers[slot] = cluster
            large.sizes[slot] = room


@cuda.jit(device=True)
def count_up(counters, which, number):
    """Add the numbers of all threads of a warp to a counter; all threads must call it."""
    total = int32(number)
    for distance in (16, 8, 4, 2, 1):
        total = int32(total + cuda.shfl_xor_sync(ALL_LANES, total, distance))
    if cuda.laneid == 0 and total > 0:
        cuda.atomic.add(counters, which, uint32(total))


@functools.cache
def small_clusters(most_gaps, with_few_gaps, n_bytes):
    """Make a kernel for clusters with at most `most_gaps` gaps that need at most `n_bytes`.

    Parameters
    ----------
    with_few_gaps : bool
        Whether gaps may be fewer than edits.

    Notes
    -----
    One thread per cluster. For each verified hit it reads the read and as many bases of the genome,
    once for each diagonal that it follows.
    """
    room = room_with_few_gaps(most_gaps) if with_few_gaps else room_with_gaps(most_gaps)
    n_sides = 2 * (2 * most_gaps + 1)

    @kernel
    def find_in_small(given: Clustered, out: FoundLoci):
        reach = cuda.local.array(room, int32)
        sides = cuda.local.array(n_sides, uint8)
        distances = cuda.local.array(n_bytes, uint8)
        cluster = cuda.grid(1)
        verified, confirmed = uint32(0), uint32(0)
        is_small = False
        if cluster < given.clusters.count[0]:
            is_small = room_of(given.hits, given.clusters, cluster, given.items.gaps) <= n_bytes
        if is_small:
            work = WorkRoom(reach, 0, sides, 0, distances, 0)
            verified, confirmed = find_in_cluster(given, cluster, work, out)
        count_up(out.counters, VERIFIED, verified)
        count_up(out.counters, CONFIRMED, confirmed)

    return find_in_small


@kernel
def large_clusters(given: Clustered, numbers: uint32[::1], room: SharedRoom, out: FoundLoci):
    """Process clusters of any size, several per thread, in global memory."""
    thread = int64(cuda.grid(1))
    verified, confirmed = uint32(0), uint32(0)
    for i in range(thread, numbers.size, int64(cuda.gridsize(1))):
        work = WorkRoom(
            room.reach, thread * room.reach_size, room.sides, thread * 2 * room.side_size,
            room.distances, room.offsets[i],
        )  # fmt: skip
        more_verified, more_confirmed = find_in_cluster(given, numbers[i], work, out)
        verified = uint32(verified + more_verified)
        confirmed = uint32(confirmed + more_confirmed)
    count_up(out.counters, VERIFIED, verified)
    count_up(out.counters, CONFIRMED, confirmed)


MADE_KERNELS = tuple(small_clusters(*kind) for kind in SMALL)

#: Working memory of a thread, and the arguments of the functions that it calls.
LOCAL_MEMORY = {small_clusters(*kind): 2 * kind[2] for kind in SMALL}

"""Device functions that verify a cluster of hits and write its loci, as verify_cpu does.

A locus is two numbers in two arrays:

    bits     63 ... 32    31 ... 0            15 ... 8        7 ... 0
             item         start               length + 64     distance
"""

from bwarp.allmap.edits_cuda import (
    Compared,
    Stretch,
    agreeing,
    count_mismatches,
    distances_to,
    distances_with_few_gaps,
)
from bwarp.allmap.hits_cuda import PART_BITS, diagonal_of
from bwarp.allmap.verify_cpu import LEFT, NO_DISTANCE, RIGHT
from bwarp.gpu.cuda import cuda, int64, uint8, uint32, uint64

#: Counters: loci, hits verified, hits confirmed, large clusters.
LOCI, VERIFIED, CONFIRMED, LARGE = range(4)

_PART = (1 << PART_BITS) - 1

#: Added to the excess of a locus's length over its read's, to keep it positive.
LONGER = 64


@cuda.jit(device=True)
def order_of(distance, k):
    """Return a rank, lower for the better of two stretches with a common start or end.

    `k` is the excess of the stretch's length over the read's.
    """
    return (int64(distance) << 16) + (abs(k) << 1) + (1 if k > 0 else 0)


@cuda.jit(device=True)
def best_end(distances, at, gaps):
    """Return the length, minus the read's, of the best stretch from a start; gaps + 1 if none."""
    best, least = gaps + 1, int64(NO_DISTANCE) << 16
    for k in range(-gaps, gaps + 1):
        order = order_of(distances[at + gaps + k], k)
        if order < least:
            best, least = k, order
    return best


@cuda.jit(device=True)
def is_best_start(distances, begin, n_starts, row, k, gaps):
    """Return whether no other start has a better stretch to the end of that k bases longer."""
    width = 2 * gaps + 1
    order = order_of(distances[begin + row * width + gaps + k], k)
    for other in range(max(int64(0), row + k - gaps), min(n_starts, row + k + gaps + 1)):
        longer = row + k - other
        if order_of(distances[begin + other * width + gaps + longer], longer) < order:
            return False
    return True


@cuda.jit(device=True)
def put_loci(item, gaps, distances, begin, low, high, out):
    """Write the loci among the stretches that start from `low` to `high`."""
    width = 2 * gaps + 1
    for row in range(high - low):
        k = best_end(distances, begin + row * width, gaps)
        if k <= gaps and is_best_start(distances, begin, high - low, row, k, gaps):
            slot = cuda.atomic.add(out.counters, LOCI, uint32(1))
            if slot < out.loci.size:
                out.loci[slot] = uint64(item) << uint64(32) | uint64(low + row)
                distance = uint32(distances[begin + row * width + gaps + k])
                out.shapes[slot] = uint32(k + LONGER) << uint32(8) | distance


@cuda.jit(device=True)
def find_in_cluster(given, cluster, work, out):
    """Verify the hits of a cluster and write its loci; return the numbers verified and confirmed.

    Does what `verify_cpu.find_loci` does with the hits of an item.

    Parameters
    ----------
    given : bwarp.allmap.verify_cuda.Clustered
    work : WorkRoom
    """
    text, items, parts, hits = given.text, given.items, given.parts, given.hits
    first_hit = int64(given.clusters.firsts[cluster])
    last_hit = int64(given.clusters.firsts[cluster + 1])
    bases = Compared(text.blocks, given.reads)
    sides, distances, distances_at = work.sides, work.distances, work.distances_at
    key = hits.keys[first_hit]
    item = uint32(key >> uint64(hits.layout.item_shift))
    segment = hits.segments[first_hit]
    begin, length = items.begins[item], int64(items.lengths[item])
    e, g = int64(items.edits[item]), int64(items.gaps[item])
    first_part, may_differ = int64(parts.offsets[item]), items.mismatches[item] > 0
    width = 2 * g + 1
    before, after = work.sides_at, work.sides_at + width
    from_ = int64(text.segments.genome[segment])
    starts = text.segments.text
    to = from_ + int64(starts[segment + 1]) - int64(starts[segment]) - 1
    zero = (uint64(item) << uint64(hits.layout.item_shift - PART_BITS)) + uint64(
        (int64(segment) + 1) * int64(hits.layout.spread)
    )
    low = high = int64(-1)
    run, run_start = uint64(0), int64(0)
    verified, confirmed = uint32(0), uint32(0)
    for i in range(first_hit, last_hit):
        key = hits.keys[i]
        part = first_part + int64(key & uint64(_PART))
        order = int64(key & uint64(_PART))
        a, b = int64(parts.starts[part]), int64(parts.ends[part])
        on_diagonal = key >> uint64(PART_BITS)
        if on_diagonal == run and a >= run_start:
            continue  # parts are listed from the end of the read
        verified = uint32(verified + uint32(1))
        diagonal = diagonal_of(text, segment, int64(on_diagonal - zero))
        wrong = int64(0)
        if may_differ:
            wrong = count_mismatches(bases, diagonal + a, begin + a, b - a)
        if wrong == 0:
            a -= agreeing(bases, diagonal + a, begin + a, min(a, diagonal + a - from_), LEFT)
            b += agreeing(bases, diagonal + b, begin + b, min(length - b, to - diagonal - b), RIGHT)
            run, run_start = on_diagonal, a
        most = e - wrong - order
        if most < 0:
            continue
        at = diagonal + a
        stretch = Stretch(at, at - from_, begin + a, a)
        left = distances_to(bases, stretch, most, g, LEFT, work, before)
        # A stretch that starts within the run: the bases before its start are inserted.
        for k in range(a + 1, min(g, most) + 1):
            sides[before + g - k] = uint8(k)
        if left > most:
            continue
        at = diagonal + b
        most = e - wrong - left
        stretch = Stretch(at, to - at, begin + b, length - b)
        right = distances_to(bases, stretch, most, g, RIGHT, work, after)
        if right > most:
            continue
        for k in range(length - b + 1, min(g, most) + 1):
            sides[after + g - k] = uint8(k)
        confirmed = uint32(confirmed + uint32(1))
        start, stop = max(diagonal - g, from_), diagonal + g + 1
        # Stretches with a common end start no farther apart than this.
        if low < 0 or start > high + 2 * g:
            if low >= 0:
                put_loci(item, g, distances, distances_at, low, high, out)
            low = high = start
        for at in range(high, stop):
            row = distances_at + (at - low) * width
            if 0 < g < e:
                stretch = Stretch(at, to - at, begin, length)
                distances_with_few_gaps(bases, stretch, e, g, work, row)
            else:
                for k in range(width):
                    distances[row + k] = uint8(NO_DISTANCE)
        high = max(high, stop)
        if g == 0 or g >= e:
            for s in range(-g, g + 1):
                here = int64(sides[before + g - s])
                if here <= e and diagonal + s >= low:
                    row = distances_at + (diagonal + s - low) * width
                    for u in range(-g, g + 1):
                        d = here + int64(sides[after + g + u]) + wrong
                        # Columns beyond would have more gap letters and more edits.
                        if d <= e and d < distances[row + g + u - s]:
                            distances[row + g + u - s] = uint8(d)
    if low >= 0:
        put_loci(item, g, distances, distances_at, low, high, out)
    return verified, confirmed

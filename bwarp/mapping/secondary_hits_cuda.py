"""Secondary hits in the records of plain reads (XA), listed on the GPU as in secondary_hits.

They are counted first; the sums of the counts say where to write the hits of each read.
"""

import numpy as np

from bwarp.gpu.cuda import cuda, int32, int64, uint8, uint32
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import ALL_LANES, WARP
from bwarp.gpu.sums_and_sorts import add_up
from bwarp.mapping.parameters import MappingParameters
from bwarp.mapping.primary_hits_cpu import same_bases
from bwarp.mapping.primary_hits_cuda import DevicePrimary, span_at
from bwarp.mapping.scored_hits_cpu import FIELDS, SCORE
from bwarp.mapping.scored_hits_cuda import DeviceScoredHits
from bwarp.mapping.secondary_hits import scores_nearly_as_much
from bwarp.reads.device_reads_cuda import DeviceReads


def secondary_rows(
    reads: DeviceReads,
    hits: DeviceScoredHits,
    primary: DevicePrimary,
    marks,
    parameters: MappingParameters,
) -> tuple:
    """Return the other hits of the same bases with nearly the same score, unless too many.

    Parameters
    ----------
    marks : device array, shape=(n_reads,), dtype=uint8
        1 for reads without secondary hits.

    Returns
    -------
    offsets : device array, shape=(n_reads + 1,), dtype=uint32
        Start of each read's hits in `rows`.
    rows : device array, shape=(n,), dtype=int32
        A single -1 if there are none at all.
    reads_of_rows : device array, shape=(n,), dtype=int32
    """
    n_reads = reads.n_reads
    offsets = cuda.device_array(n_reads + 1, np.uint32)
    count_secondary(
        reads, hits, primary, marks, parameters.most_secondary, parameters.secondary_share, offsets
    )
    n = add_up(offsets)
    if n == 0:
        return offsets, *(cuda.to_device(np.array([number], np.int32)) for number in (-1, 0))
    rows, reads_of_rows = (cuda.device_array(n, np.int32) for _ in range(2))
    write_secondary(reads, hits, primary, offsets, rows, reads_of_rows)
    return offsets, rows, reads_of_rows


@cuda.jit(device=True)
def is_rival(hits, hit, last, primary, span, length):
    """Return whether a hit before `last` is another hit of the primary one's bases."""
    if hit >= last or hit == primary:
        return False
    return same_bases(span, span_at(hits, hit, length))


@kernel(over="counts", per=WARP)
def count_secondary(
    reads: DeviceReads, hits: DeviceScoredHits, selection: DevicePrimary, marks: uint8[::1],
    most: int, share: float, counts: uint32[::1],
):  # fmt: skip
    """Count the secondary hits of each read, and write a 0 after the counts.

    One warp per read; each lane takes every 32nd hit. Hits are sorted by score, so the warp stops
    at the first that scores too little.
    """
    selected, scored = selection.hits, hits.scored
    read = int64(cuda.grid(1) // WARP)
    if read > counts.size - 1:
        return
    n = int64(0)
    if read < counts.size - 1 and not marks[read] and selected[read] >= 0:
        first, last = int64(hits.offsets[read]), int64(hits.offsets[read + 1])
        primary, length = int64(selected[read]), reads.offsets[read + 1] - reads.offsets[read]
        span, best = span_at(hits, primary, length), scored[FIELDS * primary + SCORE]
        while first < last:
            hit = first + int64(cuda.laneid)
            is_good = False
            if hit < last:
                is_good = scores_nearly_as_much(scored[FIELDS * hit + SCORE], best, share)
            is_named = is_good and is_rival(hits, hit, last, primary, span, length)
            n += cuda.popc(int64(cuda.ballot_sync(ALL_LANES, is_named)) & ALL_LANES)
            good = int64(cuda.ballot_sync(ALL_LANES, is_good)) & ALL_LANES
            first = first + WARP if good == ALL_LANES and n <= most else last
    if cuda.laneid == 0:
        counts[read] = n if n <= most else 0


@kernel(over="starts", per=WARP)
def write_secondary(
    reads: DeviceReads, hits: DeviceScoredHits, selection: DevicePrimary, starts: uint32[::1],
    rows: int32[::1], reads_of_rows: int32[::1],
):  # fmt: skip
    """List the hits that were counted: the first rivals of each read's primary hit.

    One warp per read; each lane takes every 32nd hit.
    """
    read = int64(cuda.grid(1) // WARP)
    if read >= starts.size - 1:
        return
    at, stop = int64(starts[read]), int64(starts[read + 1])
    if at == stop:
        return
    lane = int64(cuda.laneid)
    first, last = int64(hits.offsets[read]), int64(hits.offsets[read + 1])
    primary, length = int64(selection.hits[read]), reads.offsets[read + 1] - reads.offsets[read]
    span = span_at(hits, primary, length)
    while at < stop:
        is_named = is_rival(hits, first + lane, last, primary, span, length)
        lanes = int64(cuda.ballot_sync(ALL_LANES, is_named)) & ALL_LANES
        own = at + cuda.popc(lanes & ((int64(1) << lane) - 1))
        if is_named and own < stop:
            rows[own] = first + lane
            reads_of_rows[own] = read
        at += cuda.popc(lanes)
        first += WARP


#: The share of a score is a float; its product is compared without fusing it with an addition.
DOUBLE_PRECISION = {count_secondary}

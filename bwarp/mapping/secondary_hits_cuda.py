"""Secondary hits that the records of plain reads name (XA), listed on the GPU by the rule of
supplementary_and_secondary.

They are counted, which gives where those of each read begin, and then written.
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
    """The other hits of the same bases that score nearly as well, where they are not too many.

    Parameters
    ----------
    marks : device array, shape=(n_reads,), dtype=uint8
        Reads with a mark have none.

    Returns
    -------
    offsets : device array, shape=(n_reads + 1,), dtype=uint32
        Where those of each read begin.
    rows : device array, shape=(n,), dtype=int32
        One of -1 where there are none at all.
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
    """Whether a hit before `last` has the same bases as the primary one, and is not that."""
    if hit >= last or hit == primary:
        return False
    return same_bases(span, span_at(hits, hit, length))


@kernel(over="counts", per=WARP)
def count_secondary(
    reads: DeviceReads, hits: DeviceScoredHits, selection: DevicePrimary, marks: uint8[::1],
    most: int, share: float, counts: uint32[::1],
):  # fmt: skip
    """How many secondary hits each read has, and a 0 after them. One warp a read, a lane every
    32nd hit; as hits come best first, it ends with those that score too little.
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
    """List the hits that were counted: of the rivals of a read's primary hit the first ones. One
    warp a read, a lane every 32nd hit.
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


#: The share of a score is a real number; the product is compared, with nothing added to it.
DOUBLE_PRECISION = {count_secondary}

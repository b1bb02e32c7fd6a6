"""Secondary hits that the records of plain reads name (XA), listed on the GPU by the rule of
supplementary_and_secondary.

They are counted, which gives where those of each read begin, and then written.
"""

import numpy as np
from numba import cuda, int64
from numba.cuda import types

from bwarp.gpu.kernel_loading import compiled_kernel
from bwarp.gpu.launch import ALL_LANES, WARP, launch
from bwarp.gpu.prefix_sum import add_up
from bwarp.mapping.extension.scored_hits_cpu import FIELDS, SCORE
from bwarp.mapping.extension.scored_hits_cuda import DeviceScoredHits
from bwarp.mapping.output.supplementary_and_secondary import scores_nearly_as_much
from bwarp.mapping.pairing.hit_qualities_cuda import span_at
from bwarp.mapping.pairing.primary_and_mapq_cpu import same_bases
from bwarp.mapping.pairing.primary_hits_cuda import DevicePrimary
from bwarp.mapping.parameters import MappingParameters
from bwarp.mapping.reads.device_reads_cuda import DeviceReads

__all__ = ["KERNEL_SIGNATURES", "secondary_rows"]


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
    shape = launch(WARP * (n_reads + 1))
    count_secondary[shape](
        reads.offsets, hits.offsets, hits.strands, hits.scored, primary.hits, marks, n_reads,
        parameters.most_secondary, parameters.secondary_share, offsets,
    )  # fmt: skip
    n = add_up(offsets)
    if n == 0:
        return offsets, *(cuda.to_device(np.array([number], np.int32)) for number in (-1, 0))
    rows, reads_of_rows = (cuda.device_array(n, np.int32) for _ in range(2))
    write_secondary[shape](
        reads.offsets, hits.offsets, hits.strands, hits.scored, primary.hits, n_reads, offsets,
        rows, reads_of_rows,
    )  # fmt: skip
    return offsets, rows, reads_of_rows


@cuda.jit(device=True)
def is_rival(strands, scored, hit, last, primary, span, length):
    """Whether a hit before `last` has the same bases as the primary one, and is not that."""
    if hit >= last or hit == primary:
        return False
    return same_bases(span, span_at(strands, scored, hit, length))


@compiled_kernel
def count_secondary(
    offsets, hit_offsets, strands, scored, selected, marks, n_reads, most, share, counts
):
    """How many secondary hits each read has, and a 0 after them. One warp a read, a lane every
    32nd hit; as hits come best first, it ends with those that score too little.
    """
    read = int64(cuda.grid(1) // WARP)
    if read > n_reads:
        return
    n = int64(0)
    if read < n_reads and not marks[read] and selected[read] >= 0:
        first, last = int64(hit_offsets[read]), int64(hit_offsets[read + 1])
        primary, length = int64(selected[read]), offsets[read + 1] - offsets[read]
        span, best = span_at(strands, scored, primary, length), scored[FIELDS * primary + SCORE]
        while first < last:
            hit = first + int64(cuda.laneid)
            is_good = False
            if hit < last:
                is_good = scores_nearly_as_much(scored[FIELDS * hit + SCORE], best, share)
            is_named = is_good and is_rival(strands, scored, hit, last, primary, span, length)
            n += cuda.popc(int64(cuda.ballot_sync(ALL_LANES, is_named)) & ALL_LANES)
            good = int64(cuda.ballot_sync(ALL_LANES, is_good)) & ALL_LANES
            first = first + WARP if good == ALL_LANES and n <= most else last
    if cuda.laneid == 0:
        counts[read] = n if n <= most else 0


@compiled_kernel
def write_secondary(
    offsets, hit_offsets, strands, scored, selected, n_reads, starts, rows, reads_of_rows
):
    """List the hits that were counted: of the rivals of a read's primary hit the first ones. One
    warp a read, a lane every 32nd hit.
    """
    read = int64(cuda.grid(1) // WARP)
    if read >= n_reads:
        return
    at, stop = int64(starts[read]), int64(starts[read + 1])
    if at == stop:
        return
    lane = int64(cuda.laneid)
    first, last = int64(hit_offsets[read]), int64(hit_offsets[read + 1])
    primary, length = int64(selected[read]), offsets[read + 1] - offsets[read]
    span = span_at(strands, scored, primary, length)
    while at < stop:
        is_named = is_rival(strands, scored, first + lane, last, primary, span, length)
        lanes = int64(cuda.ballot_sync(ALL_LANES, is_named)) & ALL_LANES
        own = at + cuda.popc(lanes & ((int64(1) << lane) - 1))
        if is_named and own < stop:
            rows[own] = first + lane
            reads_of_rows[own] = read
        at += cuda.popc(lanes)
        first += WARP


_INTEGER, _LONGS, _NUMBERS = types.int64, types.int64[::1], types.uint32[::1]
_SIGNED, _BYTES = types.int32[::1], types.uint8[::1]

#: The argument types that every kernel is compiled with.
KERNEL_SIGNATURES = {
    count_secondary: (
        _LONGS, _NUMBERS, _BYTES, _LONGS, _SIGNED, _BYTES, _INTEGER, _INTEGER, types.float64,
        _NUMBERS,
    ),
    write_secondary: (
        _LONGS, _NUMBERS, _BYTES, _LONGS, _SIGNED, _INTEGER, _NUMBERS, _SIGNED, _SIGNED
    ),
}  # fmt: skip

#: The share of a score is a real number; the product is compared, with nothing added to it.
DOUBLE_PRECISION = {count_secondary}

"""The best alignment of every pair of a site and a guide that the filter let through, on a GPU."""

import numpy as np
from numba import cuda, int8, int64, types, uint8, uint32, uint64

from bwarp.gpu.kernel_loading import compiled_kernel
from bwarp.offtargets.sites.alignments import TABLE_SHAPE, best_alignment
from bwarp.offtargets.sites.planes_cuda import site_planes

__all__ = ["KERNEL_SIGNATURES", "THREADS", "align_pairs"]

THREADS = 128


@compiled_kernel
def align_pairs(
    blocks, sites, available, backward, guide_low, guide_high, lengths, mismatches, dna_bulge,
    rna_bulge, found, n_found, borders, guides, gaps, edits, rooms,
):  # fmt: skip
    """Align pairs, as `site_filter_cuda` lists them. One thread a pair.

    The number of the pair's `guides`, its `borders` and `rooms` say which it is; `gaps` are those
    of the best alignment, and `edits` its mismatches, bases in DNA and in RNA bulges, a byte each
    from the lowest on: 255 mismatches where no alignment is within the limits.
    """
    i = cuda.grid(1)
    table = cuda.local.array(TABLE_SHAPE, int8)
    if i >= n_found:
        return
    pair = found[i]
    site = int64(pair >> uint64(32))
    guide = int64(pair & uint64(0xFFFFFFFF))
    border, room = sites[site], available[site]
    low, high = site_planes(blocks, border, backward)
    best, dna, rna, where = best_alignment(
        np.uint64(guide_low[guide]), np.uint64(guide_high[guide]), lengths[guide], np.uint64(low),
        np.uint64(high), int64(room), mismatches, dna_bulge, rna_bulge, table,
    )  # fmt: skip
    borders[i] = border
    guides[i] = guide
    rooms[i] = uint8(room)
    gaps[i] = uint32(where)
    edits[i] = uint32(best | dna << 8 | rna << 16) if best >= 0 else uint32(255)


KERNEL_SIGNATURES = {
    align_pairs: (
        *(types.uint32[::1], types.int32[::1], types.uint8[::1], types.boolean),
        *(types.uint64[::1], types.uint64[::1], types.int64[::1], *[types.int64] * 3),
        *(types.uint64[::1], types.int64, types.int32[::1], types.int32[::1], types.uint32[::1]),
        *(types.uint32[::1], types.uint8[::1]),
    )
}

#: The table of an alignment, of which a thread reads a few bytes a base.
LOCAL_MEMORY = {align_pairs: 384}

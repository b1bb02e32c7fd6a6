"""The best alignment of every pair of a site and a guide that the filter let through, on a GPU."""

import numpy as np

from bwarp.gpu.cuda import cuda, int8, int32, int64, uint8, uint32, uint64
from bwarp.gpu.kernel import kernel
from bwarp.offtargets.sites.alignments import TABLE_SHAPE, best_alignment
from bwarp.offtargets.sites.planes_cuda import site_planes

__all__ = ["THREADS", "align_pairs"]

THREADS = 128


@kernel
def align_pairs(
    blocks: uint32[::1], sites: int32[::1], available: uint8[::1], backward: bool,
    guide_low: uint64[::1], guide_high: uint64[::1], lengths: int64[::1], mismatches: int,
    dna_bulge: int, rna_bulge: int, found: uint64[::1], n_found: int, borders: int32[::1],
    guides: int32[::1], gaps: uint32[::1], edits: uint32[::1], rooms: uint8[::1],
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


#: The table of an alignment, of which a thread reads a few bytes a base.
LOCAL_MEMORY = {align_pairs: 384}

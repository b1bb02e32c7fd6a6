"""Select, on the GPU, the loci near the best one of their read, so that only these are copied back.

In repeats, hundreds of loci have a few more edits than the best ones. Copying them to the host to
drop them there takes longer than finding them.
"""

import numpy as np

from bwarp.allmap.verify_cuda import FoundOnGpu
from bwarp.gpu.cuda import cuda, uint32, uint64
from bwarp.gpu.device_arrays import number_at, zeros
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import launch
from bwarp.gpu.sums_and_sorts import reserve

#: A read is two items, one per strand; the item is the upper half of an encoded locus.
_READ_SHIFT = 33
_DISTANCE = 0xFF


def loci_near_best(found: FoundOnGpu, n_items: int, strata: int) -> FoundOnGpu:
    """Return the loci with at most `strata` more edits than the best of their read, in any order.

    Items 2 i and 2 i + 1 are the strands of read i. If only one of the two is searched, more loci
    may be kept.
    """
    if not found.count:
        return found
    best = cuda.to_device(np.full(n_items // 2 + 1, _DISTANCE, np.uint32))
    lower_best[launch(found.count)](found.loci, found.shapes, found.count, best)
    loci = cuda.device_array(found.count, np.uint64)
    shapes = cuda.device_array(found.count, np.uint32)
    counter = zeros(1, np.uint32)
    keep_near[launch(found.count)](
        found.loci, found.shapes, found.count, best, strata, loci, shapes, counter
    )
    count = number_at(counter, 0)
    return FoundOnGpu(loci, shapes, count, found.verified, found.confirmed)


@kernel
def lower_best(loci: uint64[::1], shapes: uint32[::1], n_loci: int, best: uint32[::1]):
    """Find the fewest edits of the loci of each read. One thread and one atomic operation per
    locus.
    """
    i = cuda.grid(1)
    if i < n_loci:
        cuda.atomic.min(best, loci[i] >> uint64(_READ_SHIFT), shapes[i] & uint32(_DISTANCE))


@kernel
def keep_near(
    loci: uint64[::1], shapes: uint32[::1], n_loci: int, best: uint32[::1], strata: int,
    kept_loci: uint64[::1], kept_shapes: uint32[::1], counter: uint32[::1],
):  # fmt: skip
    """Copy the loci near the best of their reads. One thread per locus."""
    i = cuda.grid(1)
    is_kept = False
    if i < n_loci:
        most = best[loci[i] >> uint64(_READ_SHIFT)] + uint32(strata)
        is_kept = (shapes[i] & uint32(_DISTANCE)) <= most
    slot = reserve(counter, 0, uint32(1) if is_kept else uint32(0))
    if is_kept:
        kept_loci[slot] = loci[i]
        kept_shapes[slot] = shapes[i]

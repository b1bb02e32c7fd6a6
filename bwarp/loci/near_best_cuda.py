"""Of the loci on the GPU those near the best of their read: the others need not leave it.

Repeats have hundreds of loci with a few more edits than the best ones. To send all of them to the
host, and to drop them there, takes longer than to find them.
"""

import numpy as np

from bwarp.gpu.cuda import cuda, uint32, uint64
from bwarp.gpu.device_arrays import number_at, zeros
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import launch
from bwarp.gpu.sums_and_sorts import reserve
from bwarp.loci.verify_cuda import FoundOnGpu

#: A read is two items, one a strand; an item is the upper half of a locus.
_READ_SHIFT = 33
_DISTANCE = 0xFF


def loci_near_best(found: FoundOnGpu, n_items: int, strata: int) -> FoundOnGpu:
    """The loci with at most `strata` edits more than the best one of their read, in any order.

    Items 2 i and 2 i + 1 are the strands of read i. Where an item is found without the other, more
    loci may be kept.
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
    """The fewest edits of the loci of each read. One thread a locus, one atomic operation each."""
    i = cuda.grid(1)
    if i < n_loci:
        cuda.atomic.min(best, loci[i] >> uint64(_READ_SHIFT), shapes[i] & uint32(_DISTANCE))


@kernel
def keep_near(
    loci: uint64[::1], shapes: uint32[::1], n_loci: int, best: uint32[::1], strata: int,
    kept_loci: uint64[::1], kept_shapes: uint32[::1], counter: uint32[::1],
):  # fmt: skip
    """Copy the loci near the best of their reads. One thread a locus."""
    i = cuda.grid(1)
    is_kept = False
    if i < n_loci:
        most = best[loci[i] >> uint64(_READ_SHIFT)] + uint32(strata)
        is_kept = (shapes[i] & uint32(_DISTANCE)) <= most
    slot = reserve(counter, 0, uint32(1) if is_kept else uint32(0))
    if is_kept:
        kept_loci[slot] = loci[i]
        kept_shapes[slot] = shapes[i]

"""Of the loci on the GPU those near the best of their read: the others need not leave it.

Repeats have hundreds of loci with a few more edits than the best ones. To send all of them to the
host, and to drop them there, takes longer than to find them.
"""

import numpy as np
from numba import cuda, uint32, uint64
from numba.cuda import types

from bwarp.gpu.append_lists import reserve
from bwarp.gpu.device_arrays import number_at, zeros
from bwarp.gpu.kernel_loading import compiled_kernel
from bwarp.gpu.launch import launch
from bwarp.loci.verifying.loci_cuda import FoundOnGpu

__all__ = ["KERNEL_SIGNATURES", "loci_near_best"]

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


@compiled_kernel
def lower_best(loci, shapes, n_loci, best):
    """The fewest edits of the loci of each read. One thread a locus, one atomic operation each."""
    i = cuda.grid(1)
    if i < n_loci:
        cuda.atomic.min(best, loci[i] >> uint64(_READ_SHIFT), shapes[i] & uint32(_DISTANCE))


@compiled_kernel
def keep_near(loci, shapes, n_loci, best, strata, kept_loci, kept_shapes, counter):
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


_NUMBERS, _WORDS, _INTEGER = types.uint32[::1], types.uint64[::1], types.int64

#: The argument types that every kernel is compiled with.
KERNEL_SIGNATURES = {
    lower_best: (_WORDS, _NUMBERS, _INTEGER, _NUMBERS),
    keep_near: (
        _WORDS, _NUMBERS, _INTEGER, _NUMBERS, _INTEGER, _WORDS, _NUMBERS, _NUMBERS
    ),
}  # fmt: skip

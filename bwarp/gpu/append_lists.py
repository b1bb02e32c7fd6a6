"""Lists on the GPU that many threads add to: one atomic sum a block says where all of it goes.

The order of the elements does not matter to any search. A list that is full swallows what comes;
its counter goes on, so that the host sees that it was too short.
"""

from numba import cuda, int32, uint32

from bwarp.gpu.launch import ALL_LANES, WARP

__all__ = ["INTERVALS", "KEYS", "reserve"]

KERNEL_SIGNATURES = {}

#: Numbers of the counters of `Workspace.intervals` and `Workspace.keys`.
INTERVALS, KEYS = 0, 1

# No list is so long; a counter that has come here stays, and does not begin again at 0.
_FULL = 1 << 31


@cuda.jit(device=True)
def reserve(counters, which, wanted):
    """The index in list number `which` of the first of a thread's `wanted` (uint32) elements.

    All threads of a block must come here together. Three barriers and one atomic sum.
    """
    totals = cuda.shared.array(33, uint32)
    lane = cuda.laneid
    warp = cuda.threadIdx.x // WARP
    running = int32(wanted)
    for distance in (1, 2, 4, 8, 16):
        other = cuda.shfl_up_sync(ALL_LANES, running, distance)
        if lane >= distance:
            running = int32(running + other)
    if lane == WARP - 1:
        totals[warp] = uint32(running)
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        total = uint32(0)
        for other_warp in range(cuda.blockDim.x // WARP):
            here = totals[other_warp]
            totals[other_warp] = total
            total = uint32(total + here)
        if total:
            slot = cuda.atomic.add(counters, which, total)
            if slot >= uint32(_FULL):
                cuda.atomic.add(counters, which, uint32(uint32(0) - total))
            totals[32] = min(slot, uint32(_FULL))
    cuda.syncthreads()
    slot = uint32(totals[32] + totals[warp] + uint32(running) - wanted)
    cuda.syncthreads()
    return slot

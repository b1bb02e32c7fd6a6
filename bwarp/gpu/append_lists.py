"""Lists on the GPU that many threads add to: one atomic sum a block, or a warp, says where all of
it goes.

The order of the elements does not matter to any search. A list that is full swallows what comes;
its counter goes on, so that the host sees that it was too short.
"""

from bwarp.gpu.cuda import cuda, int32, int64, uint32
from bwarp.gpu.launch import ALL_LANES, WARP

__all__ = ["INTERVALS", "KEYS", "reserve", "slot_in_list"]


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


@cuda.jit(device=True)
def slot_in_list(counter, is_wanted):
    """The index (int64) of a lane's element in a list that has room for all elements.

    `counter[0]` is how many there are. All lanes of a warp must come here together, also those
    without an element, to which the index means nothing. A ballot, a shuffle, and one atomic sum
    where any lane has an element; no barrier.
    """
    lane = int64(cuda.laneid)
    lanes = int64(cuda.ballot_sync(ALL_LANES, is_wanted)) & ALL_LANES
    slot = int32(0)
    if lane == 0 and lanes != 0:
        slot = int32(cuda.atomic.add(counter, 0, int32(cuda.popc(lanes))))
    # A list may be longer than an int32 counts.
    first = uint32(cuda.shfl_sync(ALL_LANES, slot, 0))
    return int64(first) + cuda.popc(lanes & ((int64(1) << lane) - 1))

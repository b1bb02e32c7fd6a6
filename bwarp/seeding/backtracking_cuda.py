"""Inexact search of the paper on the GPU: depth first, with its lower bound, one stack per thread.

See `bwarp.seeding.backtracking_cpu` for the algorithm. As in the paper, one thread searches a k-mer
and its reverse complement. The stack is in local memory: at each depth the rows of the four longer
strings, which of them to try next, the mismatches so far and the bound.
"""

from bwarp.gpu.cuda import cuda, int64, uint8, uint32, uint64
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import launch
from bwarp.gpu.sums_and_sorts import INTERVALS
from bwarp.index.device_index_cuda import DeviceIndex, Workspace
from bwarp.index.rank_cuda import DeviceBWT, rank_both, ranks_both
from bwarp.seeding.exact_cuda import SearchItems, base_of
from bwarp.seeding.hits import NO_LIMIT

LONGEST = 64
_STRINGS = 4 * LONGEST

_THREADS = 64


def search_backtracking(
    device: DeviceIndex, items: SearchItems, mismatches: int, stops_after: int = NO_LIMIT
) -> None:
    """Find all strings within `mismatches` of the items; append them to the lists.

    The search of a k-mer stops when it has more hits than `stops_after`.
    """
    backtrack[launch(items.count // 2, _THREADS)](
        device.forward, device.reverse, items, mismatches, stops_after, device.work
    )


@cuda.jit(device=True)
def least_mismatches(bwt, items, item, least):
    """Compute DIFFS of the paper: least[i] is a lower bound of the mismatches after base i."""
    needed = uint32(0)
    start, stop = uint32(0), bwt.first_rows[4]
    for back in range(items.k):
        position = items.k - 1 - back
        least[position] = needed
        code = base_of(items, item, position)
        low, high = rank_both(bwt, code, start, stop)
        start = uint32(bwt.first_rows[code] + low)
        stop = uint32(bwt.first_rows[code] + high)
        if start >= stop:
            needed = uint32(needed + uint32(1))
            start, stop = uint32(0), bwt.first_rows[4]
    return needed


@kernel
def backtrack(
    forward: DeviceBWT, reverse: DeviceBWT, items: SearchItems, mismatches: int, stops_after: int,
    work: Workspace,
):  # fmt: skip
    """Search a k-mer and its reverse complement. One thread; two sectors per node visited."""
    firsts = cuda.local.array(_STRINGS, uint32)
    firsts_reverse = cuda.local.array(_STRINGS, uint32)
    counts = cuda.local.array(_STRINGS, uint32)
    tried = cuda.local.array(LONGEST, uint8)
    errors = cuda.local.array(LONGEST, uint8)
    least = cuda.local.array(LONGEST, uint8)
    intervals, capacity = work.intervals, work.elements
    n_hits = int64(0)
    for strand in range(2):
        item = 2 * cuda.grid(1) + strand
        depth = -1
        if item < items.count and n_hits <= stops_after:
            needed = least_mismatches(forward, items, item, least)
            if needed <= mismatches:
                depth = 0
                errors[0] = uint8(0)
        first, first_reverse, rows = uint32(0), uint32(0), forward.first_rows[4]
        entering = True
        while depth >= 0:
            if entering:
                low, high = ranks_both(reverse, first_reverse, uint32(first_reverse + rows))
                first = uint32(first + rows)
                for base in range(4):
                    firsts_reverse[4 * depth + base] = uint32(forward.first_rows[base] + low[base])
                    counts[4 * depth + base] = uint32(high[base] - low[base])
                    first = uint32(first - uint32(high[base] - low[base]))
                for base in range(4):
                    firsts[4 * depth + base] = first
                    first = uint32(first + uint32(high[base] - low[base]))
                tried[depth] = uint8(0)
                entering = False
            base = int(tried[depth])
            if base == 4:
                depth -= 1
                continue
            tried[depth] = uint8(base + 1)
            with_this = int(errors[depth])
            if uint32(base) != base_of(items, item, depth):
                with_this += 1
            at = 4 * depth + base
            if counts[at] == uint32(0) or with_this + int(least[depth]) > mismatches:
                continue
            if depth == items.k - 1:
                slot = uint64(cuda.atomic.add(work.counters, INTERVALS, uint32(1)))
                if slot < uint64(capacity):
                    intervals[slot] = uint32(item)
                    intervals[uint64(capacity) + slot] = firsts[at]
                    intervals[uint64(2 * capacity) + slot] = counts[at]
                    intervals[uint64(3 * capacity) + slot] = uint32(with_this)
                n_hits += int64(counts[at])
                if n_hits > stops_after:
                    break
                continue
            first, first_reverse, rows = firsts[at], firsts_reverse[at], counts[at]
            depth += 1
            errors[depth] = uint8(with_this)
            entering = True


#: The stack.
LOCAL_MEMORY = {backtrack: 3 * 4 * _STRINGS + 3 * LONGEST}

"""Inexact search of the paper on the GPU: depth first, with its lower bound, one stack per thread.

See `bwarp.seeding.backtracking_cpu` for the algorithm. As in the paper, one thread searches a k-mer
and its reverse complement. The stack is in local memory: at each depth the rows of the four longer
strings, which of them to try next, the mismatches so far and the bound.
"""

from bwarp.gpu.cuda import cuda, uint8, uint32, uint64
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import launch
from bwarp.gpu.sums_and_sorts import INTERVALS
from bwarp.index.device_index_cuda import DeviceIndex
from bwarp.index.rank_cuda import GROUPS, rank_both, ranks_both
from bwarp.seeding.exact_cuda import base_of

LONGEST = 64
_STRINGS = 4 * LONGEST

_THREADS = 64


def search_backtracking(
    device: DeviceIndex, items, n_items: int, words_an_item: int, k: int, mismatches: int
) -> None:
    """Find all strings within `mismatches` of the items; append them to the lists.

    Parameters as in `bwarp.seeding.search_schemes_cuda.search_schemes`.
    """
    work = device.work
    backtrack[launch(n_items // 2, _THREADS)](
        device.forward.words,
        device.forward.separator_rows,
        *device.reverse.arrays,
        device.first_rows,
        items,
        words_an_item,
        k,
        n_items,
        mismatches,
        work.elements,
        work.intervals,
        work.counters,
    )


@cuda.jit(device=True)
def least_mismatches(
    words, separator_rows, groups, first_rows, items, words_an_item, item, k, least
):
    """Compute DIFFS of the paper: least[i] is a lower bound of the mismatches after base i."""
    needed = uint32(0)
    start, stop = uint32(0), first_rows[4]
    for back in range(k):
        position = k - 1 - back
        least[position] = needed
        code = base_of(items, words_an_item, item, position)
        low, high = rank_both(words, separator_rows, groups, code, start, stop)
        start = uint32(first_rows[code] + low)
        stop = uint32(first_rows[code] + high)
        if start >= stop:
            needed = uint32(needed + uint32(1))
            start, stop = uint32(0), first_rows[4]
    return needed


@kernel
def backtrack(
    forward: uint32[::1], forward_separators: uint32[::1], reverse: uint32[::1],
    reverse_separators: uint32[::1], groups: GROUPS, first_rows: uint32[::1], items: uint64[::1],
    words_an_item: int, k: int, n_items: int, mismatches: int, capacity: int,
    intervals: uint32[::1], counters: uint32[::1],
):  # fmt: skip
    """Search a k-mer and its reverse complement. One thread; two sectors per node visited."""
    firsts = cuda.local.array(_STRINGS, uint32)
    firsts_reverse = cuda.local.array(_STRINGS, uint32)
    counts = cuda.local.array(_STRINGS, uint32)
    tried = cuda.local.array(LONGEST, uint8)
    errors = cuda.local.array(LONGEST, uint8)
    least = cuda.local.array(LONGEST, uint8)
    for strand in range(2):
        item = 2 * cuda.grid(1) + strand
        depth = -1
        if item < n_items:
            needed = least_mismatches(
                forward,
                forward_separators,
                groups,
                first_rows,
                items,
                words_an_item,
                item,
                k,
                least,
            )
            if needed <= mismatches:
                depth = 0
                errors[0] = uint8(0)
        first, first_reverse, rows = uint32(0), uint32(0), first_rows[4]
        entering = True
        while depth >= 0:
            if entering:
                low, high = ranks_both(
                    reverse, reverse_separators, groups, first_reverse, uint32(first_reverse + rows)
                )
                first = uint32(first + rows)
                for base in range(4):
                    firsts_reverse[4 * depth + base] = uint32(first_rows[base] + low[base])
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
            if uint32(base) != base_of(items, words_an_item, item, depth):
                with_this += 1
            at = 4 * depth + base
            if counts[at] == uint32(0) or with_this + int(least[depth]) > mismatches:
                continue
            if depth == k - 1:
                slot = uint64(cuda.atomic.add(counters, INTERVALS, uint32(1)))
                if slot < uint64(capacity):
                    intervals[slot] = uint32(item)
                    intervals[uint64(capacity) + slot] = firsts[at]
                    intervals[uint64(2 * capacity) + slot] = counts[at]
                    intervals[uint64(3 * capacity) + slot] = uint32(with_this)
                continue
            first, first_reverse, rows = firsts[at], firsts_reverse[at], counts[at]
            depth += 1
            errors[depth] = uint8(with_this)
            entering = True


#: The stack.
LOCAL_MEMORY = {backtrack: 3 * 4 * _STRINGS + 3 * LONGEST}

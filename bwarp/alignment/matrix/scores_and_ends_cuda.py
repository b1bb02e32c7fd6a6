"""Scores and ends in 32 bits on a GPU, for every mode and for GATK's, and what they cost."""

import functools
from dataclasses import dataclass

import numpy as np

from bwarp.alignment.matrix.device_batch_cuda import BLOCK, DeviceBatch, blocks
from bwarp.alignment.matrix.int32_kernel_cuda import (
    MATRIX_STRIDE,
    PADDING_ROW,
    ROWS,
    full_matrix_kernel,
)
from bwarp.alignment.matrix.order_by_size_cuda import NO_LIMIT, Order, largest_in_bin, order_by_size
from bwarp.alignment.scoring import Mode, Scoring
from bwarp.gpu.available_memory import affordable
from bwarp.gpu.cuda import cuda
from bwarp.gpu.workspace import device_array, work_space

__all__ = ["MEMORY_SHARE", "Costs", "find_full", "free_ends", "pair_costs"]

#: The share of the free memory that one launch's work space may take.
MEMORY_SHARE = 0.4
#: Pairs that fill a large GPU several times with 8 threads each.
MANY_PAIRS = 1 << 16


@dataclass(frozen=True)
class Costs:
    """What the 32-bit kernels need to know of a scheme and a mode.

    Attributes
    ----------
    matrix : ndarray, shape=(k, k)
    first, extend : int
        Scores of the first position of a gap and of a further one, negative or 0.
    opens_on_tie : bool
        Of two gaps of equal score the one that opens here counts.
    free : tuple of bool
        query_start, query_end, reference_start, reference_end.
    local : bool
    ambiguous : int
    overhang : int
        -1, or for GATK's rules its strategy: 0 INDEL or LEADING_INDEL, 1 SOFTCLIP, 2 IGNORE.
    """

    matrix: np.ndarray
    first: int
    extend: int
    opens_on_tie: bool
    free: tuple[bool, bool, bool, bool]
    local: bool = False
    ambiguous: int = -1
    overhang: int = -1

    @property
    def is_gatk(self) -> bool:
        return self.overhang >= 0

    @functools.cached_property
    def device_matrix(self):
        """The matrix as int32_kernel_cuda keeps it in shared memory, with its row for padding."""
        table = np.zeros((PADDING_ROW + 1, MATRIX_STRIDE), np.int32)
        table[: len(self.matrix), : len(self.matrix)] = self.matrix
        # A step along the diagonal above the first row keeps the upper border.
        table[PADDING_ROW] = -(2**20) if self.local else 0 if self.free[2] else self.extend
        return _on_gpu(cuda.get_current_device().id, table.tobytes())


@functools.lru_cache(maxsize=8)
def _on_gpu(device, words: bytes):
    """A few kilobytes that stay on a GPU, so that small batches need not bring them again."""
    return cuda.to_device(np.frombuffer(words, np.int32))


def free_ends(mode: Mode) -> tuple[bool, bool, bool, bool]:
    """query_start, query_end, reference_start and reference_end; all free where local."""
    if mode.local:
        return True, True, True, True
    return mode.query_start, mode.query_end, mode.reference_start, mode.reference_end


def pair_costs(scoring: Scoring, mode: Mode) -> Costs:
    """The costs of a scheme by the rules of pairs.py."""
    extend = -scoring.gap_extend
    first = extend - scoring.gap_open
    return Costs(
        scoring.matrix, first, extend, True, free_ends(mode), mode.local, scoring.ambiguous
    )


def find_full(batch: DeviceBatch, costs: Costs, outputs, marks=None, wanted: int = 0) -> None:
    """Scores and ends into `outputs`: device arrays of scores, query ends and reference ends.

    Parameters
    ----------
    marks, wanted : device array of int32, and int
        Only pairs whose mark is this; else all.
    """
    # Of many pairs groups of 8 waste the fewest cells; of few they would leave the GPU idle.
    most_threads = 8 if batch.count >= MANY_PAIRS else 32
    strips = (*range(1, 10), *(10 << i for i in range(6)))
    limits = [8 * ROWS * number for number in strips]
    limits = [*(limit for limit in limits if limit < batch.queries.longest), NO_LIMIT]
    parameters = (costs.first, costs.extend, int(costs.opens_on_tie), *map(int, costs.free), 0)
    with work_space():
        order = order_by_size(batch, limits, batch.references.longest, False, marks, wanted)
        nothing = device_array(1, np.uint32)
        for threads, begin, end, columns in _launches(order, most_threads):
            edge_stride = 2 * columns
            wanted = 4 * edge_stride * (end - begin)
            groups = max(1, affordable(wanted, MEMORY_SHARE) // (4 * edge_stride))
            kernel = full_matrix_kernel(threads, costs.local, costs.is_gatk, False)
            edge = device_array(groups * edge_stride, np.int32)
            for first in range(begin, end, groups):
                slots = order.part(first, min(first + groups, end))
                kernel[blocks(slots.size, threads), BLOCK](
                    *batch.arrays,
                    slots,
                    batch.queries.lengths,
                    costs.device_matrix,
                    parameters,
                    edge,
                    edge_stride,
                    nothing,
                    nothing,
                    *outputs,
                )


def _launches(order: Order, most_threads: int) -> list[tuple[int, int, int, int]]:
    """Threads a group, range of slots and longest reference of each launch."""
    launches = []
    for number, begin, end, last_bin in order.classes():
        threads = min(most_threads, 8 << min(number, 2))
        columns = largest_in_bin(last_bin)
        if launches and launches[-1][0] == threads:
            _, begin, _, before = launches.pop()
            columns = max(columns, before)
        launches.append((threads, begin, end, columns))
    return launches

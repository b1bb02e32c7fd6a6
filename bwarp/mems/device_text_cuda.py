"""What a GPU needs to match queries: the index there, the packed genome, and the query text.

Threads are spread along the runs of the query text. A thread finds its run, and its position in
it, by bisection in running counts:

    runs      |---- 0 ----|-- 1 --|------- 2 -------|
    counts    0           9       14                30      positions (or pieces) before each run
    thread 11 ............... 1, third
"""

from dataclasses import dataclass, field

import numpy as np

from bwarp.errors import UsageError
from bwarp.gpu.cuda import cuda, uint32
from bwarp.index.device_index_cuda import DeviceIndex, make_device_index, search_needs, upload
from bwarp.index.fm_index import FMIndex
from bwarp.index.locate_cuda import position_of
from bwarp.index.memory_plan import MemoryPlan
from bwarp.index.rank_cuda import lf_step
from bwarp.mems.query_text import QueryText

__all__ = ["DeviceReference", "DeviceText", "prepare", "put_text", "text_position"]


_LONGEST_TEXT = 2**32 - 2


@dataclass(frozen=True)
class DeviceReference:
    """A reference on the GPU: its index and its genome in 2 bits a base."""

    device: DeviceIndex
    genome: object = field(repr=False)

    @property
    def plan(self) -> MemoryPlan:
        return self.device.plan


@dataclass(frozen=True)
class DeviceText:
    """A query text on the GPU: its words (uint64), and where its runs begin and stop (uint32)."""

    words: object
    run_starts: object
    run_stops: object


def prepare(index: FMIndex, with_reverse: bool) -> DeviceReference:
    """Put an index on the GPU, to be kept over many searches; unique matches need the reverse."""
    packed = index.reference.packed
    device = make_device_index(index, search_needs(with_reverse, "yes", beside=packed.nbytes))
    return DeviceReference(device, upload(packed))


def put_text(text: QueryText) -> DeviceText:
    """Put a query text on the GPU."""
    if text.words.size * 32 > _LONGEST_TEXT:
        raise UsageError(
            f"{text.words.size * 32:,} bases of queries at a time are more than the GPU's "
            f"{_LONGEST_TEXT:,}: use --backend cpu"
        )
    return DeviceText(
        cuda.to_device(text.words),
        cuda.to_device(text.run_starts.astype(np.uint32)),
        cuda.to_device(text.run_stops.astype(np.uint32)),
    )


@cuda.jit(device=True)
def text_position(words, separator_rows, groups, first_rows, text_start, suffixes, rate, row):
    """The text position of a row: one read where the whole suffix array is there, else LF steps."""
    steps = uint32(0)
    while row % uint32(rate) != 0:
        row = lf_step(words, separator_rows, groups, first_rows, text_start, row)
        steps = uint32(steps + uint32(1))
    return position_of(suffixes, rate, first_rows[4], row, steps)

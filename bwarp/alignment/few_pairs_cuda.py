"""Align few pairs on a GPU: one copy to the GPU, one pass over the cells, one copy back.

With few pairs, a GPU waits for the host, and its threads for each other. So one block per pair
computes all cells once, with directions, and the host decides nothing in between:

    copy     sequences and tables of the pairs, from pinned memory
    launch   only with GATK's rules: the ends of exact occurrences
    launch   ends and directions of all cells             one block per pair
    launch   tracebacks, each into a buffer of its own    one warp per pair
    copy     results and buffers, to pinned memory

Tables and pinned memory stay allocated for the next batch, because allocating them takes longer
than aligning 100 pairs.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from bwarp.alignment.device_batch_cuda import FEW_PAIRS, Costs, DeviceBatch, in_use
from bwarp.alignment.follow_directions_cuda import COUNT, WRITE, traceback_kernel
from bwarp.alignment.int32_kernel_cuda import (
    BLOCK_ROWS,
    MOST_WARPS,
    WHOLE_BLOCK,
    full_matrix_kernel,
)
from bwarp.alignment.pair_tables_cuda import (
    Cells,
    Cigars,
    Directions,
    EndArrays,
    PairArrays,
    SequenceArrays,
    Traced,
)
from bwarp.alignment.pairs import Alignments, PairBatch
from bwarp.gpu.cuda import cuda, int32, int64, uint8, uint32
from bwarp.gpu.launch import WARP
from bwarp.gpu.memory_pool import device_array, work_space
from bwarp.gpu.transfers import Mirrored

#: The maximum words of directions, and of traceback buffers, of few pairs.
FEW_WORDS, FEW_RUNS = 1 << 24, 1 << 20
#: The maximum codes of sequences on the host, both sides together.
FEW_CODES = 1 << 22
#: The smallest tables: pairs, codes, and words of traceback buffers.
LEAST_ROOM = 128, 1 << 16, 1 << 16


class Sent(NamedTuple):
    """What is copied to the GPU, with a row per pair, and the codes of both sides."""

    query_starts: int64[::1]
    reference_starts: int64[::1]
    query_lengths: int32[::1]
    reference_lengths: int32[::1]
    order: int32[::1]
    bands: int32[::1]
    direction_starts: uint32[::1]
    buffer_ends: uint32[::1]
    codes: uint8[::1]


class Received(NamedTuple):
    """What is copied to the host, with a row per pair, and the traceback buffers of all."""

    scores: int32[::1]
    query_ends: int32[::1]
    reference_ends: int32[::1]
    run_counts: uint32[::1]
    edit_distances: int32[::1]
    first_rows: int32[::1]
    first_columns: int32[::1]
    buffers: uint32[::1]


class Shape(NamedTuple):
    """What few pairs need on a GPU.

    Attributes
    ----------
    count, rows, columns : int
        The number of pairs, and the lengths of the longest query and reference.
    threads, strips : int
        Threads per block, one per `BLOCK_ROWS` rows of the longest query, up to a maximum; and how
        often they move along the reference.
    words, runs : int
        The maximum words of directions per pair, and runs of a CIGAR: all runs have a length,
        except for two clips.
    """

    count: int
    rows: int
    columns: int
    threads: int
    strips: int
    words: int
    runs: int

    @property
    def is_few(self) -> bool:
        most = self.count * self.words <= FEW_WORDS and self.count * self.runs <= FEW_RUNS
        return 0 < self.count < FEW_PAIRS and most


def shape_of(batch: PairBatch | DeviceBatch) -> Shape:
    """Return the shape of a batch."""
    if isinstance(batch, DeviceBatch):
        rows, columns = batch.queries.longest, batch.references.longest
    else:
        sides = batch.queries, batch.references
        rows, columns = (int(side.lengths.max(initial=0)) for side in sides)
    threads = WARP * max(1, min(-(-rows // (WARP * BLOCK_ROWS)), MOST_WARPS))
    strips = -(-rows // (threads * BLOCK_ROWS))
    words = strips * (columns + threads - 1) * threads
    return Shape(batch.count, rows, columns, threads, strips, words, rows + columns + 2)


def few_alignments(
    batch: PairBatch | DeviceBatch,
    costs: Costs,
    find_known_ends: Callable[[tuple[int, int], PairArrays, EndArrays], None] | None = None,
) -> Alignments | None:
    """Find the best alignment of each pair of a batch, or return None if it is not of few pairs.

    Parameters
    ----------
    batch : PairBatch or DeviceBatch
        Pairs on the host or on the GPU.
    find_known_ends : function, optional
        With GATK's costs, a function that launches a kernel with one warp per pair, which writes
        the ends that are known, and otherwise `NO_END`.
    """
    shape = shape_of(batch)
    if not shape.is_few:
        return None
    sides = []
    if isinstance(batch, PairBatch):
        sides = [in_use(batch.queries), in_use(batch.references)]
    n_codes = sum(side.codes.size for side in sides)
    if n_codes > FEW_CODES:
        return None
    count, warps = shape.count, (shape.count, WARP)
    with work_space(), _tables(count, n_codes, count * shape.runs) as tables:
        arrays = tables.pairs if sides else batch.arrays
        tables.send(sides, shape)
        sent, ends = tables.sent.on_gpu, tables.ends
        if find_known_ends is not None:
            find_known_ends(warps, arrays, ends)
        directions = Directions(device_array(count * shape.words, np.uint32), sent.direction_starts)
        edge_stride = 2 * shape.columns if shape.strips > 1 else 0
        # Not used by a single strip.
        edge = device_array(count * edge_stride, np.int32) if edge_stride else sent.order
        align = full_matrix_kernel(WHOLE_BLOCK, costs.local, costs.is_gatk, True)
        align[count, shape.threads](
            arrays, sent.order, sent.bands, costs.of_kernel(costs.free), edge, edge_stride,
            directions, ends,
        )  # fmt: skip
        rules = costs.trace_rules(shape.threads, BLOCK_ROWS)
        traceback_kernel(costs.is_gatk)[warps](
            arrays, sent.order, tables.cells, directions, rules,
            COUNT | WRITE, tables.traced, tables.cigars,
        )  # fmt: skip
        return tables.receive(shape)


class _Tables:
    """Tables with room for given numbers of pairs, codes, and words of traceback buffers."""

    def __init__(self, pairs: int, codes: int, runs: int):
        self.room = pairs, codes, runs
        self.sent = Mirrored(Sent, [pairs] * 8 + [codes])
        self.received = Mirrored(Received, [pairs] * 7 + [runs])
        sent, received = self.sent.on_gpu, self.received.on_gpu
        self.pairs = PairArrays(
            SequenceArrays(sent.codes, sent.query_starts, sent.query_lengths),
            SequenceArrays(sent.codes, sent.reference_starts, sent.reference_lengths),
        )
        self.ends = EndArrays(*received[:3])
        # No alignment is known to be a diagonal.
        self.cells = Cells(*received[1:3], sent.bands, sent.bands)
        self.traced = Traced(*received[3:7])
        self.cigars = Cigars(sent.buffer_ends, received.buffers)
        self._numbers = np.arange(pairs + 1, dtype=np.uint32)
        self.sent.on_host.order[:] = self._numbers[:-1]
        self.sent.on_host.bands[:] = -1

    def send(self, sides: list, shape: Shape) -> None:
        """Copy the sequences, if they are on the host, and the offsets of each pair's memory."""
        to, count, used = self.sent.on_host, shape.count, 0
        columns = (to.query_starts, to.query_lengths), (to.reference_starts, to.reference_lengths)
        for side, (starts, lengths) in zip(sides, columns, strict=False):
            np.add(side.starts, used, out=starts[:count])
            lengths[:count] = side.lengths
            to.codes[used : used + side.codes.size] = side.codes
            used += side.codes.size
        np.multiply(self._numbers[:count], shape.words, out=to.direction_starts[:count])
        np.multiply(self._numbers[1 : count + 1], shape.runs, out=to.buffer_ends[:count])
        self.sent.send(used)

    def receive(self, shape: Shape) -> Alignments:
        """Wait for the alignments, and return them."""
        count = shape.count
        self.received.receive(count * shape.runs)
        scores, query_ends, reference_ends, counts, distances, first_rows, first_columns = (
            column[:count].copy() for column in self.received.on_host[:7]
        )
        offsets = np.zeros(count + 1, np.int64)
        np.cumsum(counts, out=offsets[1:])
        shift = np.repeat(self.sent.on_host.buffer_ends[:count] - offsets[1:], counts)
        cigar = self.received.on_host.buffers[np.arange(offsets[-1]) + shift]
        return Alignments(
            scores, first_rows, query_ends, first_columns, reference_ends, distances, offsets, cigar
        )


#: Tables of each GPU that no thread uses.
_spare: defaultdict[int, list[_Tables]] = defaultdict(list)


@contextmanager
def _tables(*needed: int) -> Iterator[_Tables]:
    """Lend tables with at least this room to a thread; they grow to the largest batch so far."""
    spare = _spare[cuda.get_current_device().id]
    try:
        tables = spare.pop()
    except IndexError:
        tables = None
    pairs = list(zip(needed, tables.room if tables else LEAST_ROOM, strict=True))
    if tables is None or any(wanted > room for wanted, room in pairs):
        tables = _Tables(*(1 << (max(pair) - 1).bit_length() for pair in pairs))
    yield tables
    spare.append(tables)

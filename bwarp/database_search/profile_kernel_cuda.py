"""Compute local scores of a query strip against many targets, two alignments per register.

The query runs down the rows, the target along the columns. A group of 4 or 8 threads holds a
*strip* of `group * rows` query residues and moves along a target, thread l one column behind thread
l - 1 (as in packed_int16_kernel_cuda). A query of several strips takes as many launches; the last
row of each is passed to the next through global memory, 8 bytes per column. Besides its rows, a
step takes a fixed time per thread, so a short query is faster with 4 threads of many rows each.

The two 16-bit lanes of a register hold two alignments, either of

    targets = 1    two queries against the same target
    targets = 2    the same query against two targets

Scores are looked up in a profile in shared memory: for every code of the alphabet, its score
against every row of the strip, one word per row, read when needed. With two queries, the halves of
the word are their scores. With one query, the low half is its score, and the score against the
second target is multiplied into the high half, on a pipe that is otherwise idle:

    byte  code * 32 * rows  +  row // 4 * 128  +  thread * 16  +  row % 4 * 4  +  query * 2

where `thread` is the position among 8 threads: of one group, or of two groups of 4, each of which
has its own copy. The 16-byte reads of 8 threads always access different banks, for any codes.

The kernel is limited by register reads: there are two banks, even and odd registers, each read once
per cycle. Therefore gap costs are compile-time constants, which need no reads, and combined
add-and-compare instructions are preferred.

Lanes hold H + bias, never negative, where the bias is the cost of a gap of length 1. A score close
to 2^15 may have overflowed: such targets are computed in 32 bits (`search_cuda`).
"""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bwarp.gpu.cuda import cuda, int32, int64, uint8, uint32
from bwarp.gpu.kernel import kernel
from bwarp.gpu.ptx import (
    add_max_lanes,
    load_shared_int32x4,
    max3_lanes,
    max_lanes,
    multiply_add,
    opaque,
    shared_address,
)

#: Possible numbers of threads per group.
GROUPS = (4, 8)
#: Threads that share a profile, and columns without residues between targets: the largest group.
GROUP = max(GROUPS)
#: Maximum rows per thread; always a multiple of 4.
MOST_ROWS = 36
#: Codes that fit a profile; the last stands for no residue and has the lowest score.
ALPHABET = 32
NO_RESIDUE = ALPHABET - 1

ALL = 0xFFFFFFFF
BLOCK = 128
#: Multiplies a number into the high lane.
UPPER = 1 << 16


class Tile(NamedTuple):
    """What a group of threads computes at a time.

    Attributes
    ----------
    rows : int
        Query residues per thread, a multiple of 4, at most `MOST_ROWS`.
    group : int
        Threads per group, one of `GROUPS`.
    targets : int
        Targets in the lanes, 1 or 2.
    """

    rows: int
    group: int
    targets: int

    @property
    def residues(self) -> int:
        """The query residues of a strip."""
        return self.group * self.rows

    def strips(self, query_length: int) -> int:
        return -(-query_length // self.residues)


def query_profile(
    queries: Sequence[np.ndarray], matrix: np.ndarray, shift: int, tile: Tile
) -> np.ndarray:
    """Return the profile of one or two queries, by strips, as the kernel keeps it in shared memory.

    Parameters
    ----------
    queries : one or two of ndarray, shape=(m,), dtype=uint8
    matrix : ndarray, shape=(k, k), k < 32
    shift : int
        Added to every score so that none is below 0; without a residue the sum is 0.
    tile : Tile

    Returns
    -------
    profile : ndarray, shape=(strips, 256 * rows), dtype=int32
        All queries are at the bottom of the last strip; the first is in the low halves.
    """
    rows, group, _ = tile
    strips = tile.strips(max(query.size for query in queries))
    scores = np.zeros((ALPHABET, strips * tile.residues, 2), np.uint16)
    for half, query in enumerate(queries):
        scores[: len(matrix), scores.shape[1] - query.size :, half] = matrix[query].T + shift
    threads = scores.reshape(ALPHABET, strips, group, rows // 4, 4, 2)
    layout = np.tile(threads.transpose(1, 0, 3, 2, 4, 5), (1, 1, 1, GROUP // group, 1, 1))
    return np.ascontiguousarray(layout).view(np.int32).reshape(strips, ALPHABET * GROUP * rows)


@kernel
def spread_targets(codes: uint8[::1], offsets: int64[::1], spread: uint8[::1], edge: int64[::1]):
    """Put `GROUP` columns without residues before the first target and after every target.

    One block per target, whose threads stride over its columns; reads and writes a byte per column.
    Target t begins at ``spread[offsets[t] + GROUP * (t + 1)]``. In columns without residues, `edge`
    says that nothing comes from above.
    """
    target = cuda.blockIdx.x
    start = offsets[target]
    length = offsets[target + 1] - start
    index = start + GROUP * (target + 1)
    if target == 0 and cuda.threadIdx.x < GROUP:
        spread[cuda.threadIdx.x] = NO_RESIDUE
        edge[cuda.threadIdx.x] = 0
    for column in range(cuda.threadIdx.x, length + GROUP, cuda.blockDim.x):
        code = uint8(NO_RESIDUE)
        if column < length:
            code = codes[start + column]
        else:
            edge[index + column] = 0
        spread[index + column] = code


def both_lanes(number: int) -> int:
    """Return a 16-bit number in both lanes of a register."""
    word = (number & 0xFFFF) * 0x10001
    return word - (1 << 32) if word >> 31 else word


@functools.cache
def strip_kernel(tile, first, extend):
    """Make a kernel for one strip of the query against all targets.

    Parameters
    ----------
    tile : Tile
    first, extend : int
        The costs of the first and of further positions of a gap. `first` is also the bias of the
        lanes and the shift of the profile.

    Notes
    -----
    Targets are sorted by length. One group of threads per target, or per two targets, the longest
    in the first block; a block takes as many steps as its longest target has columns. `best` holds
    the best scores of earlier strips, one word per group, and is updated; its lanes are the two
    queries, or the targets 2w and 2w + 1. `edge` holds the last row of the strip above for every
    byte of `codes`, of which there are fewer than 2^32: H in the low and I in the high half.
    """
    rows, group, targets = tile
    quads = rows // 4
    table_words = ALPHABET * GROUP * rows
    code_bytes = table_words // ALPHABET * 4
    # As few as possible without spilling on compute capability 9; with more, the compiler holds
    # more values at a time and reads them from one bank more often.
    registers = 2 * rows + 48
    # Lanes that are never negative are added as one number by the multiply pipe.
    open_sum = -first * 0x10001
    extend_lanes, floor_lanes = both_lanes(-extend), both_lanes(first)

    @kernel(max_registers=registers)
    def align_strip(
        profile: int32[::1], codes: uint8[::1], offsets: int64[::1], one: int32, is_first: bool,
        is_last: bool, edge: int64[::1], best: int32[::1],
    ):  # fmt: skip
        table = cuda.shared.array(table_words, int32)
        for word in range(uint32(cuda.threadIdx.x), uint32(table_words), uint32(cuda.blockDim.x)):
            table[word] = profile[word]
        cuda.syncthreads()

        lane = int32(cuda.laneid) & int32(group - 1)
        groups = cuda.blockDim.x // group
        count = offsets.size - 1
        first_word = (cuda.gridDim.x - 1 - cuda.blockIdx.x) * groups
        word = first_word + cuda.threadIdx.x // group
        # All threads of a block take the same steps, up to the end of its last target.
        longest = min(targets * (first_word + groups), count) - 1
        steps = int32(offsets[longest + 1] - offsets[longest] + group - 1)
        # A surplus group, or half of one, works on the columns before the first target.
        start, columns = uint32(GROUP - 1), int32(0)
        start_b, columns_b = uint32(GROUP - 1), int32(0)
        target = targets * word
        if target < count:
            start = uint32(offsets[target] + GROUP * (target + 1))
            columns = int32(offsets[target + 1] - offsets[target])
        if targets == 2 and target + 1 < count:
            start_b = uint32(offsets[target + 1] + GROUP * (target + 2))
            columns_b = int32(offsets[target + 2] - offsets[target + 1])
        # The longer of two targets provides its part of `edge`.
        edge_start, edge_columns = start, columns
        if columns_b > 0:
            edge_start, edge_columns = start_b, columns_b

        position = int32(cuda.laneid) & int32(GROUP - 1)
        thread_table = int32(shared_address(table) + position * int32(16))
        stored = cuda.local.array(rows, int32)
        deletion = cuda.local.array(rows, int32)
        score = cuda.local.array(8, int32)
        high = cuda.local.array(4, int32)
        for row in range(rows):
            stored[row] = int32(0)
            deletion[row] = int32(floor_lanes)
        diagonal, insertion = int32(0), int32(0)
        highest = int32(floor_lanes)
        column = int32(-lane)
        # Past its last column, a target stays in the first column after it, which has no residues
        # and, in `edge`, nothing from above. Residues of the next column and the last row of the
        # strip above are read one step ahead.
        following = int32(codes[uint32(start - uint32(lane))])
        following_b = int32(NO_RESIDUE)
        if targets == 2:
            following_b = int32(codes[uint32(start_b - uint32(lane))])
        # The first thread gets from the strip above what the others get from their neighbours.
        upper = int64(0)
        has_neighbour = int32(1)
        reads = int32(0)
        if lane == 0:
            has_neighbour = int32(0)
            if not is_first:
                reads = int32(1)
                upper = edge[edge_start]
        # The last thread writes its row, column by column; the others store nothing.
        stored_columns = int32(0)
        if lane == group - 1 and not is_last:
            stored_columns = edge_columns
        # Opaque, or the conditions it depends on are re-evaluated at every step.
        stored_columns, reads = opaque(stored_columns), opaque(reads)

        while steps > 0:
            steps = int32(steps - int32(1))
            from_above = upper
            table_a = int32(thread_table + following * int32(code_bytes))
            table_b = int32(thread_table + following_b * int32(code_bytes))
            index = uint32(edge_start + uint32(column))
            next_column = int32(column + 1)
            following = int32(codes[uint32(start + uint32(min(next_column, columns)))])
            if targets == 2:
                following_b = int32(codes[uint32(start_b + uint32(min(next_column, columns_b)))])
            # Opaque, or the compiler duplicates the loop and each warp runs both copies.
            if opaque(reads) != 0:
                upper = edge[uint32(edge_start + uint32(min(next_column, edge_columns)))]
            next_diagonal = multiply_add(
                cuda.shfl_up_sync(ALL, stored[rows - 1], 1), has_neighbour, int32(from_above)
            )
            insertion = multiply_add(
                cuda.shfl_up_sync(ALL, insertion, 1), has_neighbour, int32(from_above >> 32)
            )
            # Before the first column and after the last there are no residues: rows are at the
            # floor before and raise nothing after, so no thread has to wait.
            score[0], score[1], score[2], score[3] = load_shared_int32x4(table_a)
            if targets == 2:
                high[0], high[1], high[2], high[3] = load_shared_int32x4(table_b)
                for i in range(4):
                    score[i] = multiply_add(high[i], int32(UPPER), score[i])
            # The diagonal and D of a row are read before the row that they depend on is
            # overwritten, which saves a copy.
            above = add_max_lanes(diagonal, score[0], deletion[0])
            before = int32(0)
            for quad in range(quads):
                # Scores of the next rows, loaded before use.
                if quad + 1 < quads:
                    score[4], score[5], score[6], score[7] = load_shared_int32x4(
                        int32(table_a + int32(128 * (quad + 1)))
                    )
                    if targets == 2:
                        high[0], high[1], high[2], high[3] = load_shared_int32x4(
                            int32(table_b + int32(128 * (quad + 1)))
                        )
                        for i in range(4):
                            score[4 + i] = multiply_add(high[i], int32(UPPER), score[4 + i])
                for i in range(4):
                    row = 4 * quad + i
                    here = max3_lanes(above, insertion, int32(floor_lanes))
                    if row + 1 < rows:
                        above = add_max_lanes(stored[row], score[i + 1], deletion[row + 1])
                    stored[row] = multiply_add(here, one, int32(open_sum))
                    insertion = add_max_lanes(insertion, int32(extend_lanes), stored[row])
                    deletion[row] = add_max_lanes(deletion[row], int32(extend_lanes), stored[row])
                    if i % 2 == 1:
                        highest = max3_lanes(highest, before, here)
                    before = here
                score[0], score[1], score[2], score[3] = score[4], score[5], score[6], score[7]
            if uint32(column) < uint32(stored_columns):
                edge[index] = (int64(insertion) << 32) | (int64(stored[rows - 1]) & 0xFFFFFFFF)
            diagonal = next_diagonal
            column = next_column

        distance = group >> 1
        while distance > 0:
            highest = max_lanes(highest, cuda.shfl_xor_sync(ALL, highest, distance))
            distance >>= 1
        if lane == 0 and word < best.size:
            if not is_first:
                highest = max_lanes(best[word], highest)
            best[word] = highest

    return align_strip


LOWEST_ARCHITECTURE = (9, 0)

#: Some of the kernels in use.
MADE_KERNELS = tuple(
    strip_kernel(Tile(rows, group, targets), 12, 1)
    for targets in (1, 2)
    for group, rows in ((8, 16), (8, MOST_ROWS), (4, MOST_ROWS))
)
# With many rows, compute capability 12 spills a few registers.
LOCAL_MEMORY = dict.fromkeys(MADE_KERNELS, 104)

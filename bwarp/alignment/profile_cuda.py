"""One query against many targets: local scores, two targets in the 16-bit lanes of each register.

The query stands down the rows, the targets run along the columns. A group of 8 threads holds a
*strip* of `8 * rows` query letters in registers and walks along two targets at once, thread l one
column behind thread l - 1 (as in packed_cuda). A query of several strips takes as many launches;
the last row of each goes to the next through global memory, 8 bytes a column.

Scores are looked up in the query's profile: for every letter of the alphabet what it scores
against every row of the strip, a byte each, in shared memory:

    byte  letter * 256  +  half * 128  +  thread * 16  +  row % 16         half = row // 16

so that the 16-byte reads of 8 threads always fall into different banks, whatever their letters.
One byte permutation then takes the same row out of both targets' words and widens it.

Lanes hold H + bias, never negative; see packed_cuda for the arithmetic. A score that nears 2^15
cannot be told from an overflow: such targets are marked and computed in 32 bits (`search_cuda`).
"""

import functools

import numpy as np
from numba import boolean, cuda, int32, int64, uint8, uint32

from bwarp.ptx import (
    add_max_lanes,
    load_shared_int32x4,
    max3_lanes,
    max_lanes,
    multiply_add,
    opaque,
    permute_bytes,
    shared_address,
)

__all__ = [
    "ALPHABET",
    "GROUP",
    "KERNEL_SIGNATURES",
    "LOWEST_ARCHITECTURE",
    "NO_LETTER",
    "STRIP_ROWS",
    "interleave_targets",
    "query_profile",
    "strip_kernel",
]

#: Threads a group.
GROUP = 8
#: Rows a thread that kernels are made for; at most 32.
STRIP_ROWS = (16, 20, 24, 28, 32)
#: Letters that a profile has room for; the last stands for no letter and scores lowest.
ALPHABET = 32
NO_LETTER = ALPHABET - 1

#: The word of a column without letters.
NO_LETTERS = NO_LETTER << 8 | NO_LETTER << 24

ALL = 0xFFFFFFFF
LETTER_WORDS = 64
PROFILE_WORDS = ALPHABET * LETTER_WORDS
BLOCK = 128


def query_profile(query: np.ndarray, matrix: np.ndarray, shift: int, rows: int) -> np.ndarray:
    """The profile of a query, strip by strip, as the kernel keeps it in shared memory.

    Parameters
    ----------
    query : ndarray, shape=(m,), dtype=uint8
    matrix : ndarray, shape=(k, k), k < 32
    shift : int
        Added to every score so that none is below 0; where there is no letter the sum is 0.
    rows : int
        Rows a thread.

    Returns
    -------
    profile : ndarray, shape=(strips, 2048), dtype=int32
        The query stands at the bottom of the last strip.
    """
    strip = GROUP * rows
    strips = -(-query.size // strip)
    scores = np.zeros((ALPHABET, strips * strip), np.uint8)
    scores[: len(matrix), strips * strip - query.size :] = matrix[query].T + shift
    threads = scores.reshape(ALPHABET, strips, GROUP, rows)
    layout = np.zeros((strips, ALPHABET, 2, GROUP, 16), np.uint8)
    layout[:, :, 0, :, : min(rows, 16)] = threads[..., :16].transpose(1, 0, 2, 3)
    layout[:, :, 1, :, : max(rows - 16, 0)] = threads[..., 16:].transpose(1, 0, 2, 3)
    return layout.view(np.int32).reshape(strips, PROFILE_WORDS)


@cuda.jit(cache=True)
def interleave_targets(codes, offsets, columns_before, letters):
    """Lay two neighbouring targets side by side: one word a column with both profile offsets.

    One block a pair of targets, threads striding over its columns; reads 2 bytes and writes 4 a
    column. Targets 2p and 2p + 1 go to ``letters[columns_before[p] : columns_before[p + 1]]``, all
    but the last `GROUP` words of it; those, and `GROUP` words before the first pair, mean no
    letter.
    """
    pair = cuda.blockIdx.x
    first = columns_before[pair]
    columns = columns_before[pair + 1] - first
    start_a = offsets[2 * pair]
    start_b = offsets[2 * pair + 1]
    length_a = start_b - start_a
    length_b = int64(0)
    if 2 * pair + 2 < offsets.size:
        length_b = offsets[2 * pair + 2] - start_b
    if pair == 0 and cuda.threadIdx.x < GROUP:
        letters[cuda.threadIdx.x] = int32(NO_LETTERS)
    for column in range(cuda.threadIdx.x, columns, cuda.blockDim.x):
        letter_a, letter_b = int32(NO_LETTER), int32(NO_LETTER)
        if column < length_a:
            letter_a = int32(codes[start_a + column])
        if column < length_b:
            letter_b = int32(codes[start_b + column])
        letters[first + column] = int32((letter_a << 8) | (letter_b << 24))


@functools.cache
def strip_kernel(rows):
    """A kernel for one strip of `8 * rows` query letters against all targets.

    One group of threads a pair of targets, the last (longest) pair first. `best[pair]` holds the
    best of earlier strips, a lane a target, and is raised. `edge` holds the last row of the strip
    above for every word of `letters`, of which there are fewer than 2^32: H + gap in the low and I
    in the high half, and behind the last column of a pair what the floor gives. `gap` is the score
    of a gap of one letter (negative), and -gap also the shift of the profile.
    """
    quarters = 1 if rows <= 16 else 2

    @cuda.jit(cache=True, max_registers=128)
    def align_strip(
        profile, letters, columns_before, gap, extend, bias, one, is_first, is_last, edge, best
    ):
        table = cuda.shared.array(PROFILE_WORDS, int32)
        for word in range(cuda.threadIdx.x, PROFILE_WORDS, cuda.blockDim.x):
            table[word] = profile[word]
        cuda.syncthreads()

        lane = int32(cuda.laneid) & int32(GROUP - 1)
        pairs = columns_before.size - 1
        pair = pairs - 1 - cuda.grid(1) // GROUP
        # A group too many goes along in the words before the first pair, which mean no letter.
        first, columns = uint32(GROUP - 1), int32(0)
        if pair >= 0:
            first = uint32(columns_before[pair])
            columns = int32(columns_before[pair + 1] - columns_before[pair] - GROUP)
        # All threads of a warp take the same steps.
        steps = columns
        steps = max(steps, cuda.shfl_xor_sync(ALL, steps, 16))
        steps = int32(max(steps, cuda.shfl_xor_sync(ALL, steps, 8)) + GROUP - 1)

        gap_lanes = int32(gap * int32(65537))
        extend_sum = int32(extend * int32(65537))
        extend_lanes = int32((extend & int32(0xFFFF)) | (extend << int32(16)))
        floor_lanes = int32(bias * int32(65537))
        below_floor = int32(floor_lanes + gap_lanes)
        thread_table = int32(shared_address(table) + lane * int32(16))

        stored = cuda.local.array(rows, int32)
        deletion = cuda.local.array(rows, int32)
        score_a = cuda.local.array(8, int32)
        score_b = cuda.local.array(8, int32)
        for r in range(rows):
            stored[r] = below_floor
            deletion[r] = floor_lanes
        diagonal, insertion = below_floor, below_floor
        highest = floor_lanes
        column = int32(-lane)
        # Past its last column a pair stays in the first word behind it, where there are no letters
        # and, in `edge`, nothing from above. Words are counted in 32 bits: the multiply pipe then
        # makes the addresses.
        position = uint32(first - uint32(lane))
        # The next column's letters and, from the strip above, its last row: a step ahead.
        following = letters[position]
        nothing = (int64(below_floor) << 32) | (int64(below_floor) & 0xFFFFFFFF)
        upper = nothing
        if not is_first:
            upper = edge[position]
        # The last thread hands its row on, column by column; the others store nothing.
        stored_columns = int32(0)
        if lane == GROUP - 1 and not is_last:
            stored_columns = columns

        for _ in range(steps):
            # Before the first column and after the last there are no letters, which leaves the
            # rows at the floor before and raises nothing after: no thread has to wait.
            word = following
            next_diagonal = cuda.shfl_up_sync(ALL, stored[rows - 1], 1)
            insertion = cuda.shfl_up_sync(ALL, insertion, 1)
            # Opaque, or the loop is written twice and each warp runs both.
            lane_now = opaque(lane)
            if lane_now == 0:
                next_diagonal = int32(upper)
                insertion = int32(upper >> 32)
            place = uint32(first + uint32(column))
            position = uint32(first + uint32(min(int32(column + 1), columns)))
            following = letters[position]
            if not is_first:
                upper = edge[position]
            address_a = int32(thread_table + (word & int32(0xFFFF)))
            address_b = int32(thread_table + int32(uint32(word) >> uint32(16)))
            for q in range(quarters):
                (
                    score_a[4 * q],
                    score_a[4 * q + 1],
                    score_a[4 * q + 2],
                    score_a[4 * q + 3],
                ) = load_shared_int32x4(int32(address_a + int32(128 * q)))
                (
                    score_b[4 * q],
                    score_b[4 * q + 1],
                    score_b[4 * q + 2],
                    score_b[4 * q + 3],
                ) = load_shared_int32x4(int32(address_b + int32(128 * q)))
            # Rows two by two. What comes of the diagonal is added by the multiply pipe in the one;
            # in the other together with D by the other pipe, and then D needs no floor. A row's sum
            # is taken before the row it reads is overwritten, which saves a copy.
            score = permute_bytes(score_a[0], score_b[0], int32(0xC480))
            from_diagonal = multiply_add(diagonal, one, score)
            for two in range(rows // 2):
                even, odd = 2 * two, 2 * two + 1
                here = max3_lanes(from_diagonal, insertion, deletion[even])
                selector = int32(0xC480 + 0x1111 * (odd % 4))
                score = permute_bytes(score_a[odd // 4], score_b[odd // 4], selector)
                from_diagonal = add_max_lanes(stored[even], score, deletion[odd])
                stored[even] = multiply_add(here, one, gap_lanes)
                insertion = add_max_lanes(insertion, extend_lanes, stored[even])
                deletion[even] = max3_lanes(
                    multiply_add(deletion[even], one, extend_sum), stored[even], floor_lanes
                )
                below = max3_lanes(from_diagonal, insertion, floor_lanes)
                if two < rows // 2 - 1:
                    selector = int32(0xC480 + 0x1111 * ((even + 2) % 4))
                    score = permute_bytes(
                        score_a[(even + 2) // 4], score_b[(even + 2) // 4], selector
                    )
                    from_diagonal = multiply_add(stored[odd], one, score)
                stored[odd] = multiply_add(below, one, gap_lanes)
                insertion = add_max_lanes(insertion, extend_lanes, stored[odd])
                deletion[odd] = add_max_lanes(deletion[odd], extend_lanes, stored[odd])
                highest = max3_lanes(highest, here, below)
            if uint32(column) < uint32(stored_columns):
                edge[place] = (int64(insertion) << 32) | (int64(stored[rows - 1]) & 0xFFFFFFFF)
            diagonal = next_diagonal
            column = int32(column + 1)

        if lane == GROUP - 1 and pair >= 0 and not is_last:
            edge[uint32(first + uint32(columns))] = nothing
        distance = GROUP >> 1
        while distance > 0:
            highest = max_lanes(highest, cuda.shfl_xor_sync(ALL, highest, distance))
            distance >>= 1
        if lane == 0 and pair >= 0:
            best[pair] = max_lanes(best[pair], highest)

    return align_strip


LOWEST_ARCHITECTURE = (9, 0)

_NUMBERS, _STARTS = int32[::1], int64[::1]
_STRIP = (
    *(_NUMBERS, _NUMBERS, _STARTS, int32, int32, int32, int32),
    *(boolean, boolean, _STARTS, _NUMBERS),
)
KERNEL_SIGNATURES = {
    interleave_targets: (uint8[::1], _STARTS, _STARTS, _NUMBERS),
    **{strip_kernel(rows): _STRIP for rows in STRIP_ROWS},
}

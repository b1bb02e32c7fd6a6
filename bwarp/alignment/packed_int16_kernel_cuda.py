"""Compute scores and ends of nucleotide pairs, two pairs per register in 16-bit lanes.

One *group* of threads aligns two pairs at once. Thread l of the group holds `ROWS` rows of the
query in registers and moves along the reference, one column per step, one step behind thread l - 1,
whose last row it receives by shuffle. The query is at the bottom of the tile, so that its last row
is the last row of the last thread for any length; the rows above are padding that repeats the upper
border. A longer query takes several tiles, from top to bottom; the last row of each is passed on
through global memory.

            reference ->              step t: thread l works at column t - l
    padding . . . . . . .    thread 0   rows 0 .. ROWS-1          ###
    query   . . . . . . .    thread 1                            ###
            . . . . . . .    thread 2                           ###

A lane holds H + bias, never negative, so that one 32-bit addition adds both lanes, and uses the
multiply pipe; the other pipe executes the maxima and the byte permutation that looks up a score,
four instructions for two cells. The minimum value is known (`lowest_score`), so the lowest lane
value, 0, can represent minus infinity.

H is stored as H - shift: the score of a pair of bases is looked up as score + shift, which is
non-negative and fits a byte, and the two shifts cancel.

The words that select the scores of a column are prepared by `select_bases`.
"""

import functools
from typing import NamedTuple

from bwarp.alignment.pair_tables_cuda import EndArrays, PairArrays, SequenceArrays
from bwarp.gpu.cuda import cuda, int32, int64, types, uint32, uint64
from bwarp.gpu.kernel import kernel
from bwarp.gpu.ptx import add_max_lanes, max3_lanes, max_lanes, multiply_add, opaque, permute_bytes

# Selectors: the bases of two references, in the form in which scores are looked up.
#
# Each column has a word, the selector of a byte permutation, which takes the scores of both
# references' bases, widened to 16 bits, from the profiles of two query bases (four bytes, the
# scores against A, C, G and T). References with ambiguous bases are not supported: their pairs get
# the score REFUSED and are computed elsewhere (`int32_kernel_cuda`).


#: The score of a pair whose reference has an ambiguous base.
REFUSED = -(2**31)

ALL = 0xFFFFFFFF


class Selectors(NamedTuple):
    """The selectors of all groups, and the words per group."""

    words: int32[::1]
    stride: int


@kernel
def select_bases(
    references: SequenceArrays, order: int32[::1], selectors: Selectors, margin: int,
    scores: int32[::1], refused: int32[::1],
):  # fmt: skip
    """Write, column by column, the selectors for the scores of two references' bases.

    One warp per group of two pairs, each thread taking every 32nd column: reads two bases and
    writes the selector of permute_bytes that takes their scores, widened to 16 bits, from the
    profiles of two query bases, to word `group * stride + margin + column`. Pairs whose
    reference has an ambiguous base get the score REFUSED, and `refused[0]` becomes 1; the others
    get 0.
    """
    group = cuda.grid(1) // 32
    if 2 * group >= order.size:
        return
    a, b = order[2 * group], order[2 * group + 1]
    row_start = uint64(group * selectors.stride + margin)
    start_a, start_b = uint64(references.starts[a]), uint64(references.starts[b])
    seen_a, seen_b = int32(0), int32(0)
    for at in range(cuda.laneid, references.lengths[a], 32):
        column = uint64(at)
        base_a = int32(references.codes[start_a + column])
        base_b = int32(references.codes[start_b + column])
        seen_a = int32(seen_a | base_a)
        seen_b = int32(seen_b | base_b)
        selectors.words[row_start + column] = int32(
            base_a * int32(0x11) + base_b * int32(0x1100) + int32(0xC480)
        )
    refused_a = cuda.ballot_sync(ALL, seen_a > 3)
    refused_b = cuda.ballot_sync(ALL, seen_b > 3)
    if cuda.laneid == 0:
        scores[a] = int32(REFUSED) if refused_a != 0 else int32(0)
        scores[b] = int32(REFUSED) if refused_b != 0 else int32(0)
        if refused_a != 0 or refused_b != 0:
            refused[0] = int32(1)


@kernel
def refuse(order: int32[::1], scores: int32[::1], refused: int32[::1]):
    """Give pairs the score REFUSED. One thread per slot."""
    slot = cuda.grid(1)
    if slot < order.size:
        scores[order[slot]] = int32(REFUSED)
        refused[0] = int32(1)


LOW = 0xFFFF


@cuda.jit(device=True)
def both(low, high):
    """Return a register of two lanes; also valid as a number to add if `low` is negative."""
    return int32(int32(high) * int32(65536) + int32(low))


@cuda.jit(device=True)
def low_lane(register):
    """Return the low lane of a register whose lanes are non-negative."""
    return int32(register & int32(LOW))


@cuda.jit(device=True)
def high_lane(register):
    """Return the high lane of a register whose lanes are non-negative."""
    return int32((register >> int32(16)) & int32(LOW))


@cuda.jit(device=True)
def left_border(index, is_free, corner, first, extend):
    """Return H left of the first column, `index` query bases down; above 0 is padding.

    The padding repeats the upper border: a step along its diagonal costs gap_extend, and `corner`
    makes the first step cost as much as a gap of length 1.
    """
    if index < 0:
        return int32(corner)
    if index == 0 or is_free:
        return int32(0)
    return int32(first + (index - 1) * extend)


@cuda.jit(device=True)
def profile(code, match, mismatch):
    """Return four bytes: the scores of a query base against A, C, G and T, shifted to be >= 0."""
    word = int32(mismatch * 0x01010101)
    if code < 4:
        word = int32(word + ((match - mismatch) << (8 * code)))
    return word


@functools.cache
def packed_kernel(threads, rows, local, with_ends, many_tiles, gap_is_shift):
    """Make a kernel for queries in tiles of `threads` x `rows` bases.

    Parameters
    ----------
    threads : int
        Threads per group: 2, 4, 8, 16 or 32.
    rows : int
        Rows per thread, in registers.
    local : bool
        Whether alignments may start and end anywhere; otherwise the free ends are run-time
        arguments.
    many_tiles : bool
        Whether queries may be longer than a tile.
    gap_is_shift : bool
        Whether the shift equals the cost of a gap of length 1, which saves one addition.
    with_ends : bool
        Whether to find the end cell; if not, `query_ends` and `reference_ends` are not written.

    Notes
    -----
    `order` lists the pairs, two by two with equal reference lengths. The kernel reads each query
    base once, and four bytes per column of the reference for both pairs. `parameters` holds: match
    + shift, mismatch + shift, padding score + shift, shift, the scores of opening and extending a
    gap (negative), bias, and query_start, query_end, reference_start, reference_end of the mode.
    `one` is 1. `edge` is global memory for the last rows of tiles, two words per column and group;
    it may be empty if every query fits one tile.
    """
    tile = threads * rows

    @kernel(max_registers=168 if local and with_ends else 128)
    def align_packed(
        pairs: PairArrays, selectors: Selectors, order: int32[::1],
        parameters: types.UniTuple(int64, 11), one: int32, edge: int32[::1], edge_stride: int,
        ends: EndArrays,
    ):  # fmt: skip
        queries = pairs.queries
        lane = int32(cuda.laneid) & int32(threads - 1)
        group = cuda.grid(1) // threads
        # A surplus group repeats the last one, with the same result.
        group = min(group, order.size // 2 - 1)
        a, b = order[2 * group], order[2 * group + 1]
        length_a, length_b = int32(queries.lengths[a]), int32(queries.lengths[b])
        columns = int32(pairs.references.lengths[a])
        query_a, query_b = queries.starts[a], queries.starts[b]

        match, mismatch = int32(parameters[0]), int32(parameters[1])
        padding = int32(parameters[2]) * int32(0x01010101)
        shift = int32(parameters[3])
        first, extend, bias = int32(parameters[4]), int32(parameters[5]), int32(parameters[6])
        free_query_start, free_query_end = parameters[7] != 0, parameters[8] != 0
        free_reference_start, free_reference_end = parameters[9] != 0, parameters[10] != 0
        gap_lanes = both(first, first)
        extend_lanes = int32((extend & int32(LOW)) | (extend << int32(16)))
        extend_sum = both(extend, extend)
        shift_lanes = both(-shift, -shift)
        floor_lanes = both(bias, bias)
        # From H - shift to a gap opened at H.
        from_stored_to_gap = both(shift + first, shift + first)
        corner = int32(0) if free_reference_start else int32(first - extend)

        # All threads of a warp take the same steps, for the longest of its references and queries.
        steps = columns
        tiles = (max(length_a, length_b) + int32(tile - 1)) // int32(tile)
        distance = 16
        while distance >= threads:
            steps = max(steps, cuda.shfl_xor_sync(ALL, steps, distance))
            tiles = max(tiles, cuda.shfl_xor_sync(ALL, tiles, distance))
            distance >>= 1
        steps = int32(steps + threads - 1)
        if not many_tiles:
            tiles = 1
        edge_start = uint64(group * edge_stride)

        profile_a = cuda.local.array(rows, int32)
        profile_b = cuda.local.array(rows, int32)
        stored = cuda.local.array(rows, int32)
        deletion = cuda.local.array(rows, int32)
        kept = cuda.local.array(rows if with_ends and local else 1, int32)

        best = int32(0)
        # The end cell of each pair as one number to maximise: score, then -column, then -row.
        end_a, end_b = int64(0), int64(0)

        for strip in range(tiles):
            top = (strip - tiles) * int32(tile) + lane * int32(rows)
            for r in range(rows):
                row = top + r
                here_a, here_b = padding, padding
                if row + length_a >= 0:
                    here_a = profile(queries.codes[query_a + row + length_a], match, mismatch)
                if row + length_b >= 0:
                    here_b = profile(queries.codes[query_b + row + length_b], match, mismatch)
                profile_a[r] = here_a
                profile_b[r] = here_b
                index_a, index_b = row + length_a + 1, row + length_b + 1
                if local:
                    stored[r] = int32(floor_lanes + shift_lanes)
                    deletion[r] = floor_lanes
                else:
                    start_a = left_border(index_a, free_query_start, corner, first, extend)
                    start_b = left_border(index_b, free_query_start, corner, first, extend)
                    stored[r] = both(start_a + bias - shift, start_b + bias - shift)
                    deletion[r] = int32(stored[r] + from_stored_to_gap)
            if local:
                diagonal = int32(floor_lanes + shift_lanes)
            else:
                index_a, index_b = top + length_a, top + length_b
                start_a = left_border(index_a, free_query_start, corner, first, extend)
                start_b = left_border(index_b, free_query_start, corner, first, extend)
                diagonal = both(start_a + bias - shift, start_b + bias - shift)
            insertion = int32(0)
            # The best of this tile only: on ties a later tile may have an earlier column.
            tile_best = floor_lanes if local else int32(0)
            column_a, column_b = int32(0), int32(0)
            upper, upper_step = int32(floor_lanes + shift_lanes), int32(0)
            if not local and not free_reference_start:
                upper = both(first + bias - shift, first + bias - shift)
                upper_step = extend_sum
            upper_insertion = int32(upper + from_stored_to_gap)
            if many_tiles:
                cuda.syncwarp()
                if strip > 0:
                    upper = edge[edge_start]
                    upper_insertion = edge[edge_start + uint64(1)]
            column = int32(-lane)
            # Counted in 32 bits, so that the multiply pipe computes the addresses.
            position = uint32(group * selectors.stride + threads - lane)
            following = selectors.words[position]

            for _ in range(steps):
                selector = following
                position = uint32(position + uint32(1))
                following = selectors.words[position]
                next_diagonal = cuda.shfl_up_sync(ALL, stored[rows - 1], 1)
                insertion = cuda.shfl_up_sync(ALL, insertion, 1)
                # Opaque, or the compiler duplicates the loop and each warp runs both copies.
                lane_now = opaque(lane)
                if lane_now == 0:
                    next_diagonal = upper
                    insertion = upper_insertion
                    if many_tiles and strip > 0:
                        # Load the next column one step before use.
                        ahead = edge_start + uint64(2 * min(column + 1, columns - 1))
                        upper = edge[ahead]
                        upper_insertion = edge[ahead + uint64(1)]
                    elif not local:
                        upper = int32(upper + upper_step)
                        upper_insertion = int32(upper_insertion + upper_step)
                if uint32(column) < uint32(columns):
                    # The multiply pipe adds the diagonal; in local mode, the other pipe does so for
                    # two rows in three together with D, which saves the floor of D.
                    score = permute_bytes(profile_a[0], profile_b[0], selector)
                    from_diagonal = multiply_add(diagonal, one, score)
                    highest = int32(0)
                    previous = int32(0)
                    for r in range(rows):
                        if local and r % 3 != 0:
                            here = max3_lanes(from_diagonal, insertion, floor_lanes)
                        else:
                            here = max3_lanes(from_diagonal, insertion, deletion[r])
                        if r < rows - 1:
                            # Load the next row before its source is overwritten, to avoid a copy.
                            score = permute_bytes(profile_a[r + 1], profile_b[r + 1], selector)
                            if local and (r + 1) % 3 != 0:
                                from_diagonal = add_max_lanes(stored[r], score, deletion[r + 1])
                            else:
                                from_diagonal = multiply_add(stored[r], one, score)
                        opened = multiply_add(here, one, gap_lanes)
                        if gap_is_shift:
                            stored[r] = opened
                        else:
                            stored[r] = multiply_add(here, one, shift_lanes)
                        insertion = add_max_lanes(insertion, extend_lanes, opened)
                        if local and r % 3 == 0:
                            deletion[r] = max3_lanes(
                                multiply_add(deletion[r], one, extend_sum), opened, floor_lanes
                            )
                        else:
                            deletion[r] = add_max_lanes(deletion[r], extend_lanes, opened)
                        if local and r % 2 == 1:
                            highest = max3_lanes(highest, here, previous)
                        previous = here
                    if local and rows % 2 == 1:
                        highest = max_lanes(highest, previous)
                    if not local:
                        highest = stored[rows - 1]
                    better = max_lanes(tile_best, highest)
                    if with_ends:
                        changed = int32(better ^ tile_best)
                        if changed != 0:
                            pick = int32(0x3210)
                            if (changed & int32(LOW)) != 0:
                                column_a = column + int32(1)
                                pick = int32(pick | int32(0x0044))
                            if (changed >> int32(16)) != 0:
                                column_b = column + int32(1)
                                pick = int32(pick | int32(0x4400))
                            if local:
                                for r in range(rows):
                                    kept[r] = permute_bytes(kept[r], stored[r], pick)
                    tile_best = better
                    if many_tiles and strip < tiles - 1 and lane_now == threads - 1:
                        here_edge = edge_start + uint64(2 * column)
                        edge[here_edge] = stored[rows - 1]
                        edge[here_edge + uint64(1)] = insertion
                    diagonal = next_diagonal
                column = int32(column + 1)

            # The registers hold the last column.
            is_last = strip == tiles - 1 and lane == threads - 1
            if local:
                best = max_lanes(best, tile_best)
            elif is_last and free_reference_end:
                best = max_lanes(best, tile_best)
                if with_ends:
                    end_a = max(end_a, end_number(low_lane(tile_best), column_a, length_a))
                    end_b = max(end_b, end_number(high_lane(tile_best), column_b, length_b))
            elif is_last:
                best = max_lanes(best, stored[rows - 1])
                if with_ends:
                    end_a = max(end_a, end_number(low_lane(stored[rows - 1]), columns, length_a))
                    end_b = max(end_b, end_number(high_lane(stored[rows - 1]), columns, length_b))
            if not local and free_query_end:
                for r in range(rows):
                    # Padding cannot be an end.
                    row_a = int32(top + int32(r + 1) + length_a)
                    row_b = int32(top + int32(r + 1) + length_b)
                    value_a = low_lane(stored[r]) if row_a > 0 else int32(0)
                    value_b = high_lane(stored[r]) if row_b > 0 else int32(0)
                    best = max_lanes(best, both(value_a, value_b))
                    if with_ends and row_a > 0:
                        end_a = max(end_a, end_number(value_a, columns, row_a))
                    if with_ends and row_b > 0:
                        end_b = max(end_b, end_number(value_b, columns, row_b))
            if local and with_ends:
                # The first row with the best value of the column kept with it.
                found_a, found_b = int32(0), int32(0)
                for r in range(rows - 1, -1, -1):
                    value = multiply_add(kept[r], one, both(shift, shift))
                    if low_lane(value) == low_lane(tile_best):
                        found_a = top + int32(r + 1) + length_a
                    if high_lane(value) == high_lane(tile_best):
                        found_b = top + int32(r + 1) + length_b
                if column_a > 0:
                    end_a = max(end_a, end_number(low_lane(tile_best), column_a, found_a))
                if column_b > 0:
                    end_b = max(end_b, end_number(high_lane(tile_best), column_b, found_b))

        distance = threads >> 1
        while distance > 0:
            best = max_lanes(best, cuda.shfl_xor_sync(ALL, best, distance))
            if with_ends:
                end_a = max(end_a, cuda.shfl_xor_sync(ALL, end_a, distance))
                end_b = max(end_b, cuda.shfl_xor_sync(ALL, end_b, distance))
            distance >>= 1
        if lane == 0:
            offset = bias if local else bias - shift
            if ends.scores[a] != REFUSED:
                ends.scores[a] = low_lane(best) - offset
            if ends.scores[b] != REFUSED:
                ends.scores[b] = high_lane(best) - offset
            if with_ends:
                query_ends, reference_ends = ends.query_ends, ends.reference_ends
                reference_ends[a] = int32(LOW) - int32((end_a >> 16) & LOW) if end_a else int32(0)
                query_ends[a] = int32(LOW) - int32(end_a & LOW) if end_a else int32(0)
                reference_ends[b] = int32(LOW) - int32((end_b >> 16) & LOW) if end_b else int32(0)
                query_ends[b] = int32(LOW) - int32(end_b & LOW) if end_b else int32(0)

    return align_packed


@cuda.jit(device=True)
def end_number(score, column, row):
    """Return a number that is greater for a better score, then a smaller column, then a smaller
    row.
    """
    return (int64(score) << 32) | (int64(LOW - column) << 16) | int64(LOW - row)


LOWEST_ARCHITECTURE = (9, 0)

#: Some of the kernels in use.
MADE_KERNELS = (
    packed_kernel(8, 19, False, False, False, True),
    packed_kernel(8, 19, True, True, False, True),
    packed_kernel(16, 16, False, True, True, True),
    packed_kernel(32, 5, True, False, False, False),
)
# Registers spill while the profile is built, before the loop over columns, but not in the loop.
LOCAL_MEMORY = dict.fromkeys(MADE_KERNELS, 384)

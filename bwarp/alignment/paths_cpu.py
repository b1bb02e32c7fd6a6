"""CIGARs on the CPU: from the known score and end of each pair to the path of pairs.py's rules.

1. The diagonal that ends in the end cell is added up, letter by letter. Where it collects the
   whole score it is the answer (pairs.py says why), and most reads end here.
2. The others are laid side by side again, only up to their ends and within the band that their
   score allows, and filled with four bits a cell that say how each came about. Queries too long
   for the bits of the whole matrix are filled twice: once keeping H and I of a row here and there,
   then from the last such row upwards, with bits, a slice of rows at a time.

       kept rows      0 ------------- c ------------- 2c ---------- end
       walked         third           second          first
                                                                 <- end cell
"""

from collections.abc import Callable
from functools import partial

import numba
import numpy as np

from bwarp.alignment.cells_cpu import NEVER, ROWS, fill_directions, fill_rows, interleave
from bwarp.alignment.ends_cpu import (
    ELEMENT_TYPES,
    Side,
    by_length,
    element_frame,
    fits_type,
    highest_scores,
    longest_of,
    numba_side,
    set_borders,
)
from bwarp.alignment.pairs import (
    DELETION,
    EQUAL,
    INSERTION,
    MISMATCH,
    Alignments,
    Ends,
    PairBatch,
)
from bwarp.alignment.scheme import Mode, Scoring
from bwarp.alignment.substitution_cpu import pair_scheme
from bwarp.simd import lanes_of
from bwarp.threads import for_each_range

__all__ = ["DIRECTION_BYTES", "gather_cigars", "grown", "push", "trace", "trace_paths"]

#: Bytes of direction bits a batch may take before it is filled in slices.
DIRECTION_BYTES = 1 << 24


def trace_paths(
    pairs: PairBatch, scoring: Scoring, mode: Mode, ends: Ends, threads: int
) -> Alignments:
    """The alignments that end where `ends` says, with its scores."""
    return trace(
        pairs, scoring, scoring.matrix.astype(np.int32), partial(pair_scheme, scoring), mode,
        False, ends, threads,
    )  # fmt: skip


def trace(
    pairs: PairBatch,
    scoring: Scoring,
    matrix: np.ndarray,
    scheme_of: Callable[[type], tuple],
    mode: Mode,
    extend_ties: bool,
    ends: Ends,
    threads: int,
) -> Alignments:
    """`trace_paths` for a given way to score letters.

    Parameters
    ----------
    matrix : ndarray, dtype=int32
        ``matrix[query code, reference code]``.
    scheme_of : callable
        The vector scheme and tables of an element type, as `pair_scheme`.
    extend_ties : bool
        Gaps that could open or extend at the same score extend (GATK's way).
    """
    queries, references = numba_side(pairs.queries), numba_side(pairs.references)
    count = pairs.count
    starts = np.zeros((2, count), np.int32)
    distances, operations = np.zeros(count, np.int32), np.zeros(count, np.int32)
    places = np.zeros(count, np.int64)
    parts: list[np.ndarray] = []
    high = highest_scores(scoring, ends.query_ends, ends.reference_ends)
    ungapped = np.zeros(count, bool)
    any_frame = element_frame(scoring, mode, np.int32, 0)

    def run_diagonals(begin, end):
        return begin, end, _diagonals(
            begin, end, queries, references, matrix, scoring.ambiguous, any_frame,
            ends.scores, ends.query_ends, ends.reference_ends,
            starts, distances, operations, places, ungapped,
        )  # fmt: skip

    base = 0
    for begin, end, part in for_each_range(run_diagonals, count, threads, smallest=4096):
        places[begin:end] += base
        base += part.size
        parts.append(part)

    waiting = ~ungapped
    for dtype in ELEMENT_TYPES:
        lanes = lanes_of(dtype)
        tried = waiting & fits_type(scoring, mode, high, dtype)
        if not tried.any():
            continue
        frame = element_frame(scoring, mode, dtype, int(high[tried].max()))
        if mode.local:
            tried &= ends.scores < frame.highest - frame.origin
        else:
            tried &= ends.scores > frame.lowest - frame.origin + high
        waiting &= ~tried
        ids = np.flatnonzero(tried)
        if ids.size == 0:
            continue
        windows = _windows(ends, scoring, high, references)
        order = by_length(ids, ends.query_ends, windows.lengths, lanes)
        scheme, tables = scheme_of(dtype)
        first = dtype(frame.gap_open + frame.gap_extend)
        more = dtype(frame.gap_extend)

        def run(
            begin,
            end,
            order=order,
            frame=frame,
            scheme=scheme,
            tables=tables,
            first=first,
            more=more,
            dtype=dtype,
            lanes=lanes,
            windows=windows,
        ):
            members = order[begin * lanes : end * lanes]
            return members, _paths_of_batches(
                members, Side(queries.codes, queries.starts, ends.query_ends), windows,
                ends.reference_ends, scheme, tables, frame, matrix, scoring.ambiguous, first, more,
                np.empty(0, dtype), np.empty(0, f"u{max(lanes // 8, 1)}"), ends.scores,
                starts, distances, operations, places, lanes, DIRECTION_BYTES, extend_ties,
            )  # fmt: skip

        for members, part in for_each_range(run, order.size // lanes, threads, smallest=4):
            places[np.unique(members)] += base
            base += part.size
            parts.append(part)
    cigar_offsets, cigar = gather_cigars(parts, places, operations)
    return Alignments(
        ends.scores, starts[0], ends.query_ends, starts[1], ends.reference_ends, distances,
        cigar_offsets, cigar,
    )  # fmt: skip


def gather_cigars(
    parts: list[np.ndarray], places: np.ndarray, operations: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Bring CIGARs that lie in several arrays into the order of the pairs.

    Parameters
    ----------
    parts : list of ndarray, dtype=uint32
    places : ndarray, shape=(count,), dtype=int64
        Where each CIGAR starts in the concatenated parts.
    operations : ndarray, shape=(count,), dtype=int32
        How many operations each has.

    Returns
    -------
    cigar_offsets : ndarray, shape=(count + 1,), dtype=int64
    cigar : ndarray, dtype=uint32
    """
    offsets = np.zeros(places.size + 1, np.int64)
    np.cumsum(operations, out=offsets[1:])
    cigar = np.empty(offsets[-1], np.uint32)
    _gather(np.concatenate([*parts, np.empty(0, np.uint32)]), places, offsets, cigar)
    return offsets, cigar


@numba.njit(cache=True, nogil=True)
def _gather(parts, places, offsets, cigar):
    for i in range(places.size):
        for k in range(offsets[i + 1] - offsets[i]):
            cigar[offsets[i] + k] = parts[places[i] + k]


def _windows(ends: Ends, scoring: Scoring, high: np.ndarray, references: Side) -> Side:
    """The stretch of each reference that optimal paths can reach: the band's bounding box."""
    starts = np.zeros(ends.scores.size, np.int64)
    if scoring.gap_extend > 0:
        gap_letters = (high - scoring.gap_open - ends.scores) // scoring.gap_extend
        band_start = ends.reference_ends.astype(np.int64) - ends.query_ends - gap_letters
        starts = np.maximum(band_start, 0)
    lengths = (ends.reference_ends - starts).astype(np.int32)
    return Side(references.codes, references.starts + starts, lengths)


@numba.njit(forceinline=True)
def push(runs, count, run):
    """Add a run, ``length << 4 | operation``, to a CIGAR of `count` runs; returns how many now."""
    if count > 0 and runs[count - 1] & 15 == run & 15:
        runs[count - 1] += np.uint32(run & ~15)
        return count
    runs[count] = np.uint32(run)
    return count + 1


@numba.njit(cache=True, nogil=True)
def grown(array, size):
    """The same array, or a copy with room for `size` numbers and as many again."""
    if size <= array.size:
        return array
    larger = np.empty(2 * size, array.dtype)
    for k in range(array.size):
        larger[k] = array[k]
    return larger


@numba.njit(cache=True, nogil=True)
def _diagonals(
    begin,
    end,
    queries,
    references,
    matrix,
    ambiguous,
    frame,
    scores,
    query_ends,
    reference_ends,
    starts,
    distances,
    operations,
    places,
    ungapped,
):
    """Settle the pairs from `begin` to `end` whose alignment has no gap; returns their CIGARs."""
    part = np.empty(16 * (end - begin) + 16, np.uint32)
    used = 0
    for pair in range(begin, end):
        i, j = np.int64(query_ends[pair]), np.int64(reference_ends[pair])
        q, r = queries.starts[pair], references.starts[pair]
        wanted = np.int64(scores[pair])
        collected = np.int64(0)
        while i > 0 and j > 0 and not (frame.local and collected == wanted):
            if collected + frame.top * np.int64(min(i, j)) < wanted:
                break
            i, j = i - 1, j - 1
            collected += matrix[queries.codes[q + i], references.codes[r + j]]
        at_border = (i == 0 and (frame.reference_start or j == 0)) or (
            j == 0 and (frame.query_start or i == 0)
        )
        if collected != wanted or not (at_border or frame.local):
            continue
        ungapped[pair] = True
        starts[0, pair], starts[1, pair] = i, j
        places[pair] = used
        length = np.int64(query_ends[pair]) - i
        part = grown(part, used + length)
        runs = part[used:]
        count, distance = np.int64(0), 0
        for k in range(length):
            code = queries.codes[q + i + k]
            if code == references.codes[r + j + k] and code != ambiguous:
                count = push(runs, count, 1 << 4 | EQUAL)
            else:
                count = push(runs, count, 1 << 4 | MISMATCH)
                distance += 1
        operations[pair], distances[pair] = count, distance
        used += count
    return part[:used]


@numba.njit(cache=True, nogil=True)
def _paths_of_batches(
    order,
    queries,
    references,
    reference_ends,
    scheme,
    tables,
    frame,
    matrix,
    ambiguous,
    first,
    more,
    left,
    directions,
    scores,
    starts,
    distances,
    operations,
    places,
    lanes,
    most_bytes,
    extend_ties,
):
    """Fill and walk the batches in `order`; returns their CIGARs.

    `queries` go up to each end, `references` are windows up to each end. `left` and `directions`
    give the types of scores and of one bit for every lane.
    """
    rows = -(-longest_of(queries.lengths, order) // ROWS) * ROWS
    columns = longest_of(references.lengths, order)
    planes = tables.query.shape[0]
    query = np.empty(planes * rows * lanes, np.uint8)
    reference = np.empty(columns * lanes, np.uint8)
    left = np.empty((rows + 1) * lanes, left.dtype)
    row_H = np.empty(columns * lanes, left.dtype)
    row_I = np.empty(columns * lanes, left.dtype)
    slice_rows = rows
    if rows * columns * 4 * directions.itemsize > most_bytes:
        # as many bytes for the bits of a slice as for the kept rows of all slices
        kept_bytes = 2 * lanes * left.itemsize
        slice_rows = int(np.sqrt(rows * kept_bytes / (4 * directions.itemsize))) // ROWS * ROWS
        slice_rows = min(rows, max(ROWS, slice_rows))
    directions = np.empty(slice_rows * columns * 4, directions.dtype)
    slices = (rows + slice_rows - 1) // slice_rows
    kept = np.empty((slices, 2, columns * lanes), left.dtype)
    nothing = np.empty(0, left.dtype)
    runs = np.empty((lanes, rows + columns + 1), np.uint32)
    state = np.empty((lanes, 5), np.int64)
    part = np.empty(16 * order.size + 16, np.uint32)
    used = 0
    floor = left.dtype.type(frame.lowest)

    for begin in range(0, order.size, lanes):
        members = order[begin : begin + lanes]
        m, n = queries.lengths[members], references.lengths[members]
        rows = (np.int64(m.max()) + ROWS - 1) // ROWS * ROWS
        columns = np.int64(n.max())
        height = rows * lanes
        for plane in range(planes):
            interleave(
                queries.codes, queries.starts[members], m, tables.query[plane],
                tables.query_padding[plane], rows, query, plane * height,
            )  # fmt: skip
        interleave(
            references.codes, references.starts[members], n, tables.reference,
            tables.reference_padding, columns, reference, 0,
        )  # fmt: skip
        set_borders(frame, first, more, lanes, rows, columns, left, row_H, row_I)
        for lane in range(lanes):
            if n[lane] < reference_ends[members[lane]]:
                # The window's left edge is no border, but the edge of the band.
                for i in range(1, rows + 1):
                    left[i * lanes + lane] = frame.lowest
            state[lane, 0], state[lane, 1] = m[lane], n[lane]
            state[lane, 2] = 0
            state[lane, 3] = scores[members[lane]]
            state[lane, 4] = 0
        slices = (rows + slice_rows - 1) // slice_rows
        for number in range(slices - 1):
            for k in range(columns * lanes):
                kept[number, 0, k], kept[number, 1, k] = row_H[k], row_I[k]
            fill_rows(
                scheme, query[: planes * height], reference, number * slice_rows,
                (number + 1) * slice_rows, columns, left, first, more, floor, row_H, row_I,
                np.bool_(False), m, np.int64(NEVER), nothing, n, np.int64(NEVER), nothing,
            )  # fmt: skip
        for number in range(slices - 1, -1, -1):
            above = number * slice_rows
            if number < slices - 1:
                for k in range(columns * lanes):
                    row_H[k], row_I[k] = kept[number, 0, k], kept[number, 1, k]
            fill_directions(
                scheme, query[: planes * height], reference, above,
                min(rows, above + slice_rows), columns, left, first, more, floor, extend_ties,
                row_H, row_I, directions,
            )  # fmt: skip
            for lane in range(lanes):
                pair = members[lane]
                _walk(
                    lane, above, columns, directions, frame, matrix, ambiguous,
                    queries.codes[queries.starts[pair] :],
                    references.codes[references.starts[pair] :],
                    state[lane], runs[lane],
                )  # fmt: skip

        for lane in range(lanes):
            pair = members[lane]
            if lane > 0 and members[lane - 1] == pair:
                continue  # a copy that fills up the last batch
            count = state[lane, 4]
            starts[0, pair] = state[lane, 0]
            starts[1, pair] = state[lane, 1] + reference_ends[pair] - n[lane]
            operations[pair], places[pair] = count, used
            part = grown(part, used + count)
            distance = 0
            for k in range(count):
                run = runs[lane, count - 1 - k]
                part[used + k] = run
                if run & 15 != EQUAL:
                    distance += run >> 4
            distances[pair] = distance
            used += count
    return part[:used]


@numba.njit(cache=True, nogil=True)
def _walk(
    lane, above, columns, directions, frame, matrix, ambiguous, query, reference, state, runs
):
    """Walk one lane back through the slice of rows below row `above`, as rule 2 says.

    `state` is (i, j, 0 at H or 1 at D or 2 at I, the score still to be explained, runs so far);
    the walk ends at the alignment's start, or waits where it needs a cell of the slice above.
    """
    i, j, at, score, count = state[0], state[1], state[2], state[3], state[4]
    word, bit = directions.dtype.type, lane
    while True:
        if at == 0:
            if (
                (frame.local and score == 0)
                or (i == 0 and (frame.reference_start or j == 0))
                or (j == 0 and (frame.query_start or i == 0))
            ):
                break
            if i == 0:
                at = 1
            elif j == 0:
                at = 2
            elif i <= above:
                break
            else:
                cell = 4 * ((i - above - 1) * columns + j - 1)
                if directions[cell] >> word(bit) & 1:
                    i, j = i - 1, j - 1
                    code = query[i]
                    score -= matrix[code, reference[j]]
                    same = code == reference[j] and code != ambiguous
                    count = push(runs, count, 1 << 4 | (EQUAL if same else MISMATCH))
                    continue
                at = 1 if directions[cell + 1] >> word(bit) & 1 else 2
            score += frame.gap_open
        elif at == 1:
            if 0 < i <= above:
                break
            opens = i > 0 and (
                j == 1
                or directions[4 * ((i - above - 1) * columns + j - 2) + 2] >> word(bit) & 1 == 1
            )
            count = push(runs, count, 1 << 4 | DELETION)
            score += frame.gap_extend
            j -= 1
            if opens or j == 0:
                at = 0
        else:
            if j > 0 and 0 < i - 1 <= above:
                break
            opens = j > 0 and (
                i == 1
                or directions[4 * ((i - above - 2) * columns + j - 1) + 3] >> word(bit) & 1 == 1
            )
            count = push(runs, count, 1 << 4 | INSERTION)
            score += frame.gap_extend
            i -= 1
            if opens or i == 0:
                at = 0
    state[0], state[1], state[2], state[3], state[4] = i, j, at, score, count

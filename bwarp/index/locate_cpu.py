"""Convert SA rows to text positions on the CPU: LF steps to a sampled row, then a lookup.

The two steps of Liu & Schmidt (III.C) are separate, as either engine may do the first:
`step_to_sampled` maps row i to (j, t), where row j, t LF steps away, is a multiple of the sampling
rate p; `look_up` returns SA[i] = RSA[j / p] + t. With p = 1 every row is sampled.
"""

import numpy as np

from bwarp.errors import InputError
from bwarp.index.fm_index import FMIndex
from bwarp.index.rank import block_start, lf_step
from bwarp.runtime.compiled_code import compiled, inner
from bwarp.runtime.simd import prefetch
from bwarp.runtime.threads import for_each_range
from bwarp.runtime.uncounted import uncounted

# Rows processed together: enough for their cache misses to overlap.
_TOGETHER = 32


def rows_of_intervals(
    first_rows: np.ndarray, n_rows: np.ndarray, threads: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of intervals, one interval after another.

    Returns
    -------
    rows : ndarray, dtype=uint32
    offsets : ndarray, shape=(n_intervals + 1,), dtype=int64
        Where the rows of each interval begin.
    """
    offsets = np.concatenate([[0], np.cumsum(n_rows, dtype=np.int64)])
    rows = np.empty(offsets[-1], np.uint32)
    for_each_range(
        lambda first, last: _list_rows(first_rows, offsets, first, last, rows),
        first_rows.size,
        threads,
    )
    return rows, offsets


@compiled
def _list_rows(first_rows, offsets, first, last, rows):
    for i in range(first, last):
        row = first_rows[i]
        for at in range(offsets[i], offsets[i + 1]):
            rows[at] = row
            row += np.uint32(1)


def locate(index: FMIndex, rows: np.ndarray, threads: int = 1) -> np.ndarray:
    """Return the text positions (uint32) of rows of the forward BWT (uint32)."""
    return look_up(index, *step_to_sampled(index, rows, threads), threads)


def step_to_sampled(
    index: FMIndex, rows: np.ndarray, threads: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Return, for each row, a sampled row and the number of LF steps to it.

    Returns
    -------
    sampled : ndarray, shape=(n,), dtype=uint32
        Multiples of the sampling rate.
    steps : ndarray, shape=(n,), dtype=uint32
    """
    sampled = np.array(rows, np.uint32)
    steps = np.zeros(sampled.size, np.uint32)
    if index.sa_rate > 1:
        forward = index.forward.arrays
        for_each_range(
            lambda start, stop: _step_to_sampled(
                forward, index.sa_rate, sampled[start:stop], steps[start:stop]
            ),
            sampled.size,
            threads,
        )
    return sampled, steps


def look_up(index: FMIndex, sampled: np.ndarray, steps: np.ndarray, threads: int = 1) -> np.ndarray:
    """Return text positions from the results of `step_to_sampled`, dtype uint32."""
    positions = np.empty(sampled.size, np.uint32)
    for_each_range(
        lambda start, stop: _look_up(
            index.suffix_array,
            index.sa_rate,
            index.forward.n_rows,
            sampled[start:stop],
            steps[start:stop],
            positions[start:stop],
        ),
        sampled.size,
        threads,
    )
    return positions


# Proving a suffix array correct can take longer than a run; `bwarp.index.verify` does it. These two
# checks prevent a wrong one from leading outside the genome or into an endless loop.


@inner(nogil=True, forceinline=True)
def check_hit(position, length, next_segment):
    """Reject a hit that is not within its segment, which a separator follows."""
    if position + length >= next_segment:
        raise InputError(
            "the index is invalid (its suffix array points outside the contigs): build it again"
        )


@inner(nogil=True, forceinline=True)
def check_steps(row, first_row):
    """Reject LF steps that return to their start before reaching a sampled row."""
    if row == first_row:
        raise InputError(
            "the index is invalid (its BWT has rows without a position): build it again"
        )


@compiled
def _step_to_sampled(bwt, sa_rate, rows, steps):
    """Replace every row of `rows` by a sampled one, in place, a few at a time."""
    bwt, rows, steps = uncounted((bwt, rows, steps))
    words, separator_rows, groups, first_rows, text_start = bwt
    rate = np.uint64(sa_rate)
    # Most rates are powers of two, and a division takes as long as half a step.
    mask = rate - np.uint64(1) if rate & (rate - np.uint64(1)) == 0 else np.uint64(0)
    moving = np.empty(_TOGETHER, np.uint64)
    first_row = np.empty(_TOGETHER, np.uint64)
    n_moving = np.uint64(0)
    following = np.uint64(0)
    while True:
        while n_moving < _TOGETHER and following < np.uint64(rows.size):
            row = np.uint64(rows[following])
            prefetch(words, np.int64(block_start(groups, row)))
            # Branch-free, because which rows are sampled is unpredictable.
            moving[n_moving] = following
            first_row[n_moving] = row
            n_moving += np.uint64((row & mask if mask else row % rate) != 0)
            following += np.uint64(1)
        if n_moving == 0:
            return
        still = np.uint64(0)
        for i in range(n_moving):
            item = moving[i]
            row = lf_step(words, separator_rows, groups, first_rows, text_start, rows[item])
            check_steps(row, first_row[i])
            rows[item] = row
            steps[item] += np.uint32(1)
            prefetch(words, np.int64(block_start(groups, row)))
            moving[still] = item
            first_row[still] = first_row[i]
            still += np.uint64((row & mask if mask else row % rate) != 0)
        n_moving = still


@compiled
def _look_up(suffix_array, sa_rate, text_length, sampled, steps, positions):
    rate = np.uint32(sa_rate)
    for i in range(sampled.size):
        ahead = i + 16
        if ahead < sampled.size:
            prefetch(suffix_array, np.int64(sampled[ahead] // rate))
        position = np.int64(suffix_array[sampled[i] // rate]) + np.int64(steps[i])
        # LF steps before the start of the text continue at its end.
        position -= text_length if position >= text_length else 0
        check_hit(position, 0, text_length)
        positions[i] = position

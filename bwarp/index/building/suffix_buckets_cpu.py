"""All suffixes of a text in order, a piece at a time, in bounded memory and on all cores.

Suffixes go into buckets by their first 7 symbols (separator, A, C, G, T), counted first, so that
a bucket's rows are known before any suffix is sorted. As many buckets as the memory holds are
filled in one pass over the text, and sorted side by side; then come the next.

    buckets       AAAAAAA AAAAAAC ... CCTAGGA | CCTAGGC ... GTTACAT | GTTACCA ... TTTTTTT
    pieces               the first            |     the second      |     the third
"""

from collections.abc import Iterator
from functools import partial

import numpy as np

from bwarp.index.building.packed_text_cpu import (
    PackedText,
    bases_before_separator,
    is_near_separator,
    next_separator,
)
from bwarp.index.building.suffix_order_cpu import (
    SuffixSample,
    Workspace,
    make_workspace,
    sort_suffixes,
)
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.ranges import bounded_ranges
from bwarp.runtime.threads import run_together
from bwarp.runtime.uncounted import uncounted
from bwarp.sequence import kmer_at

__all__ = ["sort_groups", "suffixes_in_order", "workspace_bytes"]

#: Symbols by which suffixes go into buckets, and the number of buckets.
BUCKET_SYMBOLS = 7
N_BUCKETS = 5**BUCKET_SYMBOLS

#: The most items that a thread sorts in memory of its own, 16 bytes each.
WORKSPACE_ITEMS = 1 << 21

#: Ranges of buckets a thread, so that uneven work evens out.
TASKS_A_THREAD = 64


def workspace_bytes(threads: int) -> int:
    """Memory that sorting takes beside the text, the sample and the positions."""
    return threads * (16 * WORKSPACE_ITEMS + 24 * N_BUCKETS)


def suffixes_in_order(
    text: PackedText, sample: SuffixSample, only_sample: bool, most: int, threads: int
) -> Iterator[tuple[int, np.ndarray]]:
    """Start positions of suffixes in the order of the suffixes, piece by piece.

    Parameters
    ----------
    text : PackedText
    sample : SuffixSample
        Without ranks, suffixes that share a whole period come in any order.
    only_sample : bool
        Whether only the suffixes in the sample are wanted.
    most : int
        Suffixes of a piece; a piece holds one bucket at least.
    threads : int

    Yields
    ------
    first : int
        Row of the piece's first suffix.
    positions : ndarray, shape=(n,), dtype=uint32
        Overwritten when the next piece is asked for.
    """
    wanted = sample.number if only_sample else np.empty(0, np.int16)
    edges = [text.size * i // threads for i in range(threads + 1)]
    ranges = list(zip(edges, edges[1:], strict=False))
    counts = np.zeros((threads, N_BUCKETS), np.int64)
    run_together(
        [partial(_count, text, wanted, *ranges[i], counts[i]) for i in range(threads)], threads
    )
    starts = np.concatenate([[0], np.cumsum(counts.sum(axis=0))])
    largest = int(np.diff(starts).max())
    positions = np.empty(min(max(most, largest), int(starts[-1])), np.uint32)
    spaces = [make_workspace(min(largest, WORKSPACE_ITEMS), sample.period) for _ in range(threads)]
    for first, last in bounded_ranges(starts, positions.size):
        rows = starts[first : last + 1] - starts[first]
        piece = positions[: rows[-1]]
        # Where each thread's first suffix of each bucket goes.
        to = (np.cumsum(counts, axis=0) - counts)[:, first:last] + rows[:-1]
        run_together(
            [partial(_fill, text, wanted, *ranges[i], first, to[i], piece) for i in range(threads)],
            threads,
        )
        _sort_side_by_side(text, sample, piece, rows, BUCKET_SYMBOLS, spaces, threads)
        yield int(starts[first]), piece


def sort_groups(
    text: PackedText, sample: SuffixSample, positions: np.ndarray, starts: np.ndarray, depth: int,
    threads: int,
) -> None:  # fmt: skip
    """Sort suffixes in place within groups that share their first `depth` symbols.

    Parameters
    ----------
    sample : SuffixSample
        With ranks.
    positions : ndarray, shape=(n,), dtype=uint32
    starts : ndarray, shape=(n_groups + 1,), dtype=int64
        Where each group begins, and the last one ends.
    """
    size = min(int(np.diff(starts).max()), WORKSPACE_ITEMS)
    spaces = [make_workspace(size, sample.period) for _ in range(threads)]
    _sort_side_by_side(text, sample, positions, starts, depth, spaces, threads)


def _sort_side_by_side(
    text, sample, positions, rows, depth, spaces: list[Workspace], threads: int
) -> None:
    """Sort all groups, which share their first symbols each."""

    def sort(first: int, last: int) -> None:
        space = spaces.pop()
        _sort_each(text, sample, positions, rows[first : last + 1], depth, space)
        spaces.append(space)

    tasks = list(bounded_ranges(rows, max(1, positions.size // (threads * TASKS_A_THREAD))))
    # The largest come first: the last ones to end are small.
    tasks.sort(key=lambda task: rows[task[0]] - rows[task[1]])
    run_together([partial(sort, *task) for task in tasks], threads)


@compiled
def _sort_each(text, sample, positions, rows, depth, space):
    text, sample, positions, rows, space = uncounted((text, sample, positions, rows, space))
    for i in range(rows.size - 1):
        if rows[i + 1] > rows[i] + 1:
            sort_suffixes(text, sample, positions[rows[i] : rows[i + 1]], depth, space)


@compiled
def _count(text, wanted, start, stop, counts):
    """Count the suffixes that begin from `start` to `stop`, for every bucket."""
    _scan(text, wanted, start, stop, 0, counts, np.empty(0, np.uint32))


@compiled
def _fill(text, wanted, start, stop, first_bucket, to, positions):
    """Write positions of suffixes to where their buckets have come; `to` goes on."""
    _scan(text, wanted, start, stop, first_bucket, to, positions)


@compiled
def _scan(text, wanted, start, stop, first_bucket, counts, positions):
    """Add every suffix's number of its bucket, and write its position there if there is room.

    From right to left, so that a suffix's bucket follows from that of the next one: its own symbol
    comes in as the first, and the last of the seven drops out.
    """
    text, wanted, counts, positions = uncounted((text, wanted, counts, positions))
    bucket = _bucket_at(text, stop)
    separator = next_separator(text, stop) - 1
    word = np.uint64(0)
    for position in range(stop - 1, start - 1, -1):
        if position == stop - 1 or position & 31 == 31:
            word = text.words[position >> 5] >> np.uint64(62 - 2 * (position & 31))
        bucket = np.int64(np.uint32(bucket) // np.uint32(5))
        if separator >= 0 and text.separators[separator] == position:
            separator -= 1
        else:
            bucket += (np.int64(word & np.uint64(3)) + 1) * (N_BUCKETS // 5)
        word >>= np.uint64(2)
        if wanted.size and wanted[position & (wanted.size - 1)] < 0:
            continue
        if 0 <= bucket - first_bucket < counts.size:
            if positions.size:
                positions[counts[bucket - first_bucket]] = position
            counts[bucket - first_bucket] += 1


@compiled
def _bucket_at(text, position):
    """The bucket of a suffix; behind the text's end come separators, as far as this matters."""
    bucket = 0
    for at in range(position, position + BUCKET_SYMBOLS):
        bucket *= 5
        if at < text.size and not (
            is_near_separator(text, at) and bases_before_separator(text, at, 1) == 0
        ):
            bucket += np.int64(kmer_at(text.words, at, 1)) + 1
    return bucket

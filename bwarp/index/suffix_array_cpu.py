"""Sort the suffixes of a text on the CPU: in pieces, in bounded memory, on all cores.

Suffixes are sorted by keys of 14 bases; those with equal keys are sorted again by the next 14
bases. Small groups of suffixes with equal keys are compared directly, 32 bases at a time. Repeats
of thousands of bases would make this slow. Therefore the order of a sample of suffixes is
determined first: for any two positions there is a distance below the period of the sample at which
both are in the sample, and suffixes that share a whole period are compared by these two ranks.

    key of a position     bases, first in the highest bits | how many of them precede
                          28 bits                          | a separator, 14 if none is met; 4 bits

In a key, bases after the first separator count as A: if the bases of two keys differ, the smaller
key belongs to the smaller suffix; if they are equal, the suffix with the earlier separator comes
first. Equal keys mean equal symbols, up to and including the separator.

    item   key, 32 bits | position, 32 bits         what is sorted
"""

import itertools
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from bwarp.index.packed_text_cpu import (
    PackedText,
    bases_before_separator,
    is_near_separator,
    next_separator,
)
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.simd import prefetch
from bwarp.runtime.threads import bounded_ranges, for_each_range, run_together
from bwarp.runtime.uncounted import uncounted
from bwarp.sequence import kmer_at

#: Bases of a key, and bases compared at once.
KEY_BASES = 14
WORD = 32

#: Maximum numbers of items for insertion sort: by their keys, and by comparing their suffixes.
FEW_KEYS = 40
FEW_SUFFIXES = 10

#: Items to look ahead, so that the text is in the cache when it is read.
READ_AHEAD = 16

_KEY_SHIFT = np.uint64(32)
_POSITION = np.uint64(0xFFFFFFFF)


class SuffixSample(NamedTuple):
    """Suffixes whose order is known: those at certain positions of every period.

    Attributes
    ----------
    ranks : ndarray, shape=(n_periods * size,), dtype=uint32
        Ranks of the suffixes in the sample, in text order; empty while they are being sorted.
    number : ndarray, shape=(period,), dtype=int16
        The index of each position of a period within the sample; -1 for the others.
    anchor : ndarray, shape=(period,), dtype=int64
        For each distance of two positions, a member of the sample such that the position at that
        distance after it is a member as well.
    period : int
        A power of two.
    size : int
        Positions of a period that are in the sample.
    """

    ranks: np.ndarray
    number: np.ndarray
    anchor: np.ndarray
    period: int
    size: int


class Workspace(NamedTuple):
    """Working memory of a thread: two arrays of items, counters of digits, and two stacks."""

    items: np.ndarray
    spare: np.ndarray
    counts: np.ndarray
    levels: np.ndarray
    parts: np.ndarray


def make_workspace(n_items: int, period: int) -> Workspace:
    """Allocate memory to sort `n_items` items; larger groups are partitioned first."""
    return Workspace(
        np.empty(n_items, np.uint64),
        np.empty(n_items, np.uint64),
        np.zeros((4, 256), np.int64),
        # Each level shares at least one symbol more than the level above.
        np.empty((period + KEY_BASES, 4), np.int64),
        np.empty((64, 2), np.int64),
    )


@compiled
def sort_suffixes(text, sample, positions, depth, space):
    """Sort the positions of suffixes that share their first `depth` symbols, in place.

    Groups larger than the workspace are partitioned around a pivot, as in quicksort. If the sample
    has no ranks, suffixes that share a whole period are adjacent, in any order.
    """
    text, sample, positions, space = uncounted((text, sample, positions, space))
    parts = space.parts
    _put(parts, 0, (0, positions.size))
    n_parts = 1
    while n_parts:
        n_parts -= 1
        start, stop = parts[n_parts]
        if stop - start <= space.items.size:
            for i in range(start, stop):
                space.items[i - start] = positions[i]
            _sort_items(text, sample, stop - start, depth, space)
            for i in range(start, stop):
                positions[i] = space.items[i - start] & _POSITION
            continue
        smaller, larger = _part(text, sample, positions, start, stop, depth)
        # The larger part is pushed first, so that at most 32 parts wait at any time.
        if smaller - start < stop - larger:
            _put(parts, n_parts, (larger, stop))
            _put(parts, n_parts + 1, (start, smaller))
        else:
            _put(parts, n_parts, (start, smaller))
            _put(parts, n_parts + 1, (larger, stop))
        n_parts += 2


@compiled
def _sort_items(text, sample, n, depth, space):
    """Sort the first items by the suffixes at their positions."""
    text, sample, space = uncounted((text, sample, space))
    items, levels = space.items, space.levels
    # For each range: its end, the symbols that it shares, and the depth from which to look for a
    # longer shared stretch; the depth doubles after each failed attempt.
    _put(levels, 0, (0, n, depth, 2 * KEY_BASES))
    start, stop, depth, _ = levels[0]
    _sort_by_keys(text, space, start, stop, depth)
    level = 0
    while level >= 0:
        # The next run of equal keys in the range that was sorted last.
        start, stop, depth, look_from = levels[level]
        if start >= stop:
            level -= 1
            continue
        key = items[start] >> _KEY_SHIFT
        end = start + 1
        while end < stop and items[end] >> _KEY_SHIFT == key:
            end += 1
        levels[level, 0] = end
        ahead = end + READ_AHEAD
        if ahead + 1 < stop and (items[ahead] ^ items[ahead + 1]) >> _KEY_SHIFT == 0:
            for i in range(ahead, ahead + 2):
                prefetch(text.words, (np.int64(items[i] & _POSITION) + depth + KEY_BASES) >> 5)
        if end == start + 1:
            continue
        bases = np.int64(key & np.uint64(15))
        depth += KEY_BASES if bases == KEY_BASES else bases + 1
        if end - start <= FEW_SUFFIXES:
            _insert_suffixes(text, sample, items, start, end, depth)
            continue
        if look_from <= depth < sample.period:
            shared = _shared_by_all(text, items, start, end, depth, sample.period)
            look_from = look_from if shared else 2 * depth
            depth += shared
        if depth < sample.period:
            _sort_by_keys(text, space, start, end, depth)
            level += 1
            _put(levels, level, (start, end, depth, look_from))
        elif sample.ranks.size:
            _merge_suffixes(text, sample, items, space.spare, start, end, depth)


@compiled
def _sort_by_keys(text, space, start, stop, depth):
    """Give items the keys `depth` symbols after their positions, and sort them."""
    text, space = uncounted((text, space))
    items = space.items
    for i in range(start, stop):
        if i + READ_AHEAD < stop:
            ahead = np.int64(items[i + READ_AHEAD] & _POSITION)
            prefetch(text.words, (ahead + depth) >> 5)
        position = items[i] & _POSITION
        items[i] = _key_at(text, np.int64(position) + depth) << _KEY_SHIFT | position
    if stop - start <= FEW_KEYS:
        for i in range(start + 1, stop):
            item = items[i]
            to = i
            while to > start and items[to - 1] > item:
                items[to] = items[to - 1]
                to -= 1
            items[to] = item
    else:
        sort_by_upper_half(items, space.spare, start, stop, space.counts)


@compiled
def _shared_by_all(text, items, start, stop, depth, period):
    """Count further bases that all suffixes share, in whole words; copies share many."""
    text, items = uncounted((text, items))
    first = np.int64(items[start] & _POSITION) + depth
    shared = (period - depth + WORD - 1) // WORD * WORD
    for i in range(start + 1, stop):
        if shared == 0:
            break
        other = np.int64(items[i] & _POSITION) + depth
        for at in range(0, shared, WORD):
            if (
                max(first, other) + at >= text.size
                or is_near_separator(text, first + at)
                or is_near_separator(text, other + at)
                or kmer_at(text.words, first + at, WORD) != kmer_at(text.words, other + at, WORD)
            ):
                shared = at
                break
    return shared


@compiled
def sort_by_upper_half(items, spare, start, stop, counts):
    """Sort items from `start` to `stop` by their upper 32 bits: a radix sort, 8 bits at a time."""
    items, spare, counts = uncounted((items, spare, counts))
    counts[:] = 0
    for i in range(start, stop):
        for digit in range(4):
            counts[digit, (items[i] >> np.uint64(32 + 8 * digit)) & np.uint64(255)] += 1
    source, target = items, spare
    for digit in range(4):
        shift = np.uint64(32 + 8 * digit)
        if counts[digit, (source[start] >> shift) & np.uint64(255)] == stop - start:
            continue
        at = start
        for value in range(256):
            at, counts[digit, value] = at + counts[digit, value], at
        for i in range(start, stop):
            value = (source[i] >> shift) & np.uint64(255)
            target[counts[digit, value]] = source[i]
            counts[digit, value] += 1
        source, target = target, source
    if source is not items:
        _copy(spare, items, start, stop)


@compiled
def _put(stack, row, numbers):
    """Write a row of a stack, number by number for the same reason."""
    for i in range(len(numbers)):
        stack[row, i] = numbers[i]


@compiled
def _copy(source, target, start, stop):
    """Copy in a loop; slices take seconds to compile."""
    for i in range(start, stop):
        target[i] = source[i]


@compiled
def _key_at(text, position):
    if position >= text.size:
        return np.uint64(0)
    bases = kmer_at(text.words, position, KEY_BASES)
    n_bases = np.int64(KEY_BASES)
    if is_near_separator(text, position):
        n_bases = bases_before_separator(text, position, KEY_BASES)
        unused = np.uint64(2 * (KEY_BASES - n_bases))
        bases = bases >> unused << unused
    return bases << np.uint64(4) | np.uint64(n_bases)


@compiled
def _order(text, sample, p, q, depth):
    """Return -1 or 1 for the order of two suffixes that share `depth` symbols.

    0 if the sample has no ranks and both share a period.
    """
    text, sample = uncounted((text, sample))
    while depth < sample.period:
        a, b = p + depth, q + depth
        if a >= text.size:
            return -1
        if b >= text.size:
            return 1
        x, y = kmer_at(text.words, a, WORD), kmer_at(text.words, b, WORD)
        bases = WORD
        if is_near_separator(text, a) or is_near_separator(text, b):
            # Compare in the order of keys.
            bases = bases_before_separator(text, a, WORD)
            bases_of_b = bases_before_separator(text, b, WORD)
            x, y = _first_bases(x, bases), _first_bases(y, bases_of_b)
            if x == y and bases != bases_of_b:
                return -1 if bases < bases_of_b else 1
        if x != y:
            return -1 if x < y else 1
        depth += bases if bases == WORD else bases + 1
    if sample.ranks.size == 0:
        return 0
    within = sample.period - 1
    delta = (sample.anchor[(q - p) & within] - p) & within
    ranks = sample.ranks
    if ranks[sample_number(sample, p + delta)] < ranks[sample_number(sample, q + delta)]:
        return -1
    return 1


@compiled
def _first_bases(word, n):
    """Return the first bases of a word of 32, padded with A."""
    if n == 0:
        return np.uint64(0)
    unused = np.uint64(2 * (WORD - n))
    return word >> unused << unused


@compiled
def sample_number(sample, position):
    """Return the index of a position in a sample."""
    within = position & (sample.period - 1)
    return position // sample.period * sample.size + sample.number[within]


@compiled
def _insert_suffixes(text, sample, items, start, stop, depth):
    text, sample, items = uncounted((text, sample, items))
    for i in range(start + 1, stop):
        item = items[i]
        position = np.int64(item & _POSITION)
        to = i
        while (
            to > start
            and _order(text, sample, np.int64(items[to - 1] & _POSITION), position, depth) > 0
        ):
            items[to] = items[to - 1]
            to -= 1
        items[to] = item


@compiled
def _merge_suffixes(text, sample, items, spare, start, stop, depth):
    """Merge sort: insertion sort of short runs, which double in length in every round."""
    text, sample, items, spare = uncounted((text, sample, items, spare))
    for first in range(start, stop, FEW_SUFFIXES):
        _insert_suffixes(text, sample, items, first, min(first + FEW_SUFFIXES, stop), depth)
    width = FEW_SUFFIXES
    while width < stop - start:
        for first in range(start, stop, 2 * width):
            middle, end = min(first + width, stop), min(first + 2 * width, stop)
            a, b = first, middle
            for to in range(first, end):
                if b == end or (
                    a < middle
                    and _order(
                        text,
                        sample,
                        np.int64(items[a] & _POSITION),
                        np.int64(items[b] & _POSITION),
                        depth,
                    )
                    <= 0
                ):
                    spare[to] = items[a]
                    a += 1
                else:
                    spare[to] = items[b]
                    b += 1
        _copy(spare, items, start, stop)
        width *= 2


@compiled
def _part(text, sample, positions, start, stop, depth):
    """Move suffixes below a pivot to the front and those above it to the end.

    Returns where the front stops and the end starts; elements between equal the pivot.
    """
    text, sample, positions = uncounted((text, sample, positions))
    low = np.int64(positions[start])
    pivot = np.int64(positions[(start + stop) >> 1])
    high = np.int64(positions[stop - 1])
    # The median of three.
    if _order(text, sample, high, low, depth) < 0:
        low, high = high, low
    if _order(text, sample, pivot, low, depth) < 0:
        pivot = low
    elif _order(text, sample, high, pivot, depth) < 0:
        pivot = high
    smaller, larger = start, stop
    i = start
    while i < larger:
        position = np.int64(positions[i])
        order = 0 if position == pivot else _order(text, sample, position, pivot, depth)
        if order < 0:
            positions[i], positions[smaller] = positions[smaller], position
            smaller += 1
            i += 1
        elif order > 0:
            larger -= 1
            positions[i], positions[larger] = positions[larger], position
        else:
            i += 1
    return smaller, larger


# All suffixes of a text in order, piece by piece.
#
# Suffixes are put into buckets by their first 7 symbols (separator, A, C, G, T), which are counted
# first, so that the rows of a bucket are known before any suffix is sorted. One pass over the text
# fills as many buckets as the memory holds; these are sorted in parallel, and the next piece
# follows.
#
#     buckets       AAAAAAA AAAAAAC ... CCTAGGA | CCTAGGC ... GTTACAT | GTTACCA ... TTTTTTT
#     pieces               the first            |     the second      |     the third


#: Symbols that determine the bucket of a suffix, and the number of buckets.
BUCKET_SYMBOLS = 7
N_BUCKETS = 5**BUCKET_SYMBOLS

#: The maximum number of items that a thread sorts in its own memory, 16 bytes each.
WORKSPACE_ITEMS = 1 << 21

#: Ranges of buckets per thread, to balance uneven work.
TASKS_A_THREAD = 64


def workspace_bytes(threads: int) -> int:
    """Return the memory for sorting beyond the text, the sample and the positions."""
    return threads * (16 * WORKSPACE_ITEMS + 24 * N_BUCKETS)


def suffixes_in_order(
    text: PackedText, sample: SuffixSample, only_sample: bool, most: int, threads: int
) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the start positions of suffixes in the order of the suffixes, piece by piece.

    Parameters
    ----------
    text : PackedText
    sample : SuffixSample
        Without ranks, suffixes that share a whole period are in any order.
    only_sample : bool
        Whether to return only the suffixes in the sample.
    most : int
        Maximum suffixes per piece; a piece has at least one bucket.
    threads : int

    Yields
    ------
    first : int
        The row of the first suffix of the piece.
    positions : ndarray, shape=(n,), dtype=uint32
        Overwritten by the next piece.
    """
    wanted = sample.number if only_sample else np.empty(0, np.int16)
    edges = [text.size * i // threads for i in range(threads + 1)]
    ranges = list(itertools.pairwise(edges))
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
        # Where the first suffix of each bucket from each thread goes.
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
        The start of each group, and the end of the last one.
    """
    size = min(int(np.diff(starts).max()), WORKSPACE_ITEMS)
    spaces = [make_workspace(size, sample.period) for _ in range(threads)]
    _sort_side_by_side(text, sample, positions, starts, depth, spaces, threads)


def _sort_side_by_side(
    text, sample, positions, rows, depth, spaces: list[Workspace], threads: int
) -> None:
    """Sort groups in parallel; the suffixes of each share their first symbols."""

    def sort(first: int, last: int) -> None:
        space = spaces.pop()
        _sort_each(text, sample, positions, rows[first : last + 1], depth, space)
        spaces.append(space)

    tasks = list(bounded_ranges(rows, max(1, positions.size // (threads * TASKS_A_THREAD))))
    # The largest first, so that the last ones to finish are small.
    tasks.sort(key=lambda task: rows[task[0]] - rows[task[1]])
    run_together([partial(sort, *task) for task in tasks], threads)


@compiled(counted=False)
def _sort_each(text, sample, positions, rows, depth, space):
    for i in range(rows.size - 1):
        if rows[i + 1] > rows[i] + 1:
            sort_suffixes(text, sample, positions[rows[i] : rows[i + 1]], depth, space)


@compiled
def _count(text, wanted, start, stop, counts):
    """Count the suffixes that begin from `start` to `stop`, per bucket."""
    _scan(text, wanted, start, stop, 0, counts, np.empty(0, np.uint32))


@compiled
def _fill(text, wanted, start, stop, first_bucket, to, positions):
    """Write positions of suffixes to the next slots of their buckets; advances `to`."""
    _scan(text, wanted, start, stop, first_bucket, to, positions)


@compiled
def _scan(text, wanted, start, stop, first_bucket, counts, positions):
    """Count each suffix in its bucket, and write its position there if there is space.

    Runs from right to left, so that the bucket of a suffix follows from that of the next: its own
    symbol becomes the first of the seven, and the last one drops out.
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
    """Return the bucket of a suffix; the end of the text is followed by separators for this
    purpose.
    """
    bucket = 0
    for at in range(position, position + BUCKET_SYMBOLS):
        bucket *= 5
        if at < text.size and not (
            is_near_separator(text, at) and bases_before_separator(text, at, 1) == 0
        ):
            bucket += np.int64(kmer_at(text.words, at, 1)) + 1
    return bucket


# The sample of suffixes that is sorted first: a difference cover of the text positions.
#
# A difference cover of a period contains, for every distance, two members at that distance modulo
# the period. With 40 members for a period of 1,024, the sample has one suffix in 26. It is sorted
# by the first period of each suffix; suffixes that share it are sorted by prefix doubling, by the
# ranks one period later, then two, four, ... (Kärkkäinen, "Fast BWT in small space by blockwise
# suffix sorting", 2007; the cover is by Colbourn and Ling.)


#: A longer period makes the sample smaller and repeats slower.
PERIOD = 1024

_WORD = 32


def difference_cover(period: int) -> np.ndarray:
    """Return positions below `period` so that two of them are at every distance modulo `period`."""
    r = 0
    while 24 * r * r + 36 * r + 13 < period:
        r += 1
    steps = [1] * r + [r + 1] + [2 * r + 1] * r + [4 * r + 3] * (2 * r + 1)
    steps += [2 * r + 2] * (r + 1) + [1] * r
    return np.unique(np.cumsum([0, *steps]) % period)


def sample_bytes(size: int) -> int:
    """Return the memory for sorting the sample of a text; a third of it is kept."""
    return 12 * (size // PERIOD + 1) * difference_cover(PERIOD).size


def sample_suffixes(text: PackedText, threads: int = 1, period: int = PERIOD) -> SuffixSample:
    """Sort the sample of suffixes of a text."""
    cover = difference_cover(period)
    number = np.full(period, -1, np.int16)
    number[cover] = np.arange(cover.size)
    anchor = np.empty(period, np.int64)
    anchor[(cover[:, None] - cover) % period] = cover
    unranked = SuffixSample(np.empty(0, np.uint32), number, anchor, period, cover.size)
    [(_, positions)] = suffixes_in_order(text, unranked, True, text.size, threads)
    tied = np.zeros(positions.size, np.bool_)
    for_each_range(
        lambda start, stop: _find_ties(text, positions, period, tied, start, stop),
        positions.size,
        threads,
    )
    ranks = np.zeros((text.size // period + 1) * cover.size, np.uint32)
    sample = unranked._replace(ranks=ranks)
    items, groups = _rank(sample, positions, tied)
    distance = period
    while len(groups):
        _sort_groups(text.size, sample, items, groups, distance)
        items, groups = _rank_groups(sample, items, groups)
        distance *= 2
    return sample


@compiled(counted=False)
def _find_ties(text, positions, length, tied, start, stop):
    """Mark the suffixes that share their first symbols with the previous one."""
    for i in range(max(start, 1), stop):
        tied[i] = _share(text, np.int64(positions[i - 1]), np.int64(positions[i]), length)


@compiled
def _share(text, p, q, length):
    """Return whether two suffixes have the same first `length` symbols."""
    depth = 0
    while depth < length:
        a, b = p + depth, q + depth
        if a >= text.size or b >= text.size:
            return False
        most = min(_WORD, length - depth)
        bases = bases_before_separator(text, a, most) if is_near_separator(text, a) else most
        of_b = bases_before_separator(text, b, most) if is_near_separator(text, b) else most
        if bases != of_b:
            return False
        if bases and kmer_at(text.words, a, bases) != kmer_at(text.words, b, bases):
            return False
        depth += bases + 1 if bases < most else most
    return True


@compiled
def _rank(sample, positions, tied):
    """Rank suffixes by their rows, counted from 1, giving ties the same rank.

    Returns the positions of tied suffixes, and their groups: start, stop and rank.
    """
    sample, positions, tied = uncounted((sample, positions, tied))
    n_items, n_groups = 0, 0
    for i in range(positions.size):
        follows = i + 1 < positions.size and tied[i + 1]
        n_items += tied[i] or follows
        n_groups += follows and not tied[i]
    items = np.empty(n_items, np.uint64)
    groups = np.empty((n_groups, 3), np.int64)
    rank, item, group = 0, 0, -1
    for i in range(positions.size):
        if not tied[i]:
            rank = i + 1
        sample.ranks[sample_number(sample, np.int64(positions[i]))] = rank
        follows = i + 1 < positions.size and tied[i + 1]
        if follows and not tied[i]:
            group += 1
            groups[group, 0] = item
            groups[group, 2] = rank
        if tied[i] or follows:
            items[item] = positions[i]
            item += 1
            groups[group, 1] = item
    return items, groups


@compiled
def _sort_groups(size, sample, items, groups, distance):
    """Sort every group by the ranks of the suffixes `distance` later."""
    sample, items, groups = uncounted((sample, items, groups))
    spare = np.empty_like(items)
    counts = np.zeros((4, 256), np.int64)
    for group in range(len(groups)):
        start, stop, _ = groups[group]
        for i in range(start, stop):
            position = items[i] & np.uint64(0xFFFFFFFF)
            behind = np.int64(position) + distance
            rank = np.uint64(0)
            if behind < size:
                rank = np.uint64(sample.ranks[sample_number(sample, behind)])
            items[i] = rank << np.uint64(32) | position
        if stop - start > 64:
            sort_by_upper_half(items, spare, start, stop, counts)
        else:
            items[start:stop].sort()


@compiled
def _rank_groups(sample, items, groups):
    """Rank the suffixes of sorted groups; return items and groups that are still tied."""
    n_left = 0
    left = np.empty((items.size // 2, 3), np.int64)
    n_groups = 0
    for group in range(len(groups)):
        first, stop, rank = groups[group]
        start = first
        while start < stop:
            end = start
            while end < stop and items[end] >> np.uint64(32) == items[start] >> np.uint64(32):
                position = np.int64(items[end] & np.uint64(0xFFFFFFFF))
                sample.ranks[sample_number(sample, position)] = rank + start - first
                end += 1
            if end - start > 1:
                left[n_groups, 0] = n_left
                left[n_groups, 1] = n_left + end - start
                left[n_groups, 2] = rank + start - first
                n_groups += 1
                # Compact in place: writes never overtake reads.
                for i in range(start, end):
                    items[n_left] = items[i]
                    n_left += 1
            start = end
    return items[:n_left].copy(), left[:n_groups].copy()

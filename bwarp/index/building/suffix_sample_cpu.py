"""The sample of suffixes whose order is found first: a difference cover of the text's positions.

A difference cover of a period holds, for every distance, two of its members that are that far
apart, counted modulo the period. With 40 members for a period of 1,024, one suffix in 26 is in the
sample. The sample is sorted by the first period of each suffix, and suffixes that share it by
prefix doubling: by the ranks one period behind, then two, four, ... (Kärkkäinen, "Fast BWT in small
space by blockwise suffix sorting", 2007; the cover is Colbourn and Ling's.)
"""

import numpy as np

from bwarp.index.building.packed_text_cpu import (
    PackedText,
    bases_before_separator,
    is_near_separator,
)
from bwarp.index.building.suffix_buckets_cpu import suffixes_in_order
from bwarp.index.building.suffix_order_cpu import SuffixSample, sample_number, sort_by_upper_half
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.threads import for_each_range
from bwarp.runtime.uncounted import uncounted
from bwarp.sequence import kmer_at

__all__ = ["PERIOD", "difference_cover", "sample_bytes", "sample_suffixes"]

#: A longer period makes the sample smaller, and repeats slower.
PERIOD = 1024

_WORD = 32


def difference_cover(period: int) -> np.ndarray:
    """Positions below a period such that every distance, modulo it, is one of two of them."""
    r = 0
    while 24 * r * r + 36 * r + 13 < period:
        r += 1
    steps = [1] * r + [r + 1] + [2 * r + 1] * r + [4 * r + 3] * (2 * r + 1)
    steps += [2 * r + 2] * (r + 1) + [1] * r
    return np.unique(np.cumsum([0, *steps]) % period)


def sample_bytes(size: int) -> int:
    """Memory that the sample of a text takes while it is sorted; a third of it is kept."""
    return 12 * (size // PERIOD + 1) * difference_cover(PERIOD).size


def sample_suffixes(text: PackedText, threads: int = 1, period: int = PERIOD) -> SuffixSample:
    """Sort the sample of a text's suffixes."""
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


@compiled
def _find_ties(text, positions, length, tied, start, stop):
    """Mark the suffixes that share their first symbols with the one before."""
    text, positions, tied = uncounted((text, positions, tied))
    for i in range(max(start, 1), stop):
        tied[i] = _share(text, np.int64(positions[i - 1]), np.int64(positions[i]), length)


@compiled
def _share(text, p, q, length):
    """Whether two suffixes have the same first `length` symbols."""
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
    """Rank suffixes by their rows, counted from 1, and those that are tied alike.

    Returns the positions of those that are tied, and groups of them: start, stop and rank.
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
    """Sort every group by the ranks of the suffixes a distance behind."""
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
    """Rank the suffixes of sorted groups; returns items and groups of those still tied."""
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
                # To the front: what is written lies at or before what is read.
                for i in range(start, end):
                    items[n_left] = items[i]
                    n_left += 1
            start = end
    return items[:n_left].copy(), left[:n_groups].copy()

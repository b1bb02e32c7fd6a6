"""All maximal exact matches by an FM-index, on the CPU, in memory that does not grow with them.

Sampled k-mers (`bwarp.mems.kmer_sampling`) are searched. Where a k-mer has few hits, each is
located and extended. Where it has many, most of them would be no match, or a match already
found one k-mer before; so every window of `min_length` bases that this k-mer is to answer for is
searched instead, and of its rows only those are located whose preceding base differs from the
query's: each is the beginning of a match, and each match begins once.

    k-mer rows    few ---> locate, extend to both sides, drop what begins before the k-mer's reach
                  many --> window rows, drop those whose base before is the query's, locate,
                           extend to the right
"""

from collections.abc import Iterator

import numpy as np

from bwarp.index.fm_index import FMIndex
from bwarp.index.locate_cpu import locate
from bwarp.index.rank_cpu import block_start, rank
from bwarp.mems.kmer_rows_cpu import kmer_rows
from bwarp.mems.kmer_sampling import (
    LONGEST_KMER,
    Samples,
    choose_kmer_length,
    sample_counts,
    sample_slice,
)
from bwarp.mems.matches import Matches
from bwarp.mems.maximal.extend_hits_cpu import verify
from bwarp.mems.maximal.hit_groups import (
    HitGroups,
    kmer_groups,
    merge_groups,
    take_groups,
    window_positions,
)
from bwarp.mems.query_text import QueryText
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.ranges import bounded_ranges
from bwarp.runtime.threads import for_each_range
from bwarp.sequence import kmer_at

__all__ = ["maximal_matches"]

#: K-mers with at most so many rows are all located.
_FEW = 8

#: K-mers searched, and rows located, at a time; they take some hundred bytes each.
_SAMPLES = 1 << 20
_ROWS = 1 << 21


def maximal_matches(
    index: FMIndex, text: QueryText, min_length: int, threads: int = 1
) -> Iterator[Matches]:
    """Find all maximal matches of at least `min_length` bases.

    Yields
    ------
    matches : Matches
        Blocks of them; all blocks together are in order.
    """
    k = choose_kmer_length(index.forward.n_rows, min_length, spare=1)
    step = min_length - k + 1
    counts = sample_counts(text, min_length, k)
    for start in range(0, int(counts[-1]), _SAMPLES):
        samples = sample_slice(text, counts, step, start, min(start + _SAMPLES, int(counts[-1])))
        groups = _groups(index, text, samples, min_length, k, threads)
        for part, offsets in _parts(index, text, groups, threads):
            rows = np.empty(offsets[-1], np.uint32)
            _over_rows(_fill_rows, index, text, part, offsets, rows, threads)
            hits = locate(index, rows, threads)
            yield verify(
                index.reference, text, min_length, part, offsets[:-1], offsets[1:], hits, threads
            )


def _groups(
    index: FMIndex, text: QueryText, samples: Samples, min_length: int, k: int, threads: int
) -> HitGroups:
    """The hits of k-mers that have few, and of the windows around those that have many."""
    step = min_length - k + 1
    starts, stops = kmer_rows(index, text.words, samples.positions, k, threads)
    n_rows = stops - starts
    few = np.flatnonzero((n_rows > 0) & (n_rows <= _FEW))
    groups = kmer_groups(_take(samples, few), k, step, starts[few], stops[few])
    many = np.flatnonzero(n_rows > _FEW)
    windows = window_positions(text, _take(samples, many), step, min_length)
    size = min(min_length, LONGEST_KMER)
    starts, stops = kmer_rows(index, text.words, windows.positions, size, threads)
    found = np.flatnonzero(starts < stops)
    more = kmer_groups(_take(windows, found), size, 0, starts[found], stops[found])
    return merge_groups(groups, more)


def _take(samples: Samples, selected) -> Samples:
    return Samples(samples.positions[selected], samples.runs[selected])


def _parts(
    index: FMIndex, text: QueryText, groups: HitGroups, threads: int
) -> Iterator[tuple[HitGroups, np.ndarray]]:
    """Cut groups into parts of about as many rows; with each, where its groups' rows begin."""
    n_groups = groups.positions.size
    offsets = np.zeros(n_groups + 1, np.int64)
    counts = offsets[1:]
    _over_rows(_count_rows, index, text, groups, counts, np.empty(0, np.uint32), threads)
    np.cumsum(counts, out=counts)
    for start, stop in bounded_ranges(offsets, _ROWS):
        if offsets[start] < offsets[stop]:
            yield (
                take_groups(groups, slice(start, stop)),
                offsets[start : stop + 1] - offsets[start],
            )


def _over_rows(function, index, text, groups, numbers, rows, threads) -> None:
    """Call `_count_rows` (numbers are counts) or `_fill_rows` (offsets) over all groups."""
    forward = index.forward
    for_each_range(
        lambda start, stop: function(
            forward.words, forward.separator_rows, forward.groups, text, groups, numbers, rows,
            start, stop,
        ),
        groups.positions.size,
        threads,
        smallest=64,
    )  # fmt: skip


@compiled(inline="always")
def _base_before(words, run_start, position, reach):
    """The query's base before a window; 5, which no row has, where every row is wanted."""
    if reach or position == run_start:
        return np.uint64(5)
    return kmer_at(words, position - 1, 1)


@compiled
def _count_rows(blocks, separator_rows, block_groups, text, groups, counts, rows, start, stop):
    """Count the rows of each group that begin a match."""
    words, _, _, run_starts, _ = text
    positions, runs, _, reaches, starts, stops = groups
    for group in range(start, stop):
        before = _base_before(words, run_starts[runs[group]], positions[group], reaches[group])
        n = np.uint64(stops[group]) - np.uint64(starts[group])
        if before < np.uint64(4):
            n -= rank(blocks, separator_rows, block_groups, before, stops[group])
            n += rank(blocks, separator_rows, block_groups, before, starts[group])
        counts[group] = n


@compiled
def _fill_rows(blocks, separator_rows, block_groups, text, groups, offsets, rows, start, stop):
    """Write the rows that `_count_rows` counted."""
    words, _, _, run_starts, _ = text
    positions, runs, _, reaches, starts, stops = groups
    for group in range(start, stop):
        before = _base_before(words, run_starts[runs[group]], positions[group], reaches[group])
        at = offsets[group]
        row = np.uint64(starts[group])
        stop_row = np.uint64(stops[group])
        while row < stop_row:
            other = ~np.uint64(0)
            if before < np.uint64(4):
                other = _other_bases(blocks, separator_rows, block_groups, before, row)
            end = min((row | np.uint64(31)) + np.uint64(1), stop_row)
            while row < end:
                if (other >> (row & np.uint64(31))) & np.uint64(1):
                    rows[at] = row
                    at += 1
                row += np.uint64(1)


@compiled(inline="always")
def _other_bases(blocks, separator_rows, groups, code, row):
    """A bit for each row of the 32 around `row`, row r in bit r % 32: is its base not `code`?"""
    at = block_start(groups, row)
    plane = at + np.uint64(4) + np.uint64(2) * ((row >> np.uint64(5)) % np.uint64(len(groups)))
    low = np.uint64(blocks[plane]) ^ (code & np.uint64(1)) * np.uint64(0xFFFFFFFF)
    high = np.uint64(blocks[plane + np.uint64(1)]) ^ (code >> np.uint64(1)) * np.uint64(0xFFFFFFFF)
    other = low | high
    if code == np.uint64(0) and np.uint64(blocks[at + np.uint64(3)]) & np.uint64(1):
        # Separators are stored as A.
        number = np.uint64(blocks[at + np.uint64(3)]) >> np.uint64(1)
        while number < np.uint64(separator_rows.size):
            separator = np.uint64(separator_rows[number])
            if separator > row | np.uint64(31):
                break
            if separator >> np.uint64(5) == row >> np.uint64(5):
                other |= np.uint64(1) << (separator & np.uint64(31))
            number += np.uint64(1)
    return other

"""Find all maximal exact matches on the CPU with an FM-index, in bounded memory.

Sampled k-mers (`bwarp.mems.kmer_sampling`) are searched. If a k-mer has few hits, each is located
and extended. If it has many, most of them would yield no match, or a match already found from the
previous k-mer. In this case, every window of `min_length` bases that the k-mer accounts for is
searched instead, and only rows whose preceding base differs from the query's are located: each
begins a match, and each match has one beginning.

    k-mer rows    few ---> locate, extend both ways, drop what begins before the reach
                  many --> window rows, drop those preceded by the query's base, locate,
                           extend to the right
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from bwarp.index.fm_index import FMIndex
from bwarp.index.locate_cpu import check_hit, locate
from bwarp.index.rank import block_start, rank
from bwarp.mems.kmer_sampling import (
    LONGEST_KMER,
    Samples,
    choose_kmer_length,
    sample_counts,
    sample_slice,
)
from bwarp.mems.packed_extension import (
    equal_after,
    equal_before,
    genome_text,
    most_after,
    most_before,
    segment_of,
)
from bwarp.mems.query_text import Matches, QueryText, join_matches, no_matches, take_matches
from bwarp.reference import Reference
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.simd import prefetch
from bwarp.runtime.threads import bounded_ranges, for_each_range
from bwarp.runtime.timeline import on_timeline
from bwarp.runtime.uncounted import uncounted
from bwarp.seeding.exact_cpu import kmer_rows
from bwarp.sequence import kmer_at

# Groups: the hits of a k-mer of a query in the reference, before extension.


class HitGroups(NamedTuple):
    """K-mers of a query text, in order, with the rows (or table entries) of their hits.

    Attributes
    ----------
    positions, runs : ndarray, shape=(n,), dtype=int64
        Where each k-mer begins in the query text, and the run that contains it.
    sizes : ndarray, shape=(n,), dtype=int64
        Bases of each k-mer.
    reaches : ndarray, shape=(n,), dtype=int64
        How far before its k-mer a match of the group may begin; a match that begins earlier
        contains an earlier k-mer and is found there. 0 if the hits are known not to extend to the
        left.
    starts, stops : ndarray, shape=(n,), dtype=uint32
        First hit and last hit + 1.
    """

    positions: np.ndarray
    runs: np.ndarray
    sizes: np.ndarray
    reaches: np.ndarray
    starts: np.ndarray
    stops: np.ndarray


def kmer_groups(samples: Samples, size: int, reach: int, starts, stops) -> HitGroups:
    """Make groups of k-mers with the same size and reach."""
    n = samples.positions.size
    return HitGroups(
        samples.positions, samples.runs, np.full(n, size), np.full(n, reach), starts, stops
    )


def take_groups(groups: HitGroups, selected) -> HitGroups:
    """Select groups by slice, mask or numbers."""
    return HitGroups(*(array[selected] for array in groups))


def merge_groups(one: HitGroups, other: HitGroups) -> HitGroups:
    """Merge two sets of groups in the order of the matches that they account for.

    A k-mer group at position p accounts for matches that begin in (p - step, p], a window group for
    those that begin at its own position; no two groups account for the same matches.
    """
    if one.positions.size == 0:
        return other
    if other.positions.size == 0:
        return one
    both = HitGroups(*map(np.concatenate, zip(one, other, strict=True)))
    # Runs are in the order of the queries, but the strands of a query are far apart in the text.
    # Both inputs are sorted already, for which a stable sort is fast.
    first = both.positions - np.maximum(both.reaches - 1, 0)
    width = int(first.max()) + 1
    return take_groups(both, np.argsort(both.runs * width + first, kind="stable"))


def window_positions(text: QueryText, samples: Samples, step: int, min_length: int) -> Samples:
    """Return where matches of samples may begin: at a sample, or up to step - 1 bases before, with
    at least `min_length` bases to the end of the run.
    """
    starts = samples.positions[:, None] + np.arange(1 - step, 1)
    fits = starts <= (text.run_stops[samples.runs] - min_length)[:, None]
    runs = np.broadcast_to(samples.runs[:, None], starts.shape)
    return Samples(starts[fits], runs[fits])


# Verification: from hits of a k-mer to maximal matches, by XOR on packed bases.


_READ_AHEAD = 16

# Groups with more matches are sorted by radix.
_INSERTED = 40

_u64 = np.uint64


def verify(
    reference: Reference,
    text: QueryText,
    min_length: int,
    groups: HitGroups,
    firsts: np.ndarray,
    lasts: np.ndarray,
    hits: np.ndarray,
    threads: int,
) -> Matches:
    """Extend groups of k-mer hits to maximal matches and keep those that are long enough.

    Parameters
    ----------
    groups : HitGroups
    firsts, lasts : ndarray, shape=(n_groups,)
        Group i has hits[firsts[i]:lasts[i]].
    hits : ndarray, dtype=uint32
        Positions of the k-mers in the text of the reference.
    """

    genome = genome_text(reference)

    def verify_range(start: int, stop: int) -> Matches:
        n_hits = [int(part[start:stop].sum(dtype=np.int64)) for part in (firsts, lasts)]
        found = no_matches(n_hits[1] - n_hits[0])
        part = slice(start, stop)
        n = _verify(
            genome, text, min_length, take_groups(groups, part), firsts[part], lasts[part], hits,
            found,
        )  # fmt: skip
        # A copy, to free the memory of hits that gave no match.
        return take_matches(found, np.arange(n))

    n_groups = groups.positions.size
    return join_matches(for_each_range(verify_range, n_groups, threads, smallest=64))


@compiled
def _verify(genome, text, min_length, groups, firsts, lasts, hits, found):
    """Write the matches of all groups, in order; return their number."""
    packed, segment_genome, segment_text = genome
    words, text_starts, run_queries, run_starts, run_stops = text
    positions, runs, sizes, reaches, _, _ = groups
    queries, query_starts, reference_starts, lengths = found
    n = 0
    n_groups = positions.size
    for group in range(n_groups):
        # The hits of a group, and hence its matches in the genome, are in any order.
        prefetch(hits, np.int64(firsts[min(group + _READ_AHEAD, n_groups - 1)]))
        first = n
        run = runs[group]
        query = run_queries[run]
        run_start, run_stop = _u64(run_starts[run]), _u64(run_stops[run])
        position, size = _u64(positions[group]), _u64(sizes[group])
        reach = _u64(reaches[group])
        for i in range(np.int64(firsts[group]), np.int64(lasts[group])):
            # Offsets between text and genome change little from segment to segment.
            ahead = min(i + _READ_AHEAD, hits.size - 1)
            prefetch(packed, np.int64(hits[ahead] >> np.uint32(5)))
            hit = _u64(hits[i])
            segment = segment_of(segment_text, hit)
            text_start = _u64(segment_text[segment])
            text_stop = _u64(segment_text[segment + _u64(1)])
            check_hit(hit, size, text_stop)
            base = _u64(segment_genome[segment]) + hit - text_start
            left = min(most_before(position, run_start, hit, text_start), reach)
            left = equal_before(words, position, packed, base, left)
            if left == reach and reach:
                continue
            right = most_after(position + size, run_stop, hit + size, text_stop)
            right = equal_after(words, position + size, packed, base + size, right)
            length = left + size + right
            if length >= _u64(min_length):
                queries[n] = query
                query_starts[n] = position - left - _u64(text_starts[query])
                reference_starts[n] = base - left
                lengths[n] = length
                n += 1
        if n - first > 1:
            _sort_group(query_starts[first:n], reference_starts[first:n], lengths[first:n])
    return n


@compiled
def _sort_group(query_starts, reference_starts, lengths):
    """Sort the matches of one group by start in the query, then in the reference."""
    n = query_starts.size
    if n > _INSERTED:
        _radix_sort(query_starts, reference_starts, lengths)
        return
    for i in range(1, n):
        start, reference_start, length = query_starts[i], reference_starts[i], lengths[i]
        j = i
        while j and (
            query_starts[j - 1] > start
            or (query_starts[j - 1] == start and reference_starts[j - 1] > reference_start)
        ):
            query_starts[j] = query_starts[j - 1]
            reference_starts[j] = reference_starts[j - 1]
            lengths[j] = lengths[j - 1]
            j -= 1
        query_starts[j], reference_starts[j], lengths[j] = start, reference_start, length


@compiled
def _radix_sort(query_starts, reference_starts, lengths):
    """Sort likewise byte by byte, from the lowest, skipping bytes that do not differ."""
    n = query_starts.size
    keys = np.empty((2, n), np.uint64)
    values = np.empty((2, n), np.uint32)
    least = query_starts.min()
    varying = _u64(0)
    for i in range(n):
        keys[0, i] = (_u64(query_starts[i] - least) << _u64(32)) | _u64(reference_starts[i])
        values[0, i] = lengths[i]
        varying |= keys[0, i] ^ keys[0, 0]
    now = 0
    ends = np.empty(257, np.int64)
    for shift in range(0, 64, 8):
        if (varying >> _u64(shift)) & _u64(255) == _u64(0):
            continue
        ends[:] = 0
        for i in range(n):
            ends[((keys[now, i] >> _u64(shift)) & _u64(255)) + _u64(1)] += 1
        for digit in range(255):
            ends[digit + 1] += ends[digit]
        for i in range(n):
            digit = (keys[now, i] >> _u64(shift)) & _u64(255)
            keys[1 - now, ends[digit]] = keys[now, i]
            values[1 - now, ends[digit]] = values[now, i]
            ends[digit] += 1
        now = 1 - now
    for i in range(n):
        query_starts[i] = np.uint32(keys[now, i] >> _u64(32)) + least
        reference_starts[i] = keys[now, i] & _u64(0xFFFFFFFF)
        lengths[i] = values[now, i]


#: K-mers with at most this many rows are located in full.
_FEW = 8

#: K-mers searched, and rows located, at a time; each takes about a hundred bytes.
_SAMPLES = 1 << 20
_ROWS = 1 << 21


@on_timeline("find matches")
def maximal_matches(
    index: FMIndex, text: QueryText, min_length: int, threads: int = 1
) -> Iterator[Matches]:
    """Find all maximal matches of at least `min_length` bases.

    Yields
    ------
    matches : Matches
        Blocks of matches; all blocks together are in order.
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
    """Return the hits of k-mers with few hits, and of the windows around k-mers with many."""
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
    """Cut groups into parts of about equal rows, each with the row offsets of its groups."""
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
    """Call `_count_rows` (numbers are counts) or `_fill_rows` (offsets) on all groups."""
    bwt = index.forward.arrays
    for_each_range(
        lambda start, stop: function(bwt, text, groups, numbers, rows, start, stop),
        groups.positions.size,
        threads,
        smallest=64,
    )


@compiled(forceinline=True)
def _base_before(words, run_start, position, reach):
    """Return the base of the query before a window; 5, which no row has, to select every row."""
    if reach or position == run_start:
        return np.uint64(5)
    return kmer_at(words, position - 1, 1)


@compiled
def _count_rows(bwt, text, groups, counts, rows, start, stop):
    """Count the rows of each group that begin a match."""
    bwt, text, groups = uncounted((bwt, text, groups))
    blocks, separator_rows, block_groups, _, _ = bwt
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
def _fill_rows(bwt, text, groups, offsets, rows, start, stop):
    """Write the rows that `_count_rows` counted."""
    bwt, text, groups = uncounted((bwt, text, groups))
    blocks, separator_rows, block_groups, _, _ = bwt
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


@compiled(forceinline=True)
def _other_bases(blocks, separator_rows, groups, code, row):
    """Return a mask of the 32 rows around `row`, row r in bit r % 32: whether its base is not
    `code`.
    """
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

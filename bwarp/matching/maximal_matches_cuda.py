"""All maximal exact matches on the GPU: one thread a window, then one thread a match.

Every place of a query where a match may begin is a thread, however long the query: it searches
the window of `min_length` bases (at most 32) that begins there. Rows whose preceding base is the
query's belong to matches that begin earlier; each of the others begins a match.

    windows      rows of each, counted without those             1 thread a window
    running sum  where each window's matches go
    rows         written there                                   1 thread a window
    matches      located, extended to the right by XOR           1 thread a match
    sort         by window, then by place in the genome
"""

from collections.abc import Iterator

import numba
import numpy as np
from numba import cuda, uint32, uint64
from numba.cuda import types

from bwarp.errors import UsageError
from bwarp.index.prefix_sum_cuda import exclusive_sum
from bwarp.index.rank_cuda import base_at, rank_both
from bwarp.matching.device_text_cuda import (
    DeviceReference,
    DeviceText,
    last_at_or_before,
    place_of,
    put_text,
)
from bwarp.matching.extension import equal_after
from bwarp.matching.matches import Matches, no_matches
from bwarp.matching.query_text import QueryText
from bwarp.matching.sampling import LONGEST_KMER
from bwarp.ptx import load_uint32x4
from bwarp.sequence import kmer_at

__all__ = ["KERNEL_SIGNATURES", "maximal_matches"]

#: Windows searched at a time.
_WINDOWS = 1 << 24

#: Windows with fewer rows add up to less than 2**32.
_MANY = 250

_THREADS = 256


def maximal_matches(
    reference: DeviceReference, text: QueryText, min_length: int, threads: int = 1
) -> Iterator[Matches]:
    """Find all maximal matches of at least `min_length` bases, in blocks, in order."""
    counts = np.zeros(text.run_starts.size + 1, np.int64)
    np.cumsum(text.run_stops - text.run_starts - min_length + 1, out=counts[1:])
    if counts[-1] == 0:
        return
    query = put_text(text)
    window_counts = cuda.to_device(counts.astype(np.uint32))
    most = min(_WINDOWS, reference.device.work.elements)
    waiting = [
        (first, min(first + most, int(counts[-1]))) for first in range(0, int(counts[-1]), most)
    ][::-1]
    while waiting:
        first, last = waiting.pop()
        n_hits = _search(reference, query, window_counts, min_length, first, last)
        if n_hits > reference.device.work.elements:
            if last - first == 1:
                raise UsageError(
                    f"{n_hits:,} matches at one place are more than the GPU has room for: give a "
                    "larger --min-length, or use --backend cpu"
                )
            middle = (first + last) // 2
            waiting += [(middle, last), (first, middle)]
        elif n_hits:
            keys, lengths = _locate(
                reference, query, window_counts, min_length, first, last, n_hits
            )
            found = no_matches(n_hits)
            n_found = _unpack(
                keys,
                lengths,
                first,
                counts,
                text.run_queries,
                text.run_starts - text.text_starts[text.run_queries],
                found.queries,
                found.query_starts,
                found.reference_starts,
                found.lengths,
            )
            yield Matches(
                found.queries[:n_found],
                found.query_starts[:n_found],
                found.reference_starts[:n_found],
                found.lengths[:n_found],
            )


def _columns(reference: DeviceReference, n_windows: int):
    """First rows, numbers of rows, and running sums of what begins a match."""
    nodes, elements = reference.device.work.nodes, reference.device.work.elements
    return (
        nodes[:n_windows],
        nodes[elements : elements + n_windows],
        nodes[2 * elements : 2 * elements + n_windows + 1],
    )


def _search(
    reference: DeviceReference,
    query: DeviceText,
    window_counts,
    min_length: int,
    first: int,
    last: int,
) -> int:
    """Search windows; leave their rows and running sums in the working space; return the sum."""
    device = reference.device
    firsts, rows, offsets = _columns(reference, last - first)
    size = min(min_length, LONGEST_KMER)
    length = min(size, device.plan.string_length)
    many = cuda.to_device(np.zeros(1, np.uint64))
    search_windows[-(-(last - first + 1) // _THREADS), _THREADS](
        device.forward.words,
        device.forward.separator_rows,
        device.forward.groups,
        device.first_rows,
        device.table(length),
        length,
        query.words,
        query.run_starts,
        window_counts,
        first,
        size,
        firsts,
        rows,
        offsets,
        many,
    )
    n_many = int(many.copy_to_host()[0])
    if n_many > device.work.elements:
        return n_many
    exclusive_sum(offsets)
    return int(offsets[last - first])


def _locate(
    reference: DeviceReference,
    query: DeviceText,
    window_counts,
    min_length: int,
    first: int,
    last: int,
    n_hits: int,
):
    """Keys (window - first, genome position) and lengths of what the last search found, sorted."""
    device = reference.device
    work = device.work
    firsts, rows, offsets = _columns(reference, last - first)
    keys, spare = work.keys[:n_hits], work.checks[:n_hits]
    lengths, spare_lengths = work.values[:n_hits], work.intervals[:n_hits]
    write_rows[-(-(last - first) // _THREADS), _THREADS](
        device.forward.words,
        device.forward.separator_rows,
        device.forward.groups,
        query.words,
        query.run_starts,
        window_counts,
        first,
        firsts,
        rows,
        offsets,
        keys,
    )
    locate_rows[-(-n_hits // _THREADS), _THREADS](
        device.forward.words,
        device.forward.separator_rows,
        device.forward.groups,
        device.first_rows,
        device.forward.text_start,
        device.suffixes,
        device.plan.suffix_rate,
        reference.genome,
        device.segment_text,
        device.segment_genome,
        query.words,
        query.run_starts,
        query.run_stops,
        window_counts,
        first,
        min_length,
        min(min_length, LONGEST_KMER),
        keys,
        lengths,
    )
    bits = 32 + max(1, (last - first - 1).bit_length())
    (keys, _), (lengths, _) = device.sort_pairs(
        (keys, spare), (lengths, spare_lengths), n_hits, bits
    )
    return keys.copy_to_host(), lengths.copy_to_host()


@numba.njit(cache=True, nogil=True)
def _unpack(
    keys,
    key_lengths,
    first,
    counts,
    run_queries,
    run_shifts,
    queries,
    query_starts,
    reference_starts,
    lengths,
):
    """Turn sorted keys into matches, without those that are too short; return how many."""
    n = 0
    run = 0
    for i in range(keys.size):
        window = first + np.int64(keys[i] >> np.uint64(32))
        if counts[run + 1] <= window:
            run = np.searchsorted(counts, window, side="right") - 1
        if key_lengths[i]:
            queries[n] = run_queries[run]
            query_starts[n] = run_shifts[run] + window - counts[run]
            reference_starts[n] = keys[i] & np.uint64(0xFFFFFFFF)
            lengths[n] = key_lengths[i]
            n += 1
    return n


@cuda.jit(device=True)
def window_position(run_starts, window_counts, window):
    """The run of a window, and where the window begins in the query text."""
    run = last_at_or_before(window_counts, window)
    return run, uint32(run_starts[run] + window - window_counts[run])


@cuda.jit(device=True)
def base_before(query, run_start, position):
    """The query's base before a window; 5, which no row has, at a run's start."""
    if position == run_start:
        return uint32(5)
    return uint32(kmer_at(query, uint64(position) - uint64(1), 1))


@cuda.jit(cache=True)
def search_windows(
    words,
    separator_rows,
    groups,
    first_rows,
    table,
    table_k,
    query,
    run_starts,
    window_counts,
    first,
    size,
    firsts,
    n_rows,
    offsets,
    many,
):
    """Search a window a thread: its rows, and how many of them begin a match.

    One read of the table, then one or two sectors a base; a last step counts the rows to leave
    out. Neighbouring threads search neighbouring windows, so the query comes from the cache.
    """
    i = cuda.grid(1)
    if i >= offsets.size:
        return
    if i == offsets.size - 1:
        offsets[i] = 0
        return
    run, position = window_position(run_starts, window_counts, uint32(first + i))
    at = uint32(position + uint32(size) - uint32(table_k))
    string = kmer_at(query, uint64(at), table_k)
    low, _, rows, _ = load_uint32x4(table, uint64(4) * uint64(string))
    while rows > uint32(0) and at > position:
        at = uint32(at - uint32(1))
        code = uint32(kmer_at(query, uint64(at), 1))
        start, stop = rank_both(words, separator_rows, groups, code, low, uint32(low + rows))
        low = uint32(first_rows[code] + start)
        rows = uint32(stop - start)
    beginning = rows
    if rows > uint32(0):
        before = base_before(query, run_starts[run], position)
        if before < uint32(4):
            start, stop = rank_both(words, separator_rows, groups, before, low, uint32(low + rows))
            beginning = uint32(rows - (stop - start))
    firsts[i] = low
    n_rows[i] = rows
    offsets[i] = beginning
    if beginning >= uint32(_MANY):
        cuda.atomic.add(many, 0, uint64(beginning))


@cuda.jit(cache=True)
def write_rows(
    words,
    separator_rows,
    groups,
    query,
    run_starts,
    window_counts,
    first,
    firsts,
    n_rows,
    offsets,
    keys,
):
    """Write the rows that begin a match, each under its window's number. One thread a window; 32
    rows of a window lie in one sector."""
    i = cuda.grid(1)
    if i >= firsts.size:
        return
    slot = offsets[i]
    if slot == offsets[i + 1]:
        return
    run, position = window_position(run_starts, window_counts, uint32(first + i))
    before = base_before(query, run_starts[run], position)
    for step in range(n_rows[i]):
        row = uint32(firsts[i] + uint32(step))
        if before > uint32(4) or base_at(words, separator_rows, groups, row) != before:
            keys[slot] = uint64(uint64(i) << uint64(32)) | uint64(row)
            slot = uint32(slot + uint32(1))


@cuda.jit(cache=True)
def locate_rows(
    words,
    separator_rows,
    groups,
    first_rows,
    text_start,
    suffixes,
    rate,
    genome,
    segment_text,
    segment_genome,
    query,
    run_starts,
    run_stops,
    window_counts,
    first,
    min_length,
    size,
    keys,
    lengths,
):
    """Replace each row by its place in the genome, and extend it to the right; a match that stays
    shorter than `min_length` gets length 0. One thread a match; one read of the suffix array, one
    or two of the genome."""
    i = cuda.grid(1)
    if i >= keys.size:
        return
    key = keys[i]
    row = uint32(key & uint64(0xFFFFFFFF))
    place = place_of(words, separator_rows, groups, first_rows, text_start, suffixes, rate, row)
    segment = last_at_or_before(segment_text, place)
    base = uint32(segment_genome[segment] + place - segment_text[segment])
    window = uint32(uint64(first) + (key >> uint64(32)))
    run, position = window_position(run_starts, window_counts, window)
    after = uint32(segment_text[segment + uint32(1)] - uint32(1) - place - uint32(size))
    after = min(after, uint32(run_stops[run] - position - uint32(size)))
    end = uint64(position) + uint64(size)
    right = equal_after(query, end, genome, uint64(base) + uint64(size), uint64(after))
    length = uint32(uint32(size) + uint32(right))
    lengths[i] = length if length >= uint32(min_length) else uint32(0)
    keys[i] = uint64((key >> uint64(32)) << uint64(32)) | uint64(base)


_NUMBERS, _WORDS, _INTEGER = types.uint32[::1], types.uint64[::1], types.int64
_GROUPS = [types.UniTuple(_INTEGER, n) for n in (2, 3)]

#: The argument types that every kernel is compiled with.
KERNEL_SIGNATURES = {
    search_windows: [
        (
            _NUMBERS, _NUMBERS, groups, _NUMBERS, _NUMBERS, _INTEGER, _WORDS, _NUMBERS, _NUMBERS,
            _INTEGER, _INTEGER, _NUMBERS, _NUMBERS, _NUMBERS, _WORDS,
        )
        for groups in _GROUPS
    ],
    write_rows: [
        (
            _NUMBERS, _NUMBERS, groups, _WORDS, _NUMBERS, _NUMBERS, _INTEGER, _NUMBERS, _NUMBERS,
            _NUMBERS, _WORDS,
        )
        for groups in _GROUPS
    ],
    locate_rows: [
        (
            _NUMBERS, _NUMBERS, groups, _NUMBERS, _INTEGER, _NUMBERS, _INTEGER, _WORDS, _NUMBERS,
            _NUMBERS, _WORDS, _NUMBERS, _NUMBERS, _NUMBERS, _INTEGER, _INTEGER, _INTEGER, _WORDS,
            _NUMBERS,
        )
        for groups in _GROUPS
    ],
}  # fmt: skip

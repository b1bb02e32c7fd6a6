"""From hits of a k-mer to maximal matches, on the CPU, by XOR on packed bases."""

import numpy as np

from bwarp.index.locate_cpu import check_hit
from bwarp.mems.matches import Matches, join_matches, no_matches, take_matches
from bwarp.mems.maximal.hit_groups import HitGroups, take_groups
from bwarp.mems.packed_extension import (
    equal_after,
    equal_before,
    genome_text,
    most_after,
    most_before,
    segment_of,
)
from bwarp.mems.query_text import QueryText
from bwarp.reference import Reference
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.simd import prefetch
from bwarp.runtime.threads import for_each_range

__all__ = ["verify"]

_READ_AHEAD = 16

# Groups of more matches are sorted by radix.
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
        Where the k-mers lie in the reference's text.
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
        # A copy, so that the memory of hits that were no matches is freed.
        return take_matches(found, np.arange(n))

    n_groups = groups.positions.size
    return join_matches(for_each_range(verify_range, n_groups, threads, smallest=64))


@compiled
def _verify(genome, text, min_length, groups, firsts, lasts, hits, found):
    """Write the matches of all groups, in order; return how many there are."""
    packed, segment_genome, segment_text = genome
    words, text_starts, run_queries, run_starts, run_stops = text
    positions, runs, sizes, reaches, _, _ = groups
    queries, query_starts, reference_starts, lengths = found
    n = 0
    n_groups = positions.size
    for group in range(n_groups):
        # A group's hits may lie anywhere, and so do they in the genome.
        prefetch(hits, np.int64(firsts[min(group + _READ_AHEAD, n_groups - 1)]))
        first = n
        run = runs[group]
        query = run_queries[run]
        run_start, run_stop = _u64(run_starts[run]), _u64(run_stops[run])
        position, size = _u64(positions[group]), _u64(sizes[group])
        reach = _u64(reaches[group])
        for i in range(np.int64(firsts[group]), np.int64(lasts[group])):
            # Text and genome differ little between segments.
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
    """Sort one group's matches by where they begin in the query, then in the reference."""
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
    """The same byte by byte, from the lowest, without the bytes that do not differ."""
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

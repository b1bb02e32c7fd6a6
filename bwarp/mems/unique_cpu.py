"""Find maximal matches that are unique in the reference on the CPU, with both BWTs.

Such a match is not contained in a longer match of the query: the longer one would also occur once,
at the same position. One pass over the query therefore suffices, from one match that no other
contains to the next:

    query      .....................................................
    found           |-------------| e
    window                 |-------x    min_length bases, up to the one after the match
                               ^ fails here: the next window begins after this base
    window                      |-------|

All remaining matches end at or after the end of the window. Sampled k-mers
(`bwarp.mems.kmer_sampling`), at least one per window, are searched many at a time beforehand. The
first one in a window decides how to proceed:

    no hit          the window moves past   the k-mer's start
    few hits        they are located and extended both ways; no other match contains the k-mer
    many hits       the window is searched backwards from its end, until it fails or few hits
                    are left, which are located; if many remain to the end, the match is
                    extended along the BWTs, to the left as far as possible, then to the
                    right until few or no hits are left

Among the located matches, the one that reaches farthest gives `e` for the next step.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from bwarp.errors import InputError
from bwarp.index.fm_index import FMIndex
from bwarp.index.locate_cpu import check_hit, check_steps
from bwarp.index.rank import extend_left, lf_step
from bwarp.mems.kmer_sampling import choose_kmer_length, sample_counts, sample_slice
from bwarp.mems.packed_extension import (
    equal_after,
    equal_before,
    genome_text,
    most_after,
    most_before,
    segment_of,
)
from bwarp.mems.query_text import Matches, QueryText, join_matches, no_matches, take_matches
from bwarp.runtime.compiled_code import compiled, inner
from bwarp.runtime.threads import bounded_ranges, for_each_range
from bwarp.runtime.timeline import on_timeline
from bwarp.seeding.exact_cpu import kmer_rows
from bwarp.sequence import kmer_at

#: Samples and windows with at most this many rows are located.
FEW = 4

#: Bases of a window searched before it may be located; random ones have failed by then.
_SEARCHED = 20

#: Bases of a query per call, and bases searched before matches are yielded.
_PIECE = 1 << 14
_AT_ONCE = 1 << 24

#: See `choose_kmer_length`.
_SPARE = 3

_u64 = np.uint64


@on_timeline("find matches")
def unique_matches(
    index: FMIndex, text: QueryText, min_length: int, threads: int = 1
) -> Iterator[Matches]:
    """Find the maximal matches of at least `min_length` bases that are unique in the reference.

    Yields
    ------
    matches : Matches
        Blocks of matches; all blocks together are in order.
    """
    pieces = cut_runs(text, min_length, _PIECE)
    offsets = np.append(0, np.cumsum(pieces[:, 2] - pieces[:, 1]))
    for start, stop in bounded_ranges(offsets, _AT_ONCE):
        yield _search_pieces(index, text, min_length, pieces[start:stop], threads)


def cut_runs(text: QueryText, min_length: int, size: int) -> np.ndarray:
    """Cut runs into pieces of positions where a match may begin.

    Returns
    -------
    pieces : ndarray, shape=(n, 3), dtype=int64
        The run of each piece, and the first and last + 1 of its positions in the text.
    """
    n_starts = text.run_stops - text.run_starts - min_length + 1
    n_pieces = -(-n_starts // size)
    runs = np.repeat(np.arange(n_starts.size), n_pieces)
    number = np.arange(runs.size) - np.repeat(np.cumsum(n_pieces) - n_pieces, n_pieces)
    first = text.run_starts[runs] + number * size
    last = np.minimum(first + size, text.run_stops[runs] - min_length + 1)
    return np.column_stack([runs, first, last])


def _search_pieces(
    index: FMIndex, text: QueryText, min_length: int, pieces: np.ndarray, threads: int
) -> Matches:
    k = choose_kmer_length(index.forward.n_rows, min_length, spare=_SPARE)
    step = min_length - k + 1
    # The samples of all runs that have a piece here.
    counts = sample_counts(text, min_length, k)
    first, last = int(counts[pieces[0, 0]]), int(counts[pieces[-1, 0] + 1])
    samples = sample_slice(text, counts, step, first, last)
    starts, stops = kmer_rows(index, text.words, samples.positions, k, threads)
    sampled = _Sampled(k, starts, stops, counts - first)
    arrays, genome = _index_arrays(index, min_length), genome_text(index.reference)

    def search(start: int, stop: int) -> Matches:
        mine = pieces[start:stop]
        found = no_matches(int((mine[:, 2] - mine[:, 1]).sum()))
        n = _search(arrays, genome, text, mine, min_length, sampled, found)
        # A copy, to free the unused memory.
        return take_matches(found, np.arange(n))

    return join_matches(for_each_range(search, len(pieces), threads, smallest=1))


class _Arrays(NamedTuple):
    """An index as the search reads it: the arrays of the BWTs, the flat prefix table, and its k."""

    forward: tuple
    reverse: tuple
    text_start: int
    table: np.ndarray
    table_k: int
    suffix_array: np.ndarray
    sa_rate: int


class _Sampled(NamedTuple):
    """Rows of sampled k-mers, and the number of samples before each run."""

    k: int
    starts: np.ndarray
    stops: np.ndarray
    before_run: np.ndarray


def _index_arrays(index: FMIndex, min_length: int) -> _Arrays:
    forward, reverse = (
        (bwt.words, bwt.separator_rows, bwt.groups, bwt.first_rows)
        for bwt in (index.forward, index.reverse)
    )
    table_k = index.prefix_length if index.prefix_length <= min_length else 0
    return _Arrays(
        forward, reverse, index.forward.text_start, index.prefix_table.reshape(-1), table_k,
        index.suffix_array, index.sa_rate,
    )  # fmt: skip


@inner(forceinline=True)
def _grow(bwt, code, low, high):
    """Call `extend_left`; typed once for its four uses, as LLVM inlines it."""
    blocks, separator_rows, groups, first_rows = bwt
    return extend_left(blocks, separator_rows, groups, first_rows, code, low, high)


@inner(nogil=True, forceinline=True)
def _check_agreement(agree):
    """Reject BWTs that disagree on the hits of a stretch, with which the search would not end."""
    if not agree:
        raise InputError("the index is invalid (its BWTs are of different texts): build it again")


@inner(nogil=True, forceinline=True)
def _check_genome(agrees):
    """Reject a genome in which a hit of the BWT extends to other bases than the BWT's text has."""
    if not agrees:
        raise InputError("the index is invalid (its genome does not match its BWT): build it again")


@compiled
def _search(index, genome, text, pieces, min_length, samples, found):
    """Write the unique matches that begin in the pieces; return their number."""
    # Unlike local arrays, arrays in a tuple are reference-counted at every use.
    forward, reverse, text_start, table, table_k, suffix_array, sa_rate = index
    blocks, separator_rows, groups, first_rows = forward
    packed, segment_genome, segment_text = genome
    words, text_starts, run_queries, run_starts, run_stops = text
    k, sample_starts, sample_stops, before_run = samples
    queries, query_starts, reference_starts, lengths = found
    lefts = np.empty(FEW, np.uint64)
    rights = np.empty(FEW, np.uint64)
    bases = np.empty(FEW, np.uint64)
    size = _u64(min_length)
    step = _u64(min_length - k + 1)
    mask = (_u64(1) << _u64(2 * table_k)) - _u64(1)
    n = 0
    for piece in range(len(pieces)):
        run = pieces[piece, 0]
        first, last = _u64(pieces[piece, 1]), _u64(pieces[piece, 2])
        run_start, run_stop = _u64(run_starts[run]), _u64(run_stops[run])
        query = run_queries[run]
        window = first
        least = first  # all remaining matches begin here or later
        while least < last and window + size <= run_stop:
            began = window
            # The window contains the first sample at or after its start.
            number = (window - run_start) // step
            beyond = run_start + (number + _u64(1)) * step
            number += _u64(before_run[run])
            low, high = _u64(sample_starts[number]), _u64(sample_stops[number])
            if low == high:
                window = beyond
                least = max(least, window)
                continue
            reach = window + size
            few = high - low <= _u64(FEW)
            if few:
                # The hits of the sample give all matches that contain it, wherever these begin.
                window = at = beyond - _u64(1)
                end = at + _u64(k)
            else:
                # The rows of the window, backwards from its end.
                at = end = reach
                low, high = _u64(0), _u64(first_rows[4])
            if table_k and not few:
                at = end - _u64(table_k)
                entry = _u64(2) * (kmer_at(words, at, 32) >> _u64(64 - 2 * table_k) & mask)
                low = _u64(table[entry])
                high = low + _u64(table[entry + _u64(1)])
                if low == high:
                    window = at + _u64(1)
                    least = max(least, window)
                    continue
            while at > window and (high - low > _u64(FEW) or end - at < _u64(_SEARCHED)):
                at -= _u64(1)
                low, high = _grow(forward, kmer_at(words, at, 1), low, high)
                if low >= high:
                    break
            if low >= high:
                window = at + _u64(1)
                least = max(least, window)
                continue
            if high - low > _u64(FEW):
                # Extend to the left with these rows, then from one base on to the right.
                start = at
                while start > run_start:
                    low, high = _grow(forward, kmer_at(words, start - _u64(1), 1), low, high)
                    if low >= high:
                        break
                    start -= _u64(1)
                end = start
                low, high = _u64(0), _u64(first_rows[4])
                while end < run_stop and high - low > _u64(FEW):
                    next_low, next_high = _grow(reverse, kmer_at(words, end, 1), low, high)
                    if next_low >= next_high:
                        break
                    low, high = next_low, next_high
                    end += _u64(1)
                if high - low > _u64(FEW):
                    # Otherwise the window would not move.
                    _check_agreement(end >= reach)
                    least = start + _u64(1)
                    window = end + _u64(1) - size
                    continue
                # The rows of the same stretch in the BWT that can be located.
                window = at = start
                at = end
                low, high = _u64(0), _u64(first_rows[4])
                while at > start:
                    at -= _u64(1)
                    low, high = _grow(forward, kmer_at(words, at, 1), low, high)
                _check_agreement(high - low <= _u64(FEW))
            # Locate and extend.
            count = high - low
            nearest = end
            farthest = _u64(0)
            for i in range(count):
                row = first_row = low + _u64(i)
                steps = _u64(0)
                while row % _u64(sa_rate):
                    row = lf_step(blocks, separator_rows, groups, first_rows, text_start, row)
                    steps += _u64(1)
                    check_steps(row, first_row)
                position = _u64(suffix_array[row // _u64(sa_rate)]) + steps
                if position >= _u64(first_rows[4]):
                    position -= _u64(first_rows[4])
                check_hit(position, _u64(0), _u64(first_rows[4]))
                segment = segment_of(segment_text, position)
                segment_start = _u64(segment_text[segment])
                next_segment = _u64(segment_text[segment + _u64(1)])
                check_hit(position, end - at, next_segment)
                base = _u64(segment_genome[segment]) + position - segment_start
                left = most_before(at, run_start, position, segment_start)
                left = equal_before(words, at, packed, base, left)
                right = most_after(end, run_stop, position + (end - at), next_segment)
                right = equal_after(words, end, packed, base + (end - at), right)
                lefts[i] = at - left
                rights[i] = end + right
                bases[i] = base - left
                nearest = min(nearest, lefts[i])
                if lefts[i] <= window:
                    farthest = max(farthest, rights[i])
            if farthest == _u64(0):
                window = nearest
                _check_genome(window > began)
                least = max(least, window)
                continue
            previous = n
            for i in range(count):
                alone = lefts[i] <= window and rights[i] >= reach
                alone &= lefts[i] >= first and lefts[i] < last
                alone &= rights[i] - lefts[i] >= size
                for j in range(count):
                    alone &= i == j or lefts[j] > lefts[i] or rights[j] < rights[i]
                if alone:
                    _check_genome(n < queries.size)
                    # Sorted by start; there are few, usually one.
                    j = n
                    start = np.uint32(lefts[i] - _u64(text_starts[query]))
                    while j > previous and query_starts[j - 1] > start:
                        for array in found:
                            array[j] = array[j - 1]
                        j -= 1
                    queries[j] = query
                    query_starts[j] = start
                    reference_starts[j] = bases[i]
                    lengths[j] = rights[i] - lefts[i]
                    n += 1
            least = max(least, window + _u64(1))
            farthest += _u64(1)
            window = max(window + _u64(1), farthest - min(farthest, size))
            _check_genome(window > began)
    return n


# Selecting unique matches from all maximal matches.
#
# A match is unique in the reference if and only if no other match contains its stretch of the
# query: wherever else its bases occur in the reference, a maximal match covers that position and
# the same stretch of the query. The same holds with the two exchanged, so one function serves both.
#
#     query      |---- a ----|
#                   |- b -|         b is in a: its bases occur at two positions
#              |-- c --|            c is in no other: it is unique in the reference


def unique_in_reference(matches: Matches) -> Matches:
    """Select, from all maximal matches in order, those whose bases occur once in the reference."""
    return take_matches(matches, _alone(matches.queries, matches.query_starts, matches.lengths, 1))


def least_dominated(matches: Matches) -> Matches:
    """Select the matches that `unique_in_reference` needs to judge any set that includes these.

    These are matches whose stretch of the query is not within a longer one; at most two of equal
    ones.
    """
    return take_matches(matches, _alone(matches.queries, matches.query_starts, matches.lengths, 2))


def unique_in_query(matches: Matches) -> Matches:
    """Select, from matches unique in the reference, those also unique in their query strand.

    They are in MUMmer's order, by start in the reference within each query strand.
    """
    order = np.lexsort((matches.reference_starts, matches.queries))
    matches = take_matches(matches, order)
    return take_matches(
        matches, _alone(matches.queries, matches.reference_starts, matches.lengths, 1)
    )


@compiled
def _alone(queries, starts, lengths, most):
    """Mark intervals, sorted by query and start, that are contained in no other of their query.

    Equal intervals contain one another; up to two of them are marked, as `most` allows: none of
    several equal ones if it is 1.
    """
    marked = np.zeros(queries.size, np.bool_)
    reached = np.int64(0)
    first = 0
    while first < queries.size:
        if first == 0 or queries[first] != queries[first - 1]:
            reached = 0
        last = first
        longest = np.int64(0)
        while last < queries.size and (
            queries[last] == queries[first] and starts[last] == starts[first]
        ):
            longest = max(longest, np.int64(lengths[last]))
            last += 1
        if np.int64(starts[first]) + longest > reached:
            reached = np.int64(starts[first]) + longest
            equal = 0
            for i in range(first, last):
                equal += np.int64(lengths[i]) == longest
            left = equal if equal <= most else (most if most > 1 else 0)
            for i in range(first, last):
                if np.int64(lengths[i]) == longest and left > 0:
                    marked[i] = True
                    left -= 1
        first = last
    return marked

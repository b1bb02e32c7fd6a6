"""Find all maximal exact matches on the GPU: one thread per window, then one thread per match.

Each position of a query where a match may begin is handled by one thread, which searches the window
of `min_length` bases (at most 32) that begins there. Rows preceded by the query's base belong to
matches that begin earlier; each of the others begins a match.

    windows      counted: rows that begin a match                1 thread per window
    running sum  where each window's matches go
    rows         written there                                   1 thread per window
    matches      located, extended to the right by XOR           1 thread per match
    sort         by window, then by position in the genome
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from bwarp.errors import UsageError
from bwarp.gpu.available_memory import attempt
from bwarp.gpu.cuda import cuda, uint32, uint64
from bwarp.gpu.device_arrays import number_at, zeros
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import launch
from bwarp.gpu.ptx import load_uint32x4
from bwarp.gpu.sums_and_sorts import exclusive_sum
from bwarp.index.device_index_cuda import DeviceIndex, make_device_index, search_needs, upload
from bwarp.index.fm_index import FMIndex
from bwarp.index.locate_cuda import position_of, segment_of
from bwarp.index.memory_plan import MemoryPlan
from bwarp.index.rank_cuda import GROUPS, base_at, lf_step, rank_both
from bwarp.mems.kmer_sampling import LONGEST_KMER
from bwarp.mems.packed_extension import equal_after, most_after
from bwarp.mems.query_text import Matches, QueryText, no_matches, take_matches
from bwarp.runtime.compiled_code import compiled
from bwarp.sequence import kmer_at

# The data on the GPU: the index, the packed genome, and the query text.
#
# Threads are distributed over the runs of the query text. A thread finds its run, and its position
# in it, by bisection in cumulative counts:
#
#     runs      |---- 0 ----|-- 1 --|------- 2 -------|
#     counts    0           9       14                30      positions (or pieces) before each run
#     thread 11 ............... 1, third


_LONGEST_TEXT = 2**32 - 2


@dataclass(frozen=True)
class DeviceReference:
    """A reference on the GPU: its index and its genome in 2 bits per base."""

    device: DeviceIndex
    genome: object = field(repr=False)

    @property
    def plan(self) -> MemoryPlan:
        return self.device.plan


@dataclass(frozen=True)
class DeviceText:
    """A query text on the GPU: its words (uint64), and starts and stops of its runs (uint32)."""

    words: object
    run_starts: object
    run_stops: object


def prepare(index: FMIndex, with_reverse: bool) -> DeviceReference:
    """Copy an index to the GPU, once for many searches; unique matches need the reverse BWT."""
    packed = index.reference.packed
    device = make_device_index(index, search_needs(with_reverse, "yes", beside=packed.nbytes))
    return DeviceReference(device, upload(packed))


def put_text(text: QueryText) -> DeviceText:
    """Copy a query text to the GPU."""
    if text.words.size * 32 > _LONGEST_TEXT:
        raise UsageError(
            f"{text.words.size * 32:,} bases of queries at a time exceed the maximum of "
            f"{_LONGEST_TEXT:,} on a GPU: use --backend cpu"
        )
    return DeviceText(
        cuda.to_device(text.words),
        cuda.to_device(text.run_starts.astype(np.uint32)),
        cuda.to_device(text.run_stops.astype(np.uint32)),
    )


@cuda.jit(device=True)
def text_position(words, separator_rows, groups, first_rows, text_start, suffixes, rate, row):
    """Return the text position of a row: one read with the whole suffix array, else LF steps."""
    steps = uint32(0)
    while row % uint32(rate) != 0:
        row = lf_step(words, separator_rows, groups, first_rows, text_start, row)
        steps = uint32(steps + uint32(1))
    return position_of(suffixes, rate, first_rows[4], row, steps)


# The kernels: search windows, write their rows, and locate these.
#
# A window is `size` bases of the query; window w is base w - counts[run] of its run. Rows of a
# window that are not preceded by the query's base begin a match.


#: The rows of windows with fewer rows add up to less than 2**32.
_MANY = 250


@cuda.jit(device=True)
def window_position(run_starts, window_counts, window):
    """Return the run of a window, and its start in the query text."""
    run = segment_of(window_counts, window)
    return run, uint32(run_starts[run] + window - window_counts[run])


@cuda.jit(device=True)
def base_before(query, run_start, position):
    """Return the base of the query before a window; 5, which no row has, at the start of a run."""
    if position == run_start:
        return uint32(5)
    return uint32(kmer_at(query, uint64(position) - uint64(1), 1))


@kernel
def search_windows(
    words: uint32[::1], separator_rows: uint32[::1], groups: GROUPS, first_rows: uint32[::1],
    table: uint32[::1], table_k: int, query: uint64[::1], run_starts: uint32[::1],
    window_counts: uint32[::1], first: int, size: int, firsts: uint32[::1], n_rows: uint32[::1],
    offsets: uint32[::1], many: uint64[::1],
):  # fmt: skip
    """Search windows: find their rows, and count those that begin a match. One thread per window.

    One table lookup, then one or two sectors per base; a last step counts the rows to leave out.
    Neighbouring threads search neighbouring windows, so the query comes from the cache.
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


@kernel
def write_rows(
    words: uint32[::1], separator_rows: uint32[::1], groups: GROUPS, query: uint64[::1],
    run_starts: uint32[::1], window_counts: uint32[::1], first: int, firsts: uint32[::1],
    n_rows: uint32[::1], offsets: uint32[::1], keys: uint64[::1],
):  # fmt: skip
    """Write the rows that begin a match, each under the number of its window. One thread per
    window; 32 rows of a window are in one sector.
    """
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


@kernel
def locate_rows(
    words: uint32[::1], separator_rows: uint32[::1], groups: GROUPS, first_rows: uint32[::1],
    text_start: int, suffixes: uint32[::1], rate: int, genome: uint64[::1],
    segment_text: uint32[::1], segment_genome: uint32[::1], query: uint64[::1],
    run_starts: uint32[::1], run_stops: uint32[::1], window_counts: uint32[::1], first: int,
    min_length: int, size: int, keys: uint64[::1], lengths: uint32[::1],
):  # fmt: skip
    """Replace each row by its genome position, and extend it to the right; matches shorter than
    `min_length` get length 0. One thread per match; one read of the suffix array, one or two of the
    genome.
    """
    i = cuda.grid(1)
    if i >= keys.size:
        return
    key = keys[i]
    row = uint32(key & uint64(0xFFFFFFFF))
    hit = text_position(words, separator_rows, groups, first_rows, text_start, suffixes, rate, row)
    segment = segment_of(segment_text, hit)
    base = uint32(segment_genome[segment] + hit - segment_text[segment])
    window = uint32(uint64(first) + (key >> uint64(32)))
    run, position = window_position(run_starts, window_counts, window)
    end = uint32(position + uint32(size))
    after = most_after(
        end, run_stops[run], uint32(hit + uint32(size)), segment_text[segment + uint32(1)]
    )
    right = equal_after(query, uint64(end), genome, uint64(base) + uint64(size), uint64(after))
    length = uint32(uint32(size) + uint32(right))
    lengths[i] = length if length >= uint32(min_length) else uint32(0)
    keys[i] = uint64((key >> uint64(32)) << uint64(32)) | uint64(base)


#: Windows searched at a time.
_WINDOWS = 1 << 24

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
        hits = attempt(
            partial(_search_and_locate, reference, query, window_counts, min_length, first, last)
        )
        if hits is None:
            if last - first == 1:
                raise UsageError(
                    "the matches at one position require more GPU memory than is free: use a "
                    "larger --min-length, or --backend cpu"
                )
            middle = (first + last) // 2
            waiting += [(middle, last), (first, middle)]
            continue
        keys, lengths = hits
        if keys.size:
            found = no_matches(keys.size)
            n_found = _unpack(
                keys, lengths, first, counts, text.run_queries,
                text.run_starts - text.text_starts[text.run_queries], found,
            )  # fmt: skip
            yield take_matches(found, slice(n_found))


def _search_and_locate(
    reference: DeviceReference,
    query: DeviceText,
    window_counts,
    min_length: int,
    first: int,
    last: int,
) -> tuple[np.ndarray, np.ndarray] | None:
    """Search and locate windows; return the result of `_locate`, None if it exceeds the memory."""
    n_hits = _search(reference, query, window_counts, min_length, first, last)
    if n_hits > reference.device.work.elements:
        return None
    if n_hits == 0:
        return np.empty(0, np.uint64), np.empty(0, np.uint32)
    return _locate(reference, query, window_counts, min_length, first, last, n_hits)


def _columns(reference: DeviceReference, n_windows: int):
    """Return first rows, numbers of rows, and cumulative counts of rows that begin a match."""
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
    """Search windows; leave rows and cumulative counts in the workspace; return the total."""
    device = reference.device
    firsts, rows, offsets = _columns(reference, last - first)
    size = min(min_length, LONGEST_KMER)
    length = min(size, device.plan.string_length)
    many = zeros(1, np.uint64)
    search_windows[launch(last - first + 1, _THREADS)](
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
    n_many = number_at(many, 0)
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
    """Return sorted keys (window - first, genome position) and lengths from the last search."""
    device = reference.device
    work = device.work
    firsts, rows, offsets = _columns(reference, last - first)
    keys, spare = work.keys[:n_hits], work.checks[:n_hits]
    lengths, spare_lengths = work.values[:n_hits], work.intervals[:n_hits]
    write_rows[launch(last - first, _THREADS)](
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
    locate_rows[launch(n_hits, _THREADS)](
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


@compiled
def _unpack(keys, key_lengths, first, counts, run_queries, run_shifts, found):
    """Turn sorted keys into matches, dropping those that are too short; return their number."""
    n = 0
    run = 0
    for i in range(keys.size):
        window = first + np.int64(keys[i] >> np.uint64(32))
        if counts[run + 1] <= window:
            run = np.searchsorted(counts, window, side="right") - 1
        if key_lengths[i]:
            found.queries[n] = run_queries[run]
            found.query_starts[n] = run_shifts[run] + window - counts[run]
            found.reference_starts[n] = keys[i] & np.uint64(0xFFFFFFFF)
            found.lengths[n] = key_lengths[i]
            n += 1
    return n

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
from typing import NamedTuple

import numpy as np

from bwarp.errors import TooLittleMemoryError, UsageError
from bwarp.gpu.available_memory import attempt
from bwarp.gpu.cuda import cuda, uint32, uint64
from bwarp.gpu.device_arrays import number_at, zeros
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import launch
from bwarp.gpu.ptx import load_uint32x4
from bwarp.gpu.sums_and_sorts import exclusive_sum
from bwarp.index.device_index_cuda import (
    DeviceIndex,
    StringTable,
    make_device_index,
    search_needs,
    upload,
)
from bwarp.index.fm_index import FMIndex
from bwarp.index.locate_cuda import Segments, Suffixes, position_of, segment_of
from bwarp.index.memory_plan import MemoryPlan
from bwarp.index.rank_cuda import DeviceBWT, base_at, lf_step, rank_both
from bwarp.mems.kmer_sampling import LONGEST_KMER
from bwarp.mems.packed_extension import equal_after, most_after
from bwarp.mems.query_text import Matches, QueryText, no_matches, take_matches
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.timeline import on_timeline
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


class LocatedGenome(NamedTuple):
    """What finds rows in the genome, and the genome in 2 bits per base."""

    bwt: DeviceBWT
    suffixes: Suffixes
    segments: Segments
    bases: uint64[::1]


@dataclass(frozen=True)
class DeviceReference:
    """A reference on the GPU: its index and its genome."""

    device: DeviceIndex
    genome: LocatedGenome = field(repr=False)

    @property
    def plan(self) -> MemoryPlan:
        return self.device.plan


class DeviceText(NamedTuple):
    """A query text on the GPU: its bases, and starts and stops of its runs."""

    words: uint64[::1]
    run_starts: uint32[::1]
    run_stops: uint32[::1]


class Windows(NamedTuple):
    """Windows of a query text: how many precede each run; the first to search, and their length."""

    counts: uint32[::1]
    first: int
    size: int


class WindowRows(NamedTuple):
    """The first row and number of rows of windows, and how many rows before begin a match."""

    firsts: uint32[::1]
    n_rows: uint32[::1]
    offsets: uint32[::1]


def prepare(index: FMIndex, with_reverse: bool, share: float = 1.0) -> DeviceReference:
    """Copy an index to the GPU, once for many searches; unique matches need the reverse BWT.

    `share` is the fraction of the free memory to use.
    """
    packed = index.reference.packed
    needs = search_needs(with_reverse, "yes", packed.nbytes, share)
    device = make_device_index(index, needs)
    located = device.forward, device.suffixes, device.segments
    return DeviceReference(device, LocatedGenome(*located, upload(packed)))


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
def text_position(bwt, suffixes, row):
    """Return the text position of a row: one read with the whole suffix array, else LF steps."""
    steps = uint32(0)
    while row % uint32(suffixes.rate) != 0:
        row = lf_step(bwt, row)
        steps = uint32(steps + uint32(1))
    return position_of(suffixes, row, steps)


# The kernels: search windows, write their rows, and locate these.
#
# Window w is base w - counts[run] of its run, with the bases that follow. Rows of a
# window that are not preceded by the query's base begin a match.


#: The rows of windows with fewer rows add up to less than 2**32.
_MANY = 250


@cuda.jit(device=True)
def window_position(query, windows, window):
    """Return the run of a window, and its start in the query text."""
    run = segment_of(windows.counts, window)
    return run, uint32(query.run_starts[run] + window - windows.counts[run])


@cuda.jit(device=True)
def base_before(query, run, position):
    """Return the base of the query before a window; 5, which no row has, at the start of a run."""
    if position == query.run_starts[run]:
        return uint32(5)
    return uint32(kmer_at(query.words, uint64(position) - uint64(1), 1))


@kernel
def search_windows(
    bwt: DeviceBWT, strings: StringTable, query: DeviceText, windows: Windows, found: WindowRows,
    many: uint64[::1],
):  # fmt: skip
    """Search windows: find their rows, and count those that begin a match. One thread per window.

    One table lookup, then one or two sectors per base; a last step counts the rows to leave out.
    Neighbouring threads search neighbouring windows, so the query comes from the cache.
    """
    i = cuda.grid(1)
    if i >= found.offsets.size:
        return
    if i == found.offsets.size - 1:
        found.offsets[i] = 0
        return
    run, position = window_position(query, windows, uint32(windows.first + i))
    at = uint32(position + uint32(windows.size) - uint32(strings.length))
    string = kmer_at(query.words, uint64(at), strings.length)
    low, _, rows, _ = load_uint32x4(strings.rows, uint64(4) * uint64(string))
    while rows > uint32(0) and at > position:
        at = uint32(at - uint32(1))
        code = uint32(kmer_at(query.words, uint64(at), 1))
        start, stop = rank_both(bwt, code, low, uint32(low + rows))
        low = uint32(bwt.first_rows[code] + start)
        rows = uint32(stop - start)
    beginning = rows
    if rows > uint32(0):
        before = base_before(query, run, position)
        if before < uint32(4):
            start, stop = rank_both(bwt, before, low, uint32(low + rows))
            beginning = uint32(rows - (stop - start))
    found.firsts[i] = low
    found.n_rows[i] = rows
    found.offsets[i] = beginning
    if beginning >= uint32(_MANY):
        cuda.atomic.add(many, 0, uint64(beginning))


@kernel
def write_rows(
    bwt: DeviceBWT, query: DeviceText, windows: Windows, found: WindowRows, keys: uint64[::1]
):
    """Write the rows that begin a match, each under the number of its window. One thread per
    window; 32 rows of a window are in one sector.
    """
    i = cuda.grid(1)
    if i >= found.firsts.size:
        return
    slot = found.offsets[i]
    if slot == found.offsets[i + 1]:
        return
    run, position = window_position(query, windows, uint32(windows.first + i))
    before = base_before(query, run, position)
    for step in range(found.n_rows[i]):
        row = uint32(found.firsts[i] + uint32(step))
        if before > uint32(4) or base_at(bwt, row) != before:
            keys[slot] = uint64(uint64(i) << uint64(32)) | uint64(row)
            slot = uint32(slot + uint32(1))


@kernel
def locate_rows(
    genome: LocatedGenome, query: DeviceText, windows: Windows, min_length: int, keys: uint64[::1],
    lengths: uint32[::1],
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
    hit = text_position(genome.bwt, genome.suffixes, row)
    segments, size = genome.segments, windows.size
    segment = segment_of(segments.text, hit)
    base = uint32(segments.genome[segment] + hit - segments.text[segment])
    window = uint32(uint64(windows.first) + (key >> uint64(32)))
    run, position = window_position(query, windows, window)
    end = uint32(position + uint32(size))
    after = most_after(
        end, query.run_stops[run], uint32(hit + uint32(size)), segments.text[segment + uint32(1)]
    )
    right = equal_after(
        query.words, uint64(end), genome.bases, uint64(base) + uint64(size), uint64(after)
    )
    length = uint32(uint32(size) + uint32(right))
    lengths[i] = length if length >= uint32(min_length) else uint32(0)
    keys[i] = uint64((key >> uint64(32)) << uint64(32)) | uint64(base)


#: Windows searched at a time.
_WINDOWS = 1 << 24

_THREADS = 256


@on_timeline("find matches on the GPU")
def maximal_matches(
    reference: DeviceReference, text: QueryText, min_length: int, threads: int = 1
) -> Iterator[Matches]:
    """Find all maximal matches of at least `min_length` bases, in blocks, in order."""
    counts = np.zeros(text.run_starts.size + 1, np.int64)
    np.cumsum(text.run_stops - text.run_starts - min_length + 1, out=counts[1:])
    if counts[-1] == 0:
        return
    query = put_text(text)
    on_gpu = cuda.to_device(counts.astype(np.uint32))
    size = min(min_length, LONGEST_KMER)
    most = min(_WINDOWS, reference.device.work.elements)
    waiting = [
        (first, min(first + most, int(counts[-1]))) for first in range(0, int(counts[-1]), most)
    ][::-1]
    while waiting:
        first, last = waiting.pop()
        windows = Windows(on_gpu, first, size)
        hits = attempt(
            partial(_search_and_locate, reference, query, windows, last - first, min_length)
        )
        if hits is None:
            if last - first == 1:
                raise TooLittleMemoryError(
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
    reference: DeviceReference, query: DeviceText, windows: Windows, n_windows: int, min_length: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """Search and locate windows; return the result of `_locate`, None if it exceeds the memory."""
    found = _columns(reference, n_windows)
    n_hits = _search(reference.device, query, windows, found)
    if n_hits > reference.device.work.elements:
        return None
    if n_hits == 0:
        return np.empty(0, np.uint64), np.empty(0, np.uint32)
    return _locate(reference, query, windows, found, min_length, n_hits)


def _columns(reference: DeviceReference, n_windows: int) -> WindowRows:
    """Return columns of the workspace for windows."""
    nodes, elements = reference.device.work.nodes, reference.device.work.elements
    return WindowRows(
        nodes[:n_windows],
        nodes[elements : elements + n_windows],
        nodes[2 * elements : 2 * elements + n_windows + 1],
    )


def _search(device: DeviceIndex, query: DeviceText, windows: Windows, found: WindowRows) -> int:
    """Search windows; write their rows and cumulative counts; return the total."""
    n_windows = found.firsts.size
    strings = device.table(min(windows.size, device.plan.string_length))
    many = zeros(1, np.uint64)
    search_windows[launch(n_windows + 1, _THREADS)](
        device.forward, strings, query, windows, found, many
    )
    n_many = number_at(many, 0)
    if n_many > device.work.elements:
        return n_many
    exclusive_sum(found.offsets)
    return int(found.offsets[n_windows])


def _locate(
    reference: DeviceReference,
    query: DeviceText,
    windows: Windows,
    found: WindowRows,
    min_length: int,
    n_hits: int,
):
    """Return sorted keys (window - first, genome position) and lengths from the last search."""
    device, n_windows = reference.device, found.firsts.size
    work = device.work
    keys, spare = work.keys[:n_hits], work.checks[:n_hits]
    lengths, spare_lengths = work.values[:n_hits], work.intervals[:n_hits]
    write_rows[launch(n_windows, _THREADS)](device.forward, query, windows, found, keys)
    locate_rows[launch(n_hits, _THREADS)](
        reference.genome, query, windows, min_length, keys, lengths
    )
    bits = 32 + max(1, (n_windows - 1).bit_length())
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

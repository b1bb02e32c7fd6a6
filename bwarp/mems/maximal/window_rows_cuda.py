"""The kernels of maximal matches on the GPU: windows searched, their rows written and located.

A window is `size` bases of the query; window w is base w - counts[run] of its run. The rows of a
window's string whose preceding base is not the query's begin a match.
"""

from bwarp.gpu.cuda import cuda, uint32, uint64
from bwarp.gpu.kernel import kernel
from bwarp.gpu.ptx import load_uint32x4
from bwarp.index.locate_cuda import segment_of
from bwarp.index.rank_cuda import GROUPS, base_at, rank_both
from bwarp.mems.device_text_cuda import text_position
from bwarp.mems.packed_extension import equal_after, most_after
from bwarp.sequence import kmer_at

__all__ = ["locate_rows", "search_windows", "write_rows"]

#: Windows with fewer rows add up to less than 2**32.
_MANY = 250


@cuda.jit(device=True)
def window_position(run_starts, window_counts, window):
    """The run of a window, and where the window begins in the query text."""
    run = segment_of(window_counts, window)
    return run, uint32(run_starts[run] + window - window_counts[run])


@cuda.jit(device=True)
def base_before(query, run_start, position):
    """The query's base before a window; 5, which no row has, at a run's start."""
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


@kernel
def write_rows(
    words: uint32[::1], separator_rows: uint32[::1], groups: GROUPS, query: uint64[::1],
    run_starts: uint32[::1], window_counts: uint32[::1], first: int, firsts: uint32[::1],
    n_rows: uint32[::1], offsets: uint32[::1], keys: uint64[::1],
):  # fmt: skip
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


@kernel
def locate_rows(
    words: uint32[::1], separator_rows: uint32[::1], groups: GROUPS, first_rows: uint32[::1],
    text_start: int, suffixes: uint32[::1], rate: int, genome: uint64[::1],
    segment_text: uint32[::1], segment_genome: uint32[::1], query: uint64[::1],
    run_starts: uint32[::1], run_stops: uint32[::1], window_counts: uint32[::1], first: int,
    min_length: int, size: int, keys: uint64[::1], lengths: uint32[::1],
):  # fmt: skip
    """Replace each row by its genome position, and extend it to the right; a match that stays
    shorter than `min_length` gets length 0. One thread a match; one read of the suffix array, one
    or two of the genome."""
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

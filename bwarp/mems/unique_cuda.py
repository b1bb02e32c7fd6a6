"""Find maximal matches that are unique in the reference on the GPU: one thread per short read.

The search is that of `bwarp.mems.unique_cpu`. A thread takes a piece of a run: a whole short read,
as in Drozd et al., or a few hundred bases of a long query. A window ends as soon as one row is
left, which is located and extended by XOR. Each step reads one or two random sectors, and threads
are independent. Matches stay in order because they are counted first and then written.
"""

from collections.abc import Iterator

import numpy as np

from bwarp.gpu.cuda import cuda, uint32, uint64
from bwarp.gpu.device_arrays import zeros
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import launch
from bwarp.gpu.ptx import load_uint32x4
from bwarp.gpu.sums_and_sorts import exclusive_sum
from bwarp.index.device_index_cuda import StringTable
from bwarp.index.locate_cuda import segment_of
from bwarp.index.rank_cuda import DeviceBWT, rank_both
from bwarp.mems.maximal_cuda import (
    DeviceReference,
    DeviceText,
    LocatedGenome,
    put_text,
    text_position,
)
from bwarp.mems.packed_extension import equal_after, equal_before, most_after, most_before
from bwarp.mems.query_text import Matches, QueryText
from bwarp.runtime.timeline import on_timeline
from bwarp.sequence import kmer_at

#: Positions of a run per thread.
_PIECE = 256

_THREADS = 128


@on_timeline("find matches on the GPU")
def unique_matches(
    reference: DeviceReference, text: QueryText, min_length: int, threads: int = 1
) -> Iterator[Matches]:
    """Find the maximal matches of at least `min_length` bases that are unique in the reference."""
    pieces = np.zeros(text.run_starts.size + 1, np.uint32)
    n_starts = text.run_stops - text.run_starts - min_length + 1
    np.cumsum(-(-n_starts // _PIECE), out=pieces[1:])
    n_pieces = int(pieces[-1])
    if n_pieces == 0:
        return
    device = reference.device
    strings = device.table(min(min_length, device.plan.string_length))
    query = put_text(text)
    offsets = zeros(n_pieces + 1, np.uint32)
    pieces = cuda.to_device(pieces)

    def search(found) -> None:
        search_pieces[launch(n_pieces, _THREADS)](
            reference.genome, device.reverse, strings, query, pieces, min_length, offsets, found
        )

    search(cuda.device_array(0, np.uint32))
    exclusive_sum(offsets)
    n_found = int(offsets[n_pieces])
    if n_found == 0:
        return
    found = cuda.device_array(4 * n_found, np.uint32)
    search(found)
    runs, starts, bases, lengths = found.copy_to_host().reshape(4, n_found)
    queries = text.run_queries[runs]
    starts = (starts - text.text_starts[queries]).astype(np.uint32)
    yield Matches(queries.astype(np.uint32), starts, bases, lengths)


@cuda.jit(device=True)
def base_at_text(query, position):
    """Return a base of the query text."""
    word = query[position >> uint32(5)]
    return uint32((word >> uint64(62 - 2 * (position & uint32(31)))) & uint64(3))


@kernel
def search_pieces(
    genome: LocatedGenome, reverse: DeviceBWT, strings: StringTable, query: DeviceText,
    pieces: uint32[::1], min_length: int, offsets: uint32[::1], found: uint32[::1],
):  # fmt: skip
    """Write the run, start, genome position and length of the matches of pieces. One thread per
    piece.

    If `found` is empty, the matches are counted into `offsets`; otherwise `offsets` says where the
    matches of each piece go in its four columns. A window costs one table lookup and one
    or two sectors per further base until one row is left.
    """
    piece = cuda.grid(1)
    if piece >= offsets.size - 1:
        return
    run = segment_of(pieces, uint32(piece))
    run_start = query.run_starts[run]
    run_stop = query.run_stops[run]
    bwt, segments = genome.bwt, genome.segments
    limit = found.size // 4
    size = uint32(min_length)
    first = uint32(run_start + uint32(_PIECE) * (uint32(piece) - pieces[run]))
    last = min(uint32(first + uint32(_PIECE)), uint32(run_stop - size + uint32(1)))
    n = uint32(0)
    window = first
    least = first  # all remaining matches begin here or later
    while least < last and window + size <= run_stop:
        began = window
        end = uint32(window + size)
        reach = end
        at = uint32(end - uint32(strings.length))
        string = kmer_at(query.words, uint64(at), strings.length)
        low, _, rows, _ = load_uint32x4(strings.rows, uint64(4) * uint64(string))
        while rows > uint32(1) and at > window:
            at = uint32(at - uint32(1))
            code = base_at_text(query.words, at)
            start, stop = rank_both(bwt, code, low, uint32(low + rows))
            low = uint32(bwt.first_rows[code] + start)
            rows = uint32(stop - start)
        if rows == uint32(0):
            window = uint32(at + uint32(1))
            least = max(least, window)
            continue
        if rows > uint32(1):
            # Extend to the left with these rows, then from one base on to the right.
            while at > run_start:
                code = base_at_text(query.words, uint32(at - uint32(1)))
                start, stop = rank_both(bwt, code, low, uint32(low + rows))
                if start == stop:
                    break
                low = uint32(bwt.first_rows[code] + start)
                rows = uint32(stop - start)
                at = uint32(at - uint32(1))
            window = at
            end = at
            low = uint32(0)
            rows = bwt.first_rows[4]
            while end < run_stop and rows > uint32(1):
                code = base_at_text(query.words, end)
                start, stop = rank_both(reverse, code, low, uint32(low + rows))
                if start == stop:
                    break
                low = uint32(bwt.first_rows[code] + start)
                rows = uint32(stop - start)
                end = uint32(end + uint32(1))
            if rows > uint32(1):
                least = uint32(window + uint32(1))
                window = uint32(end + uint32(1) - size)
                continue
            # The row of the same stretch in the BWT that can be located.
            at = end
            low = uint32(0)
            rows = bwt.first_rows[4]
            while at > window:
                at = uint32(at - uint32(1))
                code = base_at_text(query.words, at)
                start, stop = rank_both(bwt, code, low, uint32(low + rows))
                low = uint32(bwt.first_rows[code] + start)
                rows = uint32(stop - start)
        hit = text_position(bwt, genome.suffixes, low)
        segment = segment_of(segments.text, hit)
        base = uint32(segments.genome[segment] + hit - segments.text[segment])
        matched = uint32(end - at)
        before = uint32(most_before(at, run_start, hit, segments.text[segment]))
        after = uint32(
            most_after(end, run_stop, uint32(hit + matched), segments.text[segment + uint32(1)])
        )
        words, bases = query.words, genome.bases
        left = uint32(equal_before(words, uint64(at), bases, uint64(base), uint64(before)))
        after_base = uint64(base) + uint64(matched)
        right = uint32(equal_after(words, uint64(end), bases, after_base, uint64(after)))
        begin = uint32(at - left)
        stop = uint32(end + right)
        if begin > window or stop < reach:
            # Its only hit does not contain the window. Always further than this window, even if the
            # text does not belong to the BWT.
            window = max(uint32(began + uint32(1)), begin)
            least = max(least, window)
            continue
        if begin >= first and begin < last:
            if limit > 0:
                slot = uint64(offsets[piece] + n)
                found[slot] = run
                found[slot + uint64(limit)] = begin
                found[slot + uint64(2) * uint64(limit)] = uint32(base - left)
                found[slot + uint64(3) * uint64(limit)] = uint32(stop - begin)
            n = uint32(n + uint32(1))
        least = max(least, uint32(window + uint32(1)))
        window = max(uint32(began + uint32(1)), uint32(stop + uint32(1) - size))
    if limit == 0:
        offsets[piece] = n

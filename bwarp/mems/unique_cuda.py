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
from bwarp.index.locate_cuda import segment_of
from bwarp.index.rank_cuda import GROUPS, rank_both
from bwarp.mems.maximal_cuda import DeviceReference, put_text, text_position
from bwarp.mems.packed_extension import equal_after, equal_before, most_after, most_before
from bwarp.mems.query_text import Matches, QueryText
from bwarp.sequence import kmer_at

#: Positions of a run per thread.
_PIECE = 256

_THREADS = 128


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
    length = min(min_length, device.plan.string_length)
    query = put_text(text)
    offsets = zeros(n_pieces + 1, np.uint32)
    pieces = cuda.to_device(pieces)

    def search(found, limit: int) -> None:
        search_pieces[launch(n_pieces, _THREADS)](
            device.forward.words,
            device.forward.separator_rows,
            device.reverse.words,
            device.reverse.separator_rows,
            device.forward.groups,
            device.first_rows,
            device.forward.text_start,
            device.table(length),
            length,
            device.suffixes,
            device.plan.suffix_rate,
            reference.genome,
            device.segment_text,
            device.segment_genome,
            query.words,
            query.run_starts,
            query.run_stops,
            pieces,
            _PIECE,
            min_length,
            offsets,
            found,
            limit,
        )

    search(cuda.device_array(4, np.uint32), 0)
    exclusive_sum(offsets)
    n_found = int(offsets[n_pieces])
    if n_found == 0:
        return
    found = cuda.device_array(4 * n_found, np.uint32)
    search(found, n_found)
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
    words: uint32[::1], separator_rows: uint32[::1], reverse_words: uint32[::1],
    reverse_separator_rows: uint32[::1], groups: GROUPS, first_rows: uint32[::1], text_start: int,
    table: uint32[::1], table_k: int, suffixes: uint32[::1], rate: int, genome: uint64[::1],
    segment_text: uint32[::1], segment_genome: uint32[::1], query: uint64[::1],
    run_starts: uint32[::1], run_stops: uint32[::1], pieces: uint32[::1], piece_size: int,
    min_length: int, offsets: uint32[::1], found: uint32[::1], limit: int,
):  # fmt: skip
    """Write the run, start, genome position and length of the matches of pieces. One thread per
    piece.

    With `limit` 0 the matches are counted into `offsets`; otherwise `offsets` says where the
    matches of each piece go in the four columns of `found`. A window costs one table lookup and one
    or two sectors per further base until one row is left.
    """
    piece = cuda.grid(1)
    if piece >= offsets.size - 1:
        return
    run = segment_of(pieces, uint32(piece))
    run_start = run_starts[run]
    run_stop = run_stops[run]
    size = uint32(min_length)
    first = uint32(run_start + uint32(piece_size) * (uint32(piece) - pieces[run]))
    last = min(uint32(first + uint32(piece_size)), uint32(run_stop - size + uint32(1)))
    n = uint32(0)
    window = first
    least = first  # all remaining matches begin here or later
    while least < last and window + size <= run_stop:
        began = window
        end = uint32(window + size)
        reach = end
        at = uint32(end - uint32(table_k))
        string = kmer_at(query, uint64(at), table_k)
        low, _, rows, _ = load_uint32x4(table, uint64(4) * uint64(string))
        while rows > uint32(1) and at > window:
            at = uint32(at - uint32(1))
            code = base_at_text(query, at)
            start, stop = rank_both(words, separator_rows, groups, code, low, uint32(low + rows))
            low = uint32(first_rows[code] + start)
            rows = uint32(stop - start)
        if rows == uint32(0):
            window = uint32(at + uint32(1))
            least = max(least, window)
            continue
        if rows > uint32(1):
            # Extend to the left with these rows, then from one base on to the right.
            while at > run_start:
                code = base_at_text(query, uint32(at - uint32(1)))
                start, stop = rank_both(
                    words, separator_rows, groups, code, low, uint32(low + rows)
                )
                if start == stop:
                    break
                low = uint32(first_rows[code] + start)
                rows = uint32(stop - start)
                at = uint32(at - uint32(1))
            window = at
            end = at
            low = uint32(0)
            rows = first_rows[4]
            while end < run_stop and rows > uint32(1):
                code = base_at_text(query, end)
                start, stop = rank_both(
                    reverse_words,
                    reverse_separator_rows,
                    groups,
                    code,
                    low,
                    uint32(low + rows),
                )
                if start == stop:
                    break
                low = uint32(first_rows[code] + start)
                rows = uint32(stop - start)
                end = uint32(end + uint32(1))
            if rows > uint32(1):
                least = uint32(window + uint32(1))
                window = uint32(end + uint32(1) - size)
                continue
            # The row of the same stretch in the BWT that can be located.
            at = end
            low = uint32(0)
            rows = first_rows[4]
            while at > window:
                at = uint32(at - uint32(1))
                code = base_at_text(query, at)
                start, stop = rank_both(
                    words, separator_rows, groups, code, low, uint32(low + rows)
                )
                low = uint32(first_rows[code] + start)
                rows = uint32(stop - start)
        hit = text_position(
            words, separator_rows, groups, first_rows, text_start, suffixes, rate, low
        )
        segment = segment_of(segment_text, hit)
        base = uint32(segment_genome[segment] + hit - segment_text[segment])
        matched = uint32(end - at)
        before = uint32(most_before(at, run_start, hit, segment_text[segment]))
        after = uint32(
            most_after(end, run_stop, uint32(hit + matched), segment_text[segment + uint32(1)])
        )
        left = uint32(equal_before(query, uint64(at), genome, uint64(base), uint64(before)))
        after_base = uint64(base) + uint64(matched)
        right = uint32(equal_after(query, uint64(end), genome, after_base, uint64(after)))
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

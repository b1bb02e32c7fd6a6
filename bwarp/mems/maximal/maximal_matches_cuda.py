"""All maximal exact matches on the GPU: one thread a window, then one thread a match.

Every position of a query where a match may begin is a thread, however long the query: it searches
the window of `min_length` bases (at most 32) that begins there. Rows whose preceding base is the
query's belong to matches that begin earlier; each of the others begins a match.

    windows      rows of each, counted without those             1 thread a window
    running sum  where each window's matches go
    rows         written there                                   1 thread a window
    matches      located, extended to the right by XOR           1 thread a match
    sort         by window, then by position in the genome
"""

from collections.abc import Iterator
from functools import partial

import numpy as np

from bwarp.errors import UsageError
from bwarp.gpu.available_memory import attempt
from bwarp.gpu.cuda import cuda
from bwarp.gpu.device_arrays import number_at, zeros
from bwarp.gpu.launch import launch
from bwarp.gpu.prefix_sum import exclusive_sum
from bwarp.mems.device_text_cuda import DeviceReference, DeviceText, put_text
from bwarp.mems.kmer_sampling import LONGEST_KMER
from bwarp.mems.matches import Matches, no_matches, take_matches
from bwarp.mems.maximal.window_rows_cuda import locate_rows, search_windows, write_rows
from bwarp.mems.query_text import QueryText
from bwarp.runtime.compiled_code import compiled

__all__ = ["maximal_matches"]

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
                    "the matches at one position are more than the GPU has room for: give a larger "
                    "--min-length, or use --backend cpu"
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
    """What `_locate` gives of some windows; None where that is more than there is room for."""
    n_hits = _search(reference, query, window_counts, min_length, first, last)
    if n_hits > reference.device.work.elements:
        return None
    if n_hits == 0:
        return np.empty(0, np.uint64), np.empty(0, np.uint32)
    return _locate(reference, query, window_counts, min_length, first, last, n_hits)


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
    """Keys (window - first, genome position) and lengths of what the last search found, sorted."""
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
    """Turn sorted keys into matches, without those that are too short; return how many."""
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

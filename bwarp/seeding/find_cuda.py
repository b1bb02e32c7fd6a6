"""Find seeds on the GPU: search, count and locate, in order.

`prepare` copies an index to the GPU once; k-mers are searched in batches that fit the workspace
there. A batch that does not fit is split and searched again. K-mers of several lengths are searched
length by length, and their hits merged:

    k-mers of a pass    AC..  AC...  GT..  TT...  CA..       numbers 0 1 2 3 4
    length 20           0            2            4          one search, hits in order
    length 21                 1            3                 another
    merged              0     1      2     3      4
"""

from collections.abc import Iterator
from functools import partial

import numpy as np

from bwarp.counted import counted
from bwarp.errors import TooLittleMemoryError
from bwarp.gpu.available_memory import attempt
from bwarp.gpu.sums_and_sorts import INTERVALS, KEYS
from bwarp.index.device_index_cuda import DeviceIndex, make_device_index, search_needs
from bwarp.index.fm_index import FMIndex
from bwarp.runtime.timeline import on_timeline
from bwarp.seeding.backtracking_cuda import search_backtracking
from bwarp.seeding.exact_cuda import make_items, search_exact
from bwarp.seeding.find import kmers_by_length
from bwarp.seeding.hits import (
    NO_LIMIT,
    FoundSeeds,
    SeedHits,
    SeedOptions,
    merge_hits,
    over_limit,
    with_kmers,
)
from bwarp.seeding.kmers import KmerBatch
from bwarp.seeding.locate_hits_cuda import HeldHits, count_hits, hold_hits, locate_hits
from bwarp.seeding.search_schemes_cuda import MOST_ITEMS, kmers_at_once, search_schemes

#: Expected elements of the longest workspace list per item of a batch.
_ELEMENTS_AN_ITEM = {"exact": 1, "backtracking": 4}

# Maximum bytes on the GPU of results waiting to be located, per element of the workspace.
_ROOM_A_ELEMENT = 16

#: Hits sorted and copied to the host at a time. The hits of one k-mer are never split.
HITS_AT_ONCE = 1 << 22


def prepare(index: FMIndex | DeviceIndex, options: SeedOptions, share: float = 1.0) -> DeviceIndex:
    """Copy an index to the GPU, with the parts that a search needs; to be kept for many searches.

    `share` is the fraction of the free memory to use.
    ``str(prepare(index, options).plan)`` describes the plan and the memory that it takes.
    """
    with_reverse = options.mismatches > 0
    with_suffixes = {"auto": "if they fit", "gpu": "yes"}.get(options.locate, "no")
    if isinstance(index, DeviceIndex):
        has_suffixes = index.suffixes is not None
        if (index.reverse is not None or not with_reverse) and (
            has_suffixes if with_suffixes == "yes" else with_suffixes != "no" or not has_suffixes
        ):
            return index
        index = index.index
    return make_device_index(index, search_needs(with_reverse, with_suffixes, share=share))


def find_pass(
    index: DeviceIndex,
    kmers: KmerBatch,
    start: int,
    stop: int,
    options: SeedOptions,
    threads: int = 1,
) -> FoundSeeds:
    """Find all hits of the k-mers of a pass, from `start` to `stop`, of any lengths."""
    found = [
        _renumbered(find_seeds(index, packed, k, options, threads), numbers)
        for numbers, packed, k in kmers_by_length(kmers, start, stop)
    ]
    if len(found) == 1:
        return found[0]
    over_kmers = np.concatenate([part.over_kmers for part in found])
    order = np.argsort(over_kmers)
    over_counts = np.concatenate([part.over_counts for part in found])[order]
    return FoundSeeds(over_kmers[order], over_counts, merge_hits([part.hits for part in found]))


def _renumbered(found: FoundSeeds, numbers: np.ndarray) -> FoundSeeds:
    """Rename k-mer i to numbers[i]."""
    hits = (with_kmers(part, numbers) for part in found.hits)
    return FoundSeeds(numbers.astype(np.uint32)[found.over_kmers], found.over_counts, hits)


def find_seeds(
    index: FMIndex | DeviceIndex, words: np.ndarray, k: int, options: SeedOptions, threads: int = 1
) -> FoundSeeds:
    """Find all hits of k-mers of one length, on both strands.

    Parameters
    ----------
    index : FMIndex or DeviceIndex
        The result of `prepare` saves the transfer to the GPU.
    words : ndarray, shape=(n, 1 or 2), dtype=uint64
        K-mers packed as in `bwarp.seeding.kmers`.
    """
    device = prepare(index, options)
    held, counts = [], []
    room = device.work.elements * _ROOM_A_ELEMENT
    for batch_start, batch_counts, hits in _search_batches(device, words, k, options):
        counts.append(batch_counts)
        room -= hits.nbytes
        held.append((batch_start, hits if room >= 0 else hits.on_host()))
    counts = np.concatenate(counts) if counts else np.empty(0, np.int64)
    over, over_counts = over_limit(counts, options)
    counts[over] = 0
    return FoundSeeds(
        over_kmers=over.astype(np.uint32),
        over_counts=over_counts,
        hits=_located(device, held, counts, options, threads),
    )


def _search_batches(
    device: DeviceIndex, words: np.ndarray, k: int, options: SeedOptions
) -> Iterator[tuple[int, np.ndarray, HeldHits]]:
    """Yield, per batch, the first k-mer, the hit counts of all k-mers, and the held results."""
    algorithm = _algorithm(options)
    if algorithm == "schemes":
        size = kmers_at_once(device, k, options.mismatches)
    else:
        items = min(device.work.elements // _ELEMENTS_AN_ITEM[algorithm], MOST_ITEMS)
        size = max(1, items // 2)
    start = 0
    while start < len(words):
        batch = words[start : start + size]
        found = attempt(partial(_search_batch, device, batch, k, options))
        if found is None:
            if len(batch) == 1:
                raise TooLittleMemoryError(
                    f"k-mer {start} of length {k} with {counted(options.mismatches, 'mismatch')} "
                    "requires more GPU memory than is free: use fewer mismatches, or --backend cpu"
                )
            size = max(1, len(batch) // 2)
            continue
        yield start, *found
        start += len(batch)


def _algorithm(options: SeedOptions) -> str:
    return options.algorithm if options.mismatches else "exact"


@on_timeline("search k-mers on the GPU")
def _search_batch(
    device: DeviceIndex, words: np.ndarray, k: int, options: SeedOptions
) -> tuple[np.ndarray, HeldHits] | None:
    """Return the hit counts of all k-mers and the held results; None if a list overflowed."""
    n_intervals, n_keys, overflow = _search(device, words, k, options)
    if overflow:
        return None
    counts = count_hits(device, n_intervals, n_keys, len(words))
    hits = hold_hits(device, n_intervals, n_keys, counts, options.max_hits or NO_LIMIT)
    return counts.copy_to_host().astype(np.int64), hits


def _search(
    device: DeviceIndex, words: np.ndarray, k: int, options: SeedOptions
) -> tuple[int, int, bool]:
    """Fill the lists; return the numbers of intervals and keys, and whether a list overflowed."""
    work = device.work
    items = make_items(words, k)
    work.counters.copy_to_device(np.zeros(work.counters.size, np.uint32))
    algorithm = _algorithm(options)
    if algorithm == "exact":
        search_exact(device, items)
    elif algorithm == "backtracking":
        search_backtracking(device, items, options.mismatches, options.stops_after)
    else:
        search_schemes(device, items, options.mismatches)
    counters = work.counters.copy_to_host()
    return int(counters[INTERVALS]), int(counters[KEYS]), bool(counters.max() > work.elements)


def _located(
    device: DeviceIndex,
    held: list[tuple[int, HeldHits]],
    counts: np.ndarray,
    options: SeedOptions,
    threads: int,
) -> Iterator[SeedHits]:
    """Yield the hits of all batches in parts of whole k-mers; `counts` are within the limit."""
    mode = options.locate
    if mode == "auto":
        mode = "gpu" if device.suffixes is not None else "hybrid"
    starts = [start for start, _ in held] + [len(counts)]
    at_once = min(HITS_AT_ONCE, device.work.elements)
    for (start, hits), stop in zip(held, starts[1:], strict=True):
        ends = np.cumsum(counts[start:stop])
        hits = hits.on_device()
        first = 0
        while first < stop - start:
            before = int(ends[first - 1]) if first else 0
            last = int(np.searchsorted(ends, before + at_once, side="right"))
            last = max(last, first + 1)
            n_hits = int(ends[last - 1]) - before
            if n_hits:
                located = attempt(
                    partial(locate_hits, device, hits, start, (first, last), n_hits, mode, threads)
                )
                if located is None:
                    if last == first + 1:
                        raise TooLittleMemoryError(
                            f"the {n_hits:,} hits of k-mer {start + first} require more GPU memory "
                            "than is free: use --max-hits or --backend cpu"
                        )
                    at_once //= 2
                    continue
                yield located
            first = last

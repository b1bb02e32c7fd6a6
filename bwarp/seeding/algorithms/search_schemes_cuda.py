"""Inexact search on the GPU by search schemes: all nodes of a batch take each step together.

The searches are those of `bwarp.seeding.algorithms.search_schemes`, the steps those of
`bwarp.seeding.algorithms.search_schemes_cpu`. Three things differ:

- A search begins deeper. The strings within its first steps' mismatches of a k-mer are listed
  once, as bits to flip, and each is one look into the table of all strings of a length:

      k-mer   A C G T A C C A T G G A C T A G ...
              <---- exact ----><- flipped ->             13-mers with up to one mismatch, say

- No thread waits for a step's number of nodes: counters stay on the GPU, and every kernel takes
  what the one before has left, all its blocks together.

- Where the text is on the GPU, a node of few rows grows no further. Each of its rows is compared
  with the text instead: exclusive or and a count of bits tell the mismatches in each part, and
  with them whether the hit is this search's own.
"""

import numpy as np

from bwarp.gpu.cuda import cuda
from bwarp.index.device_index_cuda import COUNTERS, DeviceIndex
from bwarp.seeding.algorithms.search_scheme_steps_cuda import (
    check_rows,
    finish_nodes,
    grow_nodes,
    start_nodes,
)
from bwarp.seeding.algorithms.search_schemes import RIGHT, Search, choose_schemes

__all__ = ["elements_an_item", "part_masks", "search_schemes", "start_strings"]

#: Nodes of at most so many rows are compared with the text. More would be compared with less to
#: gain: of a string that is there by chance, the next step leaves a quarter of the rows.
FEW_ROWS = 2

_THREADS = 256
# As many rounds of blocks as run at once, six or eight by the registers of the kernel.
_BLOCKS_A_PROCESSOR = 24

# Each search has its own counters: of checks, and of nodes after every step.
_COUNTERS_A_SEARCH = 66


def search_schemes(
    device: DeviceIndex, items, n_items: int, words_an_item: int, k: int, mismatches: int
) -> None:
    """Find everything within so many mismatches (1 to 4) of items; add it to the lists.

    Parameters
    ----------
    items : device array
        Both strands of k-mers of length k, as
        `bwarp.seeding.algorithms.both_strands_cuda.make_items` gives them.
    """
    searches = choose_schemes(k, mismatches, device.forward.n_rows)
    assert 2 + len(searches) * _COUNTERS_A_SEARCH <= COUNTERS
    for number, search in enumerate(searches):
        _run_search(device, items, n_items, words_an_item, k, mismatches, search, number)


def elements_an_item(device: DeviceIndex, k: int, mismatches: int) -> int:
    """About how many elements of the longest list of the working space an item takes."""
    searches = choose_schemes(k, mismatches, device.forward.n_rows)
    longest = 1
    for search in searches:
        length = min(k, max(device.plan.string_length, search.start_length))
        longest = max(longest, _tables_of(search, k, length).codes.size)
    return 3 * longest


def _run_search(device, items, n_items, words_an_item, k, mismatches, search, number) -> None:
    work = device.work
    has_text = device.text is not None
    counter = 2 + number * _COUNTERS_A_SEARCH
    length = min(k, max(device.plan.string_length, search.start_length))
    on_device = _tables_of(search, k, length)
    done = length - search.start_length
    remaining = len(search.positions) - done
    few = FEW_ROWS if has_text else 0
    blocks = _BLOCKS_A_PROCESSOR * cuda.get_current_device().MULTIPROCESSOR_COUNT
    nodes, spare = work.nodes, work.spare
    start_nodes[blocks, _THREADS](
        device.table(length),
        items,
        words_an_item,
        length,
        on_device.first_base,
        on_device.flips,
        on_device.codes,
        n_items,
        few if remaining else 0,
        work.elements,
        nodes,
        work.checks,
        work.counters,
        counter,
    )
    leftmost = on_device.first_base
    for step in range(done, len(search.positions)):
        right = search.directions[step] == RIGHT
        if not right:
            leftmost -= 1
        bwt = device.reverse if right else device.forward
        grow_nodes[blocks, _THREADS](
            *bwt.arrays,
            device.first_rows,
            items,
            words_an_item,
            int(search.positions[step]),
            2 if right else 1,
            int(search.weights[step]),
            on_device.alive,
            step,
            few if step + 1 < len(search.positions) else 0,
            leftmost,
            work.elements,
            nodes,
            spare,
            work.checks,
            work.counters,
            counter,
            counter + 1 + step - done,
        )
        nodes, spare = spare, nodes
    if has_text:
        check_rows[blocks, _THREADS](
            device.suffixes,
            device.text,
            device.segment_text,
            device.segment_genome,
            items,
            words_an_item,
            k,
            mismatches,
            on_device.masks,
            on_device.weights,
            on_device.alive,
            work.checks,
            work.keys,
            work.values,
            work.counters,
            counter,
        )
    finish_nodes[blocks, _THREADS](
        on_device.mismatches,
        work.elements,
        nodes,
        work.intervals,
        work.counters,
        counter + 1 + remaining,
    )


class _SearchTables:
    """A search's tables on the device; see `start_strings` and `part_masks`."""

    def __init__(self, search: Search, k: int, length: int):
        self.first_base, flips, codes = start_strings(search, length)
        masks, weights = part_masks(search, k)
        self.flips, self.codes = cuda.to_device(flips), cuda.to_device(codes)
        self.masks, self.weights = cuda.to_device(masks), cuda.to_device(weights)
        self.alive = cuda.to_device(search.alive.astype(np.uint8))
        self.mismatches = cuda.to_device(search.mismatches)


_kept_tables: dict = {}


def _tables_of(search: Search, k: int, length: int) -> _SearchTables:
    """The tables of a search, made once: `choose_schemes` gives the same objects every time."""
    key = id(search), length
    if key not in _kept_tables:
        _kept_tables[key] = search, _SearchTables(search, k, length)
    return _kept_tables[key][1]


def start_strings(search: Search, length: int) -> tuple[int, np.ndarray, np.ndarray]:
    """What a search may have matched when its string is `length` bases long.

    Returns
    -------
    first_base : int
        Where in the k-mer the string begins.
    flips : ndarray, shape=(n,), dtype=uint64
        Bits to flip in the string, as a number to the base 4, for every set of mismatches.
    codes : ndarray, shape=(n,), dtype=uint32
        The error code of each.
    """
    steps = length - search.start_length
    positions = search.positions[:steps]
    first_base = int(min([search.start, *positions.tolist()]))
    flips, codes = np.zeros(1, np.uint64), np.zeros(1, np.int64)
    for position, weight, alive in zip(
        positions, search.weights[:steps], search.alive[:steps], strict=True
    ):
        slot = 2 * (first_base + length - 1 - int(position))
        changed = np.concatenate([flips ^ np.uint64(change << slot) for change in range(4)])
        code = np.concatenate([codes, *[codes + weight] * 3])
        kept = (code < alive.size) & alive[np.minimum(code, alive.size - 1)]
        flips, codes = changed[kept], code[kept]
    order = np.argsort(flips, kind="stable")  # neighbours in the table, where there are any
    return first_base, flips[order], codes[order].astype(np.uint32)


def part_masks(search: Search, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Where mismatches count how much in a search's error code.

    Returns
    -------
    masks : ndarray, shape=(2 * n,), dtype=uint64
        For every weight, two words as k-mers are packed: the lower bit of each of its bases.
    weights : ndarray, shape=(n,), dtype=uint32
    """
    weights = np.unique(search.weights)
    masks = np.zeros((len(weights), 2), np.uint64)
    for position, weight in zip(search.positions.tolist(), search.weights, strict=True):
        masks[np.searchsorted(weights, weight), position >> 5] |= np.uint64(
            1 << (62 - 2 * (position & 31))
        )
    return masks.reshape(-1), weights.astype(np.uint32)

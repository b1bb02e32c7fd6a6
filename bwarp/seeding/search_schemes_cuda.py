"""Inexact search on the GPU by search schemes: all nodes of a batch take each step together.

Searches and steps are those of `bwarp.seeding.search_schemes_cpu`, with three differences:

- A search begins deeper. The strings within the mismatches of its first steps are listed
  once, as bits to flip, and each takes one lookup in the table of strings:

      k-mer   A C G T A C C A T G G A C T A G ...
              <---- exact ----><- flipped ->             13-mers with up to one mismatch, say

- No thread waits for the number of nodes of a step: counters stay on the GPU, and each kernel
  processes the output of the previous one with all its blocks.

- If the text is on the GPU, a node with few rows is not extended. Each of its rows is compared
  with the text instead: exclusive or and population count give the mismatches in each part, and
  with them whether the hit belongs to this search.
"""

from typing import NamedTuple

import numpy as np

from bwarp.gpu.cuda import cuda, uint8, uint32, uint64
from bwarp.gpu.kernel import kernel
from bwarp.gpu.ptx import load_uint32x4
from bwarp.gpu.sums_and_sorts import INTERVALS, KEYS, reserve
from bwarp.index.device_index_cuda import (
    COUNTERS,
    DeviceIndex,
    IndexText,
    StringTable,
    Workspace,
)
from bwarp.index.locate_cuda import segment_of
from bwarp.index.rank_cuda import DeviceBWT, ranks_both
from bwarp.seeding.exact_cuda import SearchItems, base_of, first_base
from bwarp.seeding.search_schemes_cpu import RIGHT, Search, choose_schemes
from bwarp.sequence import kmer_at

# Kernels: where nodes start, how they are extended, and how they end.
#
# A node is five numbers, each in a column of its own:
#
#     item | first row | first row in the reverse | rows | error code
#
# A node with few rows is written as checks instead, one per row. Each kernel takes as many nodes as
# a counter on the GPU says, and writes its results at `bwarp.gpu.sums_and_sorts.reserve`.


# A check is one number: the base of the k-mer where the matched string begins, item, row.
_ITEM_BITS = 26
#: The maximum number of items in a batch.
MOST_ITEMS = 1 << _ITEM_BITS


class SearchTables(NamedTuple):
    """The tables of a search on the device; see `start_strings`, `part_masks` and `Search`."""

    first_base: int
    flips: uint64[::1]
    codes: uint32[::1]
    masks: uint64[::1]
    weights: uint32[::1]
    alive: uint8[:, ::1]
    mismatches: uint8[::1]


class Step(NamedTuple):
    """A step of a search.

    Attributes
    ----------
    number, position, weight : int
        The index of the step in the `Search`, its base of the k-mer, and the error code that a
        mismatch adds.
    grown : int
        The column of a node with its first row in the BWT in use.
    leftmost : int
        The base of the k-mer where the matched string begins after the step.
    """

    number: int
    position: int
    weight: int
    grown: int
    leftmost: int


@cuda.jit(device=True)
def put_node(nodes, capacity, slot, item, first, first_reverse, rows, code):
    """Write the columns of a node if there is space."""
    if slot < capacity:
        at = uint64(slot)
        column = uint64(capacity)
        nodes[at] = item
        nodes[at + column] = first
        nodes[at + uint64(2) * column] = first_reverse
        nodes[at + uint64(3) * column] = rows
        nodes[at + uint64(4) * column] = code


@cuda.jit(device=True)
def put_checks(checks, slot, leftmost, item, first, rows):
    """Write one check per row as far as there is space."""
    head = uint64(uint32(leftmost) << uint32(_ITEM_BITS) | uint32(item)) << uint64(32)
    for row in range(rows):
        if uint64(slot) + uint64(row) < uint64(checks.size):
            checks[uint64(slot) + uint64(row)] = head | uint64(first + uint32(row))


@kernel
def start_nodes(
    strings: StringTable, items: SearchItems, search: SearchTables, few: int, work: Workspace,
    counter: int,
):  # fmt: skip
    """Write the nodes of all items. One thread and one table lookup per item and string."""
    flips = search.flips
    total = uint64(items.count) * uint64(flips.size)
    for block_start in range(
        cuda.blockIdx.x * cuda.blockDim.x, total, cuda.gridDim.x * cuda.blockDim.x
    ):
        i = uint64(block_start + cuda.threadIdx.x)
        item = first = first_reverse = rows = code = uint32(0)
        if i < total:
            item = uint32(i // uint64(flips.size))
            string = uint32(i - uint64(item) * uint64(flips.size))
            code = search.codes[string]
            begin = first_base(items, item) + uint64(search.first_base)
            entry = uint64(kmer_at(items.words, begin, strings.length)) ^ flips[string]
            first, first_reverse, rows, _ = load_uint32x4(strings.rows, uint64(4) * entry)
        is_few = rows <= uint32(few)
        is_node = rows != uint32(0) and not is_few
        slot = reserve(work.counters, counter + 1, uint32(1) if is_node else uint32(0))
        if is_node:
            put_node(work.nodes, work.elements, slot, item, first, first_reverse, rows, code)
        if few:
            wanted = rows if is_few else uint32(0)
            slot = reserve(work.counters, counter, wanted)
            put_checks(work.checks, slot, search.first_base, item, first, wanted)


@kernel
def grow_nodes(
    bwt: DeviceBWT, items: SearchItems, search: SearchTables, step: Step, few: int, work: Workspace,
    counter: int, node_counter: int,
):  # fmt: skip
    """Extend every node by one base.

    One thread per node: reads one or two sectors of the BWT and writes to `work.spare` up to four
    nodes that occur and are alive, or their rows as checks.
    """
    nodes, alive, counters, weight = work.nodes, search.alive, work.counters, step.weight
    n_nodes = min(counters[node_counter], uint32(work.elements))
    column = uint64(work.elements)
    for block_start in range(
        cuda.blockIdx.x * cuda.blockDim.x, n_nodes, cuda.gridDim.x * cuda.blockDim.x
    ):
        i = uint64(block_start + cuda.threadIdx.x)
        starts = cuda.local.array(4, uint32)
        counts = cuda.local.array(4, uint32)
        item = code = wanted = other_row = uint32(0)
        n_grown = n_checked = uint32(0)
        for base in range(4):
            counts[base] = uint32(0)
        if i < uint64(n_nodes):
            item = nodes[i]
            code = nodes[i + uint64(4) * column]
            row = nodes[i + uint64(step.grown) * column]
            other_row = nodes[i + uint64(3 - step.grown) * column]
            rows = nodes[i + uint64(3) * column]
            wanted = base_of(items, item, step.position)
            with_match = alive[step.number, code] != 0
            with_mismatch = False
            if uint32(code + uint32(weight)) < uint32(alive.shape[1]):
                with_mismatch = alive[step.number, code + uint32(weight)] != 0
            low, high = ranks_both(bwt, row, uint32(row + rows))
            other_row = uint32(other_row + rows)
            for base in range(4):
                starts[base] = uint32(bwt.first_rows[base] + low[base])
                counts[base] = uint32(high[base] - low[base])
                other_row = uint32(other_row - counts[base])
            for base in range(4):
                is_alive = with_match if uint32(base) == wanted else with_mismatch
                if is_alive and counts[base]:
                    if counts[base] <= uint32(few):
                        n_checked = uint32(n_checked + counts[base])
                    else:
                        n_grown = uint32(n_grown + uint32(1))
        slot = reserve(counters, node_counter + 1, n_grown)
        check_slot = uint32(0)
        if few:
            check_slot = reserve(counters, counter, n_checked)
        if n_grown + n_checked != uint32(0):
            for base in range(4):
                matches = uint32(base) == wanted
                is_alive = with_match if matches else with_mismatch
                count = counts[base]
                if is_alive and count:
                    first = starts[base] if step.grown == 1 else other_row
                    if count <= uint32(few):
                        put_checks(work.checks, check_slot, step.leftmost, item, first, count)
                        check_slot = uint32(check_slot + count)
                    else:
                        first_reverse = other_row if step.grown == 1 else starts[base]
                        new_code = code if matches else uint32(code + uint32(weight))
                        put_node(
                            work.spare, work.elements, slot, item, first, first_reverse, count,
                            new_code,
                        )  # fmt: skip
                        slot = uint32(slot + uint32(1))
                other_row = uint32(other_row + count)


@kernel
def check_rows(
    text: IndexText, items: SearchItems, search: SearchTables, mismatches: int, work: Workspace,
    counter: int,
):  # fmt: skip
    """Compare a k-mer with the text where a row says that it would begin; keep the hits.

    One thread per check: one read of the suffix array, then one or two sectors of the text.
    """
    segments, k, words_an_item = text.segments, items.k, items.words_an_item
    n_checks = min(uint64(work.counters[counter]), uint64(work.checks.size))
    length = segments.text[segments.text.size - 1]
    for block_start in range(
        cuda.blockIdx.x * cuda.blockDim.x, n_checks, cuda.gridDim.x * cuda.blockDim.x
    ):
        i = uint64(block_start + cuda.threadIdx.x)
        is_hit = False
        item = errors = position = uint32(0)
        if i < n_checks:
            check = work.checks[i]
            head = uint32(check >> uint64(32))
            item = uint32(head & uint32(MOST_ITEMS - 1))
            begin = uint32(text.suffixes[uint32(check)] - (head >> uint32(_ITEM_BITS)))
            if begin < length and uint32(length - begin) > uint32(k):
                code = uint32(0)
                for part in range(words_an_item):
                    here = kmer_at(text.bases, uint64(begin) + uint64(32 * part), 32)
                    wrong = here ^ items.words[uint64(item) * uint64(words_an_item) + uint64(part)]
                    wrong |= wrong >> uint64(1)
                    for number in range(search.weights.size):
                        found = uint32(cuda.popc(wrong & search.masks[2 * number + part]))
                        errors = uint32(errors + found)
                        code = uint32(code + found * search.weights[number])
                alive = search.alive
                if errors <= uint32(mismatches) and alive[alive.shape[0] - 1, code]:
                    segment = segment_of(segments.text, begin)
                    is_hit = uint32(segments.text[segment + uint32(1)] - begin) > uint32(k)
                    position = uint32(segments.genome[segment] + begin - segments.text[segment])
        slot = uint64(reserve(work.counters, KEYS, uint32(1) if is_hit else uint32(0)))
        if is_hit and slot < uint64(work.keys.size):
            work.keys[slot] = uint64(item) << uint64(32) | uint64(position)
            work.values[slot] = errors


@kernel
def finish_nodes(search: SearchTables, work: Workspace, node_counter: int):
    """Append the nodes of the last step to the list of intervals. One thread per node."""
    nodes, intervals = work.nodes, work.intervals
    n_nodes = min(work.counters[node_counter], uint32(work.elements))
    column = uint64(work.elements)
    for block_start in range(
        cuda.blockIdx.x * cuda.blockDim.x, n_nodes, cuda.gridDim.x * cuda.blockDim.x
    ):
        i = uint64(block_start + cuda.threadIdx.x)
        is_node = i < uint64(n_nodes)
        slot = uint64(reserve(work.counters, INTERVALS, uint32(1) if is_node else uint32(0)))
        if is_node and slot < column:
            intervals[slot] = nodes[i]
            intervals[slot + column] = nodes[i + column]
            intervals[slot + uint64(2) * column] = nodes[i + uint64(3) * column]
            code = nodes[i + uint64(4) * column]
            intervals[slot + uint64(3) * column] = uint32(search.mismatches[code])


#: Nodes with at most this many rows are compared with the text. For larger ones it does not pay
#: off: for a string that occurs by chance, the next step leaves a quarter of the rows.
FEW_ROWS = 2

_THREADS = 256
# As many rounds of blocks as run at once, six or eight depending on the registers of the kernel.
_BLOCKS_A_PROCESSOR = 24

# The strings for k-mers shorter than those that the plan provides: a table of 268 MB.
_SHORT_STRINGS = 12

# Each search has its own counters: of checks, and of nodes after every step.
_COUNTERS_A_SEARCH = 66


def search_schemes(device: DeviceIndex, items: SearchItems, mismatches: int) -> None:
    """Find all strings within `mismatches` (1 to 4) of items; append them to the lists."""
    searches = choose_schemes(items.k, mismatches, device.forward.n_rows)
    assert 2 + len(searches) * _COUNTERS_A_SEARCH <= COUNTERS
    for number, search in enumerate(searches):
        _run_search(device, items, mismatches, search, number)


def elements_an_item(device: DeviceIndex, k: int, mismatches: int) -> int:
    """Estimate the elements of the longest workspace list per item."""
    searches = choose_schemes(k, mismatches, device.forward.n_rows)
    longest = 1
    for search in searches:
        length = _string_length(device, search, k)
        longest = max(longest, _tables_of(device, search, k, length).codes.size)
    return 3 * longest


def kmers_at_once(device: DeviceIndex, k: int, mismatches: int) -> int:
    """Return how many k-mers to search at once, if the lists are as long as usual."""
    items = min(device.work.elements // elements_an_item(device, k, mismatches), MOST_ITEMS)
    return max(1, items // 2)


def _run_search(device, items, mismatches, search, number) -> None:
    work = device.work
    counter = 2 + number * _COUNTERS_A_SEARCH
    strings = device.table(_string_length(device, search, items.k))
    on_device = _tables_of(device, search, items.k, strings.length)
    done = strings.length - search.start_length
    remaining = len(search.positions) - done
    few = 0 if device.text is None else FEW_ROWS
    blocks = _BLOCKS_A_PROCESSOR * cuda.get_current_device().MULTIPROCESSOR_COUNT
    start_nodes[blocks, _THREADS](strings, items, on_device, few if remaining else 0, work, counter)
    leftmost = on_device.first_base
    for step in range(done, len(search.positions)):
        right = search.directions[step] == RIGHT
        if not right:
            leftmost -= 1
        grow_nodes[blocks, _THREADS](
            device.reverse if right else device.forward,
            items,
            on_device,
            Step(
                step, int(search.positions[step]), int(search.weights[step]), 2 if right else 1,
                leftmost,
            ),
            few if step + 1 < len(search.positions) else 0,
            work,
            counter,
            counter + 1 + step - done,
        )  # fmt: skip
        work = work._replace(nodes=work.spare, spare=work.nodes)
    if device.text is not None:
        check_rows[blocks, _THREADS](device.text, items, on_device, mismatches, work, counter)
    finish_nodes[blocks, _THREADS](on_device, work, counter + 1 + remaining)


def _string_length(device: DeviceIndex, search: Search, k: int) -> int:
    """Return the length of the strings with which a search begins."""
    longest = device.plan.string_length
    return max(min(k, longest if k >= longest else _SHORT_STRINGS), search.start_length)


def _make_tables(search: Search, k: int, length: int) -> SearchTables:
    first_base, *starts = start_strings(search, length)
    alive = search.alive.astype(np.uint8)
    arrays = *starts, *part_masks(search, k), alive, search.mismatches
    return SearchTables(first_base, *map(cuda.to_device, arrays))


def _tables_of(device: DeviceIndex, search: Search, k: int, length: int) -> SearchTables:
    """Return the tables of a search, made once per GPU, as `choose_schemes` mostly returns the same
    objects.
    """
    key = id(search), length
    if key not in device.search_tables:
        # A search that is kept keeps its id.
        device.search_tables[key] = search, _make_tables(search, k, length)
    return device.search_tables[key][1]


def start_strings(search: Search, length: int) -> tuple[int, np.ndarray, np.ndarray]:
    """List the sets of mismatches that a search may have when its string has `length` bases.

    Returns
    -------
    first_base : int
        Where the string begins in the k-mer.
    flips : ndarray, shape=(n,), dtype=uint64
        Bits to flip in the string, as a number in base 4, for every set of mismatches.
    codes : ndarray, shape=(n,), dtype=uint32
        The error code of each set.
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
    order = np.argsort(flips, kind="stable")  # adjacent in the table, if possible
    return first_base, flips[order], codes[order].astype(np.uint32)


def part_masks(search: Search, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return where mismatches add which weight to the error code of a search.

    Returns
    -------
    masks : ndarray, shape=(2 * n,), dtype=uint64
        For every weight, two words packed like k-mers: the lower bit of each of its bases.
    weights : ndarray, shape=(n,), dtype=uint32
    """
    weights = np.unique(search.weights)
    masks = np.zeros((len(weights), 2), np.uint64)
    for position, weight in zip(search.positions.tolist(), search.weights, strict=True):
        masks[np.searchsorted(weights, weight), position >> 5] |= np.uint64(
            1 << (62 - 2 * (position & 31))
        )
    return masks.reshape(-1), weights.astype(np.uint32)

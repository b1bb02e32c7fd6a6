"""The kernels of search schemes on the GPU: where nodes start, how they grow, and how they end.

A node is five numbers, each in a column of its own:

    item | first row | first row in the reverse | rows | error code

A node of few rows is put down as checks instead, one a row.
`bwarp.seeding.algorithms.search_schemes_cuda` says in which order the kernels run. All of them take
as many nodes as a counter on the GPU says, and leave what they find by
`bwarp.gpu.append_lists.reserve`.
"""

from bwarp.gpu.append_lists import INTERVALS, KEYS, reserve
from bwarp.gpu.cuda import cuda, uint8, uint32, uint64
from bwarp.gpu.kernel import kernel
from bwarp.gpu.ptx import load_uint32x4
from bwarp.index.locate_cuda import segment_of
from bwarp.index.rank_cuda import GROUPS, ranks_both
from bwarp.seeding.algorithms.both_strands_cuda import base_of
from bwarp.sequence import kmer_at

__all__ = [
    "MOST_ITEMS",
    "check_rows",
    "finish_nodes",
    "grow_nodes",
    "start_nodes",
]

# A check is one number: the base of the k-mer where the matched string begins, item, row.
_ITEM_BITS = 26
#: Items a batch may have.
MOST_ITEMS = 1 << _ITEM_BITS


@cuda.jit(device=True)
def put_node(nodes, capacity, slot, item, first, first_reverse, rows, code):
    """Write the columns of a node, if there is room."""
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
    """Write a check a row, as far as there is room."""
    head = uint64(uint32(leftmost) << uint32(_ITEM_BITS) | uint32(item)) << uint64(32)
    for row in range(rows):
        if uint64(slot) + uint64(row) < uint64(checks.size):
            checks[uint64(slot) + uint64(row)] = head | uint64(first + uint32(row))


@kernel
def start_nodes(
    table: uint32[::1], items: uint64[::1], words_an_item: int, length: int, first_base: int,
    flips: uint64[::1], codes: uint32[::1], n_items: int, few: int, capacity: int,
    nodes: uint32[::1], checks: uint64[::1], counters: uint32[::1], counter: int,
):  # fmt: skip
    """The nodes of all items. One thread an item and string of it; one look into the table."""
    total = uint64(n_items) * uint64(flips.size)
    for block_start in range(
        cuda.blockIdx.x * cuda.blockDim.x, total, cuda.gridDim.x * cuda.blockDim.x
    ):
        i = uint64(block_start + cuda.threadIdx.x)
        item = first = first_reverse = rows = code = uint32(0)
        if i < total:
            item = uint32(i // uint64(flips.size))
            string = uint32(i - uint64(item) * uint64(flips.size))
            code = codes[string]
            begin = uint64(item) * uint64(32 * words_an_item) + uint64(first_base)
            entry = uint64(kmer_at(items, begin, length)) ^ flips[string]
            first, first_reverse, rows, _ = load_uint32x4(table, uint64(4) * entry)
        is_few = rows <= uint32(few)
        is_node = rows != uint32(0) and not is_few
        slot = reserve(counters, counter + 1, uint32(1) if is_node else uint32(0))
        if is_node:
            put_node(nodes, capacity, slot, item, first, first_reverse, rows, code)
        if few:
            wanted = rows if is_few else uint32(0)
            slot = reserve(counters, counter, wanted)
            put_checks(checks, slot, first_base, item, first, wanted)


@kernel
def grow_nodes(
    words: uint32[::1], separator_rows: uint32[::1], groups: GROUPS, first_rows: uint32[::1],
    items: uint64[::1], words_an_item: int, position: int, grown: int, weight: int,
    alive: uint8[:, ::1], step: int, few: int, leftmost: int, capacity: int, nodes: uint32[::1],
    longer: uint32[::1], checks: uint64[::1], counters: uint32[::1], counter: int,
    node_counter: int,
):  # fmt: skip
    """Grow every node by one base in the BWT whose first row is column `grown`.

    One thread a node: it reads one or two sectors of the BWT, and leaves up to four nodes
    that occur and are alive, or their rows as checks.
    """
    n_nodes = min(counters[node_counter], uint32(capacity))
    column = uint64(capacity)
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
            row = nodes[i + uint64(grown) * column]
            other_row = nodes[i + uint64(3 - grown) * column]
            rows = nodes[i + uint64(3) * column]
            wanted = base_of(items, words_an_item, item, position)
            with_match = alive[step, code] != 0
            with_mismatch = False
            if uint32(code + uint32(weight)) < uint32(alive.shape[1]):
                with_mismatch = alive[step, code + uint32(weight)] != 0
            low, high = ranks_both(words, separator_rows, groups, row, uint32(row + rows))
            other_row = uint32(other_row + rows)
            for base in range(4):
                starts[base] = uint32(first_rows[base] + low[base])
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
                    first = starts[base] if grown == 1 else other_row
                    if count <= uint32(few):
                        put_checks(checks, check_slot, leftmost, item, first, count)
                        check_slot = uint32(check_slot + count)
                    else:
                        first_reverse = other_row if grown == 1 else starts[base]
                        new_code = code if matches else uint32(code + uint32(weight))
                        put_node(
                            longer, capacity, slot, item, first, first_reverse, count, new_code
                        )
                        slot = uint32(slot + uint32(1))
                other_row = uint32(other_row + count)


@kernel
def check_rows(
    suffixes: uint32[::1], text: uint64[::1], segment_text: uint32[::1],
    segment_genome: uint32[::1], items: uint64[::1], words_an_item: int, k: int, mismatches: int,
    masks: uint64[::1], weights: uint32[::1], alive: uint8[:, ::1], checks: uint64[::1],
    keys: uint64[::1], values: uint32[::1], counters: uint32[::1], counter: int,
):  # fmt: skip
    """Compare a k-mer with the text where a row says that it would begin; keep what is a hit.

    One thread a check: a read of the suffix array, then one or two sectors of the text.
    """
    n_checks = min(uint64(counters[counter]), uint64(checks.size))
    length = segment_text[segment_text.size - 1]
    for block_start in range(
        cuda.blockIdx.x * cuda.blockDim.x, n_checks, cuda.gridDim.x * cuda.blockDim.x
    ):
        i = uint64(block_start + cuda.threadIdx.x)
        is_hit = False
        item = errors = position = uint32(0)
        if i < n_checks:
            check = checks[i]
            head = uint32(check >> uint64(32))
            item = uint32(head & uint32(MOST_ITEMS - 1))
            begin = uint32(suffixes[uint32(check)] - (head >> uint32(_ITEM_BITS)))
            if begin < length and uint32(length - begin) > uint32(k):
                code = uint32(0)
                for part in range(words_an_item):
                    here = kmer_at(text, uint64(begin) + uint64(32 * part), 32)
                    wrong = here ^ items[uint64(item) * uint64(words_an_item) + uint64(part)]
                    wrong |= wrong >> uint64(1)
                    for number in range(weights.size):
                        found = uint32(cuda.popc(wrong & masks[2 * number + part]))
                        errors = uint32(errors + found)
                        code = uint32(code + found * weights[number])
                if errors <= uint32(mismatches) and alive[alive.shape[0] - 1, code]:
                    segment = segment_of(segment_text, begin)
                    is_hit = uint32(segment_text[segment + uint32(1)] - begin) > uint32(k)
                    position = uint32(segment_genome[segment] + begin - segment_text[segment])
        slot = uint64(reserve(counters, KEYS, uint32(1) if is_hit else uint32(0)))
        if is_hit and slot < uint64(keys.size):
            keys[slot] = uint64(item) << uint64(32) | uint64(position)
            values[slot] = errors


@kernel
def finish_nodes(
    mismatches: uint8[::1], capacity: int, nodes: uint32[::1], intervals: uint32[::1],
    counters: uint32[::1], node_counter: int,
):  # fmt: skip
    """Put the nodes of the last step into the list of intervals. One thread a node."""
    n_nodes = min(counters[node_counter], uint32(capacity))
    column = uint64(capacity)
    for block_start in range(
        cuda.blockIdx.x * cuda.blockDim.x, n_nodes, cuda.gridDim.x * cuda.blockDim.x
    ):
        i = uint64(block_start + cuda.threadIdx.x)
        is_node = i < uint64(n_nodes)
        slot = uint64(reserve(counters, INTERVALS, uint32(1) if is_node else uint32(0)))
        if is_node and slot < column:
            intervals[slot] = nodes[i]
            intervals[slot + column] = nodes[i + column]
            intervals[slot + uint64(2) * column] = nodes[i + uint64(3) * column]
            code = nodes[i + uint64(4) * column]
            intervals[slot + uint64(3) * column] = uint32(mismatches[code])

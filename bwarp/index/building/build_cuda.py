"""From a text to an FM-index, on a GPU: the same bytes as bwarp.index.building.build_cpu makes.

Arrays here that are named `text` and `suffixes` lie on the device. At most one suffix array is
there at a time, and every result goes to the host as soon as it is whole.
"""

import numpy as np
from numba import cuda
from numba.cuda import types

from bwarp.gpu.available_memory import require_memory
from bwarp.gpu.prefix_sum import exclusive_sum
from bwarp.index.building.suffix_array_cuda import suffix_array_bytes, suffix_array_on_device
from bwarp.index.fm_index import BWT, COUNT_WORDS, block_words, first_rows_of
from bwarp.index.parameters import IndexParameters

__all__ = [
    "KERNEL_SIGNATURES",
    "build_forward",
    "build_reverse",
    "make_bwt",
    "keep_every",
    "prefix_table",
    "require_building_memory",
    "reversed_text",
]

_WARP = 32
_THREADS = 256
_ALL_LANES = 0xFFFFFFFF


def build_forward(
    text: np.ndarray, parameters: IndexParameters
) -> tuple[BWT, np.ndarray, np.ndarray]:
    """Everything of an index that is made from its text; see `bwarp.index.building.build_cpu`."""
    text = cuda.to_device(text)
    table = prefix_table(text, parameters.prefix_length)
    suffixes = suffix_array_on_device(text)
    forward = make_bwt(text, suffixes, parameters.occ_rate)
    return forward, keep_every(suffixes, parameters.sa_rate), table


def build_reverse(text: np.ndarray, occ_rate: int) -> BWT:
    """The BWT of a text read backwards."""
    text = reversed_text(cuda.to_device(text))
    return make_bwt(text, suffix_array_on_device(text), occ_rate)


def require_building_memory(n: int) -> None:
    """Refuse to index a text of n bases where the GPU has too little memory for that."""
    require_memory(suffix_array_bytes(n), f"indexing {n:,} bases")


def reversed_text(text):
    """The text read backwards, its last separator still last."""
    turned = cuda.device_array_like(text)
    reverse_text[_blocks(text.size), _THREADS](text, turned)
    return turned


def make_bwt(text, suffixes, occ_rate: int) -> BWT:
    """The Burrows-Wheeler transform of a device text with its suffix array, on the host."""
    n_blocks = text.size // occ_rate + 1
    words = block_words(occ_rate)
    blocks = cuda.device_array(n_blocks * words, np.uint32)
    separators = cuda.device_array(n_blocks + 1, np.uint32)
    fill_blocks[_blocks(_WARP * (n_blocks + 1)), _THREADS](
        text, suffixes, words, blocks, separators
    )
    for base in range(COUNT_WORDS - 1):
        exclusive_sum(blocks, first=base, stride=words)
    exclusive_sum(separators)
    n_separators = int(separators[n_blocks])
    separator_rows = cuda.device_array(n_separators, np.uint32)
    text_start = cuda.device_array(1, np.int64)
    finish_blocks[_blocks(n_blocks), _THREADS](
        text, suffixes, words, separators, blocks, separator_rows, text_start
    )
    blocks = blocks.copy_to_host().reshape(n_blocks, words)
    counts = _base_counts(text.size, blocks[-1], n_separators)
    return BWT(blocks, separator_rows.copy_to_host(), first_rows_of(counts), int(text_start[0]))


def _base_counts(n, last_block, n_separators):
    """How many separators, A, C, G and T the text has, from the last block.

    Separator rows and rows past the end store the bits of A, so they count as no other base.
    """
    low, high = last_block[COUNT_WORDS::2], last_block[COUNT_WORDS + 1 :: 2]
    here = [int(np.bitwise_count(bits).sum()) for bits in (low & ~high, ~low & high, low & high)]
    others = [int(last_block[i]) + here[i] for i in range(3)]
    return np.array([n_separators, n - n_separators - sum(others), *others])


def keep_every(suffixes, rate: int) -> np.ndarray:
    """Entries 0, rate, 2 rate, ... of a device suffix array, on the host."""
    if rate == 1:
        return suffixes.copy_to_host()
    kept = cuda.device_array(-(-suffixes.size // rate), np.uint32)
    take_every[_blocks(kept.size), _THREADS](suffixes, rate, kept)
    return kept.copy_to_host()


def prefix_table(text, prefix_length: int) -> np.ndarray:
    """First row and number of rows of every k-mer of a device text, on the host.

    `bwarp.index.building.build_cpu.prefix_table` says why counting is enough.
    """
    if prefix_length == 0:
        return np.empty((0, 2), np.uint32)
    kmers = 4**prefix_length
    short, counts, firsts = (cuda.to_device(np.zeros(kmers, np.uint32)) for _ in range(3))
    count_kmers[_blocks(text.size), _THREADS](text, prefix_length, short, counts)
    add_neighbours[_blocks(kmers), _THREADS](short, counts, firsts)
    exclusive_sum(firsts)
    table = cuda.device_array(2 * kmers, np.uint32)
    fill_table[_blocks(kmers), _THREADS](short, counts, firsts, table)
    return table.copy_to_host().reshape(kmers, 2)


def _blocks(threads: int) -> int:
    return -(-threads // _THREADS)


@cuda.jit(cache=True)
def reverse_text(text, turned):
    """One thread a base."""
    i = cuda.grid(1)
    last = text.size - 1
    if i < last:
        turned[i] = text[last - 1 - i]
    elif i == last:
        turned[i] = 0


@cuda.jit(device=True)
def base_before(text, suffixes, row):
    """The base of a row of the BWT: two reads, the second of a random byte."""
    position = np.int64(suffixes[row])
    if position == 0:
        return np.uint8(0)
    return text[position - 1]


@cuda.jit(cache=True)
def fill_blocks(text, suffixes, words, blocks, separators):
    """Fill each block with its bits and its own counts; its separators are counted beside.

    One warp a block, a lane a row, 32 rows a step; one more warp counts 0 after the last block.
    """
    block = cuda.grid(1) // _WARP
    lane = cuda.laneid
    if block < separators.size:
        first_word = block * words
        groups = (words - COUNT_WORDS) // 2
        c = g = t = found = 0
        for group in range(groups):
            row = (block * groups + group) * _WARP + lane
            inside = row < text.size
            base = np.uint8(0)
            if inside:
                base = base_before(text, suffixes, row)
            is_base = base != 0
            code = np.int32(base) - 1
            low = np.uint32(cuda.ballot_sync(_ALL_LANES, is_base and (code & 1) != 0))
            high = np.uint32(cuda.ballot_sync(_ALL_LANES, is_base and (code & 2) != 0))
            found += cuda.popc(np.uint32(cuda.ballot_sync(_ALL_LANES, inside and not is_base)))
            c += cuda.popc(np.uint32(low & ~high))
            g += cuda.popc(np.uint32(~low & high))
            t += cuda.popc(np.uint32(low & high))
            if lane == 0 and block < separators.size - 1:
                word = first_word + COUNT_WORDS + 2 * group
                blocks[word] = low
                blocks[word + 1] = high
        if lane == 0:
            separators[block] = found
            if block < separators.size - 1:
                blocks[first_word] = c
                blocks[first_word + 1] = g
                blocks[first_word + 2] = t


@cuda.jit(cache=True)
def finish_blocks(text, suffixes, words, separators, blocks, separator_rows, text_start):
    """Fill each block's word of separators, list their rows, and find the row of the whole text.

    One thread a block; only the few blocks with a separator read their rows again.
    """
    block = cuda.grid(1)
    if block < separators.size - 1:
        before = np.int64(separators[block])
        here = np.int64(separators[block + 1]) - before
        blocks[block * words + COUNT_WORDS - 1] = 2 * before + (1 if here else 0)
        if here:
            rows = (words - COUNT_WORDS) * 16
            for row in range(block * rows, min((block + 1) * rows, text.size)):
                if base_before(text, suffixes, row) == 0:
                    separator_rows[before] = row
                    if suffixes[row] == 0:
                        text_start[0] = before
                    before += 1


@cuda.jit(cache=True)
def take_every(suffixes, rate, kept):
    """One thread an entry that is kept."""
    i = cuda.grid(1)
    if i < kept.size:
        kept[i] = suffixes[i * rate]


@cuda.jit(cache=True)
def count_kmers(text, k, short, counts):
    """Count every k-mer, and every suffix cut short by a separator under its k-mer with A.

    One thread a suffix; neighbours read the same bases, and one atomic sum each.
    """
    i = cuda.grid(1)
    if i < text.size:
        kmer = 0
        bases = 0
        while bases < k and text[i + bases] != 0:
            kmer = 4 * kmer + np.int64(text[i + bases]) - 1
            bases += 1
        if bases == k:
            cuda.atomic.add(counts, kmer, 1)
        else:
            cuda.atomic.add(short, kmer << (2 * (k - bases)), 1)


@cuda.jit(cache=True)
def add_neighbours(short, counts, sums):
    """What the first row of the next k-mer adds to that of this one. One thread a k-mer."""
    i = cuda.grid(1)
    if i < sums.size:
        following = short[i + 1] if i + 1 < short.size else np.uint32(0)
        sums[i] = counts[i] + following


@cuda.jit(cache=True)
def fill_table(short, counts, firsts, table):
    """Interleave first rows and counts; k-mers that do not occur get (0, 0). One thread each."""
    i = cuda.grid(1)
    if i < counts.size:
        table[2 * i] = firsts[i] + short[0] if counts[i] else np.uint32(0)
        table[2 * i + 1] = counts[i]


_CODES, _NUMBERS, _INTEGER = types.uint8[::1], types.uint32[::1], types.int64

#: The argument types that every kernel is compiled with.
KERNEL_SIGNATURES = {
    reverse_text: (_CODES, _CODES),
    fill_blocks: (_CODES, _NUMBERS, _INTEGER, _NUMBERS, _NUMBERS),
    finish_blocks: (
        _CODES, _NUMBERS, _INTEGER, _NUMBERS, _NUMBERS, _NUMBERS, types.int64[::1]
    ),
    take_every: (_NUMBERS, _INTEGER, _NUMBERS),
    count_kmers: (_CODES, _INTEGER, _NUMBERS, _NUMBERS),
    add_neighbours: (_NUMBERS, _NUMBERS, _NUMBERS),
    fill_table: (_NUMBERS, _NUMBERS, _NUMBERS, _NUMBERS),
}  # fmt: skip

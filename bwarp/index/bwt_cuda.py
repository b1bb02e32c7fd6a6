"""Make the Burrows-Wheeler transform on a GPU from parts of the suffix array; count k-mers.

    part of the suffix array -> bits of its rows -> host      2 bits per row
                             -> every p-th entry -> host      4 / p bytes per row
                             -> rows of separators -> host    a few

Each 32 rows of the BWT share a word; a word with rows of two parts gets bits from both.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from bwarp.gpu.cuda import cuda, uint8, uint32
from bwarp.gpu.device_arrays import number_at, zeros
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import ALL_LANES, WARP, launch
from bwarp.gpu.sums_and_sorts import exclusive_sum
from bwarp.gpu.transfers import into_host, to_host
from bwarp.index.bwt_cpu import count_before_blocks
from bwarp.index.fm_index import BWT, COUNT_WORDS, block_words, first_rows_of
from bwarp.index.packed_text_cpu import PackedText
from bwarp.index.suffix_array_cpu import sample_suffixes
from bwarp.index.suffix_array_cuda import Part, suffixes_in_parts
from bwarp.runtime.threads import for_each_range

_THREADS = 256


def make_bwt(
    text: PackedText, codes, occ_rate: int, sa_rate: int, most: int, threads: int = 1
) -> tuple[BWT, np.ndarray]:
    """Make the BWT of a text, and the entries 0, sa_rate, 2 sa_rate, ... of its suffix array.

    Does what `bwarp.index.bwt_cpu.make_bwt` does, given the text on the GPU as well.

    Parameters
    ----------
    codes : device array, dtype=uint8
        From `packed_text_cuda.text_on_gpu`.
    most : int
        Maximum rows of the suffix array on the GPU at a time.
    """
    n_blocks = text.size // occ_rate + 1
    bits = np.zeros((n_blocks * occ_rate // WARP, 2), np.uint32)
    sampled = np.empty(-(-text.size // sa_rate) if sa_rate else 0, np.uint32)
    rows, positions = [], []
    # The GPU starts with the suffixes that need no sample.
    with ThreadPoolExecutor(1) as pool:
        sample = pool.submit(sample_suffixes, text, threads)
        for part in suffixes_in_parts(text, codes, sample.result, most, threads):
            _add_bits(part, codes, bits, rows, positions, threads)
            if sa_rate:
                _add_sampled(part, sa_rate, sampled, threads)
    rows, positions = np.concatenate(rows), np.concatenate(positions)
    separator_rows = np.sort(rows)
    blocks = np.zeros((n_blocks, block_words(occ_rate)), np.uint32)
    bits = bits.reshape(n_blocks, -1)

    def fill(start: int, stop: int) -> None:
        blocks[start:stop, COUNT_WORDS:] = bits[start:stop]

    for_each_range(fill, n_blocks, threads)
    counts = count_before_blocks(blocks, separator_rows, text.size)
    text_start = int(np.searchsorted(separator_rows, rows[positions == 0][0]))
    return BWT(blocks, separator_rows, first_rows_of(counts), text_start), sampled


def _add_bits(part: Part, codes, bits, rows: list, positions: list, threads: int) -> None:
    """Add the bits of a part, and the rows and positions of its suffixes after separators."""
    first, count = part.first, part.suffixes.size
    begin, end = first // WARP, (first + count - 1) // WARP + 1
    words = cuda.device_array(2 * (end - begin), np.uint32)
    found = zeros(1, np.uint32)
    fill_bits[launch(WARP * (end - begin), _THREADS)](
        codes, part.suffixes, first, words, found, *part.room
    )
    # The first two words may have bits from the previous part.
    before = bits[begin].copy()
    into_host(bits[begin:end].reshape(-1), words, threads)
    bits[begin] |= before
    n_found = number_at(found, 0)
    for column, found_here in zip((rows, positions), part.room, strict=True):
        column.extend(to_host([found_here[:n_found]], threads))


def _add_sampled(part: Part, sa_rate: int, sampled: np.ndarray, threads: int) -> None:
    """Add the sampled entries of a part."""
    row = -(-part.first // sa_rate)
    offset = row * sa_rate - part.first
    kept = part.suffixes
    if sa_rate > 1:
        kept = cuda.device_array(max(0, -(-(kept.size - offset) // sa_rate)), np.uint32)
        take_every[launch(kept.size, _THREADS)](part.suffixes, offset, sa_rate, kept)
    into_host(sampled[row : row + kept.size], kept, threads)


@kernel
def fill_bits(
    codes: uint8[::1], suffixes: uint32[::1], first: int, words: uint32[::1], found: uint32[::1],
    rows: uint32[::1], positions: uint32[::1],
):  # fmt: skip
    """Write the bits of the bases before all suffixes; list suffixes preceded by a separator.

    A warp per 32 rows that share two words, a lane per row; each reads one random byte.
    """
    group = cuda.grid(1) // WARP
    if group < words.size // 2:
        row = (first // WARP + group) * WARP + cuda.laneid
        j = row - first
        is_base = False
        code = np.int32(0)
        if 0 <= j < suffixes.size:
            position = np.int64(suffixes[j])
            if position > 0 and codes[position - 1] != 0:
                is_base = True
                code = np.int32(codes[position - 1]) - 1
            else:
                at = cuda.atomic.add(found, 0, np.uint32(1))
                rows[at] = row
                positions[at] = position
        low = np.uint32(cuda.ballot_sync(ALL_LANES, is_base and (code & 1) != 0))
        high = np.uint32(cuda.ballot_sync(ALL_LANES, is_base and (code & 2) != 0))
        if cuda.laneid == 0:
            words[2 * group] = low
            words[2 * group + 1] = high


@kernel
def take_every(suffixes: uint32[::1], offset: int, rate: int, kept: uint32[::1]):
    """Copy the sampled entries. One thread each."""
    i = cuda.grid(1)
    if i < kept.size:
        kept[i] = suffixes[offset + i * rate]


# The prefix table: SA intervals of all k-mers of one length, counted on a GPU.


def prefix_table(text, prefix_length: int) -> np.ndarray:
    """Return the first row and number of rows of every k-mer of a device text, on the host.

    See `bwarp.index.bwt_cpu` for why counting suffices.
    """
    if prefix_length == 0:
        return np.empty((0, 2), np.uint32)
    kmers = 4**prefix_length
    short, counts, firsts = (zeros(kmers, np.uint32) for _ in range(3))
    count_kmers[launch(text.size, _THREADS)](text, prefix_length, short, counts)
    add_neighbours[launch(kmers, _THREADS)](short, counts, firsts)
    exclusive_sum(firsts)
    table = cuda.device_array(2 * kmers, np.uint32)
    fill_table[launch(kmers, _THREADS)](short, counts, firsts, table)
    return table.copy_to_host().reshape(kmers, 2)


@kernel
def count_kmers(text: uint8[::1], k: int, short: uint32[::1], counts: uint32[::1]):
    """Count every k-mer, and every suffix cut short by a separator under its k-mer with A.

    One thread and one atomic addition per suffix; neighbours read the same bases.
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


@kernel
def add_neighbours(short: uint32[::1], counts: uint32[::1], sums: uint32[::1]):
    """Write what the first row of each k-mer adds to that of the next. One thread per k-mer."""
    i = cuda.grid(1)
    if i < sums.size:
        following = short[i + 1] if i + 1 < short.size else np.uint32(0)
        sums[i] = counts[i] + following


@kernel
def fill_table(short: uint32[::1], counts: uint32[::1], firsts: uint32[::1], table: uint32[::1]):
    """Interleave first rows and counts; k-mers that do not occur get (0, 0). One thread each."""
    i = cuda.grid(1)
    if i < counts.size:
        table[2 * i] = firsts[i] + short[0] if counts[i] else np.uint32(0)
        table[2 * i + 1] = counts[i]

"""The Burrows-Wheeler transform made on a GPU from parts of the suffix array, and put together.

    part of the suffix array -> bits of its rows -> host      2 bits a row
                             -> every p-th entry -> host      4 / p bytes a row
                             -> rows of separators -> host    a few

Rows of the BWT share a word by 32. A word that has rows of two parts gets bits of both.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from bwarp.gpu.cuda import cuda, uint8, uint32
from bwarp.gpu.device_arrays import number_at, zeros
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import ALL_LANES, WARP, launch
from bwarp.gpu.transfers import into_host, to_host
from bwarp.index.building.bwt_cpu import count_before_blocks
from bwarp.index.building.packed_text_cpu import PackedText
from bwarp.index.building.suffix_array_cuda import Part, suffixes_in_parts
from bwarp.index.building.suffix_sample_cpu import sample_suffixes
from bwarp.index.fm_index import BWT, COUNT_WORDS, block_words, first_rows_of
from bwarp.runtime.threads import for_each_range

__all__ = ["make_bwt"]

_THREADS = 256


def make_bwt(
    text: PackedText, codes, occ_rate: int, sa_rate: int, most: int, threads: int = 1
) -> tuple[BWT, np.ndarray]:
    """The BWT of a text, and the entries 0, sa_rate, 2 sa_rate, ... of its suffix array.

    As `bwarp.index.building.bwt_cpu.make_bwt`, with the text on the GPU as well.

    Parameters
    ----------
    codes : device array, dtype=uint8
        As `packed_text_cuda.text_on_gpu` gives it.
    most : int
        Rows of the suffix array that are on the GPU at a time.
    """
    n_blocks = text.size // occ_rate + 1
    bits = np.zeros((n_blocks * occ_rate // WARP, 2), np.uint32)
    sampled = np.empty(-(-text.size // sa_rate) if sa_rate else 0, np.uint32)
    rows, positions = [], []
    # The GPU begins with what needs no sample.
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
    """Add the bits of a part, and the rows and positions of its suffixes behind separators."""
    first, count = part.first, part.suffixes.size
    begin, end = first // WARP, (first + count - 1) // WARP + 1
    words = cuda.device_array(2 * (end - begin), np.uint32)
    found = zeros(1, np.uint32)
    fill_bits[launch(WARP * (end - begin), _THREADS)](
        codes, part.suffixes, first, words, found, *part.room
    )
    # The first two words have bits of the part before, too, or none.
    before = bits[begin].copy()
    into_host(bits[begin:end].reshape(-1), words, threads)
    bits[begin] |= before
    n_found = number_at(found, 0)
    for column, found_here in zip((rows, positions), part.room, strict=True):
        column.extend(to_host([found_here[:n_found]], threads))


def _add_sampled(part: Part, sa_rate: int, sampled: np.ndarray, threads: int) -> None:
    """Add the entries of a part that are kept."""
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
    """Make the bits of the bases before all suffixes; list those that have a separator there.

    A warp 32 rows that share two words, a lane a row; one read of a random byte each.
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
    """One thread an entry that is kept."""
    i = cuda.grid(1)
    if i < kept.size:
        kept[i] = suffixes[offset + i * rate]

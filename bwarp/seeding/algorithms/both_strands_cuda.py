"""K-mers on the GPU as searches take them: both strands of each.

Item 2 i is k-mer i, item 2 i + 1 its reverse complement, packed as `bwarp.seeding.kmers` has them,
so that one piece of code searches either strand.
"""

import numpy as np

from bwarp.gpu.cuda import cuda, uint32, uint64
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import launch
from bwarp.sequence import kmer_at, reverse_complement_kmer

__all__ = ["base_of", "make_items"]

_THREADS = 256


def make_items(words: np.ndarray, k: int):
    """Upload k-mers (host, shape=(n, 1 or 2), dtype=uint64) and make both strands' items.

    Returns
    -------
    items : device array, shape=(2 * n * words a k-mer + 1,), dtype=uint64
        One word more than items need: a window at any base reads two words.
    """
    flat = cuda.to_device(np.append(words.reshape(-1), np.uint64(0)))
    items = cuda.device_array(2 * words.size + 1, np.uint64)
    make_both_strands[launch(2 * len(words) + 1, _THREADS)](
        flat, words.shape[1], k, 2 * len(words), items
    )
    return items


@cuda.jit(device=True)
def base_of(items, words_an_item, item, position):
    """A base of an item."""
    word = items[uint64(item) * uint64(words_an_item) + uint64(position >> 5)]
    return uint32((word >> uint64(62 - 2 * (position & 31))) & uint64(3))


@kernel
def make_both_strands(
    flat: uint64[::1], words_a_kmer: int, k: int, n_items: int, items: uint64[::1]
):
    """One thread an item, and one for the word after the last."""
    item = cuda.grid(1)
    if item > n_items:
        return
    for part in range(words_a_kmer):
        at = item * words_a_kmer + part
        if at < items.size:
            bases = min(32, k - 32 * part)
            bits = uint64(0)
            if item < n_items and bases > 0:
                first = (item >> 1) * words_a_kmer * 32
                if item & 1:
                    window = kmer_at(flat, first + k - 32 * part - bases, bases)
                    bits = uint64(reverse_complement_kmer(window, bases))
                    bits = uint64(bits << uint64(64 - 2 * bases))
                else:
                    bits = flat[(item >> 1) * words_a_kmer + part]
            items[at] = bits

"""The table of the SA intervals of all k-mers of a length, counted in the text on a GPU."""

import numpy as np

from bwarp.gpu.cuda import cuda, uint8, uint32
from bwarp.gpu.device_arrays import zeros
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import launch
from bwarp.gpu.prefix_sum import exclusive_sum

__all__ = ["prefix_table"]

_THREADS = 256


def prefix_table(text, prefix_length: int) -> np.ndarray:
    """First row and number of rows of every k-mer of a device text, on the host.

    `bwarp.index.building.prefix_table_cpu` says why counting is enough.
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


@kernel
def add_neighbours(short: uint32[::1], counts: uint32[::1], sums: uint32[::1]):
    """What the first row of the next k-mer adds to that of this one. One thread a k-mer."""
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

"""A simulated genome on the GPU, its index, k-mers, and their hits by comparing all windows."""

import numpy as np

from bwarp.gpu.cuda import cuda, uint32, uint64
from bwarp.index.build_cuda import build_forward, build_reverse
from bwarp.index.device_index_cuda import DeviceIndex
from bwarp.index.fm_index import FMIndex
from bwarp.index.parameters import IndexParameters
from bwarp.reference import Reference
from bwarp.seeding import find_cuda
from bwarp.seeding.exact_cuda import make_items
from bwarp.seeding.hits import SeedOptions
from bwarp.sequence import kmer_at, pack
from parts.genome_on_gpu import THREADS, blocks, random_bits, simulated_genome

__all__ = [
    "hits_by_comparing",
    "is_correct",
    "reference_of_text",
    "simulated_index",
    "simulated_kmers",
]


def reference_of_text(text: np.ndarray, threads: int) -> Reference:
    """Return the reference with this text: each separator ends a contig."""
    ends = np.flatnonzero(text == 0)
    starts = np.append(0, ends[:-1] + 1)
    codes = np.concatenate([text[a:b] for a, b in zip(starts, ends, strict=True)])
    codes -= 1
    contig_starts = np.append(0, np.cumsum(ends - starts))
    return Reference(
        names=tuple(f"contig{i}" for i in range(len(ends))),
        contig_starts=contig_starts,
        md5=("",) * len(ends),
        segment_genome=contig_starts[:-1].astype(np.uint32),
        segment_text=np.append(starts, text.size).astype(np.int64),
        packed=pack(codes, threads),
    )


def simulated_index(n: int, sa_rate: int, threads: int) -> FMIndex:
    text = simulated_genome(n).copy_to_host()
    reference = reference_of_text(text, threads)
    parameters = IndexParameters(64, sa_rate, 4)
    forward, suffixes, table = build_forward(reference, parameters, threads)
    reverse = build_reverse(reference, parameters.occ_rate, threads)
    return FMIndex(reference, forward, reverse, table, suffixes, sa_rate)


@cuda.jit
def cut_kmers(text, text_length, k, error_per_mille, both_strands, seed, words):
    """Cut k-mers at random positions and change some bases. One thread per k-mer."""
    i = cuda.grid(1)
    if i < words.size:
        start = random_bits(seed, i) % uint64(text_length - k)
        word = uint64(0)
        for base in range(k):
            code = kmer_at(text, start + uint64(base), 1)
            bits = random_bits(seed + 1, i * 64 + base)
            if (bits >> uint64(8)) % uint64(1000) < uint64(error_per_mille):
                code = bits & uint64(3)
            word |= uint64(code) << uint64(62 - 2 * base)
        if both_strands and random_bits(seed + 2, i) & uint64(1):
            turned = uint64(0)
            for base in range(k):
                code = uint64(3) - ((word >> uint64(62 - 2 * base)) & uint64(3))
                turned |= code << uint64(62 - 2 * (k - 1 - base))
            word = turned
        words[i] = word


def simulated_kmers(device, count: int, k: int, error_per_mille: int, both_strands: bool):
    words = cuda.device_array(count, np.uint64)
    cut_kmers[blocks(count), THREADS](
        device.text.bases, device.forward.n_rows, k, error_per_mille, both_strands, 7 * k, words
    )
    return words.copy_to_host().reshape(-1, 1)


@cuda.jit
def compare_windows(genome, starts, items, n_items, k, mismatches, found, n_found):
    """Compare each window of the genome with each item. One thread per window."""
    start = cuda.grid(1)
    contig = 0
    while contig < starts.size - 1 and start >= starts[contig + 1]:
        contig += 1
    if contig < starts.size - 1 and start + k <= starts[contig + 1]:
        window = kmer_at(genome, start, k)
        for item in range(n_items):
            differing = window ^ (items[item] >> uint64(64 - 2 * k))
            errors = uint32(
                cuda.popc((differing | differing >> uint64(1)) & uint64(0x5555555555555555))
            )
            if errors <= uint32(mismatches):
                at = cuda.atomic.add(n_found, 0, 1)
                if at < found.size:
                    found[at] = (
                        uint64(item) << uint64(35) | uint64(start) << uint64(3) | uint64(errors)
                    )


def hits_by_comparing(reference: Reference, words: np.ndarray, k: int, mismatches: int):
    """Return item, position and mismatches of each hit of k-mers, as sorted numbers."""
    genome, starts = cuda.to_device(reference.packed), cuda.to_device(reference.contig_starts)
    items = make_items(words, k)
    n_found = cuda.to_device(np.zeros(1, np.int64))
    found = cuda.device_array(1 << 26, np.uint64)
    compare_windows[blocks(reference.n_bases), THREADS](
        genome, starts, items.words, items.count, k, mismatches, found, n_found
    )
    count = int(n_found.copy_to_host()[0])
    assert count <= found.size
    return np.sort(found[:count].copy_to_host()) if count else np.empty(0, np.uint64)


def is_correct(
    expected, device: DeviceIndex, words, k: int, options: SeedOptions, threads: int
) -> bool:
    """Return whether a search finds and counts the same hits as comparing with every window."""
    kmers = (expected >> np.uint64(36)).astype(np.int64)
    counts = np.bincount(kmers, minlength=len(words))
    found = find_cuda.find_seeds(device, words, k, options, threads)
    limit = options.max_hits or len(expected)
    over = np.flatnonzero(counts > limit)
    parts = [
        (2 * part.kmers.astype(np.uint64) + part.strands) << np.uint64(35)
        | part.positions.astype(np.uint64) << np.uint64(3)
        | part.mismatches.astype(np.uint64)
        for part in found.hits
    ]
    mine = np.concatenate(parts) if parts else np.empty(0, np.uint64)
    return (
        np.array_equal(found.over_kmers, over)
        and np.array_equal(found.over_counts, counts[over])
        and np.array_equal(mine, expected[counts[kmers] <= limit])
    )

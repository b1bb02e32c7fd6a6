"""A genome with human-like repeats, simulated on the GPU as a text to index."""

import numpy as np

from bwarp.gpu.cuda import cuda

__all__ = ["THREADS", "blocks", "random_bits", "simulated_genome"]

THREADS = 256
CONTIGS = 24


def blocks(threads: int) -> int:
    return -(-threads // THREADS)


@cuda.jit(device=True)
def random_bits(seed, i):
    """Return 64 random bits for a pair of numbers (splitmix64)."""
    x = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(i)
    x = (x + np.uint64(0x9E3779B97F4A7C15)) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x = (x ^ (x >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return x ^ (x >> np.uint64(32))


@cuda.jit(cache=True)
def random_bases(seed, text):
    i = cuda.grid(1)
    if i < text.size:
        text[i] = 1 + np.int64(random_bits(seed, i) & np.uint64(3))


@cuda.jit(cache=True)
def plant_copies(text, source, length, starts, changed_per_mille, seed):
    """Copy text[source:source + length] to `starts`, with some bases replaced at random."""
    i = cuda.grid(1)
    if i < starts.size * length:
        copy = i // length
        offset = i - copy * length
        at = starts[copy] + offset
        bits = random_bits(seed, i)
        base = text[source + offset]
        if np.int64((bits >> np.uint64(8)) % np.uint64(1000)) < changed_per_mille:
            base = np.uint8(1 + np.int64(bits & np.uint64(3)))
        if not source <= at < source + length:
            text[at] = base


@cuda.jit(cache=True)
def put_separators(text, contigs):
    i = cuda.grid(1)
    if i < contigs:
        text[(i + 1) * text.size // contigs - 1] = 0


def simulated_genome(n: int, seed: int = 1):
    """Simulate a device text of n bases, in contigs of equal length.

    It contains 10 % short and 20 % long dispersed repeats of all ages, 1.6 % segmental
    duplications, and a satellite array.
    """
    rng = np.random.default_rng(seed)
    text = cuda.device_array(n, np.uint8)
    random_bases[blocks(n), THREADS](seed, text)
    scale = n / 3.1e9

    def plant(length, copies, changed_per_mille):
        # Starts are on a grid, so copies of one family do not overlap, and the result does not
        # depend on the order of writes. The original is the first copy.
        starts = rng.choice(n // length, max(2, round(copies * scale)), replace=False) * length
        source, copies_at = int(starts[0]), cuda.to_device(starts[1:].astype(np.int64))
        plant_copies[blocks(copies_at.size * length), THREADS](
            text, source, length, copies_at, changed_per_mille, int(rng.integers(1 << 30))
        )

    for _ in range(20):
        plant(300, 50_000, int(rng.integers(30, 200)))
    for _ in range(40):
        plant(6000, 2500, int(rng.integers(10, 250)))
    for _ in range(round(1000 * scale) + 1):
        plant(min(50_000, n // 40), 0, int(rng.choice([0, 1, 10, 20])))
    start, unit = n // 3, 171
    starts = start + unit * np.arange(1, max(2, round(3_000_000 * scale / unit)))
    plant_copies[blocks(starts.size * unit), THREADS](
        text, start, unit, cuda.to_device(starts), 0, 0
    )
    put_separators[1, THREADS](text, CONTIGS)
    return text

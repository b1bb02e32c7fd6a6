"""The bound by 4-mers never exceeds the number of edits."""

import random

import numba
import numpy as np

from bwarp.allmap.candidates_cpu import blocks_of, cannot_align, least_kmers_spoiled


def test_a_read_with_edits_is_never_dropped():
    rng = random.Random(7)
    dropped = 0
    for _ in range(3000):
        genome = [rng.randrange(4) for _ in range(400)]
        length, edits = rng.randrange(8, 200), rng.randrange(0, 12)
        gaps = rng.randrange(edits + 1)
        start = rng.randrange(40, 150)
        read, at, left = [], start, gaps
        spots = set(rng.sample(range(length), min(edits, length)))
        seeds = {0}  # diagonals, relative to the start, on which a base of the alignment lies
        while len(read) < length:
            if len(read) in spots:
                spots.remove(len(read))
                kind = rng.randrange(3) if left else 0
                if kind == 1:
                    read.append(rng.randrange(4))
                    left -= 1
                elif kind == 2:
                    at += 1
                    left -= 1
                else:
                    read.append((genome[at] + rng.randrange(1, 4)) % 4)
                    at += 1
                seeds.add(at - start - len(read))
                continue
            read.append(genome[at])
            at += 1
        blocks, reads = blocks_of(np.array(genome, np.uint8)), blocks_of(np.array(read, np.uint8))
        for k in seeds:
            assert least_kmers_spoiled(blocks, start + k, reads, 0, length, gaps, 99) <= edits
        elsewhere = least_kmers_spoiled(blocks, 20, reads, 0, length, gaps, 99)
        dropped += elsewhere > edits
    assert dropped > 1000


BATCH = 50_000


@numba.njit
def _mutated(genome, length, most_edits, most_gaps, rng, reads, seeds, n_seeds):
    """Return reads with at most this many edits, and the diagonals of unedited bases."""
    for i in range(len(reads)):
        edits, gaps = rng.integers(0, most_edits + 1), most_gaps
        start = rng.integers(100, genome.size - 2 * length - 200)
        at, n, seen = start, 0, 0
        while n < length:
            if edits and rng.random() < 2.5 * most_edits / length:
                edits -= 1
                kind = rng.integers(0, 3) if gaps else 0
                if kind == 0:
                    reads[i, n] = (genome[at] + rng.integers(1, 4)) & 3
                    at += 1
                    n += 1
                elif kind == 1:
                    reads[i, n] = rng.integers(0, 4)
                    gaps -= 1
                    n += 1
                else:
                    at += 1
                    gaps -= 1
                continue
            reads[i, n] = genome[at]
            if seen == 0 or seeds[i, seen - 1] != at - n:
                seeds[i, seen] = at - n
                seen += 1
            at += 1
            n += 1
        n_seeds[i] = seen


@numba.njit
def _dropped(genome, reads, length, seeds, n_seeds, edits, gaps, shift):
    """Count the reads that the bound excludes on a diagonal on which they align."""
    dropped = 0
    for i in range(len(seeds)):
        for k in range(n_seeds[i]):
            if cannot_align(genome, seeds[i, k] + shift, reads, i * length, length, gaps, edits):
                dropped += 1
                break
    return dropped


def test_none_of_a_million_windows_with_edits_is_dropped():
    rng = np.random.default_rng(5)
    genome = rng.integers(0, 4, 1_000_000).astype(np.uint8)
    genome[: 1 << 18] = np.resize(genome[:700], 1 << 18)  # tandem repeats
    genome[1 << 19 : (1 << 19) + 5000] = 0
    blocks = blocks_of(genome)
    elsewhere = 0
    for batch in range(20):
        length = (36, 76, 100, 150, 64)[batch % 5]
        edits = (2, 3, 4, 8)[batch % 4]
        gaps = (edits, 1, 0)[batch % 3]
        reads = np.empty((BATCH, length), np.uint8)
        seeds, n_seeds = np.empty((BATCH, edits + 1), np.int64), np.empty(BATCH, np.int64)
        _mutated(genome, length, edits, gaps, rng, reads, seeds, n_seeds)
        given = (blocks, blocks_of(reads.reshape(-1)), length, seeds, n_seeds, edits, gaps)
        assert _dropped(*given, 0) == 0
        elsewhere += _dropped(*given, 57)
    assert elsewhere > 20 * BATCH // 2

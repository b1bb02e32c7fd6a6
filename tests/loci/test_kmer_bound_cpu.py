"""The bound by 8-mers never shows more edits than there are."""

import random

import numpy as np

from bwarp.loci.kmer_bound_cpu import least_kmers_spoiled
from bwarp.loci.read_blocks import blocks_of


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
        seeds = {0}  # diagonals, from the start's, that a base of the alignment lies on
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

"""K-mers of simulated reads."""

import numpy as np

from bwarp.io.fastx import SequenceBatch
from bwarp.seeding.find import kmer_batches
from bwarp.seeding.kmers import KmerBatch
from bwarp.simulation.reads import ReadParameters, simulate_reads
from bwarp.simulation.variants import VariantParameters, simulate_variants

__all__ = ["kmers_of_reads", "packed"]

READ_LENGTH, KMERS_A_READ = 100, 8


def kmers_of_reads(codes, offsets, k: int, n_kmers: int, threads: int) -> np.ndarray:
    """Return k-mers evenly spaced in simulated reads, shape=(n_kmers, k), dtype=uint8."""
    variants = simulate_variants(codes, offsets, VariantParameters(), 1, threads)
    parameters = ReadParameters(length=READ_LENGTH, ends=1)
    n_reads = -(-n_kmers // KMERS_A_READ)
    reads = simulate_reads(codes, offsets, variants, parameters, 1, 0, n_reads, threads).codes[0]
    starts = np.linspace(0, READ_LENGTH - k, KMERS_A_READ).astype(int)
    windows = reads[:, starts[:, None] + np.arange(k)]
    return np.ascontiguousarray(windows.reshape(-1, k)[:n_kmers])


def packed(kmers: np.ndarray) -> KmerBatch:
    n, k = kmers.shape
    headers = np.zeros((n, 2), np.int64)
    offsets = np.arange(n + 1) * k
    (batch,) = kmer_batches(
        SequenceBatch(kmers.reshape(-1), offsets, None, np.zeros(0, np.uint8), headers, 0)
    )
    return batch

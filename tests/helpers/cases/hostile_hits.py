"""Scored hits that are difficult for primary selection, on the host and on a GPU."""

import numpy as np

from bwarp.gpu.cuda import cuda
from bwarp.gpu.device_arrays import columns
from bwarp.mapping.primary_hits_cuda import DevicePrimary
from bwarp.mapping.scored_hits_cpu import ScoredHits
from bwarp.mapping.scored_hits_cuda import DeviceScoredHits
from bwarp.reads.device_reads_cuda import DeviceReads

#: One contig is empty, and one is shorter than a read.
CONTIG_STARTS = np.array([0, 3000, 3000, 3150, 7000, 20_000])

#: Hits of reads: none, few, and more than a warp has lanes.
COUNTS = (0, 1, 1, 2, 3, 8, 20, 33, 45)


def hostile_hits(rng, n_reads, match=1, counts=COUNTS):
    """Return hits of reads of 20 to 300 bases; neighbouring reads are pairs.

    Hits are near a locus of the pair or anywhere, across borders of contigs, with few distinct
    scores, clipped or not, gapped or not.

    Returns
    -------
    hits : ScoredHits
    lengths : ndarray, shape=(n_reads,), dtype=int64
    """
    lengths, rows = rng.integers(20, 301, n_reads), []
    genome = CONTIG_STARTS[-1]
    for read in range(n_reads):
        if read % 2 == 0:
            is_short, has_few_scores = rng.random() < 0.3, rng.random() < 0.5
            near = int(rng.choice([rng.integers(0, genome), *CONTIG_STARTS]))
        if is_short:
            lengths[read] = rng.integers(20, 70)
        length, found = int(lengths[read]), []
        for _ in range(int(rng.choice(counts))):
            begin, end = 0, length
            if rng.random() < 0.4:
                begin, end = sorted(rng.choice(length + 1, 2, replace=False).tolist())
            start = (
                near + int(rng.integers(-700, 700))
                if rng.random() < 0.7
                else int(rng.integers(0, genome))
            )
            start = min(max(start, 0), genome - (end - begin))
            lost = rng.choice([0, 5]) if has_few_scores else rng.choice([0, 1, 4, 5, 7, 12, 50])
            score = max(0, match * (end - begin - int(lost)))
            strand, gapless = int(rng.integers(2)), int(rng.random() < 0.8)
            found.append((read, strand, score, start, start + end - begin, begin, end, gapless))
            if rng.random() < 0.1:
                found.append(found[-1])
        rows += sorted(found, key=lambda row: -row[2])
    table = np.array(rows, np.int64).reshape(-1, 8)
    reads, strands, scores, starts, ends, begins, stops, gapless = table.T.copy()
    offsets = np.concatenate([[0], np.cumsum(np.bincount(reads, minlength=n_reads))])
    hits = ScoredHits(
        reads.astype(np.int32), strands.astype(np.uint8), scores.astype(np.int32), starts, ends,
        begins.astype(np.int32), stops.astype(np.int32), gapless.astype(bool), starts, ends,
        offsets,
    )  # fmt: skip
    return hits, lengths


def hits_on_gpu(hits: ScoredHits) -> DeviceScoredHits:
    rows = np.stack([
        hits.scores, hits.starts, hits.ends, hits.read_starts, hits.read_ends, hits.gapless,
        hits.window_starts, hits.window_ends,
    ], axis=1).astype(np.int64)  # fmt: skip
    n = len(rows)
    arrays = (np.append(hits.strands, np.uint8(0)), np.append(rows, 0), hits.offsets)
    types = (np.uint8, np.int64, np.uint32)
    there = (cuda.to_device(a.astype(t)) for a, t in zip(arrays, types, strict=True))
    return DeviceScoredHits(*there, n)


def reads_on_gpu(lengths) -> DeviceReads:
    """Return reads on the GPU that only have lengths."""
    offsets = cuda.to_device(np.concatenate([[0], np.cumsum(lengths)]))
    n_bases, longest = int(lengths.sum()), int(lengths.max())
    return columns(DeviceReads, 1, offsets=offsets, n_bases=n_bases, longest=longest)


def primary_on_gpu(primary) -> DevicePrimary:
    """Copy a `PrimarySelection` to the GPU."""
    types = (np.int32, np.uint8, np.int32, np.uint8)
    return DevicePrimary(
        *(cuda.to_device(a.astype(t)) for a, t in zip(primary, types, strict=True))
    )

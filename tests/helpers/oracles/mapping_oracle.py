"""Simple versions of the mapper's computations, and small genomes for them."""

import numpy as np

from bwarp.mapping.extension_cpu import Genome, genome_of
from bwarp.mapping.scored_hits_cpu import ScoredHits
from bwarp.mapping.seeds_cpu import Candidates
from bwarp.reference import make_reference
from bwarp.sequence import decode
from tests.helpers.oracles.index_oracle import index_of

MINUS_INFINITY = -(10**9)


def random_bases(rng, n: int) -> bytes:
    return decode(rng.integers(0, 4, n).astype(np.uint8))


def index_and_genome(contigs: list[bytes]):
    index = index_of(contigs)
    return index, genome_of(index.reference)


def genome_with(codes: np.ndarray, contig_starts) -> Genome:
    """Return a genome of these codes; 4 is an ambiguous base."""
    names = tuple(f"contig{i}" for i in range(len(contig_starts) - 1))
    return genome_of(make_reference(names, contig_starts, codes))


def codes_in(genome: Genome) -> np.ndarray:
    """Return the codes of all bases of a genome."""
    words = genome.blocks.reshape(-1, 3)
    low, high, ambiguous = (
        np.unpackbits(np.ascontiguousarray(words[:, i]).view(np.uint8), bitorder="little")
        for i in range(3)
    )
    codes = np.where(ambiguous, 4, low + 2 * high).astype(np.uint8)
    return codes[: genome.contig_starts[-1]]


def flat(reads: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return concatenated reads, and their starts and ends."""
    offsets = np.concatenate([[0], np.cumsum([len(read) for read in reads])]).astype(np.int64)
    return np.concatenate([*reads, np.empty(0, np.uint8)]).astype(np.uint8), offsets


def opposite(codes: np.ndarray) -> np.ndarray:
    return np.where(codes < 4, 3 - codes, codes)[::-1].astype(np.uint8)


def candidates_at(reads, strands, diagonals, n_reads) -> Candidates:
    """Return one candidate per row, with all seeds on one diagonal."""
    diagonals = np.array(diagonals, np.int64)
    return Candidates(
        reads=np.array(reads, np.int32),
        strands=np.array(strands, np.uint8),
        diagonals=diagonals,
        lowest=diagonals,
        highest=diagonals,
        seeds=np.ones(diagonals.size, np.int32),
        offsets=np.searchsorted(reads, np.arange(n_reads + 1)),
        score_bounds=np.zeros(n_reads, np.int32),
        unlocated=np.zeros(n_reads, np.int32),
        searched=np.zeros(3, np.int64),
    )


def hits_of_rows(rows: list[list[tuple]]) -> ScoredHits:
    """Return hits given as (score, strand, start, end) per read, best first; whole reads."""
    flat_rows = [(read, *row) for read, part in enumerate(rows) for row in part]
    table = np.array(flat_rows, np.int64).reshape(-1, 5)
    return ScoredHits(
        reads=table[:, 0].astype(np.int32),
        strands=table[:, 2].astype(np.uint8),
        scores=table[:, 1].astype(np.int32),
        starts=table[:, 3].copy(),
        ends=table[:, 4].copy(),
        read_starts=np.zeros(len(table), np.int32),
        read_ends=(table[:, 4] - table[:, 3]).astype(np.int32),
        gapless=np.ones(len(table), bool),
        window_starts=table[:, 3].copy(),
        window_ends=table[:, 4].copy(),
        offsets=np.concatenate([[0], np.cumsum([len(part) for part in rows])]).astype(np.int64),
    )


def base_score(a: int, b: int, match: int = 1, mismatch: int = -4) -> int:
    return match if a == b < 4 else mismatch


def best_stretch(read, genome, diagonal, low, high, clip) -> int:
    """Return the best clip-penalised score of parts of a diagonal in read bases low to high."""
    scores = [base_score(read[i], genome[diagonal + i]) for i in range(low, high)]
    sums = np.concatenate([[0], np.cumsum(scores)])
    return max(
        int(sums[stop - low] - sums[start - low]) - clip * ((start > 0) + (stop < len(read)))
        for start in range(low, high)
        for stop in range(start + 1, high + 1)
    )


def best_scores(read, window, parameters) -> tuple[int, int]:
    """Return the best local score, and the best clip-penalised one, from whole matrices."""
    p = parameters
    best = []
    for clip in (0, p.clip):
        H = [[MINUS_INFINITY] * (len(window) + 1) for _ in range(len(read) + 1)]
        D = [row[:] for row in H]
        I = [row[:] for row in H]  # noqa: E741
        top = MINUS_INFINITY
        for i in range(len(read) + 1):
            start = -clip if i else 0
            for j in range(len(window) + 1):
                if j:
                    D[i][j] = max(H[i][j - 1] - p.gap_open, D[i][j - 1]) - p.gap_extend
                if i:
                    I[i][j] = max(H[i - 1][j] - p.gap_open, I[i - 1][j]) - p.gap_extend
                diagonal = MINUS_INFINITY
                if i and j:
                    diagonal = H[i - 1][j - 1] + base_score(
                        read[i - 1], window[j - 1], p.match, p.mismatch
                    )
                H[i][j] = max(start, diagonal, D[i][j], I[i][j])
                top = max(top, H[i][j] - (clip if i < len(read) else 0))
        best.append(top)
    return best[0], best[1]

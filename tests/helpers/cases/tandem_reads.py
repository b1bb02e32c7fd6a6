"""A genome of imperfect tandem repeats, and reads with hits in it."""

from typing import NamedTuple

import numpy as np

from bwarp.mapping.parameters import MappingParameters
from bwarp.mapping.primary_hits_cpu import PrimarySelection
from bwarp.mapping.scored_hits_cpu import ScoredHits
from bwarp.reference import Reference, make_reference
from tests.helpers.oracles.mapping_oracle import flat, opposite
from tests.helpers.oracles.tandem_oracle import lowered_qualities


def repeats_and_reads(rng, n_reads: int) -> tuple[Reference, np.ndarray, list, ScoredHits]:
    """Return a reference and its bases, reads of it, and a hit of each.

    Contig ends cut some of the repeats; some hits have gaps, so that their start is a guess.
    """
    starts = np.array([0, 500, 900, 900, 1500, 4000])
    bases = rng.integers(0, 4, starts[-1]).astype(np.uint8)
    for at in range(0, starts[-1] - 450, 450):
        unit = rng.integers(0, 4, rng.integers(1, 130))
        bases[at : at + 380] = np.resize(unit, 380)
    errors = rng.random(starts[-1]) < 0.004
    bases[errors] = rng.integers(0, 5, errors.sum())
    reads, rows = [], []
    for _ in range(n_reads):
        length = int(rng.choice([rng.integers(20, 301), 32, 64, 65, 96]))
        start = int(rng.integers(0, starts[-1] - length))
        read = bases[start : start + length].copy()
        errors = rng.random(length) < rng.choice([0, 0.005, 0.03])
        read[errors] = rng.integers(0, 5, errors.sum())
        strand, begin, moved = int(rng.integers(2)), int(rng.choice([0, 0, 7])), 0
        gapless = rng.random() < 0.7
        if not gapless:
            moved = int(rng.integers(-6, 40))
        reads.append(opposite(read) if strand else read)
        rows.append((strand, length, start + begin - moved, start + length, begin, length, gapless))
    strands, scores, hit_starts, ends, begins, stops, gapless = np.array(rows, np.int64).T
    scores = scores - rng.choice([0, 3, 6], n_reads)
    hits = ScoredHits(
        np.arange(n_reads, dtype=np.int32), strands.astype(np.uint8), scores.astype(np.int32),
        hit_starts, ends, begins.astype(np.int32), stops.astype(np.int32), gapless.astype(bool),
        hit_starts, ends, np.arange(n_reads + 1),
    )  # fmt: skip
    names = tuple(f"contig{i}" for i in range(len(starts) - 1))
    return make_reference(names, starts, bases), bases, reads, hits


class TandemCase(NamedTuple):
    """Reads in tandem repeats with a primary hit each or none, and the expected qualities."""

    reference: Reference
    codes: np.ndarray
    offsets: np.ndarray
    hits: ScoredHits
    primary: PrimarySelection
    before: np.ndarray
    expected: list[int]


def tandem_case(seed: int, parameters: MappingParameters) -> TandemCase:
    rng, n_reads = np.random.default_rng(seed), 203
    reference, bases, reads, hits = repeats_and_reads(rng, n_reads)
    hits.scores[:] *= parameters.match
    selected = np.where(rng.random(n_reads) < 0.9, np.arange(n_reads), -1)
    before = rng.integers(0, 61, n_reads).astype(np.uint8)
    none = np.zeros(n_reads, np.int32)
    primary = PrimarySelection(selected, before.copy(), none, none.astype(bool))
    expected = lowered_qualities(bases, reference.contig_starts, reads, hits, primary, parameters)
    return TandemCase(reference, *flat(reads), hits, primary, before, expected)

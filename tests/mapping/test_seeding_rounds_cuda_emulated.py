"""Hits found by the GPU's kernels in plain Python, against those of the CPU."""

from dataclasses import replace

import numpy as np
import pytest

from tests.helpers.oracles.mapping_oracle import (
    codes_in,
    flat,
    index_and_genome,
    opposite,
    random_bases,
)

pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")

from bwarp.gpu.transfers import PinnedBuffer
from bwarp.mapping import seeding_rounds_cuda
from bwarp.mapping.extension_cpu import extend
from bwarp.mapping.insert_size import InsertSize
from bwarp.mapping.mate_rescue_cpu import rescue_candidates
from bwarp.mapping.parameters import END_TO_END, LOCAL, MappingParameters, SeedRound, of_ends
from bwarp.mapping.pipeline import CpuMapEngine
from bwarp.mapping.scored_hits_cpu import merge
from bwarp.mapping.scored_hits_cuda import hits_on_host
from bwarp.reads.read_chunks import ReadChunk
from tests.helpers.gpu.emulated_mapping import pretend

PARAMETERS = MappingParameters(
    first=SeedRound(length=16, step=25, hits=6, least_hits=0),
    resolved_margin=4,
    second=SeedRound(length=14, step=10, hits=8, least_hits=5),
    long=SeedRound(length=18, step=5, hits=20, least_hits=10),
    more_hits=SeedRound(length=15, step=4, hits=40, least_hits=0),
    short=SeedRound(length=13, step=3, hits=10, least_hits=6),
    candidates_a_read=4,
    largest_gap=6,
    least_score=15,
    least_mate_score=11,
    hopeless_margin=15,
)
INSERT = InsertSize(130.0, 5.0, 110, 150)


def hostile_contigs(rng) -> list[bytes]:
    """Return contigs with dispersed and tandem repeats, ambiguous bases, and very short ones."""
    unit = random_bases(rng, 120)
    return [
        random_bases(rng, 250) + unit + random_bases(rng, 40) + unit[:100] + b"NN",
        b"AC" * 30 + random_bases(rng, 30),
        random_bases(rng, 25),
        unit + random_bases(rng, 200) + b"A" * 30,
    ]


def hostile_pairs(rng, genome, n_pairs: int) -> list[np.ndarray]:
    """Return pairs with errors and gaps, across borders; random, short, empty, or all N."""
    reads = []
    for _ in range(n_pairs):
        start = int(rng.integers(0, genome.size - 130))
        for read in (genome[start : start + 60], opposite(genome[start + 70 : start + 130])):
            letters = read.tolist()
            for _ in range(int(rng.integers(0, 7))):
                letters[rng.integers(60)] = int(rng.integers(0, 5))
            kind = rng.random()
            if kind < 0.2:
                at = int(rng.integers(5, 50))
                del letters[at : at + 3]
            elif kind < 0.3:
                letters[30:30] = [0, 1]
            elif kind < 0.4:
                letters = rng.integers(0, 4, 60).tolist()
            reads.append(np.array(letters, np.uint8))
    # A mate that seeds do not find, but words of eight bases do.
    reads[0] = genome[100:160].copy()
    reads[1] = opposite(genome[170:230])
    reads[1][::12] = (reads[1][::12] + 1) & 3
    reads[3] = reads[3][:7]
    reads[4] = np.empty(0, np.uint8)
    reads[6] = np.full(40, 4, np.uint8)
    if n_pairs > 4:
        # The window of the second part contains the first, which scores more.
        reads[8] = np.concatenate([genome[100:135], genome[123:148]])
    return reads


def assert_same(hits, expected):
    """Check that arrays in two named tuples or dataclasses are equal."""
    names = getattr(expected, "_fields", None) or vars(expected)
    for name in names:
        got, wanted = getattr(hits, name), getattr(expected, name)
        assert got.dtype == wanted.dtype, name
        assert got.tolist() == wanted.tolist(), name


def bases_of(blocks, n_bases: int) -> list[int]:
    """Return the bases in blocks, followed by ambiguous ones."""
    words = np.array(blocks).reshape(-1, 4)
    low, high, ambiguous = (
        np.unpackbits(np.ascontiguousarray(words[:, i]).view(np.uint8), bitorder="little")
        for i in range(3)
    )
    codes = np.where(ambiguous, 4, low + 2 * high)
    assert (codes[n_bases:] == 4).all()
    return codes[:n_bases].tolist()


@pytest.mark.parametrize(("seed", "orientation", "mode"), [(0, 0, LOCAL), (1, 3, END_TO_END)])
def test_the_hits_of_reads_and_of_their_mates(monkeypatch, seed, orientation, mode):
    rng = np.random.default_rng(seed)
    parameters = replace(PARAMETERS, mode=mode)
    index, genome = index_and_genome(hostile_contigs(rng))
    bases = codes_in(genome)
    codes, offsets = flat(hostile_pairs(rng, bases, 12))
    names = np.zeros((12, 2), np.int64)
    chunk = ReadChunk(codes, offsets, None, np.empty(0, np.uint8), names, 2, 0)
    alone = CpuMapEngine(index, genome, parameters).find(chunk)
    insert = INSERT._replace(orientation=orientation)
    candidates = rescue_candidates(genome, alone.both, offsets, alone.hits, insert, parameters)
    low = of_ends(parameters, 2)
    more = extend(genome, alone.both, offsets, candidates, low)
    assert len(candidates.reads) > 0 or orientation != 0
    assert alone.unlocated.any()
    assert not alone.hits.gapless.all()
    if mode == LOCAL:
        assert alone.hits.scores[alone.hits.reads == 8].tolist()[:2] == [35, 26]
    pretend(monkeypatch)
    device = seeding_rounds_cuda.prepare(index)
    assert bases_of(device.genome.blocks, bases.size) == bases.tolist()
    assert 4 in bases
    scored = seeding_rounds_cuda.score_reads(device, codes, offsets, low)
    assert np.array(scored.reads.both).tolist() == alone.both.tolist()
    assert np.array(scored.unlocated).tolist() == alone.unlocated.tolist()
    assert scored.searched.tolist() == alone.searched.tolist()
    assert_same(hits_on_host(scored.hits, PinnedBuffer()), alone.hits)
    with_mates = seeding_rounds_cuda.add_mates(device, scored, insert, parameters)
    assert_same(hits_on_host(with_mates, PinnedBuffer()), merge(alone.hits, more))

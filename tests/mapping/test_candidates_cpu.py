"""Candidates contain all loci where comparing seeds with all windows finds a match."""

from dataclasses import replace

import numpy as np
import pytest

from bwarp.mapping.parameters import MappingParameters, SeedRound
from bwarp.mapping.seeds_cpu import find_candidates
from bwarp.sequence import decode, encode
from tests.helpers.oracles.mapping_oracle import (
    best_stretch,
    codes_in,
    flat,
    index_and_genome,
    opposite,
    random_bases,
)

PARAMETERS = MappingParameters()
K, STEP = 12, 10


@pytest.fixture(scope="module")
def repeats():
    """Return contigs with repeats within and between, a tandem, ambiguous bases; one is empty."""
    rng = np.random.default_rng(1)
    unit, other = random_bases(rng, 80), random_bases(rng, 13)
    contigs = [
        random_bases(rng, 150) + unit + random_bases(rng, 40) + unit,
        b"",
        other * 6 + b"N" * 7 + unit + random_bases(rng, 50),
        random_bases(rng, 30),
    ]
    return index_and_genome(contigs)


def reads_of(genome, rng, count):
    """Return reads with a few changes, half of them reversed, some across a border."""
    bases = codes_in(genome)
    reads = []
    for _ in range(count):
        length = int(rng.integers(5, 90))
        start = int(rng.integers(0, bases.size - length))
        read = bases[start : start + length].copy()
        changed = rng.random(length) < 0.03
        read[changed] = rng.integers(0, 5, changed.sum())
        reads.append(opposite(read) if rng.random() < 0.5 else read)
    return reads


def candidates(index, codes, offsets, step, hits, parameters=PARAMETERS, reads=None):
    seeds = SeedRound(K, step, hits, hits // 2)
    reads = np.arange(len(offsets) - 1) if reads is None else reads
    return find_candidates(index, codes, offsets, reads, seeds, parameters)


def diagonals_by_comparing(genome, read, k, step) -> list[tuple[int, int]]:
    """Return (strand, diagonal) of each hit of each seed."""
    bases = codes_in(genome)
    room = len(read) - k
    if room < 0:
        return []
    n = max(1, min(len(read) // step, room + 1))
    starts = [i * room // max(1, n - 1) for i in range(n)]
    borders = set(genome.contig_starts.tolist())
    found = []
    for start in starts:
        for strand in (0, 1):
            turned = opposite(read) if strand else read
            read_position = room - start if strand else start
            seed = turned[read_position : read_position + k]
            if seed.max() > 3:
                continue
            for at in range(bases.size - k + 1):
                inside = not any(at < border < at + k for border in borders)
                if inside and (bases[at : at + k] == seed).all():
                    found.append((strand, at - read_position))
    return sorted(found)


def test_all_hits_are_in_candidates(repeats):
    index, genome = repeats
    reads = reads_of(genome, np.random.default_rng(2), 60)
    reads += [np.full(50, 4, np.uint8), np.empty(0, np.uint8)]
    codes, offsets = flat(reads)
    found = candidates(index, codes, offsets, STEP, 10_000)
    assert not found.unlocated.any()
    n_hits = 0
    for i, read in enumerate(reads):
        expected = diagonals_by_comparing(genome, read, K, STEP)
        mine = range(found.offsets[i], found.offsets[i + 1])
        assert all(found.reads[j] == i for j in mine)
        for strand, diagonal in expected:
            assert any(
                found.strands[j] == strand and found.lowest[j] <= diagonal <= found.highest[j]
                for j in mine
            )
        for j in mine:
            assert (found.strands[j], found.diagonals[j]) in expected
            here = [d for s, d in expected if s == found.strands[j]]
            assert found.seeds[j] == sum(found.lowest[j] <= d <= found.highest[j] for d in here)
        seeds = found.seeds[found.offsets[i] : found.offsets[i + 1]]
        assert (np.diff(seeds) <= 0).all()
        n_hits += len(expected)
    assert n_hits > 300
    n_seeds = sum(
        max(1, min(len(read) // STEP, len(read) - K + 1)) for read in reads if len(read) >= K
    )
    assert found.searched.tolist() == [n_seeds, n_hits, len(found.reads)]


def test_the_copies_of_a_tandem_repeat_are_candidates_of_their_own():
    rng = np.random.default_rng(3)
    unit = random_bases(rng, 25)
    index, genome = index_and_genome([random_bases(rng, 90) + unit * 6 + random_bases(rng, 90)])
    codes, offsets = flat([codes_in(genome)[90:190].copy()])
    found = candidates(index, codes, offsets, STEP, 10_000)
    assert {90, 115, 140} <= set(found.diagonals.tolist())


@pytest.mark.parametrize(("step", "hits", "most"), [(12, 10, 16), (12, 10_000, 3), (5, 12, 4)])
def test_an_unlocated_hit_scores_no_more_than_its_bound(step, hits, most):
    rng = np.random.default_rng(4)
    unit = encode(random_bases(rng, 60))
    copies = []
    for _ in range(30):
        copy = unit.copy()
        changed = rng.random(60) < 0.06
        copy[changed] = rng.integers(0, 4, changed.sum())
        copies.append(decode(copy) + random_bases(rng, 30))
    index, genome = index_and_genome([b"".join(copies)])
    bases = codes_in(genome)
    reads = [bases[90 * i : 90 * i + 60].copy() for i in range(30)]
    reads.append(encode(random_bases(rng, 60)))
    codes, offsets = flat(reads)
    parameters = replace(PARAMETERS, candidates_a_read=most)
    found = candidates(index, codes, offsets, step, hits, parameters)
    n_reached = 0
    for i, read in enumerate(reads):
        mine = range(found.offsets[i], found.offsets[i + 1])
        assert len(mine) <= most
        best = max(
            best_stretch(read, bases, 90 * copy, 0, 60, 5)
            for copy in range(30)
            if not any(
                found.strands[j] == 0 and found.lowest[j] <= 90 * copy <= found.highest[j]
                for j in mine
            )
        )
        if found.unlocated[i]:
            assert best <= found.score_bounds[i] <= 60
            assert found.unlocated[i] == max(0, 2 * found.score_bounds[i] - 60)
            n_reached += best >= found.score_bounds[i] - 10
    assert np.count_nonzero(found.score_bounds[:30]) > 20
    assert found.unlocated[:30].any()
    assert found.unlocated[30] == 0
    assert n_reached > 3


def test_loci_left_out_may_share_the_seeds_that_are_located():
    rng = np.random.default_rng(4)
    unit = random_bases(rng, 60)
    # The first seed is in few copies; all others are in too many to be located.
    whole, worn = unit + random_bases(rng, 30), random_bases(rng, 14) + unit[14:] + b"A" * 30
    index, _genome = index_and_genome([whole * 6 + worn * 40])
    codes, offsets = flat([encode(unit)])
    parameters = replace(PARAMETERS, candidates_a_read=4)
    found = candidates(index, codes, offsets, STEP, 10, parameters=parameters)
    assert len(found.reads) == 4
    # Two equally good copies are among those not located.
    assert (found.score_bounds[0], found.unlocated[0]) == (60, 60)


def test_some_hits_of_frequent_seeds_are_located():
    rng = np.random.default_rng(4)
    unit = random_bases(rng, 60)
    contigs = [unit + random_bases(rng, 70) for _ in range(20)] + [random_bases(rng, 200)]
    index, _genome = index_and_genome(contigs)
    codes, offsets = flat([encode(unit), encode(contigs[-1][:60])])
    found = candidates(index, codes, offsets, STEP, 30)
    # The hits of one seed are located: another locus could differ by a single base.
    assert found.score_bounds.tolist() == [55, 45]
    assert found.unlocated.tolist() == [50, 0]
    first = slice(0, found.offsets[1])
    assert 20 <= found.seeds[first].sum() <= 30
    assert set(found.diagonals[first].tolist()) <= {130 * i for i in range(20)}


def test_no_reads(repeats):
    index, _ = repeats
    found = candidates(index, np.empty(0, np.uint8), np.zeros(1, np.int64), STEP, 20)
    assert (len(found.reads), found.offsets.tolist()) == (0, [0])
    assert found.searched.tolist() == [0, 0, 0]


def test_some_reads_as_if_alone(repeats):
    index, genome = repeats
    reads = reads_of(genome, np.random.default_rng(6), 200)
    codes, offsets = flat(reads)
    some = np.arange(1, 200, 3)
    found = candidates(index, codes, offsets, STEP, 20, reads=some)
    alone = candidates(index, *flat([reads[i] for i in some]), STEP, 20)
    assert np.array_equal(found.reads, some[alone.reads])
    assert np.array_equal(np.diff(found.offsets)[some], np.diff(alone.offsets))
    for name in ("strands", "diagonals", "lowest", "highest", "seeds"):
        assert np.array_equal(getattr(found, name), getattr(alone, name)), name
    assert np.array_equal(found.score_bounds[some], alone.score_bounds)

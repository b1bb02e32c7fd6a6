"""Reads of all lengths map to their origins, and copies lower each other's quality."""

import numpy as np
import pytest

import bwarp
from bwarp.mapping.parameters import MappingParameters
from bwarp.reads.read_chunks import ReadChunk
from bwarp.sequence import decode, encode
from tests.helpers.oracles.mapping_oracle import (
    codes_in,
    flat,
    index_and_genome,
    opposite,
    random_bases,
)


@pytest.fixture(scope="module")
def mapper():
    """Return a mapper for 60,000 bases, in which 200 bases occur once on each strand."""
    rng = np.random.default_rng(1)
    copied = random_bases(rng, 200)
    other = decode(opposite(encode(copied)))
    contigs = [random_bases(rng, 40_000) + copied, other + random_bases(rng, 20_000)]
    return bwarp.Mapper(index_and_genome(contigs)[0], threads=2)


def worn_reads(genome, rng, length, n, rate):
    """Return reads on both strands with mismatches, the longer ones with gaps, and their starts."""
    bases = codes_in(genome)
    starts = rng.integers(0, min(39_000, bases.size - length), n)
    reads = []
    for number, start in enumerate(starts):
        read = bases[start : start + length].copy()
        changed = np.flatnonzero(rng.random(length) < rate)
        read[changed] = (read[changed] + 1 + rng.integers(0, 3, changed.size)) & 3
        if length >= 100 and number % 2:
            at = int(rng.integers(20, length - 20))
            read = np.delete(read, slice(at, at + 1 + number % 5))
            read = np.insert(read, at // 2, [0, 1][: number % 3])
        reads.append(opposite(read) if number % 3 == 0 else read)
    return reads, starts


@pytest.mark.parametrize(
    ("length", "rate"), [(30, 0), (40, 0.02), (50, 0.03), (250, 0.03), (500, 0.03), (1000, 0.05)]
)
def test_reads_of_all_lengths_map_to_their_origins(mapper, length, rate):
    rng = np.random.default_rng(length)
    reads, starts = worn_reads(mapper.genome, rng, length, 60, rate)
    lines = mapper.map([decode(read).decode() for read in reads])
    first = (lines.flags & (2048 | 4)) == 0
    assert np.bincount(lines.reads[first], minlength=60).max() == 1
    sure = first & (lines.mapping_qualities >= 10)
    assert np.abs(lines.positions[sure] - starts[lines.reads[sure]]).max() <= 20
    # Some reads of 40 or 50 bases have too many differences for a positive score.
    assert sure.sum() >= (60 if length not in (40, 50) else 54)


def test_both_engines_score_long_reads_alike(monkeypatch):
    pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")
    from bwarp.gpu.transfers import PinnedBuffer
    from bwarp.mapping import seeding_rounds_cuda
    from bwarp.mapping.pipeline import CpuMapEngine
    from bwarp.mapping.scored_hits_cuda import hits_on_host
    from tests.helpers.gpu.emulated_mapping import pretend

    rng = np.random.default_rng(2)
    index, genome = index_and_genome([random_bases(rng, 1500)])
    reads = [*worn_reads(genome, rng, 1000, 2, 0.05)[0], *worn_reads(genome, rng, 30, 2, 0)[0]]
    codes, offsets = flat(reads)
    chunk = ReadChunk(codes, offsets, None, np.empty(0, np.uint8), np.zeros((4, 2), int), 1, 0)
    parameters = MappingParameters()
    expected = CpuMapEngine(index, genome, parameters).find(chunk)
    pretend(monkeypatch)
    scored = seeding_rounds_cuda.score_reads(
        seeding_rounds_cuda.prepare(index), codes, offsets, parameters
    )
    got = hits_on_host(scored.hits, PinnedBuffer())
    for name, values in expected.hits._asdict().items():
        assert getattr(got, name).tolist() == values.tolist(), name
    assert set(expected.hits.reads.tolist()) == {0, 1, 2, 3}


@pytest.mark.parametrize("at", [40, 48, 82, 90])
def test_a_poor_read_with_a_gap_has_copies_on_both_strands(mapper, at):
    read = codes_in(mapper.genome)[40_020:40_170].copy()
    # A mismatch every eight bases, except in a part that has seeds.
    changed = [i for i in range(4, 150, 8) if not 50 <= i < 80]
    read[changed] = (read[changed] + 1) & 3
    lines = mapper.map([decode(np.insert(read, at, read[at] ^ 1)[:150]).decode()])
    assert 50 < lines.scores[0] < 75
    assert "1I" in lines.cigars[0]
    assert lines.mapping_qualities.tolist() == [0]


@pytest.mark.parametrize(("length", "seen", "hidden"), [(30, 26, 13), (36, 30, 18), (39, 30, 19)])
def test_short_reads_have_hits_that_mismatches_hide_from_long_seeds(length, seen, hidden):
    rng = np.random.default_rng(length)
    read = encode(random_bases(rng, length))
    contig = [random_bases(rng, 500)]
    for changed in (seen, hidden):
        copy = read.copy()
        copy[changed] = (copy[changed] + 1) & 3
        contig += [decode(copy), random_bases(rng, 500)]
    mapper = bwarp.Mapper(index_and_genome([b"".join(contig)])[0], min_score=20)
    lines = mapper.map([decode(read).decode()])
    assert lines.scores[0] >= length - 5
    assert lines.mapping_qualities[0] == 0


def copies_with_one_change(rng, unit, n, at):
    """Write n copies of a unit from `at` on, each with a different base changed."""
    contig = [random_bases(rng, 300)]
    for number in range(n):
        copy = encode(unit).copy()
        copy[at + number % 3] = (copy[at + number % 3] + 1 + number % 2) & 3
        contig += [decode(copy), random_bases(rng, 30)]
    return b"".join(contig)


@pytest.mark.parametrize("length", [36, 50, 75])
def test_seeds_that_are_all_located_do_not_hide_rivals_of_an_earlier_round(length):
    # 200 copies share 24-mers with the read: too many to locate. Its 32-mers have no other hits,
    # but a copy differs by only one base.
    rng = np.random.default_rng(length)
    unit = random_bases(rng, length)
    contigs = [copies_with_one_change(rng, unit, 200, length // 2 - 1), unit]
    mapper = bwarp.Mapper(index_and_genome(contigs)[0])
    lines = mapper.map([unit.decode()])
    assert (lines.contigs[0], lines.scores[0]) == ("contig1", length)
    assert lines.mapping_qualities[0] < 20


def test_pairs_with_two_low_scoring_ends_are_mapped(mapper):
    bases = codes_in(mapper.genome)
    rng = np.random.default_rng(1)
    firsts, seconds = [], []
    starts = rng.integers(0, 39_000, 60)
    for start in starts:
        first, second = (bases[at : at + 30].copy() for at in (start, start + 170))
        for read, at in ((first, 4), (second, 22)):
            read[at] = (read[at] + 1) & 3
        firsts.append(decode(first).decode())
        seconds.append(decode(opposite(second)).decode())
    lines = bwarp.Mapper(mapper.index, insert_size=(200, 30)).map(firsts, seconds)
    assert (lines.flags & 2).all()
    assert lines.positions[::2].tolist() == starts.tolist()
    # Such a read alone is not reported.
    assert (mapper.map(firsts).flags & 4).all()


def test_a_mate_in_a_long_tandem_repeat_has_no_quality():
    rng = np.random.default_rng(3)
    contigs = [random_bases(rng, 2000) + b"ACAT" * 60 + random_bases(rng, 2000)]
    contigs += [random_bases(rng, 500) + b"ACAT" * 60 for _ in range(3)]
    index, genome = index_and_genome(contigs)
    bases = codes_in(genome)
    anchor, mate = bases[1850:1900], opposite(bases[2080:2130])
    own = bases[2300:2350]
    lines = bwarp.Mapper(index, insert_size=(280, 40)).map(
        [decode(anchor).decode(), decode(bases[2050:2100]).decode()],
        [decode(mate).decode(), decode(opposite(own)).decode()],
    )
    assert (lines.flags & 2).all()
    qualities = lines.mapping_qualities.tolist()
    assert qualities[0] == qualities[3] == 60
    assert qualities[1] == qualities[2] == 0

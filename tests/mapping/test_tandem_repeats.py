"""Qualities of reads in tandem repeats, against a comparison base by base."""

import numpy as np
import pytest

import bwarp
from bwarp.mapping.extension_cpu import both_strands, genome_of
from bwarp.mapping.parameters import MappingParameters
from bwarp.mapping.tandem_repeats import lower_tandem_repeats
from bwarp.sequence import decode, encode
from tests.helpers.cases.tandem_reads import tandem_case
from tests.helpers.oracles.mapping_oracle import index_and_genome, opposite, random_bases

PARAMETERS = {
    "default": MappingParameters(),
    "doubled": MappingParameters(match=2, mismatch=-3, gap_open=5, gap_extend=2),
}


@pytest.mark.parametrize("name", PARAMETERS)
@pytest.mark.parametrize("seed", [1, 2])
def test_reads_in_repeats_of_any_period(name, seed):
    parameters = PARAMETERS[name]
    case = tandem_case(seed, parameters)
    both = both_strands(case.codes, case.offsets)
    genome = genome_of(case.reference)
    lower_tandem_repeats(genome, both, case.offsets, case.hits, case.primary, parameters)
    qualities = case.primary.qualities
    assert qualities.tolist() == case.expected
    lowered = qualities < case.before
    assert 20 < lowered.sum() < lowered.size - 20
    assert np.unique(qualities[lowered]).size > 2


def array_between(rng, unit: bytes, copies: int, divergence: float) -> bytes:
    """Return a tandem repeat between random bases."""
    array = encode(unit * copies).copy()
    changed = rng.random(array.size) < divergence
    array[changed] = rng.integers(0, 4, np.count_nonzero(changed))
    return random_bases(rng, 1000) + decode(array) + random_bases(rng, 1000)


@pytest.mark.parametrize("period", [1, 2, 5, 11, 13, 17, 23, 29, 31, 47, 60])
@pytest.mark.parametrize("divergence", [0, 0.02])
def test_single_reads_in_a_tandem_repeat(period, divergence):
    rng = np.random.default_rng(period)
    contig = array_between(rng, random_bases(rng, period), -(-1000 // period), divergence)
    bases = encode(contig)
    mapper = bwarp.Mapper(index_and_genome([contig])[0])
    reads, starts = [], []
    for length in (50, 75, 150) * 10:
        start = int(rng.integers(1200, 1750 - length + 1))
        read = bases[start : start + length].copy()
        changed = rng.integers(0, length, 2)
        read[changed] = (read[changed] + 1) & 3
        reads.append(opposite(read) if start % 2 else read)
        starts.append(start)
    lines = mapper.map([decode(read).decode() for read in reads])
    wrong = np.abs(lines.positions - np.array(starts)[lines.reads]) > 20
    wrong &= (lines.flags & 2048) == 0
    assert not (wrong & (lines.mapping_qualities >= 30)).any()
    # Two errors may make a read equal to a copy that differs from all others.
    assert np.count_nonzero(wrong & (lines.mapping_qualities >= 10)) <= 2
    if divergence == 0:
        assert np.count_nonzero(lines.mapping_qualities >= 10) <= 1


def test_reads_at_the_edge_of_a_tandem_repeat_keep_their_quality():
    rng = np.random.default_rng(1)
    contig = array_between(rng, random_bases(rng, 17), 60, 0)
    mapper = bwarp.Mapper(index_and_genome([contig])[0])
    # Half of each read is unique.
    reads = [contig[at : at + 100].decode() for at in (950, 1000 + 17 * 60 - 50)]
    assert (mapper.map(reads).mapping_qualities >= 40).all()


def test_stretches_of_one_base_have_no_quality():
    rng = np.random.default_rng(1)
    contig = random_bases(rng, 1000) + b"A" * 120 + b"G" + b"A" * 120 + random_bases(rng, 1000)
    anchors = [contig[700:775].decode(), contig[720:795].decode()]
    mates = [decode(opposite(encode(contig[at : at + 75]))).decode() for at in (1010, 1140)]
    lines = bwarp.Mapper(index_and_genome([contig])[0], insert_size=(400, 60)).map(anchors, mates)
    assert (lines.flags & 2).all()
    assert lines.mapping_qualities.tolist() == [60, 0, 60, 0]

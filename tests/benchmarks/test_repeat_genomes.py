"""Genomes of tandem repeats, low complexity and gene families, and qualities of their reads."""

import sys
from pathlib import Path

import numpy as np
import pytest

import bwarp
from bwarp.reference import codes_of, read_reference
from bwarp.sequence import decode
from tests.helpers.oracles.mapping_oracle import index_and_genome, opposite

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from map_sets import REPEAT_GENOMES
from parts.repeat_genomes import write_genome


def codes_of_genome(tmp_path, name, length=120_000, seed=3) -> np.ndarray:
    fasta = tmp_path / "genome.fa"
    write_genome(fasta, REPEAT_GENOMES[name]._replace(length=length), seed)
    return codes_of(read_reference(fasta))


def test_a_seed_gives_the_same_genome(tmp_path):
    first, again, other = (codes_of_genome(tmp_path, "parasite", seed=seed) for seed in (3, 3, 4))
    assert first.size == 120_000
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert 0.15 < np.isin(first, (1, 2)).mean() < 0.25


@pytest.mark.parametrize("name", ["tandem", "low-complexity", "families", "short-periods"])
def test_few_reads_with_a_high_quality_are_incorrect(tmp_path, name):
    bases = codes_of_genome(tmp_path, name)
    rng = np.random.default_rng(1)
    inserts = np.round(rng.normal(300, 30, 1500)).astype(int)
    starts = rng.integers(0, bases.size - 500, inserts.size)
    ends = []
    for at in (starts, starts + inserts - 75):
        reads = bases[at[:, None] + np.arange(75)]
        errors = rng.random(reads.shape) < 0.02
        ends.append(np.where(errors, (reads + rng.integers(1, 4, reads.shape)) & 3, reads))
    firsts = [decode(read).decode() for read in ends[0].astype(np.uint8)]
    seconds = [decode(opposite(read)).decode() for read in ends[1].astype(np.uint8)]
    mapper = bwarp.Mapper(index_and_genome([decode(bases)])[0], insert_size=(300, 30), threads=2)
    single, paired = mapper.map(firsts), mapper.map(firsts, seconds)
    origins = np.stack([starts, starts + inserts - 75], axis=1).ravel()
    for lines, origin in ((single, starts), (paired, origins)):
        sure = ((lines.flags & 2048) == 0) & (lines.mapping_qualities >= 10)
        wrong = np.abs(lines.positions - origin[lines.reads]) > 20
        assert np.count_nonzero(sure & wrong) <= 4
        assert np.count_nonzero(sure & ~wrong) > 0.7 * len(origin)

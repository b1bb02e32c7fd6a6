"""Primary hits of the GPU's kernels, against those of the CPU, to the last bit."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")

from bwarp.gpu.cuda import cuda
from bwarp.gpu.device_arrays import columns
from bwarp.mapping.extension_cuda import DeviceGenome
from bwarp.mapping.insert_size import InsertSize
from bwarp.mapping.parameters import MappingParameters
from bwarp.mapping.pipeline import tie_seeds
from bwarp.mapping.primary_hits_cpu import select_single
from bwarp.mapping.primary_hits_cuda import select_primary
from bwarp.mapping.primary_pairs_cpu import select_paired
from bwarp.mapping.scored_hits_cpu import hits_at
from bwarp.options.common import ORIENTATIONS
from bwarp.reads.read_chunks import ReadChunk
from tests.helpers.cases.hostile_hits import (
    CONTIG_STARTS,
    hits_on_gpu,
    hostile_hits,
    reads_on_gpu,
)

PARAMETERS = {
    "default": MappingParameters(),
    "doubled": MappingParameters(
        match=2, mismatch=-3, gap_open=5, gap_extend=2, clip=4, least_score=61
    ),
    "dear clipping": MappingParameters(clip=100),
    "free clipping": MappingParameters(clip=0, least_score=1),
}
INSERT = InsertSize(400.0, 50.0, 200, 600)


def seeds_of(n_reads, ends, first_template):
    """Return the random numbers that break ties on the host."""
    names = np.zeros((n_reads // ends, 2), np.int64)
    offsets = np.zeros(n_reads + 1, np.int64)
    nothing = np.empty(0, np.uint8)
    return tie_seeds(ReadChunk(nothing, offsets, None, nothing, names, ends, first_template))


def unlocated_of(rng, lengths, match):
    """Return likely scores of unlocated hits for some reads."""
    unlocated = match * (lengths - rng.integers(0, 40, lengths.size))
    return np.where(rng.random(lengths.size) < 0.5, 0, unlocated.clip(0)).astype(np.int32)


def found_on_gpu(hits, lengths, unlocated, insert, ends, first_template, parameters):
    contig_starts = cuda.to_device(CONTIG_STARTS)
    genome = columns(DeviceGenome, 1, contig_starts=contig_starts, n_bases=int(CONTIG_STARTS[-1]))
    return select_primary(
        genome, reads_on_gpu(lengths), hits_on_gpu(hits), cuda.to_device(unlocated), insert, ends,
        first_template, parameters,
    )  # fmt: skip


def assert_same(found, expected):
    for name, got, wanted in zip(found._fields, found, expected, strict=True):
        assert got.copy_to_host().tolist() == wanted.tolist(), name
    types = [column.dtype for column in found]
    assert types == [np.int32, np.uint8, np.int32, np.uint8]


@pytest.mark.parametrize("name", PARAMETERS)
@pytest.mark.parametrize("seed", [1, 2])
def test_single_reads(device, name, seed):
    rng, parameters = np.random.default_rng(seed), PARAMETERS[name]
    hits, lengths = hostile_hits(rng, 150, parameters.match)
    unlocated = unlocated_of(rng, lengths, parameters.match)
    first = (1 << 40) + 12_345
    expected = select_single(hits, lengths, unlocated, parameters, seeds_of(150, 1, first))
    assert_same(found_on_gpu(hits, lengths, unlocated, None, 1, first, parameters), expected)
    assert 10 < np.count_nonzero(expected.hits >= 0) < 150
    assert np.unique(expected.qualities).size > 4


@pytest.mark.parametrize("orientation", range(len(ORIENTATIONS)), ids=ORIENTATIONS)
@pytest.mark.parametrize("name", PARAMETERS)
def test_pairs(device, name, orientation):
    rng, parameters = np.random.default_rng(orientation), PARAMETERS[name]
    insert = INSERT._replace(orientation=orientation)
    hits, lengths = hostile_hits(rng, 160, parameters.match)
    unlocated = unlocated_of(rng, lengths, parameters.match)
    expected = select_paired(
        hits, lengths, unlocated, insert, parameters, seeds_of(160, 2, 7), CONTIG_STARTS
    )
    assert_same(found_on_gpu(hits, lengths, unlocated, insert, 2, 7, parameters), expected)
    assert 20 < np.count_nonzero(expected.proper) < 120
    assert np.unique(expected.qualities[expected.proper]).size > 4


@pytest.mark.parametrize("insert", [None, InsertSize(0.0, 0.0, 0, 0)])
def test_pairs_of_unknown_insert_size(device, insert):
    rng = np.random.default_rng(5)
    hits, lengths = hostile_hits(rng, 40)
    unlocated = unlocated_of(rng, lengths, 1)
    expected = select_paired(
        hits, lengths, unlocated, InsertSize(0.0, 0.0, 0, 0), MappingParameters(),
        seeds_of(40, 2, 0), CONTIG_STARTS,
    )  # fmt: skip
    found = found_on_gpu(hits, lengths, unlocated, insert, 2, 0, MappingParameters())
    assert_same(found, expected)
    assert not expected.proper.any()


def test_reads_in_repeats_with_equal_hits(device):
    """All hits of a read score the same: pairs are drawn from hundreds of equal ones."""
    rng = np.random.default_rng(8)
    hits, lengths = hostile_hits(rng, 40, counts=(33, 45, 70))
    lengths[:] = 100
    for column, value in zip(
        (hits.read_starts, hits.read_ends, hits.scores, hits.gapless), (0, 100, 100, True),
        strict=True,
    ):  # fmt: skip
        column[:] = value
    hits.starts[:] = np.minimum(hits.starts, 1000 + hits.starts % 40)
    hits.ends[:] = hits.starts + 100
    insert = InsertSize(300.0, 1000.0, 1, 900)
    unlocated = np.zeros(40, np.int32)
    parameters = replace(MappingParameters(), clip=0)
    expected = select_paired(
        hits, lengths, unlocated, insert, parameters, seeds_of(40, 2, 3), CONTIG_STARTS
    )
    assert_same(found_on_gpu(hits, lengths, unlocated, insert, 2, 3, parameters), expected)
    assert expected.proper.all()
    assert not expected.qualities.any()


@pytest.mark.parametrize("length", [50, 100])
def test_reads_in_repeats_of_few_copies(device, length):
    """Near hits count more or less often by their number and the bound of unlocated hits."""
    rng = np.random.default_rng(length)
    hits, lengths = hostile_hits(rng, 160, counts=(2, 3, 4, 8))
    lengths[:] = length
    hits.read_starts[:], hits.read_ends[:], hits.gapless[:] = 0, length, True
    hits.scores[:] = length - 5 * rng.integers(1, 3, len(hits.scores))
    hits.scores[hits.offsets[:-1]] = length
    hits.strands[:] = hits.reads % 2
    hits.starts[:] = 1000 + 250 * (hits.reads % 2) + rng.integers(0, 40, len(hits.starts))
    hits.ends[:] = hits.starts + length
    unlocated = (length - rng.choice([5, 10, 15, 20, 30, length], 160)).astype(np.int32)
    parameters, insert = MappingParameters(), InsertSize(300.0, 50.0, 1, 900)
    expected = select_single(hits, lengths, unlocated, parameters, seeds_of(160, 1, 0))
    assert_same(found_on_gpu(hits, lengths, unlocated, None, 1, 0, parameters), expected)
    qualities = expected.qualities
    expected = select_paired(
        hits, lengths, unlocated, insert, parameters, seeds_of(160, 2, 0), CONTIG_STARTS
    )
    assert_same(found_on_gpu(hits, lengths, unlocated, insert, 2, 0, parameters), expected)
    assert expected.proper.all()
    for found in (qualities, expected.qualities):
        assert np.unique(found).size > 4


def test_no_hits(device):
    hits, lengths = hostile_hits(np.random.default_rng(1), 6)
    none = hits_at(hits, np.empty(0, np.int64))
    for insert, ends in ((None, 1), (INSERT, 2)):
        found = found_on_gpu(
            none, lengths, np.zeros(6, np.int32), insert, ends, 0, MappingParameters()
        )
        assert [column.copy_to_host().tolist() for column in found] == [
            [-1] * 6, [0] * 6, [0] * 6, [0] * 6
        ]  # fmt: skip


def test_qualities_of_unique_hits_of_all_lengths_and_scores(device):
    """In bwa's formula, the last bit may change the quality by 1."""
    lengths = np.repeat(np.arange(20, 301, 7), 60)
    hits, _ = hostile_hits(np.random.default_rng(2), lengths.size, counts=(1,))
    hits = hits_at(hits, hits.offsets[:-1])
    hits.read_starts[:], hits.read_ends[:], hits.gapless[:] = 0, lengths, True
    hits.scores[:] = (lengths - np.tile(np.arange(60), lengths.size // 60)).clip(0)
    hits.starts[:] = 500
    hits.ends[:] = 500 + lengths
    unlocated = np.zeros(lengths.size, np.int32)
    seeds = seeds_of(lengths.size, 1, 0)
    expected = select_single(hits, lengths, unlocated, MappingParameters(), seeds)
    found = found_on_gpu(hits, lengths, unlocated, None, 1, 0, MappingParameters())
    assert_same(found, expected)
    assert np.unique(expected.qualities).size > 40

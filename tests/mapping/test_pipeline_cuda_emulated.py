"""Chunks mapped by several threads that take turns on a simulated GPU, against the CPU."""

from dataclasses import fields, replace

import numpy as np
import pytest

from tests.helpers.oracles.mapping_oracle import codes_in, flat, index_and_genome
from tests.mapping.test_seeding_rounds_cuda_emulated import (
    PARAMETERS,
    assert_same,
    hostile_contigs,
    hostile_pairs,
)

pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")

from bwarp.errors import GpuMemoryError
from bwarp.gpu import available_memory, pieces
from bwarp.gpu.cuda import cuda
from bwarp.mapping import first_pairs, insert_size, pipeline_cuda
from bwarp.mapping.engine import load
from bwarp.mapping.parameters import ALL
from bwarp.reads.read_chunks import ReadChunk
from tests.helpers.gpu.emulated_mapping import pretend


def chunks_of(reads, ends, templates_a_chunk):
    for first in range(0, len(reads) // ends, templates_a_chunk):
        part = reads[ends * first : ends * (first + templates_a_chunk)]
        codes, offsets = flat(part)
        names = np.zeros((len(part) // ends, 2), np.int64)
        yield ReadChunk(codes, offsets, None, np.empty(0, np.uint8), names, ends, first)


def sum_of(mapped) -> list[int]:
    """Return the search counts of all chunks: chunks that share the GPU are counted together."""
    return sum(one.searched for one in mapped).tolist()


def used_gpus(monkeypatch) -> set[int]:
    """Record the GPUs on which reads are scored."""
    used, score_reads = set(), pipeline_cuda.score_reads

    def score(*arguments):
        used.add(cuda.get_current_device().id)
        return score_reads(*arguments)

    monkeypatch.setattr(pipeline_cuda, "score_reads", score)
    return used


@pytest.mark.parametrize(
    ("ends", "threads", "gpus"), [(2, 2, 1), (1, 2, 1), (2, 1, 1), (2, 1, 3), (1, 5, 3)]
)
def test_chunks_come_in_order_and_as_the_cpu_maps_them(monkeypatch, ends, threads, gpus):
    rng = np.random.default_rng(5)
    index, genome = index_and_genome(hostile_contigs(rng))
    reads = hostile_pairs(rng, codes_in(genome), 9)
    monkeypatch.setattr(first_pairs, "FIRST_PAIRS", 6)
    monkeypatch.setattr(insert_size, "LEAST_PAIRS", 1)
    parameters = replace(PARAMETERS, secondary_records=ALL)
    expected = list(load(index, parameters).map(chunks_of(reads, ends, 3)))
    pretend(monkeypatch, gpus)
    monkeypatch.setattr(pipeline_cuda, "READS_A_CHUNK", 1 if gpus == 1 else 10**9)
    engine = load(index, parameters, "cuda", threads, gpus)
    used = used_gpus(monkeypatch)
    got = list(engine.map(chunks_of(reads, ends, 3)))
    assert len(used) == min(gpus, threads)
    assert sum_of(got) == sum_of(expected)
    assert len(got) == len(expected) == 9 // 3 * (3 - ends)
    assert sum(one.recorded.reads.size for one in expected) > 0
    if ends == 2:
        assert expected[0].insert.highest > 0
    for one, other in zip(got, expected, strict=True):
        assert one.insert == other.insert
        assert one.both.tolist() == other.both.tolist()
        for field in fields(one.chunk):
            assert np.array_equal(getattr(one.chunk, field.name), getattr(other.chunk, field.name))
        assert_same(one.mapped, other.mapped)
        assert_same(one.recorded.alignments, other.recorded.alignments)
        assert_same(one.primary, other.primary)


class CudaAPIError(Exception):
    """An error with the name of the driver's."""


@pytest.mark.parametrize("fails", ["reads", "mates"])
def test_chunks_that_do_not_fit_are_scored_in_parts(monkeypatch, fails):
    """The GPU has memory for two templates at a time, which the program must find out."""
    rng = np.random.default_rng(5)
    index, genome = index_and_genome(hostile_contigs(rng))
    reads = hostile_pairs(rng, codes_in(genome), 9)
    monkeypatch.setattr(first_pairs, "FIRST_PAIRS", 6)
    monkeypatch.setattr(insert_size, "LEAST_PAIRS", 1)
    expected = list(load(index, PARAMETERS).map(chunks_of(reads, 2, 3)))
    pretend(monkeypatch)
    monkeypatch.setattr(available_memory, "attempt", attempt_here)
    score_reads, add_mates = pipeline_cuda.score_reads, pipeline_cuda.add_mates
    scored = []

    def check(n_reads):
        scored.append(n_reads)
        if n_reads > 4:
            raise CudaAPIError("Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY")

    def score_few(device, codes, offsets, parameters):
        if fails == "reads":
            check(len(offsets) - 1)
        return score_reads(device, codes, offsets, parameters)

    def add_few(device, scored, insert, parameters):
        if fails == "mates":
            check(scored.reads.n_reads)
        return add_mates(device, scored, insert, parameters)

    monkeypatch.setattr(pipeline_cuda, "score_reads", score_few)
    monkeypatch.setattr(pipeline_cuda, "add_mates", add_few)
    got = list(load(index, PARAMETERS, "cuda").map(chunks_of(reads, 2, 3)))
    # The first two chunks are scored together. They are halved, and later parts are not larger
    # until memory has sufficed for some.
    assert scored[:2] == [12, 6]
    assert set(scored[2 : 2 + pieces.BEFORE_A_LARGER]) == {2}
    assert sum_of(got) == sum_of(expected)
    for one, other in zip(got, expected, strict=True):
        assert one.insert == other.insert
        assert_same(one.hits, other.hits)
        assert_same(one.mapped, other.mapped)
        assert_same(one.primary, other.primary)


@pytest.mark.parametrize("ends", [2, 1])
def test_threads_share_the_last_chunks(monkeypatch, ends):
    rng = np.random.default_rng(5)
    index, genome = index_and_genome(hostile_contigs(rng))
    reads = hostile_pairs(rng, codes_in(genome), 9)
    monkeypatch.setattr(first_pairs, "FIRST_PAIRS", 3)
    monkeypatch.setattr(insert_size, "LEAST_PAIRS", 1)
    expected = list(load(index, PARAMETERS).map(chunks_of(reads, ends, 2)))
    pretend(monkeypatch)
    monkeypatch.setattr(pipeline_cuda, "FEW_READS", 4)
    got = list(load(index, PARAMETERS, "cuda", 2).map(chunks_of(reads, ends, 100)))
    assert [one.chunk.n_reads for one in got] == [4] * (len(reads) // 4) + [2]
    assert got[0].insert == expected[0].insert
    for name in ("positions", "scores", "cigar"):
        one, other = (np.concatenate([getattr(x.mapped, name) for x in y]) for y in (got, expected))
        assert np.array_equal(one, other), name
    for column in range(1, 4):
        one, other = (np.concatenate([x.primary[column] for x in y]) for y in (got, expected))
        assert np.array_equal(one, other)


def test_threads_share_the_first_chunk(monkeypatch):
    rng = np.random.default_rng(5)
    index, genome = index_and_genome(hostile_contigs(rng))
    reads = hostile_pairs(rng, codes_in(genome), 20)
    monkeypatch.setattr(first_pairs, "FIRST_PAIRS", 3)
    monkeypatch.setattr(insert_size, "LEAST_PAIRS", 1)
    pretend(monkeypatch)
    monkeypatch.setattr(pipeline_cuda, "FEW_READS", 4)
    # The end of the chunks is not known.
    monkeypatch.setattr(pipeline_cuda, "_until", lambda _, chunks: chunks)
    got = load(index, PARAMETERS, "cuda", 2).map(chunks_of(reads, 2, 5))
    assert [one.chunk.n_reads for one in got] == [4, 4, 2, 10, 10, 10]


def test_a_pair_that_does_not_fit_is_not_split(monkeypatch):
    rng = np.random.default_rng(5)
    index, genome = index_and_genome(hostile_contigs(rng))
    reads = hostile_pairs(rng, codes_in(genome), 6)
    pretend(monkeypatch)
    monkeypatch.setattr(available_memory, "attempt", attempt_here)

    def score_none(*_):
        raise CudaAPIError("Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY")

    monkeypatch.setattr(pipeline_cuda, "score_reads", score_none)
    with pytest.raises(
        GpuMemoryError, match="mapping a read requires more GPU memory than is free"
    ):
        list(load(index, PARAMETERS, "cuda").map(chunks_of(reads, 2, 3)))


def attempt_here(work):
    """Replace `bwarp.gpu.available_memory.attempt`, which frees memory on a real GPU."""
    try:
        return work()
    except CudaAPIError:
        return None


def test_there_may_be_no_reads(monkeypatch):
    index, _ = index_and_genome(hostile_contigs(np.random.default_rng(6)))
    pretend(monkeypatch)
    assert list(load(index, PARAMETERS, "cuda", 2).map(iter(()))) == []


def test_an_error_of_the_reader_is_raised(monkeypatch):
    rng = np.random.default_rng(6)
    index, genome = index_and_genome(hostile_contigs(rng))
    reads = hostile_pairs(rng, codes_in(genome), 4)[:4]

    def broken():
        yield from chunks_of(reads, 1, 4)
        raise OSError("the disk is gone")

    pretend(monkeypatch)
    with pytest.raises(OSError, match="the disk is gone"):
        list(load(index, PARAMETERS, "cuda", 2).map(broken()))

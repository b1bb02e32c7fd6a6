"""Chunks mapped by several threads that take turns on a pretended card, against the CPU's."""

from dataclasses import fields

import numpy as np
import pytest
from mapping_oracle import flat, index_and_genome
from test_placing_cuda_emulated import PARAMETERS, assert_same, hostile_contigs, hostile_pairs

pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")

from emulated_mapping import pretend

from bwarp.mapping import insert_size, mapper, mapper_cuda
from bwarp.mapping.read_chunks import ReadChunk


def chunks_of(reads, ends, templates_a_chunk):
    for first in range(0, len(reads) // ends, templates_a_chunk):
        part = reads[ends * first : ends * (first + templates_a_chunk)]
        codes, offsets = flat(part)
        names = np.zeros((len(part) // ends, 2), np.int64)
        yield ReadChunk(codes, offsets, None, np.empty(0, np.uint8), names, ends, first)


@pytest.mark.parametrize("ends", [2, 1])
def test_chunks_come_in_order_and_as_the_cpu_maps_them(monkeypatch, ends):
    rng = np.random.default_rng(5)
    index, genome = index_and_genome(hostile_contigs(rng))
    reads = hostile_pairs(rng, genome.codes, 9)
    monkeypatch.setattr(mapper, "FIRST_PAIRS", 6)
    monkeypatch.setattr(insert_size, "LEAST_PAIRS", 1)
    arguments = (index, genome)
    expected = list(mapper.map_chunks(*arguments, chunks_of(reads, ends, 3), PARAMETERS))
    pretend(monkeypatch)
    got = list(mapper_cuda.map_chunks(*arguments, chunks_of(reads, ends, 3), PARAMETERS, 2))
    assert len(got) == len(expected) == 9 // 3 * (3 - ends)
    if ends == 2:
        assert expected[0].insert.highest > 0
    for one, other in zip(got, expected, strict=True):
        assert one.insert == other.insert
        assert one.both.tolist() == other.both.tolist()
        for field in fields(one.chunk):
            assert np.array_equal(getattr(one.chunk, field.name), getattr(other.chunk, field.name))
        assert_same(one.mapped, other.mapped)
        assert_same(one.choice, other.choice)


def test_a_reader_that_fails_is_heard(monkeypatch):
    rng = np.random.default_rng(6)
    index, genome = index_and_genome(hostile_contigs(rng))
    reads = hostile_pairs(rng, genome.codes, 4)[:4]

    def broken():
        yield from chunks_of(reads, 1, 4)
        raise OSError("the disk is gone")

    pretend(monkeypatch)
    with pytest.raises(OSError, match="the disk is gone"):
        list(mapper_cuda.map_chunks(index, genome, broken(), PARAMETERS, 2))

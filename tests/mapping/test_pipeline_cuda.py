"""Mapping on a GPU: the same results as on the CPU, for any reads, chunks and threads."""

from dataclasses import fields

import numpy as np
import pytest

from bwarp.mapping import engine, first_pairs
from bwarp.mapping.parameters import END_TO_END, LOCAL, MappingParameters
from bwarp.reads.read_chunks import ReadChunk
from tests.helpers.oracles.mapping_oracle import (
    codes_in,
    flat,
    index_and_genome,
    opposite,
    random_bases,
)

pytestmark = pytest.mark.gpu


def contigs(rng) -> list[bytes]:
    """Return 400,000 bases: a third are old and recent copies of a few units; tandem repeats, N."""
    letters = np.frombuffer(random_bases(rng, 400_000), np.uint8).copy()
    for length in (120, 300, 2000):
        unit = np.frombuffer(random_bases(rng, length), np.uint8)
        for _ in range(45_000 // length):
            copy = unit.copy()
            changed = rng.random(length) < rng.choice([0, 0.01, 0.1])
            copy[changed] = rng.permutation(copy[changed])
            start = int(rng.integers(0, letters.size - length))
            letters[start : start + length] = copy
    letters[1000:3000] = np.frombuffer(b"AC" * 1000, np.uint8)
    letters[5000:5100] = ord("N")
    text = letters.tobytes()
    return [text[:250_000], b"ACGT", text[250_000:250_100], text[250_100:]]


def reads_of(rng, genome, n_pairs) -> list[np.ndarray]:
    """Return pairs from anywhere with errors and gaps of all kinds; short, empty, random, or N."""
    reads = []
    for number in range(n_pairs):
        length = int(rng.choice([150, 150, 150, 100, 151, 250]))
        insert = int(np.clip(rng.normal(400, 50), length, 600))
        start = int(rng.integers(0, genome.size - insert))
        ends = [genome[start : start + length], genome[start + insert - length : start + insert]]
        for read in (ends[0], opposite(ends[1])):
            letters = read.copy()
            wrong = rng.random(letters.size) < rng.choice([0.001, 0.01, 0.08])
            letters[wrong] = rng.integers(0, 5, np.count_nonzero(wrong))
            kind, at = rng.random(), int(rng.integers(0, letters.size))
            if kind < 0.1:
                letters = np.delete(letters, slice(at, at + int(rng.integers(1, 30))))
            elif kind < 0.2:
                letters = np.insert(letters, at, rng.integers(0, 4, int(rng.integers(1, 30))))
            elif kind < 0.23:
                letters[at:] = rng.integers(0, 4, letters.size - at)
            elif kind < 0.24:
                letters = rng.integers(0, 4, int(rng.integers(0, 300)))
            elif kind < 0.245:
                letters = np.full(80, 4)
            reads.append(letters.astype(np.uint8))
        if number % 2:
            reads[-2:] = reads[:-3:-1]
    return reads


def chunks_of(reads, ends, templates_a_chunk):
    for first in range(0, len(reads) // ends, templates_a_chunk):
        codes, offsets = flat(reads[ends * first : ends * (first + templates_a_chunk)])
        names = np.zeros(((len(offsets) - 1) // ends, 2), np.int64)
        yield ReadChunk(codes, offsets, None, np.empty(0, np.uint8), names, ends, first)


@pytest.fixture(scope="module")
def small():
    rng = np.random.default_rng(1)
    index, genome = index_and_genome(contigs(rng))
    return index, genome, reads_of(rng, codes_in(genome), 6000)


def names_in(record) -> list[str]:
    """Return the names of arrays in a dataclass or a named tuple."""
    return record._fields if isinstance(record, tuple) else [one.name for one in fields(record)]


@pytest.mark.parametrize(
    ("ends", "templates", "threads", "mode"),
    [(2, 6000, 4, LOCAL), (2, 700, 3, LOCAL), (1, 900, 2, LOCAL), (2, 2000, 4, END_TO_END)],
)
def test_every_read_is_mapped_as_by_the_cpu(monkeypatch, small, ends, templates, threads, mode):
    from bwarp.index import device_index_cuda

    monkeypatch.setattr(device_index_cuda, "MOST_ELEMENTS", 1 << 18)
    monkeypatch.setattr(device_index_cuda, "FEWEST_ELEMENTS", 1 << 10)
    monkeypatch.setattr(first_pairs, "FIRST_PAIRS", 1500)
    index, _, reads = small
    parameters = MappingParameters(mode=mode)
    expected, got = (
        list(
            engine.load(index, parameters, backend, threads).map(chunks_of(reads, ends, templates))
        )
        for backend in ("cpu", "cuda")
    )
    assert len(got) == len(expected)
    mapped = 0
    for one, other in zip(got, expected, strict=True):
        assert one.insert == other.insert
        for part in ("chunk", "mapped"):
            for name in names_in(getattr(one, part)):
                value, wanted = (getattr(getattr(x, part), name) for x in (one, other))
                assert np.array_equal(value, wanted), (part, name)
        for value, wanted in zip(one.primary, other.primary, strict=True):
            assert np.array_equal(value, wanted)
        mapped += np.count_nonzero(one.mapped.positions >= 0)
    assert mapped > 0.7 * len(reads)

"""Final alignments by the GPU's kernels, against those of the CPU."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")

from bwarp.gpu.cuda import cuda
from bwarp.mapping import final_alignments_cuda
from bwarp.mapping.extension_cpu import both_strands, extend, genome_of
from bwarp.mapping.extension_cuda import genome_on_gpu
from bwarp.mapping.final_alignments import align_hits
from bwarp.mapping.parameters import END_TO_END, MappingParameters
from bwarp.mapping.scored_hits_cuda import DeviceScoredHits
from bwarp.reads import device_reads_cuda
from bwarp.reference import make_reference
from tests.helpers.oracles.mapping_oracle import candidates_at, flat, opposite

PARAMETERS = {
    "default": MappingParameters(),
    "end to end": MappingParameters(mode=END_TO_END),
    "no clipping penalty": MappingParameters(clip=0),
    "doubled": MappingParameters(match=2, mismatch=-3, gap_open=5, gap_extend=2, clip=4),
    "cheap gaps": MappingParameters(match=1, mismatch=-9, gap_open=0, gap_extend=1, clip=3),
    "dear gaps, short windows": MappingParameters(
        match=3, mismatch=-2, gap_open=20, gap_extend=4, clip=9, largest_gap=5, long_gap=3
    ),
}


def on_gpu(hits):
    """Copy hits of the CPU engine to the GPU."""
    rows = np.stack([
        hits.scores, hits.starts, hits.ends, hits.read_starts, hits.read_ends, hits.gapless,
        hits.window_starts, hits.window_ends,
    ], axis=1).astype(np.int64)  # fmt: skip
    arrays = hits.strands, np.append(rows, 0), hits.offsets.astype(np.uint32)
    there = (cuda.to_device(np.ascontiguousarray(array)) for array in arrays)
    return DeviceScoredHits(*there, len(rows))


def aligned_by_both(reference, reads, hits, selected, parameters):
    """Return the alignments of the CPU and of the GPU engine for hits of reads."""
    codes, offsets = flat(reads)
    selected = np.array(selected)
    expected = align_hits(
        genome_of(reference), both_strands(codes, offsets), offsets, hits, selected, parameters
    )
    of_rows = np.append(hits.reads, 0)[selected]
    found = final_alignments_cuda.align_hits(
        genome_on_gpu(reference),
        device_reads_cuda.both_strands(codes, offsets),
        on_gpu(hits),
        cuda.to_device(selected.astype(np.int32)),
        cuda.to_device(of_rows.astype(np.int32)),
        parameters,
    )
    return expected, found


def assert_same(found, expected):
    for name, got, wanted in zip(found._fields, found, expected, strict=True):
        got = got.copy_to_host()
        if name == "cigar":
            assert got.size >= wanted.size
            got = got[: wanted.size]
        assert got.tolist() == wanted.tolist(), name
        assert got.dtype == (np.uint32 if name == "cigar_offsets" else wanted.dtype), name


def hostile_reference(rng):
    """Return short and long contigs with tandem repeats, and runs of N or single ones."""
    starts = [0, 300, 340, 900, 903, 1400, 2600]
    bases = rng.integers(0, 4, starts[-1]).astype(np.uint8)
    for _ in range(12):
        at, unit = int(rng.integers(0, 2500)), rng.integers(0, 4, int(rng.integers(1, 8)))
        bases[at : at + 60] = np.resize(unit, 60)
    bases[1700:1760], bases[2590:] = 4, 4
    bases[rng.random(starts[-1]) < 0.005] = 4
    names = tuple(f"contig{i}" for i in range(len(starts) - 1))
    return make_reference(names, np.array(starts), bases), bases


def hostile_read(rng, bases, length, start):
    """Return a read with mismatches, N, gaps near its ends and elsewhere, and other ends."""
    read = np.resize(bases[start : start + length], length).copy()
    flips = rng.random(length) < rng.choice([0, 0.02, 0.1])
    read[flips] = rng.integers(0, 5, flips.sum())
    for _ in range(int(rng.integers(0, 3))):
        size, at = int(rng.choice([1, 2, 3, 7, 15, 30])), int(rng.integers(1, min(70, length)))
        at = len(read) - at if rng.random() < 0.5 else at
        if rng.random() < 0.5 and len(read) > size + 15:
            read = np.delete(read, slice(max(at, 0), max(at, 0) + size))
        else:
            read = np.insert(read, min(max(at, 0), len(read)), rng.integers(0, 4, size))
    if rng.random() < 0.4:
        n = int(rng.integers(1, len(read) // 2))
        other = int(rng.integers(0, len(bases) - n))
        far = bases[other : other + n] if rng.random() < 0.5 else rng.integers(0, 5, n)
        read[slice(n) if rng.random() < 0.5 else slice(-n, None)] = far
    return read.astype(np.uint8)


def hostile_hits(rng, reference, bases, parameters, n_reads=50):
    """Return reads with hits: some of parts of reads, some in windows with something else."""
    made = []
    for _ in range(n_reads):
        length, start = int(rng.integers(20, 301)), int(rng.integers(0, len(bases) - 20))
        made.append((hostile_read(rng, bases, length, start), int(rng.integers(2)), start))
    reads = [opposite(read) if strand else read for read, strand, _ in made]
    numbers = np.repeat(np.arange(n_reads), 3)
    diagonals = np.array([start for *_, start in made])[numbers]
    diagonals += np.where(np.arange(3 * n_reads) % 3 > 0, rng.integers(-35, 36, 3 * n_reads), 0)
    strands = np.array([strand for _, strand, _ in made], np.uint8)[numbers]
    codes, offsets = flat(reads)
    found = candidates_at(numbers, strands, diagonals, n_reads)
    least = replace(parameters, least_score=1)
    hits = extend(genome_of(reference), both_strands(codes, offsets), offsets, found, least)
    # Parts of alignments, as of reads found in parts, and hits that are accepted without a score.
    n = len(hits.reads)
    cut = np.where(rng.random(n) < 0.3, (hits.read_ends - hits.read_starts) // 3, 0)
    inner = rng.random(n) < 0.5
    hits.read_starts[inner] += cut[inner]
    hits.starts[inner] += cut[inner]
    hits.read_ends[~inner] -= cut[~inner]
    hits.ends[~inner] -= cut[~inner]
    hits.scores[:] = np.maximum(hits.scores - parameters.match * cut, 1)
    hits.gapless[:] |= rng.random(n) < 0.3
    moved = np.where(rng.random(n) < 0.1, 40, 0)
    contigs = np.searchsorted(reference.contig_starts, hits.window_starts, side="right")
    starts = np.minimum(hits.window_starts + moved, reference.contig_starts[contigs] - 1)
    hits.window_starts[:] = np.minimum(starts, hits.window_ends - 1)
    return reads, hits


@pytest.mark.parametrize("name", PARAMETERS)
def test_hits_are_aligned_as_by_the_cpu(device, name):
    parameters = PARAMETERS[name]
    rng = np.random.default_rng(list(PARAMETERS).index(name))
    reference, bases = hostile_reference(rng)
    reads, hits = hostile_hits(rng, reference, bases, parameters)
    n = len(hits.reads)
    selected = np.where(rng.random(100) < 0.1, -1, rng.integers(0, n, 100))
    expected, found = aligned_by_both(reference, reads, hits, selected, parameters)
    assert_same(found, expected)
    operations = np.diff(expected.cigar_offsets)
    assert {0, 1} < set(operations.tolist())
    chosen = selected >= 0
    as_scored = expected.positions[chosen] == hits.starts[selected[chosen]]
    assert 0 < as_scored.sum() < chosen.sum()


def test_rows_without_gaps_and_without_hits(device):
    rng = np.random.default_rng(1)
    reference, bases = hostile_reference(rng)
    parameters = MappingParameters()
    reads = [bases[400:480].copy(), np.empty(0, np.uint8), opposite(bases[1500:1600])]
    codes, offsets = flat(reads)
    candidates = candidates_at([0, 2], [0, 1], [400, 1500], 3)
    hits = extend(
        genome_of(reference), both_strands(codes, offsets), offsets, candidates, parameters
    )
    for selected in ([0, -1, 1], [-1, -1], [1] * 40, np.empty(0, np.int64)):
        expected, found = aligned_by_both(reference, reads, hits, selected, parameters)
        assert_same(found, expected)
        assert (np.diff(expected.cigar_offsets) <= 1).all()


def test_reads_without_any_hit(device):
    rng = np.random.default_rng(2)
    reference, bases = hostile_reference(rng)
    reads = [bases[400:480].copy()]
    codes, offsets = flat(reads)
    nothing = extend(
        genome_of(reference), both_strands(codes, offsets), offsets, candidates_at([], [], [], 1),
        MappingParameters(),
    )  # fmt: skip
    expected, found = aligned_by_both(reference, reads, nothing, [-1, -1], MappingParameters())
    assert_same(found, expected)

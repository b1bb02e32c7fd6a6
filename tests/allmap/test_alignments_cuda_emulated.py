"""Alignments of loci by the GPU's kernels in plain Python, against those of the CPU."""

import random

import numpy as np
import pytest

from tests.helpers.oracles.loci_oracle import flat, hard_genome, hard_reads, index_of_codes

pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")

from bwarp.allmap import alignments_cuda
from bwarp.allmap import find_cuda as steps_cuda
from bwarp.allmap.candidates_cpu import blocks_of
from bwarp.allmap.find import steps_of
from bwarp.allmap.find_cpu import LociFinder, load
from bwarp.allmap.options import FoundLoci, LocusOptions, extension_of
from bwarp.errors import InputError
from bwarp.gpu import available_memory
from bwarp.mapping.extension_cpu import both_strands
from tests.helpers.gpu.emulated_mapping import pretend
from tests.helpers.gpu.pretended_device import pair_sorter


def both_engines(monkeypatch, contigs, reads, limits, extension, at_once=None):
    """Return the loci, and their alignments by the CPU and the GPU, as steps of the chain."""
    index = index_of_codes(contigs)
    codes, offsets = flat(reads)
    both = both_strands(codes, offsets)
    blocks, genome = blocks_of(both), load(index.reference)
    finder = LociFinder(index, genome, limits)
    loci, _ = finder.find_batch(both, blocks, offsets)
    expected = finder.align_batch(both, blocks, offsets, extension, loci)
    with monkeypatch.context() as patch:
        pretend(patch)
        patch.setattr(steps_cuda, "pair_sorter", pair_sorter)
        patch.setattr(alignments_cuda, "_BASES_AT_ONCE", 300)
        if at_once:
            patch.setattr(available_memory, "attempt", lambda work: few(work, at_once))
        steps = steps_of("cuda").VerifyingSteps(index.reference)
        found = steps.align(both, blocks, offsets, loci, limits, extension)
        if at_once is None:
            fused = steps_cuda.LociFinder(index, genome, steps_cuda.prepare(index, limits), limits)
            assert_same(fused.align_batch(both, blocks, offsets, extension, loci), expected)
    assert_same(found, expected)
    return loci, expected


def few(work, at_once):
    first, last = work.args
    return work() if last - first <= at_once else None


def assert_same(found, expected):
    for name, column in expected._asdict().items():
        assert getattr(found, name).dtype == column.dtype, name
        assert getattr(found, name).tolist() == column.tolist(), name


@pytest.mark.parametrize("at_once", [None, 3])
@pytest.mark.parametrize("number", range(12))
def test_by_edits(monkeypatch, number, at_once):
    rng = random.Random(number)
    contigs = hard_genome(rng)
    edits = rng.randrange(6)
    gaps = rng.choice([None, 0, edits, rng.randrange(edits + 1)])
    reads = hard_reads(rng, contigs, 4, edits)
    limits = LocusOptions(edits, gaps=gaps)
    both_engines(monkeypatch, contigs, reads, limits, None, at_once)


@pytest.mark.parametrize("threads", [1, 1 << 16])
def test_many_gaps_and_threads(monkeypatch, threads):
    """Gaps at the ends of reads, in tandem repeats; a thread for many loci."""
    monkeypatch.setattr(alignments_cuda, "_MOST_THREADS", threads)
    monkeypatch.setattr("bwarp.gpu.launch.BLOCK", 32)
    rng = random.Random(1)
    genome = [rng.randrange(4) for _ in range(90)] + [0, 1, 1] * 30
    genome += [rng.randrange(4) for _ in range(90)]
    reads = [genome[60:100] + genome[103:150], [2, 2, *genome[100:170], 4], genome[95:200]]
    reads[2][50:50] = [3, 3, 3]
    loci, found = both_engines(monkeypatch, [genome], reads, LocusOptions(7), None)
    sizes = np.diff(found.offsets)
    assert sizes.max() > 2
    assert len(set(loci.distances.tolist())) > 2


@pytest.mark.parametrize("at_once", [None, 3])
@pytest.mark.parametrize("name", ["semiglobal", "local"])
@pytest.mark.parametrize("scores", [(1, -4, 6, 1), (1, -1, 0, 1), (1, -100, 100, 1)])
def test_by_scores(monkeypatch, name, scores, at_once):
    for number in range(2):
        rng = random.Random(number)
        contigs = hard_genome(rng)
        reads = hard_reads(rng, contigs, 3, 4)
        extension = extension_of(name, *scores)
        both_engines(monkeypatch, contigs, reads, LocusOptions(4), extension, at_once)


@pytest.mark.parametrize("extension", [None, extension_of("local")])
def test_no_loci(monkeypatch, extension):
    genome = [0, 1, 2, 3] * 20
    both_engines(monkeypatch, [genome], [[0] * 30], LocusOptions(1), extension)


def test_a_locus_with_more_edits_than_said(monkeypatch):
    genome = [0, 1, 2, 3, 3, 1] * 20
    index = index_of_codes([genome])
    codes, offsets = flat([genome[:30]])
    both = both_strands(codes, offsets)
    loci = FoundLoci(
        np.zeros(1, np.int64), np.zeros(1, np.uint8), np.full(1, 2), np.full(1, 32),
        np.ones(1, np.int32), np.ones(1, np.int32),
    )  # fmt: skip
    given = both, blocks_of(both), offsets, loci, LocusOptions(1), None
    messages = []
    for backend in ("cpu", "cuda"):
        if backend == "cuda":
            pretend(monkeypatch)
            monkeypatch.setattr(steps_cuda, "pair_sorter", pair_sorter)
        with pytest.raises(InputError) as error:
            steps_of(backend).VerifyingSteps(index.reference).align(*given)
        messages.append(str(error.value))
    assert messages[0] == messages[1]
    assert messages[0].startswith("the index is invalid (a read has more edits at a locus")

"""Loci found by the GPU's kernels in plain Python, against those of the CPU."""

import random

import numpy as np
import pytest

from tests.helpers.oracles.loci_oracle import flat, hard_genome, hard_reads, index_of_codes

pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")

from bwarp.allmap import find_cuda, mismatch_parts_cuda
from bwarp.allmap import parts_cpu as rare_cuts_cpu
from bwarp.allmap import parts_cuda as rare_cuts_cuda
from bwarp.allmap import verify_cuda as loci_cuda
from bwarp.allmap.candidates_cpu import blocks_of
from bwarp.allmap.find import LociTask
from bwarp.allmap.find import load as load_engine
from bwarp.allmap.find_cpu import LociFinder, load
from bwarp.allmap.options import LocusOptions, extension_of
from bwarp.errors import GpuMemoryError
from bwarp.gpu import available_memory
from bwarp.mapping.extension_cpu import both_strands
from bwarp.reads.read_chunks import ReadChunk
from tests.helpers.gpu.emulated_mapping import pretend


def both_engines(contigs, reads, options, monkeypatch, change=None, **parameters):
    """Return the loci and counts of the CPU and of the GPU."""
    index = index_of_codes(contigs, **parameters)
    genome = load(index.reference)
    codes, offsets = flat(reads)
    both = both_strands(codes, offsets)
    blocks = blocks_of(both)
    expected = LociFinder(index, genome, options).find_batch(both, blocks, offsets)
    with monkeypatch.context() as patch:
        pretend(patch)
        finder = find_cuda.LociFinder(index, genome, find_cuda.prepare(index, options), options)
        if change:
            change(finder)
        found = finder.find_batch(both, blocks, offsets)
    return expected, found


def assert_same(expected, found):
    loci, counts = expected
    gpu_loci, gpu_counts = found
    for name, column in vars(loci).items():
        assert getattr(gpu_loci, name).dtype == column.dtype
        assert getattr(gpu_loci, name).tolist() == column.tolist(), name
    assert gpu_counts.tolist() == counts.tolist()


def case(number: int):
    rng = random.Random(number)
    contigs = hard_genome(rng)
    edits = rng.randrange(5)
    gaps = rng.choice([0, edits, rng.randrange(edits + 1)])
    return contigs, hard_reads(rng, contigs, 4, edits), edits, gaps


@pytest.mark.parametrize("number", range(20))
def test_as_the_cpu(monkeypatch, number):
    contigs, reads, edits, gaps = case(number)
    options = LocusOptions(
        edits,
        gaps=gaps,
        strata=(-1, 0, 1)[number % 3],
        mismatches=0,
        filter=("off", "kmers", "histogram", "both")[number % 4],
    )
    assert_same(*both_engines(contigs, reads, options, monkeypatch, prefix_length=1 + number % 3))


@pytest.mark.parametrize("number", range(20, 28))
def test_parts_with_mismatches(monkeypatch, number):
    contigs, _, edits, _ = case(number)
    edits = max(edits, 1)
    reads = hard_reads(random.Random(number), contigs, 3, edits)
    options = LocusOptions(edits, gaps=number % 3 // 2, mismatches=1 + number % 4)
    assert_same(*both_engines(contigs, reads, options, monkeypatch))


def test_lists_of_a_search_that_are_too_short(monkeypatch):
    """Batches are halved, and the lists of a single part doubled."""
    make, made = mismatch_parts_cuda.make_workspace, []
    monkeypatch.setattr(
        mismatch_parts_cuda,
        "make_workspace",
        lambda elements: made.append(elements) or make(elements),
    )
    monkeypatch.setattr(find_cuda, "list_elements", lambda _: 2)
    monkeypatch.setattr(mismatch_parts_cuda, "kmers_at_once", lambda *_: 3)
    rng = random.Random(3)
    contigs = [[rng.randrange(2) for _ in range(80)]]
    reads = [contigs[0][1:13], contigs[0][30:42], [3 - base for base in contigs[0][2:14]]]
    options = LocusOptions(2, gaps=0, mismatches=2)
    assert_same(*both_engines(contigs, reads, options, monkeypatch))
    assert made[0] == 2
    assert max(made) > 2


@pytest.mark.parametrize("many", [-1, 3])
@pytest.mark.parametrize("prefix_length", [0, 2, 4])
def test_cuts_for_rarity(monkeypatch, many, prefix_length):
    for module in (rare_cuts_cpu, rare_cuts_cuda):
        monkeypatch.setattr(module, "MANY_ROWS", many)
    # Few items at a time.
    monkeypatch.setattr(rare_cuts_cuda, "_WORK_BYTES", 5000)
    for number in (30, 31, 32):
        contigs, reads, edits, gaps = case(number)
        options = LocusOptions(edits, gaps=gaps, mismatches=0)
        assert_same(
            *both_engines(contigs, reads, options, monkeypatch, prefix_length=prefix_length)
        )


@pytest.mark.parametrize("at_once", [1, 3])
def test_reads_and_hits_at_a_time(monkeypatch, at_once):
    def change(finder):
        finder._pieces.at_once = at_once
        finder._most_hits = 5 * at_once

    for number in range(40, 44):
        contigs, reads, edits, gaps = case(number)
        options = LocusOptions(edits, gaps=gaps, strata=number % 2 - 1)
        assert_same(*both_engines(contigs, reads, options, monkeypatch, change))


def test_clusters_of_any_size(monkeypatch):
    """Tandem repeats, and more gaps than small clusters allow."""
    rng = random.Random(5)
    unit = [0, 1, 1, 3, 2]
    contigs = [unit * 40 + [rng.randrange(4) for _ in range(60)], [0] * 100 + [2, 1, 3] * 5]
    reads = [contigs[0][3:43], contigs[0][190:225], contigs[1][30:60], contigs[1][80:110]]
    monkeypatch.setattr(loci_cuda, "_SCRATCH_BYTES", 2000)
    find_in_large, n_clusters = loci_cuda._find_in_large, []

    def count(given, items, large, n_large, out):
        n_clusters.append(n_large)
        find_in_large(given, items, large, n_large, out)

    monkeypatch.setattr(loci_cuda, "_find_in_large", count)
    for edits, gaps in ((2, 2), (3, 1), (9, 9), (6, 5), (2, 0)):
        options = LocusOptions(edits, gaps=gaps, mismatches=0)
        assert_same(*both_engines(contigs, reads, options, monkeypatch))
    assert len(n_clusters) == 4
    assert max(n_clusters) > 5


def test_more_loci_than_hits(monkeypatch):
    """The list of loci is too short at first."""
    monkeypatch.setattr(loci_cuda, "_MORE_LOCI", -1000)
    contigs, reads, edits, gaps = case(7)
    assert_same(*both_engines(contigs, reads, LocusOptions(edits, gaps=gaps), monkeypatch))


def test_searches_that_do_not_fit_run_in_parts(monkeypatch):
    """The GPU has memory for two reads at a time, which the program must find out."""

    class CudaAPIError(Exception):
        """An error with the name of the driver's."""

    def attempt_here(work):
        try:
            return work()
        except CudaAPIError:
            return None

    search, searched = find_cuda.search_exact_parts, []

    def search_few(device, both, items, n_parts):
        searched.append(items.count)
        if items.count > 4:
            raise CudaAPIError("Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY")
        return search(device, both, items, n_parts)

    monkeypatch.setattr(available_memory, "attempt", attempt_here)
    monkeypatch.setattr(find_cuda, "search_exact_parts", search_few)
    contigs, reads, edits, gaps = case(7)
    options = LocusOptions(edits, gaps=gaps, mismatches=0)
    assert_same(*both_engines(contigs, reads, options, monkeypatch))
    assert searched[0] == 8
    assert max(searched[1:]) <= 4


def test_memory_for_no_read_at_all(monkeypatch):
    monkeypatch.setattr(available_memory, "attempt", lambda work: None)
    contigs, reads, edits, gaps = case(7)
    with pytest.raises(GpuMemoryError, match="finding the loci of a read requires more GPU memory"):
        both_engines(contigs, reads, LocusOptions(edits, gaps=gaps), monkeypatch)


def test_no_reads_and_no_searchable_reads(monkeypatch):
    contigs, _, _, _ = case(7)
    for reads in ([], [[0, 1], [], [3]]):
        assert_same(*both_engines(contigs, reads, LocusOptions(3), monkeypatch))


@pytest.mark.parametrize(("extension", "gpus"), [("edits", 1), ("local", 1), ("edits", 2)])
def test_chunks_by_several_threads(monkeypatch, extension, gpus):
    contigs, _, edits, gaps = case(7)
    rng = random.Random(1)
    reads = hard_reads(rng, contigs, 12, edits)
    index = index_of_codes(contigs)

    def chunks():
        for first in range(0, 12, 3):
            codes, offsets = flat(reads[first : first + 3])
            names = np.zeros((3, 2), np.int64)
            yield ReadChunk(codes, offsets, None, np.empty(0, np.uint8), names, 1, first)

    options = LocusOptions(edits, gaps=gaps, strata=0)
    task = LociTask(options, extension=extension_of(extension))
    expected = list(load_engine(index, task).find_loci(chunks()))
    pretend(monkeypatch, gpus)
    prepare, prepared = find_cuda.prepare, []
    monkeypatch.setattr(find_cuda, "prepare", lambda *given: prepared.append(1) or prepare(*given))
    found = list(load_engine(index, task, "cuda", 3, gpus).find_loci(chunks()))
    assert len(prepared) == gpus
    for (one, certificate), (other, others_certificate) in zip(found, expected, strict=True):
        assert certificate == others_certificate
        for column, others in zip(one.alignments, other.alignments, strict=True):
            assert column.tolist() == others.tolist()
        for name, column in vars(other.loci).items():
            assert getattr(one.loci, name).tolist() == column.tolist()

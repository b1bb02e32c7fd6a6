"""Alignments of loci on a GPU: the same as on the CPU, for all reads, limits and scores."""

import numpy as np
import pytest

from bwarp.allmap import find_cpu
from bwarp.allmap.candidates_cpu import blocks_of
from bwarp.allmap.find import LociTask, load, steps_of
from bwarp.allmap.options import LocusOptions, extension_of
from bwarp.allmap.pairs_cpu import PairOptions
from bwarp.mapping.extension_cpu import both_strands
from tests.helpers.oracles.mapping_oracle import codes_in, flat, index_and_genome, random_bases
from tests.mapping.test_pipeline_cuda import chunks_of, contigs, reads_of

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def small():
    rng = np.random.default_rng(4)
    index, genome = index_and_genome(contigs(rng))
    return index, reads_of(rng, codes_in(genome), 3000)


def assert_same(found, expected):
    for name, column in expected._asdict().items():
        assert getattr(found, name).dtype == column.dtype, name
        assert np.array_equal(getattr(found, name), column), name


def compare(index, reads, limits, extension):
    """Align reads at their loci with both engines; return the alignments and the loci."""
    from bwarp.allmap import find_cuda

    codes, offsets = flat(reads)
    both = both_strands(codes, offsets)
    blocks, genome = blocks_of(both), find_cpu.load(index.reference)
    on_cpu = find_cpu.LociFinder(index, genome, limits)
    loci, _ = on_cpu.find_batch(both, blocks, offsets)
    expected = on_cpu.align_batch(both, blocks, offsets, extension, loci)
    steps = steps_of("cuda").VerifyingSteps(index.reference)
    assert_same(steps.align(both, blocks, offsets, loci, limits, extension), expected)
    finder = find_cuda.LociFinder(index, genome, find_cuda.prepare(index, limits, 2), limits)
    assert_same(finder.align_batch(both, blocks, offsets, extension, loci), expected)
    return expected, loci


WITHOUT_GAPS = [LocusOptions(0), LocusOptions(5, gaps=0)]
LIMITS = [
    *WITHOUT_GAPS,
    LocusOptions(4),
    LocusOptions(6, gaps=1),
    LocusOptions(12, strata=0),
    LocusOptions(percent=10, strata=1),
]

SCORES = [(1, -4, 6, 1), (2, -3, 5, 2), (1, -1, 0, 1), (1, -100, 100, 1), (100, -100, 100, 100)]


@pytest.mark.parametrize("limits", LIMITS, ids=str)
def test_by_edits(small, limits):
    found, loci = compare(*small, limits, None)
    assert len(loci.reads) > 3000
    assert (np.diff(found.offsets) > 1).any() == (limits not in WITHOUT_GAPS)


@pytest.mark.parametrize("name", ["semiglobal", "local"])
@pytest.mark.parametrize(
    "scores",
    [(1, -4, 6, 1), (2, -3, 5, 2), (1, -1, 0, 1), (1, -100, 100, 1), (100, -100, 100, 100)],
)
def test_by_scores(small, name, scores):
    found, loci = compare(*small, LocusOptions(6), extension_of(name, *scores))
    assert len(loci.reads) > 3000
    assert (found.distances != loci.distances).any()


def test_one_locus(small):
    index, reads = small
    for extension in (None, extension_of("local")):
        compare(index, reads[:1], LocusOptions(8), extension)


@pytest.mark.parametrize("extension", [None, extension_of("semiglobal"), extension_of("local")])
def test_long_reads_and_tandem_repeats(extension):
    """Reads of up to 9,000 bases, gaps at their ends and in tandem repeats, and N."""
    rng = np.random.default_rng(5)
    index, genome = index_and_genome([random_bases(rng, 60_000) + b"ACC" * 300, b"A" * 2000])
    genome, reads = codes_in(genome), []
    for number in range(300):
        length = int(rng.choice([60, 500, 3000, 9000]))
        start = int(rng.integers(0, genome.size - length))
        if number % 3 == 0:
            length, start = 200, 60_000 + int(rng.integers(-150, 850))
        read = genome[start : start + length].copy()
        for _ in range(int(rng.integers(0, 12))):
            at = int(rng.choice([0, 1, read.size - 1, rng.integers(0, read.size)]))
            size = int(rng.integers(1, 4))
            kind = rng.integers(0, 4)
            if kind == 0:
                read = np.delete(read, slice(at, at + size))
            elif kind == 1:
                read = np.insert(read, at, rng.integers(0, 4, size))
            else:
                read[at] = rng.integers(0, 5)
        reads.append(read.astype(np.uint8))
    found, loci = compare(index, reads, LocusOptions(20), extension)
    assert len(loci.reads) > 100
    assert (np.diff(found.offsets) > 3).any()


@pytest.mark.parametrize("name", ["edits", "semiglobal", "local"])
@pytest.mark.parametrize("paired", [False, True])
def test_the_engine(small, name, paired):
    """Chunks of reads from search to alignment, by several threads."""
    index, reads = small
    task = LociTask(
        LocusOptions(5, strata=0), 40, PairOptions() if paired else None, extension_of(name)
    )
    found = []
    for backend in ("cpu", "cuda"):
        chunks = chunks_of(reads, 1 + paired, 700)
        found.append([one for one, _ in load(index, task, backend, 4).find_loci(chunks)])
    for one, other in zip(*found, strict=True):
        assert_same(other.alignments, one.alignments)
        assert np.array_equal(other.n_loci, one.n_loci)
        assert other.certificate == one.certificate

"""Loci on a GPU: the same loci and counts as on the CPU, for all reads and options."""

import numpy as np
import pytest

from bwarp.allmap import find as engine
from bwarp.allmap import find_cpu
from bwarp.allmap.candidates_cpu import blocks_of
from bwarp.allmap.options import LocusOptions
from bwarp.allmap.parts_cpu import hits_of, items_of, kept_hits, seed_mismatches
from bwarp.allmap.verify_cpu import COUNTS
from bwarp.index.locate_cpu import look_up
from bwarp.mapping.extension_cpu import both_strands
from tests.helpers.oracles.mapping_oracle import codes_in, flat, index_and_genome
from tests.mapping.test_pipeline_cuda import contigs, opposite, random_bases, reads_of

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def small():
    rng = np.random.default_rng(3)
    index, genome = index_and_genome(contigs(rng))
    return index, reads_of(rng, codes_in(genome), 3000)


@pytest.mark.parametrize(
    "options",
    [
        LocusOptions(4),
        LocusOptions(4, strata=0),
        LocusOptions(2, strata=1, filter="off"),
        LocusOptions(4, filter="histogram"),
        LocusOptions(4, gaps=0, filter="histogram"),
        LocusOptions(4, gaps=1, filter="both"),
        LocusOptions(6, gaps=1),
        LocusOptions(5, gaps=0),
        LocusOptions(3, gaps=0, mismatches=1),
        LocusOptions(percent=3, strata=0),
        LocusOptions(12),
        LocusOptions(0),
    ],
    ids=str,
)
@pytest.mark.parametrize("hits", [None, 500])
def test_as_the_cpu(small, options, hits):
    index, reads = small
    assert_as_the_cpu(index, reads, options, hits)


def test_parts_of_three_bases(small):
    index, reads = small
    assert_as_the_cpu(index, reads[:4], LocusOptions(31, filter="histogram"))


def assert_as_the_cpu(index, reads, options, hits=None):
    from bwarp.allmap import find_cuda

    codes, offsets = flat(reads)
    both = both_strands(codes, offsets)
    blocks = blocks_of(both)
    genome = find_cpu.load(index.reference)
    finder = find_cuda.LociFinder(index, genome, find_cuda.prepare(index, options, 2), options)
    if hits:
        finder._most_hits = hits
    found, gpu_counts = finder.find_batch(both, blocks, offsets)
    on_cpu = find_cpu.LociFinder(index, genome, options)
    expected, counts = on_cpu.find_batch(both, blocks, offsets)
    for name, column in vars(expected).items():
        assert np.array_equal(getattr(found, name), column), name
    assert gpu_counts.tolist() == counts.tolist()


@pytest.fixture(scope="module")
def hard():
    """Short reads of random and repetitive stretches, with runs of N in both."""
    rng = np.random.default_rng(4)
    unit = random_bases(rng, 90)
    parts = [random_bases(rng, 5000), unit, b"N" * 9, random_bases(rng, 9000), unit[:60], unit]
    repeats = [b"ACGTTGCA" * 12, b"N" * 9, b"CAG" * 25, unit]
    index, genome = index_and_genome([b"".join(parts), b"".join(repeats)])
    codes, reads = codes_in(genome), []
    for number in range(400):
        length = int(rng.choice([*range(3, 60), *[100] * 20, 150]))
        # A quarter of the reads come from the repeats.
        start = int(rng.integers(0 if number % 4 else codes.size - 270, codes.size - length))
        read = codes[start : start + length].copy()
        wrong = rng.random(length) < rng.choice([0, 0.02, 0.1])
        read[wrong] = rng.integers(0, 5, np.count_nonzero(wrong))
        reads.append(opposite(read) if rng.random() < 0.5 else read)
    return index, reads


@pytest.mark.parametrize("mismatches", [1, 2, 3, 4])
@pytest.mark.parametrize(("edits", "gaps"), [(4, 0), (6, 0), (6, 2), (3, 3)])
@pytest.mark.parametrize("elements", [None, 100])
def test_parts_with_mismatches(hard, monkeypatch, edits, gaps, mismatches, elements):
    from bwarp.allmap import find_cuda

    if elements:
        # Batches are halved, and the lists of single parts doubled.
        monkeypatch.setattr(find_cuda, "list_elements", lambda _: elements)
    index, reads = hard
    reads = reads[:60] if elements else reads
    options = LocusOptions(edits, gaps=gaps, mismatches=mismatches)
    assert_as_the_cpu(index, reads, options)


@pytest.mark.parametrize("mismatches", [1, 2, 3, 4])
@pytest.mark.parametrize("gaps", [0, 1])
def test_the_seeding_step_with_mismatches(hard, mismatches, gaps):
    index, reads = hard
    codes, offsets = flat(reads)
    both, lengths = both_strands(codes, offsets), np.diff(offsets)
    options = LocusOptions(5, gaps=gaps, mismatches=mismatches)
    numbers = np.flatnonzero(lengths > 5)
    edits = options.edits_of(lengths[numbers])
    gap_letters = options.gaps_of(edits)
    of_reads = seed_mismatches(index, lengths[numbers], edits, gap_letters, options)
    assert {0, mismatches} == set(of_reads.tolist())
    items = items_of(offsets, numbers, edits, gap_letters, of_reads)
    found, expected = (
        engine.steps_of(backend).SeedingSteps(index, options).search_parts(both, items)
        for backend in ("cuda", "cpu")
    )
    for parts in (found, expected):
        # Without rows, there is no first row.
        parts.first_rows[parts.n_rows == 0] = 0
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)


@pytest.mark.parametrize("candidate_filter", ["histogram", "kmers", "both", "off"])
@pytest.mark.parametrize("gaps", [4, 1, 0])
def test_steps_are_as_the_cpus(small, candidate_filter, gaps):
    index, reads = small
    codes, offsets = flat(reads)
    both = both_strands(codes, offsets)
    blocks, lengths = blocks_of(both), np.diff(offsets)
    numbers = np.flatnonzero(lengths > 4)
    edits = np.full(numbers.size, 4)
    items = items_of(offsets, numbers, edits, np.minimum(edits, gaps), 0 * edits)
    found = []
    for backend in ("cpu", "cuda"):
        steps = engine.steps_of(backend)
        seeding = steps.SeedingSteps(index, LocusOptions(4))
        verifying = steps.VerifyingSteps(index.reference, 1, candidate_filter)
        parts = seeding.search_parts(both, items)
        hits, rows = hits_of(parts, 0, len(items.begins))
        walked = seeding.step_to_sampled(rows)
        positions = look_up(index, *walked)
        by = verifying.dropped_by(blocks, items, hits, positions)
        left = kept_hits(hits, positions, by == 0)
        counts = np.zeros(len(COUNTS), np.int64)
        loci = verifying.find_loci(blocks, items, *left, counts)
        # Without rows, there is no first row.
        parts.first_rows[parts.n_rows == 0] = 0
        found.append([*parts, *walked, by, loci, counts])
    for one, other in zip(*found, strict=True):
        assert np.array_equal(one, other)

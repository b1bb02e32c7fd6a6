"""Loci on a GPU: the same loci and counts as on the CPU, for all reads and options."""

import numpy as np
import pytest

from bwarp.allmap import find as engine
from bwarp.allmap import find_cpu
from bwarp.allmap.candidates_cpu import blocks_of
from bwarp.allmap.options import LocusOptions
from bwarp.allmap.parts_cpu import hits_of, items_of, kept_hits
from bwarp.allmap.verify_cpu import COUNTS
from bwarp.index.locate_cpu import look_up
from bwarp.mapping.extension_cpu import both_strands
from tests.helpers.oracles.mapping_oracle import codes_in, flat, index_and_genome
from tests.mapping.test_pipeline_cuda import contigs, reads_of

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
        LocusOptions(2, strata=1, use_filter=False),
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
    from bwarp.allmap import find_cuda

    index, reads = small
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


def test_steps_are_as_the_cpus(small):
    index, reads = small
    codes, offsets = flat(reads)
    both = both_strands(codes, offsets)
    blocks, lengths = blocks_of(both), np.diff(offsets)
    numbers = np.flatnonzero(lengths > 4)
    edits = np.full(numbers.size, 4)
    items = items_of(offsets, numbers, edits, edits, 0 * edits)
    found = []
    for backend in ("cpu", "cuda"):
        steps = engine.steps_of(backend)
        seeding, verifying = (
            steps.SeedingSteps(index, LocusOptions(4)),
            steps.VerifyingSteps(index.reference),
        )
        parts = seeding.search_parts(both, items)
        hits, rows = hits_of(parts, 0, len(items.begins))
        walked = seeding.step_to_sampled(rows)
        positions = look_up(index, *walked)
        kept = verifying.may_have_loci(blocks, items, hits, positions)
        left = kept_hits(hits, positions, kept)
        counts = np.zeros(len(COUNTS), np.int64)
        loci = verifying.find_loci(blocks, items, *left, False, counts)
        # Without rows, there is no first row.
        parts.first_rows[parts.n_rows == 0] = 0
        found.append([*parts, *walked, kept, loci, counts])
    for one, other in zip(*found, strict=True):
        assert np.array_equal(one, other)

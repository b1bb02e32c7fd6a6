"""The steps of the chain with the GPU's kernels in plain Python, against the CPU."""

import random

import numpy as np
import pytest

from tests.helpers.oracles.loci_oracle import flat, hard_genome, hard_reads, index_of_codes

pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")

from bwarp.allmap import find as engine
from bwarp.allmap import find_cuda as steps_cuda
from bwarp.allmap.candidates_cpu import blocks_of
from bwarp.allmap.options import LocusOptions
from bwarp.allmap.parts_cpu import hits_of, items_of, kept_hits
from bwarp.allmap.verify_cpu import COUNTS
from bwarp.errors import GpuMemoryError
from bwarp.gpu import available_memory
from bwarp.index.locate_cpu import locate
from bwarp.mapping.extension_cpu import both_strands
from tests.helpers.gpu.emulated_mapping import pretend
from tests.helpers.gpu.pretended_device import pair_sorter

#: Parts may have mismatches.
SEARCH = LocusOptions(3, mismatches=4)


@pytest.mark.parametrize("at_once", [100, 5, 2])
@pytest.mark.parametrize("number", range(4))
def test_as_the_cpu(monkeypatch, number, at_once):
    candidate_filter = ("both", "histogram", "kmers", "off")[number]
    rng = random.Random(number)
    contigs = hard_genome(rng)
    edits = 3
    codes, offsets = flat(hard_reads(rng, contigs, 4, edits))
    both = both_strands(codes, offsets)
    index = index_of_codes(contigs, prefix_length=3, sa_rate=(1, 4)[number % 2])
    blocks = blocks_of(both)
    on_cpu = engine.steps_of("cpu")
    seeding = on_cpu.SeedingSteps(index, SEARCH)
    verifying = on_cpu.VerifyingSteps(index.reference, 1, candidate_filter)
    all_edits = np.full(4, edits)
    mismatches = np.array([0, 1, 0, 1]) * (number == 2)
    gaps = all_edits * (number != 2)
    items = items_of(offsets, np.arange(4), all_edits, gaps, mismatches)
    parts = seeding.search_parts(both, items)
    hits, rows = hits_of(parts, 0, len(items.begins))
    walked = seeding.step_to_sampled(rows)
    positions = locate(index, rows)
    by = verifying.dropped_by(blocks, items, hits, positions)
    left = kept_hits(hits, positions, by == 0)
    counts = np.zeros(len(COUNTS), np.int64)
    loci = verifying.find_loci(blocks, items, *left, counts)
    assert len(loci) > 0

    pretend(monkeypatch)
    monkeypatch.setattr(steps_cuda, "pair_sorter", pair_sorter)
    few(monkeypatch, at_once)
    on_gpu = engine.steps_of("cuda")
    seeding = on_gpu.SeedingSteps(index, SEARCH)
    verifying = on_gpu.VerifyingSteps(index.reference, 1, candidate_filter)
    found_parts = seeding.search_parts(both, items)
    for one in (found_parts, parts):
        # Without rows, there is no first row.
        one.first_rows[one.n_rows == 0] = 0
    for one, other in zip(found_parts, parts, strict=True):
        assert one.dtype == other.dtype
        assert one.tolist() == other.tolist()
    for one, other in zip(seeding.step_to_sampled(rows), walked, strict=True):
        assert one.dtype == other.dtype
        assert one.tolist() == other.tolist()
    assert verifying.dropped_by(blocks, items, hits, positions).tolist() == by.tolist()
    found = np.zeros(len(COUNTS), np.int64)
    assert verifying.find_loci(blocks, items, *left, found).tolist() == loci.tolist()
    assert found.tolist() == counts.tolist()
    none = np.empty(0, np.uint32)
    assert [one.size for one in seeding.step_to_sampled(none)] == [0, 0]


def test_chunks_in_turn(monkeypatch):
    """Each chunk is searched with its own reads, also between pieces of another chunk."""
    index = index_of_codes([[0, 1, 2, 3, 3, 1] * 10])
    pretend(monkeypatch)
    monkeypatch.setattr(steps_cuda, "pair_sorter", pair_sorter)
    few(monkeypatch, 1)
    on_cpu = engine.steps_of("cpu")
    steps = steps_cuda.VerifyingSteps(index.reference, 1, "both")
    expected = on_cpu.VerifyingSteps(index.reference)
    chunks = []
    for begin in (0, 1):
        codes, offsets = flat([[0, 1, 2, 3, 3, 1] * 2, ([0, 1, 2, 3, 3, 1] * 3)[begin:]])
        both = both_strands(codes, offsets)
        items = items_of(offsets, np.arange(2), np.ones(2, int), np.ones(2, int), np.zeros(2, int))
        hits, rows = hits_of(on_cpu.SeedingSteps(index, SEARCH).search_parts(both, items), 0, 4)
        chunks.append((blocks_of(both), items, hits, locate(index, rows)))
    for chunk in chunks * 2:
        counts = np.zeros((2, len(COUNTS)), np.int64)
        found, same = (
            one.find_loci(*chunk, of_one)
            for one, of_one in zip((steps, expected), counts, strict=True)
        )
        assert found.tolist() == same.tolist()
        assert counts[0].tolist() == counts[1].tolist()
        assert len(found) > 1
        assert not steps.dropped_by(*chunk).any()


def few(monkeypatch, at_once):
    """Limit the memory to this many items at a time."""

    def attempt(work):
        first, last = work.args
        return work() if last - first <= at_once else None

    monkeypatch.setattr(available_memory, "attempt", attempt)


def test_memory_for_no_item_at_all(monkeypatch):
    index = index_of_codes([[0, 1, 2, 3] * 10])
    pretend(monkeypatch)
    few(monkeypatch, 0)
    steps = steps_cuda.SeedingSteps(index, SEARCH)
    with pytest.raises(GpuMemoryError, match="finding the loci of a read requires more GPU memory"):
        steps.step_to_sampled(np.arange(4, dtype=np.uint32))

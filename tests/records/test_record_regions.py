"""Records in regions: those of templates that overlap a region, unchanged."""

import numpy as np
import pytest

from bwarp.bam.fields import UNMAPPED
from bwarp.records.alignment_records import ReadArrays, mapped_tables, selected_rows
from bwarp.records.bam_records_cpu import sam_records
from bwarp.records.output_options import in_regions, joined_regions
from bwarp.records.record_layout import alignment_records
from tests.helpers.cases.random_alignment_records import (
    random_chunk,
    random_genome,
    random_mapped,
)


@pytest.mark.parametrize("seed", range(20))
def test_joined_regions_cover_the_same_bases(seed):
    rng = np.random.default_rng(seed)
    regions = [(int(start), int(start + rng.integers(1, 12))) for start in rng.integers(0, 99, 12)]
    joined = joined_regions(regions)
    wanted, found = np.zeros((2, 200), bool)
    for start, stop in regions:
        wanted[start:stop] = True
    for start, stop in joined:
        found[start:stop] = True
    assert np.array_equal(found, wanted)
    assert (joined[1:, 0] > joined[:-1, 1]).all()


@pytest.mark.parametrize("ends", [1, 2])
def test_records_are_those_of_templates_in_regions(ends):
    rng = np.random.default_rng(ends)
    genome, names = random_genome(rng)
    chunk = random_chunk(rng, 150, ends, orphan_share=0.2 if ends == 2 else 0)
    both, mapped = random_mapped(rng, genome, chunk)
    records = alignment_records(genome.contig_starts, chunk, mapped)

    def lines(table):
        parts = sam_records(mapped_tables(genome, names, ReadArrays.of(chunk, both), table))
        return b"".join(part.data.tobytes() for part in parts).splitlines()

    whole = lines(records)
    is_mapped = records.flags & UNMAPPED == 0
    first = int(records.positions[is_mapped][0])
    last = first + int(records.spans[is_mapped][0])
    for regions in (
        [(first - 1, first)], [(first, first + 1)], [(last - 1, last)], [(last, last + 1)],
        [(4000, 4400), (10, 30), (25, 60), (700, 701)], [(0, 4400)], [(4399, 4400)],
    ):  # fmt: skip
        wanted = np.zeros(4500, bool)
        for start, stop in regions:
            wanted[max(start, 0) : stop] = True
        templates = {
            int(records.reads[row]) // ends
            for row in np.flatnonzero(is_mapped)
            if wanted[records.positions[row] : records.positions[row] + records.spans[row]].any()
        }
        expected = [
            line
            for line, read in zip(whole, records.reads.tolist(), strict=True)
            if read // ends in templates
        ]
        kept = in_regions(records, ends, joined_regions(regions))
        assert lines(selected_rows(records, kept)) == expected
    assert 0 < len(expected) < len(whole)

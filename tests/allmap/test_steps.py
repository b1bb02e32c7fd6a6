"""The steps of a search, one by one: the same results as all steps together."""

import random

import numpy as np
import pytest

from bwarp.allmap.candidates_cpu import Bounds, blocks_of, dropped_by
from bwarp.allmap.find_cpu import LociFinder, load
from bwarp.allmap.options import LocusOptions
from bwarp.allmap.parts_cpu import (
    Items,
    Parts,
    hits_of,
    items_of,
    kept_hits,
    merge_parts,
    search_parts,
    seed_mismatches,
    some_items,
)
from bwarp.allmap.rounds import FoundRound, following_round, joined_rounds
from bwarp.allmap.verify_cpu import COUNTS, find_loci
from bwarp.index.locate_cpu import look_up, step_to_sampled
from bwarp.mapping.extension_cpu import both_strands
from bwarp.options.mapping import ALL, ALLMAP
from bwarp.reference import text_of
from tests.helpers.oracles.loci_oracle import flat, hard_genome, hard_reads, index_of_codes

FILTERS = ALLMAP["filter"].value.words


def by_steps(index, both, offsets, options, n_items=3):
    """Search like `find_batch`, some items at a time."""
    genome, blocks, lengths = load(index.reference), blocks_of(both), np.diff(offsets)
    counts = np.zeros(len(COUNTS), np.int64)
    found = []
    reads, edits = following_round(lengths, options)
    while reads.size:
        gaps = options.gaps_of(edits)
        mismatches = seed_mismatches(index, lengths[reads], edits, gaps, options)
        items = items_of(offsets, reads, edits, gaps, mismatches)
        parts = search_parts(index, both, items)
        counts[0] += parts.offsets[-1]
        rows = [np.empty((0, 4), np.int64)]
        for first in range(0, len(items.begins), n_items):
            some = some_items(items, slice(first, first + n_items))
            hits, sa_rows = hits_of(parts, first, min(first + n_items, len(items.begins)))
            positions = look_up(index, *step_to_sampled(index, sa_rows))
            counts[1] += positions.size
            of = genome.blocks, blocks, some
            if options.filter != "off":
                bounds = Bounds.of(options.filter, genome.blocks)
                by = dropped_by(*of, hits, positions, genome.segments, bounds)
                counts[2:4] += np.bincount(by, minlength=3)[1:]
                hits, positions = kept_hits(hits, positions, by == 0)
            none = Bounds.of("off", genome.blocks)
            loci = find_loci(*of, hits, positions, genome.segments, none, counts)
            item = first + loci[:, 0]
            loci[:, 0] = 2 * reads[item >> 1] + (item & 1)
            rows.append(loci)
        found.append(FoundRound(reads, edits, np.concatenate(rows)))
        reads, edits = following_round(lengths, options, found[-1])
    return joined_rounds(found, len(lengths), options.strata), counts


@pytest.mark.parametrize("strata", [ALL, 0, 1])
@pytest.mark.parametrize("candidate_filter", FILTERS)
@pytest.mark.parametrize("mismatches", [0, 1, None])
def test_steps_are_as_all_in_one(strata, candidate_filter, mismatches):
    dropped = np.zeros(2, np.int64)
    for number in range(12):
        rng = random.Random(number)
        bases = [rng.randrange(4) for _ in range(1000)]
        like = [rng.randrange(4) if rng.random() < 0.2 else base for base in bases]
        contigs = [*hard_genome(rng), bases, like]
        index = index_of_codes(contigs, prefix_length=3, sa_rate=rng.choice([1, 4]))
        codes, offsets = flat(hard_reads(rng, contigs, 6, 4) + [[0, 1], bases[300:380]])
        both = both_strands(codes, offsets)
        gaps = rng.choice([None, 0, 1])
        options = LocusOptions(
            4, gaps=gaps, strata=strata, mismatches=mismatches, filter=candidate_filter
        )
        blocks = blocks_of(both)
        finder = LociFinder(index, load(index.reference), options)
        whole, counts = finder.find_batch(both, blocks, offsets)
        loci, counts_of_steps = by_steps(index, both, offsets, options)
        for name, array in vars(whole).items():
            assert np.array_equal(array, getattr(loci, name)), name
        assert counts.tolist() == counts_of_steps.tolist()
        dropped += counts[2:4]
    assert (dropped > 0).tolist() == [
        candidate_filter in ("histogram", "both"),
        candidate_filter in ("auto", "kmers", "both"),
    ]


def test_no_items_have_no_parts():
    index = index_of_codes([[0, 1, 2, 3] * 10])
    nothing = np.empty(0, np.int64)
    items = items_of(np.zeros(1, np.int64), nothing, nothing, nothing, nothing)
    parts = search_parts(index, np.empty(0, np.uint8), items)
    assert [column.size for column in parts] == [1, 0, 0, 1, 0, 0]
    hits, rows = hits_of(parts, 0, 0)
    assert (hits.offsets.tolist(), rows.size) == ([0], 0)


def test_parts_are_merged_in_the_order_of_items():
    def parts(sizes, intervals, first):
        n = int(np.sum(sizes))
        names = np.arange(first, first + n, dtype=np.int32)
        n_intervals = int(np.sum(intervals))
        rows = np.arange(first * 10, first * 10 + n_intervals, dtype=np.uint32)
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        return Parts(
            offsets, names, names, np.concatenate([[0], np.cumsum(intervals)]), rows, rows + 1
        )

    one = parts([2, 1], [1, 0, 2], 100)
    other = parts([1, 3], [3, 1, 1, 0], 200)
    merged = merge_parts([np.array([0, 3]), np.array([1, 2])], [one, other])
    assert merged.offsets.tolist() == [0, 2, 3, 6, 7]
    assert merged.starts.tolist() == [100, 101, 200, 201, 202, 203, 102]
    assert merged.interval_offsets.tolist() == [0, 1, 1, 4, 5, 6, 6, 8]
    assert merged.first_rows.tolist() == [1000, 2000, 2001, 2002, 2003, 2004, 1001, 1002]


def test_reads_with_different_mismatches_in_one_batch():
    rng = random.Random(1)
    genome = [rng.randrange(4) for _ in range(3000)]
    index = index_of_codes([genome], prefix_length=4)
    codes, offsets = flat([genome[100:140], genome[200:207], genome[900:960]])
    both = both_strands(codes, offsets)
    lengths, edits = np.diff(offsets), np.full(3, 2)
    options = LocusOptions(2, gaps=0, mismatches=2)
    mismatches = seed_mismatches(index, lengths, edits, np.zeros(3, np.int64), options)
    assert 0 < np.count_nonzero(mismatches) < 3
    items = items_of(offsets, np.arange(3), edits, np.zeros(3, np.int64), mismatches)
    assert isinstance(items, Items)
    parts = search_parts(index, both, items)
    for item in range(6):
        alone = search_parts(index, both, some_items(items, [item & ~1, item | 1]))
        chosen = slice(*parts.offsets[item : item + 2])
        of_alone = slice(*alone.offsets[item & 1 : (item & 1) + 2])
        assert parts.starts[chosen].tolist() == alone.starts[of_alone].tolist()
        assert parts.ends[chosen].tolist() == alone.ends[of_alone].tolist()
        rows = hits_of(parts, item, item + 1)[1]
        assert rows.tolist() == hits_of(alone, item & 1, (item & 1) + 1)[1].tolist()


@pytest.mark.parametrize("mismatches", [1, 2, 3, 4])
def test_rows_of_parts_with_mismatches(mismatches):
    """All rows whose text is within the mismatches of a part, in order."""
    rng = random.Random(mismatches)
    bases = [rng.randrange(4) for _ in range(400)]
    index = index_of_codes([bases, [4] * 5 + bases[20:60] + [0, 1] * 30], sa_rate=1)
    reads = [bases[30:60], bases[100:112], [0, 1, 0, 1, 0, 3] * 4, bases[200:216] + [4] * 3]
    codes, offsets = flat(reads)
    both, edits = both_strands(codes, offsets), np.full(4, mismatches)
    items = items_of(offsets, np.arange(4), edits, 0 * edits, edits)
    parts = search_parts(index, both, items)
    assert parts.offsets.tolist() == list(range(9))
    text = np.append(text_of(index.reference), np.zeros(64, np.uint8))
    for item, (begin, length) in enumerate(zip(items.begins, items.lengths, strict=True)):
        part = both[begin : begin + length]
        # An ambiguous base of the read is searched as A.
        part = np.where(part > 3, 3 * (item % 2), part) + 1
        windows = text[index.suffix_array[:, None] + np.arange(length)]
        is_near = (windows != part).sum(axis=1) <= mismatches
        expected = np.flatnonzero(is_near & (windows > 0).all(axis=1))
        assert hits_of(parts, item, item + 1)[1].tolist() == expected.tolist()

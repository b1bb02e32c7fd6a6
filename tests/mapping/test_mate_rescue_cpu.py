"""A mate is found where its partner implies, and only there."""

import numpy as np
import pytest

from bwarp.mapping.extension_cpu import both_strands
from bwarp.mapping.insert_size import InsertSize, mate_lies
from bwarp.mapping.mate_rescue_cpu import rescue_candidates
from bwarp.mapping.parameters import MappingParameters
from bwarp.options.common import ORIENTATIONS
from tests.helpers.oracles.mapping_oracle import (
    codes_in,
    flat,
    genome_with,
    hits_of_rows,
    index_and_genome,
    opposite,
    random_bases,
)

INSERT = InsertSize(300.0, 20.0, 220, 380)
LENGTH = 100


@pytest.fixture(scope="module")
def genome():
    rng = np.random.default_rng(1)
    return index_and_genome([random_bases(rng, 1000), random_bases(rng, 1000)])[1]


def worn(read):
    """Return a read with a mismatch every 15 bases, so that no seed of 16 bases matches."""
    read = read.copy()
    read[7::15] = (read[7::15] + 1) % 4
    return read


def pair_at(genome, start, size):
    bases = codes_in(genome)
    first = bases[start : start + LENGTH]
    return first, opposite(worn(bases[start + size - LENGTH : start + size]))


def rescued(genome, reads, rows, insert=INSERT):
    codes, offsets = flat(reads)
    found = rescue_candidates(
        genome, both_strands(codes, offsets), offsets, hits_of_rows(rows), insert,
        MappingParameters(),
    )  # fmt: skip
    assert found.offsets.tolist() == np.searchsorted(found.reads, range(len(reads) + 1)).tolist()
    return list(zip(found.reads, found.strands, found.diagonals, strict=True))


@pytest.mark.parametrize("start", [0, 400, 1200, 1700])
@pytest.mark.parametrize("size", [220, 300, 380])
def test_a_mate_without_seeds_is_found(genome, start, size):
    if start == 1700 and size > 300:
        size = 300  # the fragment ends at the end of the contig
    first, second = pair_at(genome, start, size)
    hit = (LENGTH, 0, start, start + LENGTH)
    mate = start + size - LENGTH
    assert rescued(genome, [first, second], [[hit], []]) == [(1, 1, mate)]
    # From the other end: the reverse read is the anchor, and first in its pair.
    anchor = (50, 1, mate, mate + LENGTH)
    assert rescued(genome, [second, worn(first)], [[anchor], []]) == [(1, 0, start)]


@pytest.mark.parametrize("orientation", range(4), ids=ORIENTATIONS)
@pytest.mark.parametrize("end", [0, 1])
@pytest.mark.parametrize("strand", [0, 1])
def test_a_mate_is_found_in_every_orientation(genome, orientation, end, strand):
    insert = InsertSize(300.0, 20.0, 220, 380, orientation)
    other, side = mate_lies(orientation, end, strand)
    start = 500
    five_prime = (start + LENGTH if strand else start) + side * 300
    mate = five_prime - LENGTH if other else five_prime
    reads = [codes_in(genome)[at : at + LENGTH] for at in (start, mate)]
    reads[1] = worn(reads[1])
    reads = [opposite(r) if turned else r for r, turned in zip(reads, (strand, other), strict=True)]
    hit = [(LENGTH, strand, start, start + LENGTH)]
    rows = [hit, []]
    if end:
        reads, rows = reads[::-1], rows[::-1]
    assert rescued(genome, reads, rows, insert=insert) == [(1 - end, other, mate)]


def test_no_mate_to_find(genome):
    first, second = pair_at(genome, 300, 300)
    hit, partner = (LENGTH, 0, 300, 400), (50, 1, 500, 600)
    assert rescued(genome, [first, second], [[hit], [partner]]) == []
    assert rescued(genome, [first, second], [[], []]) == []
    far, _ = pair_at(genome, 300, 300)
    too_far = opposite(codes_in(genome)[300 + 281 + 10 : 300 + 381 + 10])
    assert rescued(genome, [far, too_far], [[hit], []]) == []
    random = np.random.default_rng(2).integers(0, 4, LENGTH).astype(np.uint8)
    assert rescued(genome, [first, random], [[hit], []]) == []
    for other in (np.empty(0, np.uint8), second[:5], np.full(LENGTH, 4, np.uint8)):
        assert rescued(genome, [first, other], [[hit], []]) == []


def test_mates_of_hits_aligned_without_gaps_are_searched(genome):
    # A hit 45 below the mate's best is aligned, one further below is not.
    first, second = pair_at(genome, 300, 300)
    hit, elsewhere = (LENGTH, 0, 300, 400), (LENGTH, 0, 1500, 1600)
    for score, expected in ((55, []), (54, [(1, 1, 500)])):
        partner = (score, 1, 500, 600)
        assert rescued(genome, [first, second], [[hit], [elsewhere, partner]]) == expected


def test_a_window_ends_with_its_contig(genome):
    # The mate would be in the second contig.
    first, second = pair_at(genome, 850, 300)
    assert rescued(genome, [first, second], [[(LENGTH, 0, 850, 950)], []]) == []


def test_every_good_hit_of_the_anchor_is_tried(genome):
    codes = codes_in(genome)
    codes[1200:1600] = codes[200:600]
    copied = genome_with(codes, genome.contig_starts)
    first, second = pair_at(copied, 200, 300)
    good, copy, poor = (
        (LENGTH, 0, 200, 300),
        (LENGTH - 17, 0, 1200, 1300),
        (LENGTH - 18, 0, 1200, 1300),
    )
    assert rescued(copied, [first, second], [[good, copy], []]) == [(1, 1, 400), (1, 1, 1400)]
    assert rescued(copied, [first, second], [[good, poor], []]) == [(1, 1, 400)]

"""Every locus, none missed: against the definition, on genomes with difficult loci."""

import itertools
import random

import numpy as np
import pytest

import bwarp.allmap.find_cpu as find_cpu
import bwarp.allmap.parts_cpu as rare_cuts_cpu
import bwarp.allmap.parts_cpu as search_cpu
from bwarp.allmap.candidates_cpu import blocks_of
from bwarp.allmap.find_cpu import LociFinder, load
from bwarp.allmap.options import LocusOptions
from bwarp.mapping.extension_cpu import both_strands
from tests.helpers.oracles.loci_oracle import (
    flat,
    hard_genome,
    hard_reads,
    index_of_codes,
    loci_of,
)

CASES = range(30)


def found_by(index, reads, options) -> list:
    codes, offsets = flat(reads)
    both = both_strands(codes, offsets)
    finder = LociFinder(index, load(index.reference), options)
    loci, _ = finder.find_batch(both, blocks_of(both), offsets)
    columns = (loci.reads, loci.strands, loci.starts, loci.ends, loci.distances)
    return [tuple(map(int, row)) for row in zip(*columns, strict=True)]


def case(number: int):
    """Return contigs, reads, edits and gaps, and all loci."""
    rng = random.Random(number)
    contigs = hard_genome(rng)
    edits = rng.randrange(5)
    gaps = rng.choice([0, edits, rng.randrange(edits + 1)])
    reads = hard_reads(rng, contigs, 4, edits)
    return contigs, reads, edits, gaps, loci_of(reads, contigs, edits, gaps)


@pytest.fixture(scope="module")
def cases():
    return [case(number) for number in CASES]


@pytest.mark.parametrize("mismatches", [None, 0, 1, 2])
@pytest.mark.parametrize("candidate_filter", ["histogram", "kmers", "both", "off"])
def test_every_locus_is_found_once(cases, mismatches, candidate_filter):
    for contigs, reads, edits, gaps, loci in cases:
        index = index_of_codes(contigs, prefix_length=3)
        options = LocusOptions(edits, gaps=gaps, mismatches=mismatches, filter=candidate_filter)
        found = found_by(index, reads, options)
        assert len(found) == len(set(found))
        assert set(found) == loci, (edits, gaps)


@pytest.mark.parametrize("prefix_length", [1, 2, 4, 6])
def test_cutting_for_rarity_misses_nothing(cases, monkeypatch, prefix_length):
    monkeypatch.setattr(rare_cuts_cpu, "MANY_ROWS", -1)
    for contigs, reads, edits, gaps, loci in cases:
        index = index_of_codes(contigs, prefix_length=prefix_length)
        assert set(found_by(index, reads, LocusOptions(edits, gaps=gaps))) == loci


def test_in_the_order_of_reads_and_strands_and_starts(cases):
    for contigs, reads, edits, gaps, _ in cases:
        found = found_by(index_of_codes(contigs), reads, LocusOptions(edits, gaps=gaps))
        assert found == sorted(found)


def test_few_hits_at_a_time(cases, monkeypatch):
    monkeypatch.setattr(find_cpu, "_HITS_AT_ONCE", 3)
    for contigs, reads, edits, gaps, loci in cases:
        index = index_of_codes(contigs)
        assert set(found_by(index, reads, LocusOptions(edits, gaps=gaps))) == loci


def test_one_part_fewer_misses_some(cases, monkeypatch):
    """The number of parts matters, and the test above would notice it."""
    search = search_cpu.search_exact_parts
    monkeypatch.setattr(
        search_cpu,
        "search_exact_parts",
        lambda *given: search(*given[:3], np.maximum(given[3] - 1, 1)),
    )
    missed = 0
    for contigs, reads, edits, gaps, loci in cases:
        found = found_by(
            index_of_codes(contigs), reads, LocusOptions(edits, gaps=gaps, mismatches=0)
        )
        missed += len(loci - set(found))
    assert missed


@pytest.mark.parametrize("strata", [0, 1, 2])
def test_loci_near_the_best(cases, strata):
    for contigs, reads, edits, gaps, loci in cases:
        best = {}
        for read, *_, distance in loci:
            best[read] = min(distance, best.get(read, distance))
        wanted = {locus for locus in loci if locus[-1] <= best[locus[0]] + strata}
        options = LocusOptions(edits, gaps=gaps, strata=strata)
        assert set(found_by(index_of_codes(contigs), reads, options)) == wanted


def test_the_reverse_complement_of_the_genome_has_the_mirrored_loci(cases):
    for contigs, reads, edits, gaps, loci in cases:
        turned = [[3 - b if b < 4 else 4 for b in contig[::-1]] for contig in contigs[::-1]]
        size = sum(map(len, contigs))
        mirrored = {(read, 1 - s, size - end, size - start, d) for read, s, start, end, d in loci}
        found = found_by(index_of_codes(turned), reads, LocusOptions(edits, gaps=gaps))
        assert set(found) == mirrored


def test_more_edits_find_what_fewer_found(cases):
    for contigs, reads, _, _, _ in cases[:10]:
        index = index_of_codes(contigs)
        of = [set(found_by(index, reads, LocusOptions(edits))) for edits in range(5)]
        for fewer, more in itertools.pairwise(of):
            assert fewer <= more


def test_reads_no_longer_than_the_edits_are_not_searched():
    index = index_of_codes([[0, 1, 2, 3] * 10])
    codes, offsets = flat([[0, 1, 2], [], [0, 1, 2, 3]])
    both = both_strands(codes, offsets)
    finder = LociFinder(index, load(index.reference), LocusOptions(3))
    loci, _ = finder.find_batch(both, blocks_of(both), offsets)
    assert loci.searched.tolist() == [-1, -1, 3]
    assert set(loci.reads) == {2}


def test_a_share_of_the_length():
    options = LocusOptions(percent=3)
    assert options.edits_of(np.array([33, 34, 99, 100, 150, 2000])).tolist() == [0, 1, 2, 3, 4, 31]


def test_reads_across_borders_of_contigs():
    """Parts of a read on one diagonal, but on two sides of a border."""
    for number in range(150):
        rng = random.Random(number)
        contigs = [[rng.randrange(4) for _ in range(rng.randrange(9, 30))] for _ in range(4)]
        genome = [base for contig in contigs for base in contig]
        reads = []
        for _ in range(4):
            at, length = rng.randrange(len(genome) - 12), rng.randrange(9, 13)
            reads.append(genome[at : at + length])
        edits = rng.randrange(2, 5)
        index = index_of_codes(contigs, prefix_length=2)
        for gaps in (0, edits):
            wanted = loci_of(reads, contigs, edits, gaps)
            assert set(found_by(index, reads, LocusOptions(edits, gaps=gaps))) == wanted

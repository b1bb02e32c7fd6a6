"""The three searches on the CPU: their intervals contain each hit exactly once."""

import numpy as np
import pytest

from bwarp.index.locate_cpu import locate
from bwarp.seeding.backtracking_cpu import search_backtracking
from bwarp.seeding.exact_cpu import search_exact
from bwarp.seeding.hits import Intervals, hits_of_kmers, in_kmer_order, taken
from bwarp.seeding.kmers import whole_queries
from bwarp.seeding.search_schemes_cpu import search_schemes
from tests.helpers.oracles.index_oracle import index_of
from tests.helpers.oracles.seed_hits_oracle import (
    GENOMES,
    batch_of,
    counts_when_stopped,
    hits_by_comparing,
    index_of_genome,
    kmers_like,
    random_bases,
)

LENGTHS = range(8, 65)


def words_of(kmers: list[bytes]) -> np.ndarray:
    return whole_queries(batch_of({str(i): kmer for i, kmer in enumerate(kmers)})).words


def hits_of(index, intervals: Intervals) -> list[tuple]:
    """Return each row of the intervals as a hit, in order."""
    hits = []
    for i in range(intervals.count):
        assert intervals.n_rows[i] > 0
        rows = intervals.first_rows[i] + np.arange(intervals.n_rows[i], dtype=np.uint32)
        text = locate(index, rows).astype(np.int64)
        genome = index.reference.genome_position(text)
        contigs = index.reference.contig_of(genome)
        head = int(intervals.kmers[i]), int(intervals.strands[i])
        hits += [
            (*head, int(c), int(g - index.reference.contig_starts[c]), int(intervals.mismatches[i]))
            for c, g in zip(contigs, genome, strict=True)
        ]
    return sorted(hits)


def search(algorithm, index, words, k, mismatches, threads=1) -> Intervals:
    if mismatches == 0:
        return search_exact(index, words, k, threads)
    function = search_schemes if algorithm == "schemes" else search_backtracking
    return function(index, words, k, mismatches, threads=threads)


@pytest.mark.parametrize("genome", GENOMES)
@pytest.mark.parametrize("mismatches", range(5))
def test_schemes_for_every_length(genome, mismatches):
    index = index_of_genome(genome)
    # Computing a scheme is slow for many mismatches, so the genomes share lengths; with four
    # mismatches, every third length is tested.
    every = {2: 2, 3: 4, 4: 12}.get(mismatches, 1)
    for k in LENGTHS[list(GENOMES).index(genome) % every :: every]:
        kmers = kmers_like(GENOMES[genome], k, mismatches, 7, 100 * k + mismatches)
        expected = hits_by_comparing(GENOMES[genome], kmers, mismatches)
        found = search("schemes", index, words_of(kmers), k, mismatches)
        assert hits_of(index, found) == expected, k


@pytest.mark.parametrize("genome", GENOMES)
@pytest.mark.parametrize("mismatches", range(1, 5))
def test_backtracking_for_many_lengths(genome, mismatches):
    index = index_of_genome(genome)
    for k in (*LENGTHS[mismatches::11], 31, 32, 33, 64):
        kmers = kmers_like(GENOMES[genome], k, mismatches, 5, 100 * k + mismatches)
        expected = hits_by_comparing(GENOMES[genome], kmers, mismatches)
        found = search("backtracking", index, words_of(kmers), k, mismatches)
        assert hits_of(index, found) == expected, k


@pytest.mark.parametrize("genome", GENOMES)
@pytest.mark.parametrize("mismatches", [1, 2])
def test_backtracking_stops_above_the_limit(genome, mismatches):
    index, contigs = index_of_genome(genome), GENOMES[genome]
    for k in (9, 20):
        kmers = [*kmers_like(contigs, k, mismatches, 8, k), b"T" * k, (b"CAG" * k)[:k]]
        hits = hits_by_comparing(contigs, kmers, mismatches)
        for stops_after in (1, 3, 20):
            expected = counts_when_stopped(contigs, kmers, hits, stops_after)
            for threads in (1, 3):
                found = search_backtracking(
                    index, words_of(kmers), k, mismatches, stops_after, threads
                )
                assert np.array_equal(hits_of_kmers(found, len(kmers)), expected)


def test_other_sizes_of_blocks_and_prefix_tables():
    contigs = GENOMES["repeats"]
    for prefix_length in (0, 1, 5):
        index = index_of(contigs, occ_rate=96, prefix_length=prefix_length)
        for k, mismatches in ((8, 0), (40, 0), (21, 1), (9, 2)):
            kmers = kmers_like(contigs, k, mismatches, 6, k)
            found = search("schemes", index, words_of(kmers), k, mismatches)
            assert hits_of(index, found) == hits_by_comparing(contigs, kmers, mismatches)


@pytest.mark.parametrize("algorithm", ["schemes", "backtracking"])
@pytest.mark.parametrize("mismatches", [0, 1, 2])
def test_many_kmers_in_threads(algorithm, mismatches):
    genome = [random_bases(3000, 11), random_bases(2000, 12)]
    index = index_of(genome, prefix_length=5)
    kmers = kmers_like(genome, 14, mismatches, 5000, 13)  # more than are searched together
    words = words_of(kmers)
    alone = in_kmer_order(search(algorithm, index, words, 14, mismatches), len(kmers))
    some = [*range(40), *range(4960, 5000)]
    hits = hits_of(index, taken(alone, np.isin(alone.kmers, some)))
    expected = hits_by_comparing(genome, [kmers[i] for i in some], mismatches)
    assert hits == [(some[kmer], *rest) for kmer, *rest in expected]
    counts = hits_of_kmers(alone, len(kmers))
    assert counts.sum() == alone.n_rows.sum()
    for threads in (2, 4):
        together = search(algorithm, index, words, 14, mismatches, threads)
        assert hits_of(index, together) == hits_of(index, alone)


def test_texts_shorter_than_a_kmer():
    for contigs in ([b"A"], [b"ACGT", b"AC"], [b"ACGTACG"]):
        index = index_of(contigs, prefix_length=0)
        for mismatches in range(5):
            for algorithm in ("schemes", "backtracking"):
                words = words_of([b"ACGTACGT", b"AAAAAAAA"])
                assert search(algorithm, index, words, 8, mismatches).count == 0

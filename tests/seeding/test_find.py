"""Hits of batches of k-mers: in passes, of mixed lengths, over the limit, located, in order."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bwarp.seeding.find as find
import bwarp.seeding.find_cpu as find_cpu
from bwarp.errors import UsageError
from bwarp.seeding.find import (
    count_seeds,
    find_in_passes,
    kmer_batches,
    passes,
    prepare,
)
from bwarp.seeding.hits import SeedHits, SeedOptions, merge_hits
from tests.helpers.oracles.index_oracle import index_of
from tests.helpers.oracles.seed_hits_oracle import (
    GENOMES,
    batch_of,
    hits_by_comparing,
    hits_of_parts,
    index_of_genome,
    kmers_like,
    opposite,
)


def kmers_of(kmers: list[bytes]):
    (batch,) = kmer_batches(batch_of({str(i): kmer for i, kmer in enumerate(kmers)}))
    assert batch.count == len(kmers)
    return batch


def found_by(index, kmers, options, threads=1, backend="cpu") -> tuple[list, list, list]:
    """Return all hits of a batch, and the k-mers over the limit with their counts."""
    hits, over, counts = [], [], []
    ready = prepare(index, options, backend)
    for found in find_in_passes(ready, kmers, options, backend, threads):
        over += found.over_kmers.tolist()
        counts += found.over_counts.tolist()
        hits += hits_of_parts(found.hits, index.reference)
    return hits, over, counts


def expected_of(contigs, kmers, mismatches, max_hits, stopped=False) -> tuple[list, list, list]:
    """Return the expected result of `found_by`: each hit is listed or counted.

    If the search stops at the limit, more hits are not counted.
    """
    hits = hits_by_comparing(contigs, kmers, mismatches)
    counts = np.bincount([hit[0] for hit in hits], minlength=len(kmers))
    over = [int(kmer) for kmer in np.flatnonzero(counts > max_hits)] if max_hits else []
    if stopped and max_hits:
        counts = np.minimum(counts, max_hits + 1)
    return [hit for hit in hits if hit[0] not in over], over, counts[over].tolist()


MIXED = [8, 20, 8, 33, 21, 64, 20, 32, 9, 8, 40, 20]


def mixed_kmers(genome: str, mismatches: int) -> list[bytes]:
    return [kmers_like(GENOMES[genome], k, mismatches, 4 + i, i)[-1] for i, k in enumerate(MIXED)]


@pytest.mark.parametrize("genome", GENOMES)
@pytest.mark.parametrize("mismatches", [0, 1, 2])
@pytest.mark.parametrize("max_hits", [0, 1, 5])
def test_lengths_mixed_and_limits(genome, mismatches, max_hits):
    kmers = [*mixed_kmers(genome, mismatches), b"A" * 20, b"ACACACACAC"]
    found = found_by(index_of_genome(genome), kmers_of(kmers), SeedOptions(mismatches, max_hits))
    assert found == expected_of(GENOMES[genome], kmers, mismatches, max_hits)


@pytest.mark.parametrize("genome", GENOMES)
@pytest.mark.parametrize("mismatches", [1, 2, 3])
@pytest.mark.parametrize("backend", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_backtracking_does_not_count_beyond_the_limit(genome, mismatches, backend):
    kmers = [*mixed_kmers(genome, mismatches), b"A" * 20, b"ACACACACAC", b"T" * 11, b"CAGCAGCAG"]
    index = index_of_genome(genome)
    for max_hits in (1, 2, 5, 40):
        options = SeedOptions(mismatches, max_hits, "backtracking")
        expected = expected_of(GENOMES[genome], kmers, mismatches, max_hits, stopped=True)
        for threads in (1, 3):
            assert found_by(index, kmers_of(kmers), options, threads, backend) == expected
    counts = count_seeds(index, kmers_of(kmers), options, backend)
    hits = hits_by_comparing(GENOMES[genome], kmers, mismatches)
    assert counts.tolist() == np.bincount([h[0] for h in hits], minlength=len(kmers)).tolist()


@pytest.mark.gpu
@pytest.mark.parametrize("genome", GENOMES)
@pytest.mark.parametrize("locate", ["gpu", "hybrid", "cpu", "auto"])
def test_lengths_mixed_and_limits_on_a_gpu(genome, locate):
    index = index_of_genome(genome)
    for mismatches, max_hits in ((0, 0), (1, 5), (2, 0), (3, 1)):
        kmers = [*mixed_kmers(genome, mismatches), b"A" * 20, b"ACACACACAC"]
        options = SeedOptions(mismatches, max_hits, locate=locate)
        found = found_by(index, kmers_of(kmers), options, backend="cuda")
        assert found == expected_of(GENOMES[genome], kmers, mismatches, max_hits)
        ready = prepare(index, options, "cuda")
        counts = count_seeds(ready, kmers_of(kmers), options, "cuda")
        assert np.array_equal(
            counts, count_seeds(index, kmers_of(kmers), SeedOptions(mismatches), "cpu")
        )


@pytest.mark.parametrize("at_once", [1, 3, 50, 1000])
def test_parts_and_passes_of_any_size(monkeypatch, at_once):
    kmers = 3 * [*mixed_kmers("repeats", 2), b"ACACACAC", b"CACACACA"]
    batch = kmers_of(kmers)
    index = index_of_genome("repeats")
    monkeypatch.setattr(find_cpu, "HITS_AT_ONCE", at_once)
    monkeypatch.setitem(find._INTERVALS_AT_ONCE, "cpu", 20 * at_once)
    for options in (SeedOptions(1, 0), SeedOptions(1, 9), SeedOptions(0, 0)):
        expected = expected_of(GENOMES["repeats"], kmers, options.mismatches, options.max_hits)
        for threads in (1, 2, 4):
            assert found_by(index, batch, options, threads) == expected


def test_threads_give_the_same_arrays():
    kmers = kmers_of(kmers_like(GENOMES["repeats"], 12, 1, 3000, 3))
    index = index_of_genome("repeats")

    def arrays(threads):
        return [
            (part.kmers, part.strands, part.positions, part.mismatches)
            for found in find_in_passes(index, kmers, SeedOptions(1, 0), "cpu", threads)
            for part in found.hits
        ]

    alone = arrays(1)
    dtypes = [np.uint32, np.uint8, np.uint32, np.uint8]
    assert [column.dtype for column in alone[0]] == dtypes
    for threads in (2, 4):
        for one, other in zip(alone, arrays(threads), strict=True):
            assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("sa_rate", [1, 2, 5, 64])
@pytest.mark.parametrize("prefix_length", [0, 4])
def test_rates_of_the_suffix_array_and_prefix_tables(sa_rate, prefix_length):
    kmers = mixed_kmers("gaps", 1)
    index = index_of_genome("gaps", sa_rate=sa_rate, prefix_length=prefix_length)
    for mismatches in (0, 1):
        found = found_by(index, kmers_of(kmers), SeedOptions(mismatches, 0))
        assert found == expected_of(GENOMES["gaps"], kmers, mismatches, 0)


@pytest.mark.parametrize("algorithm", ["schemes", "backtracking"])
def test_algorithms(algorithm):
    kmers = mixed_kmers("repeats", 2)
    options = SeedOptions(2, 0, algorithm)
    found = found_by(index_of_genome("repeats"), kmers_of(kmers), options)
    assert found == expected_of(GENOMES["repeats"], kmers, 2, 0)


def test_a_palindrome_has_every_hit_on_both_strands():
    half = GENOMES["random"][0][:6]
    palindrome = half + opposite(half)
    hits, _, _ = found_by(
        index_of([b"GG" + palindrome + b"A"]), kmers_of([palindrome]), SeedOptions()
    )
    assert hits == [(0, 0, 0, 2, 0), (0, 1, 0, 2, 0)]


@given(
    contigs=st.lists(st.text("ACGTN", max_size=60), min_size=1, max_size=5),
    starts=st.lists(st.integers(0, 10**6), min_size=1, max_size=6),
    k=st.integers(8, 40),
    mismatches=st.integers(0, 2),
    max_hits=st.integers(0, 3),
    rates=st.sampled_from([(1, 0), (4, 3), (7, 2)]),
    algorithm=st.sampled_from(["schemes", "backtracking"]),
)
@settings(max_examples=60, deadline=None)
def test_any_genome(contigs, starts, k, mismatches, max_hits, rates, algorithm):
    genome = "".join(contigs).replace("N", "C").ljust(k, "A")
    kmers = [genome[start % (len(genome) - k + 1) :][:k].encode() for start in starts]
    if not set("ACGT") & set("".join(contigs)):
        contigs = [*contigs, "A"]
    contigs = [contig.encode() for contig in contigs]
    index = index_of(contigs, sa_rate=rates[0], prefix_length=rates[1])
    found = found_by(index, kmers_of(kmers), SeedOptions(mismatches, max_hits, algorithm))
    stopped = algorithm == "backtracking" and mismatches > 0
    assert found == expected_of(contigs, kmers, mismatches, max_hits, stopped)


@pytest.mark.parametrize("mismatches", [0, 1])
def test_counts(mismatches):
    kmers = [*mixed_kmers("repeats", mismatches), b"ACACACACAC", b"A" * 64]
    options = SeedOptions(mismatches, 2)
    counts = count_seeds(index_of_genome("repeats"), kmers_of(kmers), options, "cpu", 2)
    hits = hits_by_comparing(GENOMES["repeats"], kmers, mismatches)
    assert counts.dtype == np.int64
    assert counts.tolist() == np.bincount([h[0] for h in hits], minlength=len(kmers)).tolist()


def test_an_empty_batch():
    (batch,) = kmer_batches(batch_of({"short": b"ACG"}))
    assert batch.count == 0
    index = index_of_genome("random")
    for mismatches in (0, 1):
        assert list(find_in_passes(index, batch, SeedOptions(mismatches), "cpu")) == []
        assert count_seeds(index, batch, SeedOptions(mismatches), "cpu").size == 0


def test_passes_cover_all_kmers_and_shrink_with_expected_hits():
    def sizes(k, mismatches, n=1_000_000):
        found = passes(60_000_000, np.full(n, k, np.uint8), mismatches, "cpu")
        assert [a for a, _ in found] == [0, *(b for _, b in found)][:-1]
        assert found[-1][1] == n
        return max(stop - start for start, stop in found)

    assert sizes(20, 0) >= 900_000
    assert sizes(20, 2) < sizes(20, 1) < sizes(20, 0)
    # One in nine strings of 8 bases is within four mismatches of another.
    assert sizes(8, 4) < sizes(20, 4)
    assert passes(60_000_000, np.zeros(0, np.uint8), 1, "cpu") == []


def test_merging_streams_of_parts():
    def part(kmers, mark):
        n = len(kmers)
        return SeedHits(
            np.array(kmers, np.uint32),
            np.full(n, mark, np.uint8),
            np.arange(n, dtype=np.uint32),
            np.zeros(n, np.uint8),
        )

    def stream(parts, mark):
        taken.append(mark)
        return iter([part(kmers, mark) for kmers in parts])

    taken = []
    streams = [
        stream([[0, 0, 4], [8], [], [9, 9]], 1),
        stream([[1, 3, 3, 5, 7]], 2),
        stream([[], [2], [6, 6, 6], [10]], 3),
        stream([], 4),
    ]
    merged = list(merge_hits(streams))
    kmers = np.concatenate([hits.kmers for hits in merged]).tolist()
    assert kmers == [0, 0, 1, 2, 3, 3, 4, 5, 6, 6, 6, 7, 8, 9, 9, 10]
    marks = np.concatenate([hits.strands for hits in merged]).tolist()
    assert marks == [1, 1, 2, 3, 2, 2, 1, 2, 3, 3, 3, 2, 1, 1, 1, 3]
    places = np.concatenate([hits.positions for hits in merged]).tolist()
    assert places == [0, 1, 0, 0, 1, 2, 2, 3, 0, 1, 2, 4, 0, 0, 1, 0]
    assert all(hits.count for hits in merged)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (SeedOptions(mismatches=5), "mismatches 5 is not a whole number from 0 to 4"),
        (SeedOptions(mismatches=-1), "mismatches -1 is not a whole number from 0 to 4"),
        (SeedOptions(max_hits=-2), "max_hits -2 is not a whole number from 0 to 4294967296"),
        (
            SeedOptions(algorithm="magic"),
            "algorithm 'magic' is not one of schemes, backtracking",
        ),
        (SeedOptions(locate="disk"), "locate 'disk' is not one of auto, gpu, hybrid, cpu"),
        (
            SeedOptions(locate="hybrid"),
            "locate hybrid requires a GPU, but the backend is cpu: use --locate cpu",
        ),
    ],
)
def test_invalid_options(options, message):
    with pytest.raises(UsageError) as caught:
        list(find_in_passes(index_of_genome("random"), kmers_of([b"ACGTACGT"]), options, "cpu"))
    assert str(caught.value) == message

"""Maximal matches by FM-index and by k-mer table, against comparing all pairs of positions."""

import numpy as np
import pytest

from bwarp.mems import kmer_table_cpu
from bwarp.mems import maximal_cpu as maximal_matches_cpu
from bwarp.mems import unique_cpu as unique_matches_cpu
from bwarp.mems.find import KINDS, find_matches, find_table_matches
from bwarp.mems.kmer_table_cpu import build_kmer_table
from bwarp.mems.query_text import STRANDS
from tests.helpers.cases.mems_cases import index_of, reference_of, text_of
from tests.helpers.oracles.mems_oracle import expected_matches, random_case, rows_of

SEEDS = range(30)


@pytest.fixture(params=["as they are", "tiny"])
def sizes(request, monkeypatch):
    """Use the default pieces of work, and ones so small that each case has many."""
    if request.param == "tiny":
        monkeypatch.setattr(maximal_matches_cpu, "_FEW", 1)
        for module in (maximal_matches_cpu, kmer_table_cpu):
            monkeypatch.setattr(module, "_SAMPLES", 7)
        monkeypatch.setattr(maximal_matches_cpu, "_ROWS", 5)
        monkeypatch.setattr(kmer_table_cpu, "_HITS", 5)
        monkeypatch.setattr(unique_matches_cpu, "_PIECE", 4)
        monkeypatch.setattr(unique_matches_cpu, "_AT_ONCE", 9)


def random_settings(seed):
    rng = np.random.default_rng(seed)
    contigs, queries = random_case(rng)
    min_length = int(rng.choice([1, 2, 3, 5, 8, 13, 21, 34, 40]))
    strands = list(STRANDS.values())[seed % 3]
    return rng, contigs, queries, min_length, strands


@pytest.mark.parametrize("kind", KINDS)
def test_by_index(kind, sizes):
    for seed in SEEDS:
        rng, contigs, queries, min_length, strands = random_settings(seed)
        rates = 64, int(rng.integers(1, 5)), int(rng.integers(0, 5))
        text = text_of(queries, strands, min_length)
        found = rows_of(find_matches(index_of(contigs, *rates), text, min_length, kind, "cpu", 2))
        assert found == expected_matches(contigs, queries, strands, min_length, kind), seed


@pytest.mark.parametrize("kind", KINDS)
def test_by_table(kind, sizes):
    for seed in SEEDS:
        _, contigs, queries, min_length, strands = random_settings(seed)
        text = text_of(queries, strands, min_length)
        table = build_kmer_table(reference_of(contigs), min_length, 2)
        found = rows_of(find_table_matches(table, text, min_length, kind, 2))
        assert found == expected_matches(contigs, queries, strands, min_length, kind), seed


def test_many_equal_hits():
    """Runs of one base: as many matches as positions, sorted by radix sort."""
    contigs = [np.zeros(300, np.uint8), np.zeros(100, np.uint8)]
    queries = [np.zeros(50, np.uint8)]
    text = text_of(queries, (0,), 20)
    expected = expected_matches(contigs, queries, (0,), 20, "maxmatch")
    assert rows_of(find_matches(index_of(contigs), text, 20, "maxmatch", "cpu")) == expected
    table = build_kmer_table(reference_of(contigs), 20)
    assert rows_of(find_table_matches(table, text, 20, "maxmatch")) == expected


@pytest.mark.parametrize("kind", KINDS)
def test_long_repeats(kind):
    """Long copies: more than are located at once, equal over hundreds of bases."""
    rng = np.random.default_rng(2)
    unit = rng.integers(0, 4, 300)
    contigs = []
    for copy in range(12):
        copied = unit.copy()
        copied[rng.integers(0, 300, copy // 3)] = rng.integers(0, 4, copy // 3)
        contigs.append(np.concatenate([rng.integers(0, 4, 9), copied]).astype(np.uint8))
    queries = [np.concatenate([contigs[3][20:], contigs[7][:200]]), contigs[11]]
    expected = expected_matches(contigs, queries, (0, 1), 20, kind)
    assert expected
    text = text_of(queries, (0, 1), 20)
    assert rows_of(find_matches(index_of(contigs), text, 20, kind, "cpu", 2)) == expected
    table = build_kmer_table(reference_of(contigs), 20)
    assert rows_of(find_table_matches(table, text, 20, kind, 2)) == expected


def test_a_family_of_repeats():
    """A window with many hits has few after extension to the left, before it is refilled."""
    rng = np.random.default_rng(4)
    genome = rng.integers(0, 4, 2_000_000).astype(np.uint8)
    unit = rng.integers(0, 4, 300)
    for start in rng.integers(0, genome.size - 300, 400):
        copied = rng.random(300) < 0.9
        genome[start : start + 300][copied] = unit[copied]
    query = genome[500_000:900_000].copy()
    query[rng.integers(0, query.size, 2000)] = 0
    text = text_of([query], (0, 1), 20)
    table = build_kmer_table(reference_of([genome]), 20, 2)
    expected = rows_of(find_table_matches(table, text, 20, "mum", 2))
    index = index_of([genome], prefix_length=8)
    assert rows_of(find_matches(index, text, 20, "mum", "cpu", 2)) == expected


def test_no_queries_and_none_long_enough():
    index = index_of([np.array([0, 1, 2, 3], np.uint8)])
    for queries in ([], [np.empty(0, np.uint8)], [np.array([0, 1, 2], np.uint8)]):
        text = text_of(queries, (0, 1), 4)
        for kind in KINDS:
            assert rows_of(find_matches(index, text, 4, kind, "cpu")) == []

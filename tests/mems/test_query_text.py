"""Query texts: both strands, their unambiguous runs, and the k-mers sampled in them."""

import re

import numpy as np
import pytest

from bwarp.mems.kmer_sampling import choose_kmer_length, sample_counts, sample_slice
from bwarp.mems.query_text import STRANDS
from bwarp.mems.unique_cpu import cut_runs
from bwarp.sequence import decode, encode, reverse_complement, unpack
from tests.helpers.cases.mems_cases import text_of

RECORDS = [
    b"ACGTNNACGTTTGCA",
    b"",
    b"N",
    b"acgRuu",
    b"TTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTT",
]


@pytest.mark.parametrize("strands", STRANDS.values())
@pytest.mark.parametrize("min_length", [1, 3, 10])
def test_runs(strands, min_length):
    queries = [encode(record) for record in RECORDS]
    text = text_of(queries, strands, min_length)
    found = []
    for query, start, stop in zip(text.run_queries, text.run_starts, text.run_stops, strict=True):
        within = int(start - text.text_starts[query])
        found.append((int(query), within, decode(unpack(text.words, start, stop))))
    expected = []
    for record, query in enumerate(queries):
        for number, strand in enumerate(strands):
            bases = decode(reverse_complement(query) if strand else query).decode()
            for run in re.finditer(f"[ACGT]{{{min_length},}}", bases):
                expected.append((record * len(strands) + number, run.start(), run[0].encode()))
    assert found == expected


@pytest.mark.parametrize(("min_length", "k"), [(1, 1), (5, 5), (5, 3), (9, 2), (13, 12)])
def test_every_window_holds_its_sample(min_length, k):
    text = text_of([encode(record) for record in RECORDS], (0, 1), min_length)
    counts = sample_counts(text, min_length, k)
    step = min_length - k + 1
    whole = sample_slice(text, counts, step, 0, int(counts[-1]))
    for run, (start, stop) in enumerate(zip(text.run_starts, text.run_stops, strict=True)):
        positions = whole.positions[whole.runs == run]
        for window in range(start, stop - min_length + 1):
            inside = positions[(positions >= window) & (positions + k <= window + min_length)]
            assert inside.size
            assert inside[0] - window < step
    for first in range(0, int(counts[-1]), 3):
        part = sample_slice(text, counts, step, first, min(first + 3, int(counts[-1])))
        assert np.array_equal(part.positions, whole.positions[first : first + 3])
        assert np.array_equal(part.runs, whole.runs[first : first + 3])


def test_kmer_length():
    assert choose_kmer_length(4_639_675, 20, 1) == 13
    assert choose_kmer_length(4_639_675, 10, 1) == 10
    assert choose_kmer_length(2**32 - 2, 100, 20) == 32
    assert choose_kmer_length(2, 20, -1) == 1


def test_pieces_cover_every_place_once():
    text = text_of([encode(record) for record in RECORDS], (0, 1), 3)
    for size in (1, 4, 1000):
        pieces = cut_runs(text, 3, size)
        starts = [(run, at) for run, first, last in pieces for at in range(first, last)]
        expected = [
            (run, at)
            for run in range(text.run_starts.size)
            for at in range(text.run_starts[run], text.run_stops[run] - 2)
        ]
        assert starts == expected
        assert np.all(pieces[:, 2] - pieces[:, 1] <= size)

"""The GPU engine: emulated, against whole matrices in plain Python; on a GPU, against the CPU.

The emulation runs the source of the kernels (tests/helpers/gpu/emulated_cuda.py), including
shuffles and packed lanes.
"""

import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from bwarp.alignment import few_pairs_cuda, scoring
from bwarp.alignment import pair_ends_cpu as pairs_cpu
from bwarp.alignment import pair_ends_cuda as pairs_cuda
from bwarp.alignment.device_batch_cuda import device_batch
from bwarp.alignment.pairs import PairBatch, Sequences, cigar_text, sequences_of
from bwarp.alignment.scoring import (
    FITTING,
    GLOBAL,
    LOCAL,
    SEMIGLOBAL,
    Mode,
    Scoring,
    matrix_scoring,
    nucleotide_scoring,
)
from bwarp.errors import InputError
from bwarp.gpu.cuda import cuda
from tests.helpers.cases.random_pairs import random_pairs
from tests.helpers.gpu.emulated_alignment import pretend
from tests.helpers.oracles.alignment_oracle import align

ALL_MODES = [LOCAL] + [Mode(False, *ends) for ends in itertools.product((False, True), repeat=4)]


def uneven_matrix():
    """Return an asymmetric matrix over five letters."""
    matrix = np.array(
        [[5, -3, 1, -7, 0], [-2, 4, -4, -1, -1], [0, -6, 7, -2, -3], [-5, 2, -4, 6, -1], [-1] * 5]
    )
    return Scoring(b"ACGTN", np.full(256, 255, np.uint8), matrix.astype(np.int16), 3, 2)


SCHEMES = {
    "bwa": nucleotide_scoring(1, -4, 6, 1),
    "linear": nucleotide_scoring(2, -3, 0, 2),
    "distance": nucleotide_scoring(0, -1, 1, 0),
    "large": nucleotide_scoring(200, -150, 249, 11),
    "free gaps": nucleotide_scoring(1, 0, 0, 0),
    "uneven matrix": uneven_matrix(),
    "protein": matrix_scoring("BLOSUM62", 10, 1),
    "huge": nucleotide_scoring(9000, -8000, 9999, 9000),
}


def check_against_oracle(pairs, scoring, mode):
    got = pairs_cuda.pair_alignments(pairs, scoring, mode)
    np.testing.assert_array_equal(pairs_cuda.pair_scores(pairs, scoring, mode), got.scores)
    for i in range(pairs.count):
        query, reference = (side.sequence(i).tolist() for side in (pairs.queries, pairs.references))
        expected = align(query, reference, scoring, mode)
        cigar = cigar_text(got.cigar[got.cigar_offsets[i] : got.cigar_offsets[i + 1]])
        assert (
            got.scores[i],
            got.query_starts[i],
            got.query_ends[i],
            got.reference_starts[i],
            got.reference_ends[i],
            got.edit_distances[i],
            cigar,
        ) == (
            expected.score,
            expected.query_start,
            expected.query_end,
            expected.reference_start,
            expected.reference_end,
            expected.edit_distance,
            "".join(f"{length}{operation}" for length, operation in expected.cigar) or "*",
        ), (query, reference, mode)


@pytest.mark.parametrize("name", SCHEMES)
def test_equals_the_oracle(monkeypatch, name):
    pretend(monkeypatch)
    rng = np.random.default_rng(list(SCHEMES).index(name))
    scoring = SCHEMES[name]
    modes = [LOCAL, *(ALL_MODES[i] for i in rng.choice(len(ALL_MODES), 2, replace=False))]
    for mode in modes:
        letters = len(scoring.letters)
        check_against_oracle(random_pairs(rng, 4, letters, 24), scoring, mode)


@pytest.mark.parametrize("name", ["bwa", "free gaps"])
def test_few_pairs_give_the_same(monkeypatch, name):
    pretend(monkeypatch, few_pairs=100)
    rng = np.random.default_rng(29)
    for mode in (LOCAL, FITTING, GLOBAL):
        check_against_oracle(random_pairs(rng, 5, 5, 30), SCHEMES[name], mode)


def long_pairs(rng, lengths):
    """Return queries of some lengths, and references that are parts of them with an indel."""
    queries = [rng.integers(0, 4, length, dtype=np.uint8) for length in lengths]
    references = []
    for query in queries:
        first = rng.integers(0, query.size)
        part = query[first : first + 30]
        references.append(np.concatenate([part[:12], part[15:], part[:1]]))
    return PairBatch(sequences_of(queries), sequences_of(references))


@pytest.mark.parametrize("most_warps", [1, 16])
def test_few_long_pairs_take_several_warps_or_strips(monkeypatch, most_warps):
    pretend(monkeypatch, few_pairs=100)
    monkeypatch.setattr(few_pairs_cuda, "MOST_WARPS", most_warps)
    rng = np.random.default_rng(34)
    for mode in (LOCAL, GLOBAL, SEMIGLOBAL):
        check_against_oracle(long_pairs(rng, (3, 129, 270)), SCHEMES["bwa"], mode)


def test_one_batch_of_few_pairs_after_another(monkeypatch):
    """Tables are used again, and replaced by larger ones; sequences may be anywhere in an array."""
    pretend(monkeypatch, few_pairs=1000)
    monkeypatch.setattr(few_pairs_cuda, "LEAST_ROOM", (2, 64, 64))
    rng = np.random.default_rng(35)
    genome = rng.integers(0, 4, 5000, dtype=np.uint8)
    for count, longest in ((1, 9), (40, 5), (3, 60), (2, 30)):
        lengths = rng.integers(1, longest + 1, (2, count)).astype(np.int32)
        starts = rng.integers(2000, 2100, (2, count))
        pairs = PairBatch(*(Sequences(genome, *side) for side in zip(starts, lengths, strict=True)))
        check_against_oracle(pairs, SCHEMES["bwa"], FITTING)
    [spare] = few_pairs_cuda._spare[cuda.get_current_device().id]
    assert spare.room == (64, 256, 512)


def test_few_pairs_on_the_gpu(monkeypatch):
    pretend(monkeypatch, few_pairs=100)
    pairs = random_pairs(np.random.default_rng(36), 4, 4, 20)
    for mode in (LOCAL, GLOBAL):
        expected = pairs_cuda.pair_alignments(pairs, SCHEMES["bwa"], mode)
        found = pairs_cuda.batch_alignments(device_batch(pairs), SCHEMES["bwa"], mode)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)


def test_few_pairs_with_scores_beyond_32_bits_are_refused(monkeypatch):
    pretend(monkeypatch, few_pairs=100)
    monkeypatch.setattr(scoring, "SCORE_BOUND", 50_000)
    pairs = random_pairs(np.random.default_rng(37), 2, 4, 20)
    with pytest.raises(InputError, match="beyond the limit"):
        pairs_cuda.pair_alignments(pairs, SCHEMES["huge"], LOCAL)


def test_older_gpus_give_the_same(monkeypatch):
    pretend(monkeypatch, capability=(8, 0))
    rng = np.random.default_rng(20)
    check_against_oracle(random_pairs(rng, 4, 5, 30), SCHEMES["bwa"], LOCAL)
    check_against_oracle(random_pairs(rng, 4, 5, 30), SCHEMES["bwa"], FITTING)


def test_little_memory_gives_the_same(monkeypatch):
    pretend(monkeypatch, free_bytes=1)
    rng = np.random.default_rng(21)
    check_against_oracle(random_pairs(rng, 5, 4, 20), SCHEMES["bwa"], SEMIGLOBAL)


def test_queries_of_several_tiles_and_strips(monkeypatch):
    pretend(monkeypatch)
    rng = np.random.default_rng(22)
    for mode in (LOCAL, GLOBAL):
        queries = [rng.integers(0, 4, 90, dtype=np.uint8) for _ in range(2)]
        references = [np.concatenate([query[:40], query[43:]]) for query in queries]
        pairs = PairBatch(sequences_of(queries), sequences_of(references))
        check_against_oracle(pairs, SCHEMES["bwa"], mode)


def test_a_traceback_looks_no_further_than_its_band(monkeypatch):
    pretend(monkeypatch)
    reference = np.random.default_rng(39).integers(0, 4, 57, dtype=np.uint8)
    # A band of one column on either side, whose first row has a deletion in reach.
    query = np.concatenate([reference[24:32], reference[33:]])
    pairs = PairBatch(sequences_of([query]), sequences_of([reference]))
    check_against_oracle(pairs, SCHEMES["bwa"], FITTING)


@pytest.mark.parametrize("letters", [0, 9])
def test_no_pairs(monkeypatch, letters):
    pretend(monkeypatch)
    nowhere = np.zeros(0, np.int64)
    nothing = Sequences(np.zeros(letters, np.uint8), nowhere, nowhere.astype(np.int32))
    pairs = PairBatch(nothing, nothing)
    for mode in (LOCAL, GLOBAL):
        got = pairs_cuda.pair_alignments(pairs, SCHEMES["bwa"], mode)
        assert got.scores.size == got.cigar.size == 0
        assert got.cigar_offsets.tolist() == [0]
        assert pairs_cuda.pair_ends(pairs, SCHEMES["bwa"], mode).query_ends.size == 0
        assert pairs_cuda.pair_scores(pairs, SCHEMES["bwa"], mode).size == 0


# --- On a GPU -----------------------------------------------------------------------------------


def check_against_cpu(pairs, scoring, mode):
    got = pairs_cuda.pair_alignments(pairs, scoring, mode)
    np.testing.assert_array_equal(pairs_cuda.pair_scores(pairs, scoring, mode), got.scores)
    for field, expected in pairs_cpu.pair_alignments(pairs, scoring, mode, 4)._asdict().items():
        np.testing.assert_array_equal(getattr(got, field), expected, field)


@pytest.mark.gpu
@pytest.mark.parametrize("name", SCHEMES)
def test_equals_the_cpu_engine(name):
    rng = np.random.default_rng(30)
    scoring = SCHEMES[name]
    for mode in ALL_MODES:
        check_against_cpu(random_pairs(rng, 3000, len(scoring.letters), 160), scoring, mode)


@pytest.mark.gpu
@pytest.mark.parametrize("mode", [LOCAL, GLOBAL, FITTING, SEMIGLOBAL], ids=str)
def test_long_pairs_equal_the_cpu_engine(mode):
    rng = np.random.default_rng(31)
    check_against_cpu(random_pairs(rng, 20, 4, 3000), SCHEMES["bwa"], mode)


@pytest.mark.gpu
@pytest.mark.parametrize("mode", [LOCAL, GLOBAL, FITTING, SEMIGLOBAL], ids=str)
def test_few_pairs_equal_the_cpu_engine(mode):
    rng = np.random.default_rng(38)
    for count, longest in ((1, 30), (25, 576), (500, 160), (4, 2500), (125, 300), (1, 5000)):
        check_against_cpu(random_pairs(rng, count, 4, longest), SCHEMES["bwa"], mode)
        check_against_cpu(random_pairs(rng, count, 5, longest), SCHEMES["uneven matrix"], mode)


@pytest.mark.gpu
def test_many_reads_equal_the_cpu_engine():
    rng = np.random.default_rng(32)
    pairs = random_pairs(rng, 40_000, 4, 150)
    check_against_cpu(pairs, SCHEMES["bwa"], LOCAL)
    check_against_cpu(pairs, SCHEMES["bwa"], FITTING)


@pytest.mark.gpu
def test_two_threads_at_once_give_the_same():
    rng = np.random.default_rng(33)
    batches = [random_pairs(rng, count, 4, 200) for count in (6000, 50) * 8]
    # Numba loads kernels in one thread at a time.
    for pairs in batches[:2]:
        pairs_cuda.pair_alignments(pairs, SCHEMES["bwa"], FITTING)
    with ThreadPoolExecutor(2) as pool:
        jobs = [
            pool.submit(pairs_cuda.pair_alignments, pairs, SCHEMES["bwa"], FITTING, 4)
            for pairs in batches
        ]
    for pairs, job in zip(batches, jobs, strict=True):
        expected = pairs_cpu.pair_alignments(pairs, SCHEMES["bwa"], FITTING, 4)
        for field, array in expected._asdict().items():
            np.testing.assert_array_equal(getattr(job.result(), field), array, field)

"""The engine for a batch of pairs: with a GPU and backend auto, small batches go to the CPU."""

import numpy as np
import pytest

from bwarp.alignment.pair_aligner import FEW_CELLS, is_small, pair_aligner
from bwarp.alignment.pairs import PairBatch, Sequences, cigar_text, sequences_of


def batch(count: int, length: int, reference: int | None = None) -> PairBatch:
    rng = np.random.default_rng(count * length)
    sides = [
        sequences_of([rng.integers(0, 4, size, dtype=np.uint8) for _ in range(count)])
        for size in (length, reference or length)
    ]
    return PairBatch(*sides)


@pytest.mark.parametrize(
    ("count", "length", "small"),
    [
        # Batches of Ren et al. that the CPU, or the GPU, aligns faster in benchmarks/results.
        (25, 64, True), (100, 64, True), (1000, 64, False), (25, 192, True), (25, 256, False),
        (100, 128, False), (1000, 128, False), (25, 576, False), (100, 576, False),
        (8, 216, True), (8, 217, False), (1, 217, False), (1, 216, True), (0, 64, True),
    ],
)  # fmt: skip
def test_batches_that_are_faster_on_a_cpu(count, length, small):
    assert is_small(batch(count, length)) == small


def test_huge_pairs_do_not_overflow():
    nowhere, lengths = np.zeros(3, np.int64), np.full(3, 2**31 - 1, np.int32)
    huge = Sequences(np.zeros(1, np.uint8), nowhere, lengths)
    assert not is_small(PairBatch(huge, huge))


def test_only_auto_takes_the_cpu():
    pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")
    small, large = batch(5, 20), batch(1, 4000)
    both = pair_aligner("cuda", small_on_cpu=True)
    assert (both.backend_for(small), both.backend_for(large)) == ("cpu", "cuda")
    assert pair_aligner("cuda").backend_for(small) == "cuda"
    assert pair_aligner("cpu", small_on_cpu=True).backend_for(large) == "cpu"
    gatk = {"mode": "gatk", "small_on_cpu": True}
    assert pair_aligner("cuda", **gatk).backend_for(small) == "cpu"
    assert pair_aligner("cuda", **gatk, algorithm="run-lengths").backend_for(small) == "cuda"


@pytest.mark.gpu
@pytest.mark.parametrize("mode", ["local", "semiglobal", "gatk"])
def test_both_engines_align_alike(mode):
    side = 1 + int(FEW_CELLS**0.5)
    for pairs in (batch(7, 60, 90), batch(1, side)):
        found = pair_aligner("cuda", mode=mode, small_on_cpu=True).align(pairs)
        for expected in (pair_aligner(one, mode=mode).align(pairs) for one in ("cpu", "cuda")):
            assert cigar_text(found.cigar) == cigar_text(expected.cigar)
            np.testing.assert_array_equal(found.scores, expected.scores)

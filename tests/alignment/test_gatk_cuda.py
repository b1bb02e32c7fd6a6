"""GATK's alignments on a GPU by both kernels: emulated, against plain Python; many on a GPU."""

import numpy as np
import pytest

from bwarp.alignment import gatk_cpu, gatk_cuda, gatk_run_lengths_cuda
from bwarp.alignment.gatk_cpu import GATK_PARAMETERS, OVERHANGS
from bwarp.alignment.gatk_run_lengths_cuda import block_threads
from bwarp.alignment.pairs import PairBatch, cigar_text, sequences_of
from bwarp.errors import InputError
from tests.helpers.gpu.emulated_alignment import pretend
from tests.helpers.oracles.gatk_oracle import gatk_align

ENGINES = {"band": gatk_cuda, "run lengths": gatk_run_lengths_cuda}


def related_pairs(rng, count, longest):
    """Return references, and alternates cut from them with changes, an indel and foreign ends."""
    alternates, references = [], []
    for _ in range(count):
        letters = np.frombuffer(rng.choice([b"AC", b"ACGT", b"ACGTN"]), np.uint8)
        reference = rng.choice(letters, rng.integers(1, longest + 1))
        start = rng.integers(0, reference.size)
        alternate = reference[start : start + rng.integers(1, longest + 1)]
        if rng.random() < 0.8:
            alternate = np.where(
                rng.random(alternate.size) < 0.1, rng.choice(letters, alternate.size), alternate
            )
        if alternate.size > 8 and rng.random() < 0.5:
            at = rng.integers(1, alternate.size - 4)
            alternate = np.delete(alternate, slice(at, at + rng.integers(1, 4)))
        ends = [rng.choice(letters, rng.integers(0, 5)) for _ in range(2)]
        alternates.append(np.concatenate([ends[0], alternate, ends[1]]))
        references.append(reference)
    return PairBatch(sequences_of(alternates), sequences_of(references))


@pytest.mark.parametrize("overhang", OVERHANGS)
@pytest.mark.parametrize("engine", ENGINES)
def test_equals_the_oracle(monkeypatch, engine, overhang):
    pretend(monkeypatch, few_pairs=100 * (overhang in ("indel", "ignore")))
    # With one warp per block, longer alternates take several passes.
    monkeypatch.setattr(gatk_run_lengths_cuda, "PASS_BLOCK", 32)
    monkeypatch.setattr(gatk_run_lengths_cuda, "WIDEST_BLOCK", 32)
    rng = np.random.default_rng(OVERHANGS.index(overhang))
    for parameters in GATK_PARAMETERS.values():
        check_against_oracle(ENGINES[engine], related_pairs(rng, 4, 40), parameters, overhang)


def check_against_oracle(engine, pairs, parameters, overhang):
    got = engine.gatk_alignments(pairs, parameters, overhang)
    for i in range(pairs.count):
        reference, alternate = (
            side.sequence(i).tobytes() for side in (pairs.references, pairs.queries)
        )
        score, offset, cigar = gatk_align(reference, alternate, parameters, overhang)
        text = cigar_text(got.cigar[got.cigar_offsets[i] : got.cigar_offsets[i + 1]])
        assert (got.scores[i], got.offsets[i], text) == (
            score,
            offset,
            "".join(f"{length}{operation}" for length, operation in cigar),
        ), (reference, alternate, parameters)


@pytest.mark.parametrize("overhang", OVERHANGS)
def test_few_pairs_with_references_of_several_warps(monkeypatch, overhang):
    pretend(monkeypatch, few_pairs=100)
    rng = np.random.default_rng(41)
    reference = rng.choice(np.frombuffer(b"ACGT", np.uint8), 270)
    indel = np.concatenate([reference[230:250], reference[254:268], reference[:3]])
    alternates = [indel, reference[130:150], reference[250:], reference[:25][::-1]]
    pairs = PairBatch(sequences_of(alternates), sequences_of([reference] * 4))
    check_against_oracle(gatk_cuda, pairs, GATK_PARAMETERS["new-sw-parameters"], overhang)


def test_the_block_is_wide_for_few_pairs_and_narrow_for_many():
    assert block_threads(25, 100) == 128
    assert block_threads(25, 300) == 320
    assert block_threads(5000, 300) == 128
    assert block_threads(25, 5000) == 128


def test_run_lengths_are_16_bits(monkeypatch):
    pretend(monkeypatch)
    long, short = np.full(32_768, 65, np.uint8), np.full(3, 65, np.uint8)
    pairs = PairBatch(sequences_of([short]), sequences_of([long]))
    with pytest.raises(
        InputError, match="32,768 bases, but --algorithm run-lengths allows at most"
    ):
        gatk_run_lengths_cuda.gatk_alignments(
            pairs, GATK_PARAMETERS["new-sw-parameters"], "softclip"
        )


@pytest.mark.gpu
@pytest.mark.parametrize("overhang", OVERHANGS)
@pytest.mark.parametrize("name", GATK_PARAMETERS)
@pytest.mark.parametrize("engine", ENGINES)
def test_equals_the_cpu_engine(engine, name, overhang):
    rng = np.random.default_rng(40)
    for count, longest in ((4000, 150), (200, 700), (1, 30), (25, 576), (1000, 120)):
        pairs = related_pairs(rng, count, longest)
        got = ENGINES[engine].gatk_alignments(pairs, GATK_PARAMETERS[name], overhang)
        expected = gatk_cpu.gatk_alignments(pairs, GATK_PARAMETERS[name], overhang, 4)
        for field, array in expected._asdict().items():
            np.testing.assert_array_equal(getattr(got, field), array, field)

"""GATK's mode against an independent translation of its aligner, and against its own examples."""

import numpy as np
import pytest

from bwarp.alignment import traceback_cpu
from bwarp.alignment.gatk_cpu import GATK_PARAMETERS, OVERHANGS, GatkParameters, gatk_alignments
from bwarp.alignment.pairs import PairBatch, cigar_text, sequences_of
from bwarp.errors import InputError, UsageError
from tests.helpers.oracles.gatk_oracle import gatk_align

LETTERS = np.frombuffer(b"ACGTN", np.uint8)


def as_batch(pairs):
    """Return a batch of (reference, alternate) texts."""
    references, alternates = zip(*pairs, strict=True)
    return PairBatch(
        *(
            sequences_of([np.frombuffer(text, np.uint8) for text in side])
            for side in (alternates, references)
        )
    )


def random_haplotypes(rng, count):
    """Return references and alternates with repeats, indels, overhangs, N, or nothing in common."""
    pairs = []
    for _ in range(count):
        kinds = int(rng.integers(1, 6))
        reference = LETTERS[rng.integers(0, kinds, rng.integers(1, 32))]
        if rng.random() < 0.3:
            reference = np.tile(LETTERS[rng.integers(0, 4, rng.integers(1, 5))], 6)
        alternate = LETTERS[rng.integers(0, kinds, rng.integers(1, 20))]
        if rng.random() < 0.8:
            start = int(rng.integers(0, reference.size))
            alternate = reference[start : start + rng.integers(1, 20)].copy()
            if rng.random() < 0.6:
                cut = int(rng.integers(0, alternate.size))
                inserted = LETTERS[rng.integers(0, 4, rng.integers(0, 4))]
                skipped = int(rng.integers(0, 3))
                alternate = np.concatenate(
                    [alternate[: cut + 1], inserted, alternate[cut + 1 + skipped :]]
                )
            if rng.random() < 0.5:
                alternate[rng.integers(0, alternate.size)] = LETTERS[rng.integers(0, 5)]
            if rng.random() < 0.2:
                alternate = np.concatenate([LETTERS[rng.integers(0, 4, 3)], alternate])
        pairs.append((reference.tobytes(), alternate.tobytes()))
    return pairs


def check_against_oracle(pairs, parameters, overhang):
    got = gatk_alignments(as_batch(pairs), parameters, overhang)
    for i, (reference, alternate) in enumerate(pairs):
        score, offset, cigar = gatk_align(reference, alternate, parameters, overhang)
        runs = got.cigar[got.cigar_offsets[i] : got.cigar_offsets[i + 1]]
        assert (int(got.scores[i]), int(got.offsets[i]), cigar_text(runs)) == (
            score,
            offset,
            "".join(f"{length}{operation}" for length, operation in cigar),
        ), (reference, alternate)


@pytest.mark.parametrize("overhang", OVERHANGS)
@pytest.mark.parametrize("name", GATK_PARAMETERS)
def test_equals_an_independent_translation(name, overhang):
    pairs = random_haplotypes(np.random.default_rng(21), 1250)
    check_against_oracle(pairs, GATK_PARAMETERS[name], overhang)


@pytest.mark.parametrize("overhang", OVERHANGS)
def test_slices_of_rows_change_nothing(monkeypatch, overhang):
    monkeypatch.setattr(traceback_cpu, "DIRECTION_BYTES", 500)
    pairs = random_haplotypes(np.random.default_rng(22), 200)
    check_against_oracle(pairs, GATK_PARAMETERS["original-default"], overhang)


@pytest.mark.parametrize(
    ("reference", "alternate", "parameters", "expected"),
    [
        # a poor alignment, whose score is negative
        (b"AAACCCTTTTTT", b"GGGGGGTTTTTT", GatkParameters(1, -4, -6, -1), (0, "11S1M")),
        # the right-most of several exact occurrences
        (b"ACACACAC", b"ACAC", GATK_PARAMETERS["new-sw-parameters"], (4, "4M")),
        (b"AAAGGACTGACTG", b"ACTGACTG", GATK_PARAMETERS["original-default"], (5, "8M")),
    ],
)
def test_known_softclip_answers(reference, alternate, parameters, expected):
    got = gatk_alignments(as_batch([(reference, alternate)]), parameters, "softclip")
    assert (int(got.offsets[0]), cigar_text(got.cigar)) == expected


def test_letters_are_compared_as_bytes():
    got = gatk_alignments(
        as_batch([(b"ACNNGT", b"CNNG")]), GATK_PARAMETERS["new-sw-parameters"], "softclip"
    )
    assert (int(got.offsets[0]), cigar_text(got.cigar)) == (1, "4M")


def test_bad_parameters_are_refused():
    with pytest.raises(UsageError, match="^gap-open -5 is greater than gap-extend -9: "):
        GatkParameters(10, -15, -5, -9)
    with pytest.raises(UsageError, match="^match 10, mismatch 15, gap-extend -5: with --mode gatk"):
        GatkParameters(10, 15, -30, -5)
    with pytest.raises(UsageError) as error:
        gatk_alignments(as_batch([(b"A", b"A")]), GATK_PARAMETERS["standard-ngs"], "clip")
    assert str(error.value) == (
        "overhang 'clip' is not one of softclip, indel, leading-indel, ignore"
    )
    with pytest.raises(InputError, match=r"^the query of pair 1 is empty: remove the pair$"):
        gatk_alignments(as_batch([(b"A", b"")]), GATK_PARAMETERS["standard-ngs"], "indel")

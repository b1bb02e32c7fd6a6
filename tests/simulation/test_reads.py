"""The stated origins of reads are correct, and distributions are as requested."""

import itertools

import numpy as np
import pytest

from bwarp.errors import InputError, UsageError
from bwarp.sequence import decode, encode
from bwarp.simulation.genome import GenomeParameters, simulate_genome
from bwarp.simulation.reads import ReadParameters, simulate_reads
from bwarp.simulation.variants import VariantParameters, simulate_variants, vcf_lines
from tests.helpers.oracles.haplotype_oracle import (
    differences,
    edit_distance,
    haplotypes,
    reverse_complement,
    stretches,
)

EXACT = {
    "error_rate_start": 0.0,
    "error_rate_end": 0.0,
    "random_fraction": 0.0,
}


@pytest.fixture(scope="module")
def genome():
    """Return contigs of 660 to 3,300 bases with gaps and single ambiguous letters."""
    return simulate_genome(GenomeParameters(20_000, contigs=10, seed=3, iupac_letters=20))


def no_variants(genome):
    return simulate_variants(genome.codes, genome.offsets, VariantParameters(rate=0.0), seed=1)


def make(genome, variants, parameters, count, seed=1, first=0, threads=1):
    return simulate_reads(
        genome.codes, genome.offsets, variants, parameters, seed, first, count, threads
    )


def contig_letters(genome, number):
    return decode(genome.codes[genome.offsets[number] : genome.offsets[number + 1]]).decode()


def forward_letters(reads, end, i):
    """Return a read as on the forward strand."""
    letters = decode(reads.codes[end, i]).decode()
    return reverse_complement(letters) if reads.truth[end, i]["reverse"] else letters


def every_read(reads):
    for end in range(reads.truth.shape[0]):
        for i in range(reads.truth.shape[1]):
            yield end, i, reads.truth[end, i]


@pytest.mark.parametrize("ends", [1, 2])
@pytest.mark.parametrize("length", [1, 35, 150, 300])
def test_without_variants_and_errors_a_read_is_the_reference(genome, ends, length):
    parameters = ReadParameters(length, ends, **EXACT)
    reads = make(genome, no_variants(genome), parameters, 400)
    contigs = [contig_letters(genome, number) for number in range(10)]
    for end, i, truth in every_read(reads):
        assert truth["stop"] - truth["start"] == length
        assert (truth["variants"], truth["errors"]) == (0, 0)
        reference = contigs[truth["contig"]][truth["start"] : truth["stop"]]
        assert forward_letters(reads, end, i) == reference
        assert "N" not in reference


@pytest.mark.parametrize(
    ("rate", "indel_fraction", "extend", "length"),
    [
        (0.01, 0.2, 0.3, 100),
        (0.2, 0.0, 0.3, 80),
        (0.3, 1.0, 0.9, 60),
        (1.0, 0.5, 0.5, 50),
        (0.5, 1.0, 0.95, 20),
    ],
)
def test_without_errors_both_ends_are_of_one_haplotype(
    genome, rate, indel_fraction, extend, length
):
    variants = simulate_variants(
        genome.codes, genome.offsets, VariantParameters(rate, indel_fraction, extend), seed=7
    )
    sequences = {name: contig_letters(genome, i) for i, name in enumerate(genome.names)}
    lines = vcf_lines(genome.codes, genome.offsets, genome.names, variants)
    by_contig = haplotypes(sequences, lines)
    reads = make(genome, variants, ReadParameters(length, 2, 200.0, 30.0, **EXACT), 120)
    used = set()
    for i in range(120):
        name = genome.names[reads.truth[0, i]["contig"]]
        right = []
        for which, haplotype in enumerate(by_contig[name]):
            good = True
            for end in (0, 1):
                start, stop, count = (
                    reads.truth[end, i][field] for field in ("start", "stop", "variants")
                )
                letters = forward_letters(reads, end, i)
                if start == stop:
                    # All of it was inserted between two bases of the reference.
                    assert count == length
                    continue
                counts = {
                    differences(haplotype[at : at + length], sequences[name])
                    for at in stretches(haplotype, letters, start, stop)
                }
                good &= int(count) in counts
            if good:
                right.append(which)
        assert right
        used.update(right)
    assert used == {0, 1}


def test_without_variants_and_indels_errors_are_the_hamming_distance(genome):
    parameters = ReadParameters(
        100,
        error_rate_start=0.05,
        error_rate_end=0.2,
        error_indel_fraction=0.0,
        random_fraction=0.0,
    )
    reads = make(genome, no_variants(genome), parameters, 300)
    for end, i, truth in every_read(reads):
        reference = contig_letters(genome, truth["contig"])[truth["start"] : truth["stop"]]
        letters = forward_letters(reads, end, i)
        assert len(letters) == len(reference)
        unlike = sum(a != b for a, b in zip(letters, reference, strict=True))
        assert unlike == truth["errors"]


@pytest.mark.parametrize(
    ("variant_rate", "error_rate", "error_indel_fraction", "length", "distance", "recorded"),
    [
        (0.001, 0.01, 0.01, 100, 223, 223),
        (0.05, 0.05, 0.5, 60, 1036, 1087),
        (0.0, 0.3, 1.0, 60, 2926, 3610),
        (0.3, 0.0, 0.0, 60, 2217, 2311),
        (0.5, 1.0, 1.0, 25, 2815, 6351),
        (0.5, 0.5, 0.5, 1, 109, 123),
    ],
)
def test_edit_distance_is_within_the_counts(
    genome, variant_rate, error_rate, error_indel_fraction, length, distance, recorded
):
    """The sums over all reads are recorded, so that inaccurate counts are noticed."""
    variants = simulate_variants(
        genome.codes, genome.offsets, VariantParameters(variant_rate, 0.5), seed=7
    )
    parameters = ReadParameters(
        length,
        2,
        180.0,
        20.0,
        error_rate_start=error_rate,
        error_rate_end=error_rate,
        error_indel_fraction=error_indel_fraction,
        random_fraction=0.0,
    )
    reads = make(genome, variants, parameters, 100)
    sums = [0, 0]
    for end, i, truth in every_read(reads):
        reference = contig_letters(genome, truth["contig"])[truth["start"] : truth["stop"]]
        least = edit_distance(forward_letters(reads, end, i), reference)
        counted = int(truth["variants"]) + int(truth["errors"])
        assert least <= counted
        sums[0] += least
        sums[1] += counted
    assert sums == [distance, recorded]


def test_inserts_strands_and_places_are_spread_as_asked():
    codes = np.zeros(400_000, np.uint8)
    offsets = np.array([0, 100_000, 400_000])
    variants = simulate_variants(codes, offsets, VariantParameters(rate=0.0), seed=1)
    parameters = ReadParameters(50, 2, 300.0, 40.0, **EXACT)
    reads = simulate_reads(codes, offsets, variants, parameters, 1, 0, 20_000)
    first, second = reads.truth
    assert (first["reverse"] != second["reverse"]).all()
    forward = np.where(first["reverse"], second["start"], first["start"])
    backward = np.where(first["reverse"], first["stop"], second["stop"])
    inserts = backward - forward
    # Mean 300, standard deviation 40, half and half, a quarter on the first contig.
    assert round(float(inserts.mean()), 3) == 299.660
    assert round(float(inserts.std()), 3) == 39.918
    assert [int(inserts.min()), int(inserts.max())] == [154, 449]
    assert int(first["reverse"].sum()) == 9933
    assert int((first["contig"] == 0).sum()) == 5026


def test_inserts_are_never_shorter_than_a_read():
    codes = np.zeros(10_000, np.uint8)
    offsets = np.array([0, codes.size])
    variants = simulate_variants(codes, offsets, VariantParameters(rate=0.0), seed=1)
    parameters = ReadParameters(100, 2, 100.0, 50.0, **EXACT)
    truth = simulate_reads(codes, offsets, variants, parameters, 1, 0, 200).truth
    inserts = truth["stop"].max(axis=0) - truth["start"].min(axis=0)
    assert inserts.min() == 100
    assert inserts.max() > 150


def test_error_rates_rise_over_the_cycles_and_qualities_say_so():
    codes = np.zeros(100_000, np.uint8)
    offsets = np.array([0, codes.size])
    variants = simulate_variants(codes, offsets, VariantParameters(rate=0.0), seed=1)
    parameters = ReadParameters(
        5,
        1,
        error_rate_start=0.02,
        error_rate_end=0.1,
        error_indel_fraction=0.0,
        random_fraction=0.0,
    )
    reads = simulate_reads(codes, offsets, variants, parameters, 1, 0, 50_000)
    wrong = np.where(reads.truth["reverse"][0][:, None], reads.codes[0] != 3, reads.codes[0] != 0)
    # 0.02, 0.04, 0.06, 0.08 and 0.1 of 50,000.
    assert wrong.sum(axis=0).tolist() == [972, 2010, 2985, 4042, 5095]
    assert wrong.sum() == reads.truth["errors"].sum()
    # Mean rate 0.02 at the first cycle: qualities from 15 to 19, errors 10^(-q/10) of each.
    quality = reads.qualities[0][:, 0] - 33
    table = {
        int(q): (int((quality == q).sum()), int(wrong[quality == q, 0].sum()))
        for q in np.unique(quality)
    }
    assert table == {
        15: (6269, 201),
        16: (12_546, 284),
        17: (12_344, 226),
        18: (12_552, 182),
        19: (6289, 79),
    }


def test_qualities_at_the_ends_of_the_scale(genome):
    exact = make(genome, no_variants(genome), ReadParameters(50, **EXACT), 50)
    assert (exact.qualities == 33 + 41).all()
    wrong = ReadParameters(50, error_rate_start=1.0, error_rate_end=1.0)
    hopeless = make(genome, no_variants(genome), wrong, 50)
    assert (hopeless.qualities == 33 + 2).all()
    assert (hopeless.truth["errors"][hopeless.truth["contig"] >= 0] == 50).all()


def test_random_reads_have_no_place(genome):
    parameters = ReadParameters(100, random_fraction=0.25)
    reads = make(genome, no_variants(genome), parameters, 4000)
    random = reads.truth["contig"] == -1
    assert (random[0] == random[1]).all()
    # A quarter of 4,000, and even bases.
    assert int(random[0].sum()) == 982
    assert np.bincount(reads.codes[random].ravel()).tolist() == [48_952, 49_369, 48_873, 49_206]
    for field in ("reverse", "start", "stop", "variants", "errors"):
        assert not reads.truth[field][random].any()
    assert not (reads.codes[0][random[0]] == reads.codes[1][random[0]]).all(axis=1).any()


@pytest.mark.parametrize("fraction", [0.0, 1.0])
def test_none_or_all_are_random(genome, fraction):
    parameters = ReadParameters(100, 1, random_fraction=fraction)
    truth = make(genome, no_variants(genome), parameters, 300).truth
    assert (truth["contig"] == -1).mean() == fraction


@pytest.mark.parametrize("ends", [1, 2])
def test_the_only_possible_place_is_found(ends):
    """A read only fits between an N and the border of a contig shorter than a read."""
    codes = encode(b"ACGTACGTNN" + b"GATTACAGATTACAGATTACA" + b"CCCC")
    offsets = np.array([0, 31, 35])
    variants = simulate_variants(codes, offsets, VariantParameters(rate=0.0), seed=1)
    parameters = ReadParameters(21, ends, 21.0, 0.0, **EXACT)
    reads = simulate_reads(codes, offsets, variants, parameters, 1, 0, 20)
    assert (reads.truth["start"] == 10).all()
    assert (reads.truth["stop"] == 31).all()
    assert (reads.truth["contig"] == 0).all()
    assert set(reads.truth["reverse"][0].tolist()) == {False, True}


@pytest.mark.parametrize("ends", [1, 2])
def test_threads_and_chunks_change_nothing(genome, ends):
    variants = simulate_variants(genome.codes, genome.offsets, VariantParameters(0.02), seed=7)
    parameters = ReadParameters(70, ends)
    whole = make(genome, variants, parameters, 5000, seed=2)
    threaded = make(genome, variants, parameters, 5000, seed=2, threads=3)
    assert whole.truth.tobytes() == threaded.truth.tobytes()
    assert np.array_equal(whole.codes, threaded.codes)
    assert np.array_equal(whole.qualities, threaded.qualities)
    edges = [0, 1, 2, 1000, 1024, 5000]
    for first, last in itertools.pairwise(edges):
        part = make(genome, variants, parameters, last - first, seed=2, first=first)
        assert np.array_equal(part.codes, whole.codes[:, first:last])
        assert np.array_equal(part.qualities, whole.qualities[:, first:last])
        assert (part.truth == whole.truth[:, first:last]).all()
    other = make(genome, variants, parameters, 5000, seed=3)
    assert not (other.codes == whole.codes).all(axis=(0, 2)).any()


def test_no_reads_at_all(genome):
    reads = make(genome, no_variants(genome), ReadParameters(50), 0)
    assert reads.codes.shape == (2, 0, 50)


def test_reads_longer_than_every_contig():
    codes = np.zeros(150, np.uint8)
    offsets = np.array([0, 100, 150])
    variants = simulate_variants(codes, offsets, VariantParameters(), seed=1)
    with pytest.raises(InputError) as error:
        simulate_reads(codes, offsets, variants, ReadParameters(101, 1), 1, 0, 5)
    assert str(error.value) == (
        "the longest contig has 100 bases, too few for reads of 101: use a longer reference or "
        "shorter reads"
    )


@pytest.mark.parametrize(
    ("letters", "ends", "insert"), [(b"ACGTN" * 100, 1, "20"), (b"ACGTT" * 100, 2, "900")]
)
def test_no_place_for_a_fragment(letters, ends, insert):
    codes = encode(letters)
    offsets = np.array([0, codes.size])
    variants = simulate_variants(codes, offsets, VariantParameters(), seed=1)
    parameters = ReadParameters(20, ends, 900.0, 10.0, random_fraction=0.0)
    with pytest.raises(InputError) as error:
        simulate_reads(codes, offsets, variants, parameters, 1, 0, 5)
    assert str(error.value) == (
        f"no position for a fragment of about {insert} bases was found in 10,000 draws, because "
        "contigs are too short or have too many N: use a smaller insert size, shorter reads or "
        "another reference"
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"length": 0}, "read length 0: a read must have at least 1 base"),
        ({"ends": 3}, "ends 3: use 1 for single reads or 2 for pairs"),
        ({"error_rate_start": 1.5}, "error rate start 1.5 is not from 0 to 1"),
        ({"error_rate_end": -0.1}, "error rate end -0.1 is not from 0 to 1"),
        ({"error_indel_fraction": 2.0}, "error indel fraction 2.0 is not from 0 to 1"),
        ({"random_fraction": float("nan")}, "random fraction nan is not from 0 to 1"),
        (
            {"insert_mean": 149.0},
            "insert mean 149 is not from the read length 150 to 2^31: the insert size includes "
            "both reads",
        ),
        (
            {"insert_mean": float("inf")},
            "insert mean inf is not from the read length 150 to 2^31: the insert size includes "
            "both reads",
        ),
        ({"insert_sd": -1.0}, "insert sd -1 is not from 0 to 2^31"),
    ],
)
def test_parameters_out_of_range(changes, message):
    with pytest.raises(UsageError) as error:
        ReadParameters(**changes)
    assert str(error.value) == message


def test_single_reads_need_no_insert():
    assert ReadParameters(500, 1).insert_mean == 400

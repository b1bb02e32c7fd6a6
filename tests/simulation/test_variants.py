"""Variants: separate, on known bases, at the requested rates, and in VCF."""

import hashlib

import numpy as np
import pytest

from bwarp.errors import UsageError
from bwarp.sequence import AMBIGUOUS, decode, encode
from bwarp.simulation.genome import GenomeParameters, simulate_genome
from bwarp.simulation.variants import (
    DELETION,
    INSERTION,
    LONGEST_INDEL,
    SUBSTITUTION,
    VariantParameters,
    simulate_variants,
    vcf_lines,
)
from tests.helpers.oracles.haplotype_oracle import haplotypes


@pytest.fixture(scope="module")
def genome():
    return simulate_genome(GenomeParameters(60_000, contigs=7, seed=3, iupac_letters=100))


def letters_of(genome):
    return {
        name: decode(genome.codes[genome.offsets[i] : genome.offsets[i + 1]]).decode()
        for i, name in enumerate(genome.names)
    }


def test_rates_and_lengths_are_those_asked_for():
    codes = np.zeros(1_000_000, np.uint8)
    variants = simulate_variants(
        codes, np.array([0, codes.size]), VariantParameters(0.01, 0.4, 0.5), seed=1
    )
    # Of 10,000, without those that touch their predecessor: 6, 2 and 2 in 10 of the three kinds.
    assert np.bincount(variants.kinds).tolist() == [5980, 1996, 2035]
    # Indels are 1 base in half of the cases, 2 in a quarter, ...
    indels = variants.kinds != SUBSTITUTION
    assert np.bincount(variants.lengths[indels])[:8].tolist() == [
        0,
        2020,
        1043,
        477,
        246,
        130,
        52,
        33,
    ]
    assert (variants.lengths[~indels] == 1).all()
    # First haplotype, second, both: a third each.
    assert np.bincount(variants.haplotypes).tolist() == [0, 3322, 3279, 3410]
    # A substitution never gives the same base.
    snv_bases = variants.bases[variants.base_offsets[:-1][variants.kinds == SUBSTITUTION]]
    assert np.bincount(snv_bases).tolist() == [0, 2009, 1956, 2015]


@pytest.mark.parametrize("rate", [0.0, 0.01, 0.3, 1.0])
@pytest.mark.parametrize("indel_fraction", [0.0, 0.5, 1.0])
def test_variants_keep_clear_of_each_other_of_n_and_of_borders(genome, rate, indel_fraction):
    parameters = VariantParameters(rate, indel_fraction, extend=0.8)
    variants = simulate_variants(genome.codes, genome.offsets, parameters, seed=9)
    end = 0
    for position, kind, length in zip(
        variants.positions.tolist(),
        variants.kinds.tolist(),
        variants.lengths.tolist(),
        strict=True,
    ):
        contig = np.searchsorted(genome.offsets, position, side="right") - 1
        stop = position + {SUBSTITUTION: 1, INSERTION: 2, DELETION: length + 2}[kind]
        assert position >= end
        assert stop <= genome.offsets[contig + 1]
        assert AMBIGUOUS not in genome.codes[position:stop]
        assert 1 <= length <= LONGEST_INDEL
        end = stop
    assert (variants.positions.size == 0) == (rate == 0)
    assert set(variants.kinds.tolist()) <= (
        {SUBSTITUTION} if indel_fraction == 0 else {SUBSTITUTION, INSERTION, DELETION}
    )


def test_every_base_can_be_substituted():
    codes = encode(b"ACGTNACGT")
    variants = simulate_variants(codes, np.array([0, 4, 9]), VariantParameters(1.0, 0.0), seed=1)
    assert variants.positions.tolist() == [0, 1, 2, 3, 5, 6, 7, 8]
    assert (variants.bases != codes[variants.positions]).all()


def test_the_number_of_threads_changes_nothing():
    genome = simulate_genome(GenomeParameters(3_000_000, seed=4))
    one, many = (
        simulate_variants(genome.codes, genome.offsets, VariantParameters(), 5, threads)
        for threads in (1, 3)
    )
    assert all(np.array_equal(a, b) for a, b in zip(one, many, strict=True))
    # One in 1000 of 2,943,808 known bases.
    assert one.positions.size == 2959


def test_vcf_says_what_the_arrays_say(genome):
    parameters = VariantParameters(0.05, 0.5)
    variants = simulate_variants(genome.codes, genome.offsets, parameters, seed=2)
    lines = list(vcf_lines(genome.codes, genome.offsets, genome.names, variants))
    sequences = letters_of(genome)
    by_contig = haplotypes(sequences, lines)
    contigs = np.searchsorted(genome.offsets, variants.positions, side="right") - 1
    gained = np.where(variants.kinds == INSERTION, variants.lengths, 0)
    gained -= np.where(variants.kinds == DELETION, variants.lengths, 0)
    for number, name in enumerate(genome.names):
        for which in (0, 1):
            on_it = (contigs == number) & ((variants.haplotypes >> which) & 1 == 1)
            expected = len(sequences[name]) + int(gained[on_it].sum())
            assert len(by_contig[name][which]) == expected
    assert hashlib.md5("".join(lines).encode()).hexdigest() == "4af59373a43bf4f871987c79fbba5e93"


def test_vcf_spells_each_kind():
    codes = encode(b"GATTACAGATTACAGGG")
    offsets = np.array([0, 17])
    parameters = VariantParameters(0.5, 0.7, 0.5)
    variants = simulate_variants(codes, offsets, parameters, seed=9)
    assert list(vcf_lines(codes, offsets, ("c:1",), variants)) == [
        "##fileformat=VCFv4.2\n",
        "##contig=<ID=c:1,length=17>\n",
        '##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">\n',
        "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\tsimulated\n",
        "c:1\t2\t.\tA\tAAG\t.\tPASS\t.\tGT\t1|0\n",
        "c:1\t4\t.\tT\tC\t.\tPASS\t.\tGT\t0|1\n",
        "c:1\t8\t.\tGAT\tG\t.\tPASS\t.\tGT\t1|1\n",
    ]


def test_vcf_can_be_read_by_others(genome, tmp_path):
    pysam = pytest.importorskip("pysam")
    variants = simulate_variants(genome.codes, genome.offsets, VariantParameters(), seed=2)
    path = tmp_path / "truth.vcf"
    path.write_text("".join(vcf_lines(genome.codes, genome.offsets, genome.names, variants)))
    with pysam.VariantFile(str(path)) as file:
        records = [(record.contig, record.start, record.samples[0].phased) for record in file]
    contigs = np.searchsorted(genome.offsets, variants.positions, side="right") - 1
    within = variants.positions - genome.offsets[contigs]
    assert records == [
        (genome.names[contig], at, True)
        for contig, at in zip(contigs.tolist(), within.tolist(), strict=True)
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rate": 1.01}, "variant rate 1.01 is not from 0 to 1"),
        ({"indel_fraction": -0.5}, "indel fraction -0.5 is not from 0 to 1"),
        ({"extend": float("nan")}, "indel extend nan is not from 0 to 1"),
    ],
)
def test_parameters_out_of_range(changes, message):
    with pytest.raises(UsageError) as error:
        VariantParameters(**changes)
    assert str(error.value) == message

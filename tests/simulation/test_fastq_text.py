"""FASTQ text against a plain loop over the arrays."""

import numpy as np
import pytest

from bwarp.sequence import decode
from bwarp.simulation.genome import GenomeParameters, simulate_genome
from bwarp.simulation.reads import ReadParameters, fastq_pieces, parse_read_name, simulate_reads
from bwarp.simulation.variants import VariantParameters, simulate_variants

NAMES = ("chr1", "HLA-A*01:01", "a contig|of 100 %")
ENCODED = ("chr1", "HLA-A%2A01%3A01", "a%20contig%7Cof%20100%20%25")


@pytest.fixture(scope="module", params=[1, 2])
def reads(request):
    genome = simulate_genome(GenomeParameters(9000, contigs=3))
    variants = simulate_variants(genome.codes, genome.offsets, VariantParameters(0.01), seed=1)
    parameters = ReadParameters(60, request.param, random_fraction=0.1)
    return simulate_reads(genome.codes, genome.offsets, variants, parameters, 1, 99_990, 3000)


def plain_name(reads, i):
    name = f"{reads.first + i}:"
    contig = int(reads.truth["contig"][0, i])
    if contig < 0:
        return name + "*"
    name += ENCODED[contig]
    for truth in reads.truth[:, i]:
        name += f":{truth['start']}:{truth['stop']}:{'-' if truth['reverse'] else '+'}"
        name += f":{truth['variants']}:{truth['errors']}"
    return name


@pytest.mark.parametrize("threads", [1, 4])
def test_text_is_that_of_a_plain_loop(reads, threads):
    for end in range(reads.truth.shape[0]):
        expected = "".join(
            f"@{plain_name(reads, i)}\n{decode(reads.codes[end, i]).decode()}\n+\n"
            f"{reads.qualities[end, i].tobytes().decode()}\n"
            for i in range(reads.truth.shape[1])
        )
        pieces = fastq_pieces(reads, end, NAMES, threads)
        assert b"".join(piece.tobytes() for piece in pieces).decode() == expected


def test_names_say_the_truth(reads):
    text = b"".join(piece.tobytes() for piece in fastq_pieces(reads, 0, NAMES)).decode()
    n_random = 0
    for i, line in enumerate(text.splitlines()[::4]):
        read = parse_read_name(line[1:])
        assert read.number == 99_990 + i
        if read.contig is None:
            n_random += 1
            continue
        assert read.contig == NAMES[reads.truth["contig"][0, i]]
        for end, truth in zip(read.ends, reads.truth[:, i], strict=True):
            for field in ("start", "stop", "reverse", "variants", "errors"):
                assert getattr(end, field) == truth[field]
    assert n_random == (reads.truth["contig"][0] < 0).sum() > 0


def test_numbers_of_any_size_are_written_whole(reads):
    truth = reads.truth[:, :1].copy()
    truth["contig"] = 0
    truth["start"], truth["stop"] = 0, 10_000_000_000
    truth["variants"], truth["errors"] = 10, 99_999
    one = type(reads)(2**40 - 1, reads.codes[:, :1], reads.qualities[:, :1], truth)
    name = fastq_pieces(one, 0, NAMES)[0].tobytes().decode().split("\n")[0]
    read = parse_read_name(name[1:])
    assert read.number == 2**40 - 1
    assert {(end.start, end.stop, end.variants, end.errors) for end in read.ends} == {
        (0, 10_000_000_000, 10, 99_999)
    }


def test_no_reads_are_no_text(reads):
    none = type(reads)(0, reads.codes[:, :0], reads.qualities[:, :0], reads.truth[:, :0])
    assert fastq_pieces(none, 0, NAMES) == []
    assert np.concatenate([np.empty(0, np.uint8), *fastq_pieces(none, 0, NAMES)]).size == 0

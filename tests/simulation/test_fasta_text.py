"""FASTA text of a genome, read back letter by letter."""

import numpy as np
import pytest

from bwarp.sequence import decode
from bwarp.simulation import genome as fasta_text
from bwarp.simulation.genome import GenomeParameters, fasta_pieces, simulate_genome

NOTHING = np.empty((0, 2), np.int64)


@pytest.fixture
def genome():
    return simulate_genome(GenomeParameters(20_011, contigs=3, iupac_letters=40))


def plain_text(genome, width, masked):
    """Return the same file by a loop over letters."""
    letters = list(decode(genome.codes).decode())
    for position, letter in zip(genome.iupac_positions, genome.iupac_letters, strict=True):
        letters[position] = chr(letter)
    for start, stop in masked:
        letters[start:stop] = [letter.lower() for letter in letters[start:stop]]
    text = ""
    for i, name in enumerate(genome.names):
        sequence = "".join(letters[genome.offsets[i] : genome.offsets[i + 1]])
        text += f">{name}\n"
        for at in range(0, len(sequence), width):
            text += sequence[at : at + width] + "\n"
    return text.encode()


@pytest.mark.parametrize("width", [1, 7, 80, 100_000])
@pytest.mark.parametrize("piece", [1, 1000, 1 << 22])
@pytest.mark.parametrize("lower_case", [False, True])
def test_text_is_that_of_a_plain_loop(genome, monkeypatch, width, piece, lower_case):
    monkeypatch.setattr(fasta_text, "PIECE_BASES", piece)
    masked = genome.repeats if lower_case else NOTHING
    assert b"".join(fasta_pieces(genome, width, masked)) == plain_text(genome, width, masked)


def test_masked_intervals_may_hold_one_another(genome):
    masked = np.array([[10, 9000], [20, 30], [8000, 8100], [15_000, 15_001]])
    assert b"".join(fasta_pieces(genome, 60, masked)) == plain_text(genome, 60, masked)


def test_a_contig_of_whole_lines_has_no_empty_line():
    genome = simulate_genome(GenomeParameters(160))
    assert b"".join(fasta_pieces(genome, 80, NOTHING)).count(b"\n") == 3

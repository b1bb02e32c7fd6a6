"""A small data set that sends the programs their usual ways: what it runs through is compiled."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

__all__ = ["write_data"]

_DNA, _PROTEIN = "ACGT", "ACDEFGHIKLMNPQRSTVWY"
_COMPLEMENT = str.maketrans("ACGTN", "TGCAN")

#: Scores of the shortest fit into 8 bits, of the longest only into 16.
_SINGLE_LENGTHS = (36, 75, 100, 250, 600)


def write_data(folder: Path) -> None:
    """Write FASTA and FASTQ files into a folder.

    ============================  =================================================================
    genome.fa                     two contigs with a repeat, a tandem repeat and a run of N
    1.fq, 2.fq, single.fq         reads with mismatches and gaps, some split, some random
    words.fa                      k-mers of the genome
    windows.fa, reads.fa          windows of the genome, and a read of each
    database.fa, proteins.fa      proteins, and some of them with changes
    ============================  =================================================================
    """
    rng = np.random.default_rng(1)
    one, two = _letters(rng, 20_000, _DNA), _letters(rng, 8_000, _DNA)
    repeat = one[5_000:5_600]
    one = one[:12_000] + "N" * 300 + repeat + "ACG" * 60 + one[12_000:]
    two += repeat + _changed(rng, repeat, _DNA)
    _write_fasta(folder / "genome.fa", "contig", [one, two])

    pairs = [_pair(rng, one, two, number) for number in range(400)]
    _write_fastq(folder / "1.fq", [first for first, _ in pairs])
    _write_fastq(folder / "2.fq", [second for _, second in pairs])
    starts = [(int(rng.integers(11_000)), length) for length in _SINGLE_LENGTHS * 50]
    singles = [_changed(rng, one[at : at + length], _DNA) for at, length in starts]
    _write_fastq(folder / "single.fq", singles)

    starts = range(100, 4_000, 100)
    _write_fasta(folder / "words.fa", "word", [one[at : at + 22] for at in starts])
    _write_fasta(folder / "windows.fa", "window", [one[at : at + 300] for at in starts])
    reads = [_changed(rng, one[at + 100 : at + 200], _DNA) for at in starts]
    _write_fasta(folder / "reads.fa", "read", reads)
    database = [_letters(rng, length, _PROTEIN) for length in range(50, 900, 20)]
    _write_fasta(folder / "database.fa", "protein", database)
    queries = [_changed(rng, text, _PROTEIN) for text in database[:20:5]]
    _write_fasta(folder / "proteins.fa", "query", queries)


def _letters(rng: np.random.Generator, length: int, alphabet: str) -> str:
    return "".join(rng.choice(list(alphabet), length))


def _changed(rng: np.random.Generator, text: str, alphabet: str) -> str:
    """The text with letters exchanged, and some taken out and put in halfway."""
    letters = list(text)
    for at in rng.integers(0, len(letters), max(len(letters) // 60, 1)):
        letters[at] = str(rng.choice(list(alphabet)))
    if rng.random() < 0.3:
        at = len(letters) // 2
        letters[at : at + int(rng.integers(4))] = _letters(rng, int(rng.integers(6)), alphabet)
    return "".join(letters)


def _pair(rng: np.random.Generator, one: str, two: str, number: int) -> tuple[str, str]:
    start, size = int(rng.integers(len(one) - 600)), int(rng.normal(400, 40))
    first = _changed(rng, one[start : start + 150], _DNA)
    second = _changed(rng, one[start + size - 150 : start + size], _DNA)
    if number % 10 == 1:  # split: its halves are of two contigs
        first = first[:75] + two[start // 4 : start // 4 + 75]
    elif number % 10 == 2:  # too poor for seeds: only its mate leads to it
        second = "".join("A" if i % 9 == 0 else letter for i, letter in enumerate(second))
    elif number % 10 == 3:  # random
        second = _letters(rng, 150, _DNA)
    elif number % 10 == 4:  # the same every time
        first, second = one[1_000:1_150], one[1_250:1_400]
    second = second[::-1].translate(_COMPLEMENT)
    return (first, second) if number % 2 else (second, first)


def _write_fasta(path: Path, name: str, texts: Iterable[str]) -> None:
    path.write_text("".join(f">{name}_{i}\n{text}\n" for i, text in enumerate(texts)))


def _write_fastq(path: Path, reads: Sequence[str]) -> None:
    path.write_text(
        "".join(f"@read_{i}\n{text}\n+\n{'I' * len(text)}\n" for i, text in enumerate(reads))
    )

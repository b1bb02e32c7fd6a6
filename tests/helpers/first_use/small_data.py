"""A small data set with which programs call, and so compile, their usual functions."""

import gzip
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

_DNA, _PROTEIN = "ACGT", "ACDEFGHIKLMNPQRSTVWY"
_COMPLEMENT = str.maketrans("ACGTN", "TGCAN")

#: Scores of the shortest reads fit into 8 bits, those of the longest only into 16.
_SINGLE_LENGTHS = (36, 75, 100, 250, 600)
_LONGEST_SHORT = 250


def write_data(folder: Path) -> None:
    """Write FASTA and FASTQ files into a folder.

    ============================  =================================================================
    genome.fa                     two contigs with a repeat, a tandem repeat and a run of N
    1.fq, 2.fq, single.fq         reads with mismatches and gaps, some split, some random
    short.1.fq, short.2.fq        the pairs of reads with at most 250 bases
    short.fq                      such reads of single.fq
    both.fq, 1.fq.gz, 2.fq.gz     the pairs in one file, and compressed
    comments.1.fq, comments.2.fq  the pairs with tags in their headers
    long.fq                       reads of thousands of bases
    words.fa, iupac.fa            k-mers of the genome, and with ambiguous letters
    guides.fa, primers.tsv        guides next to PAMs of the genome, and pairs of primers
    phased.vcf, sites.vcf         variants of the genome with genotypes, and without
    samples.tsv                   populations of the samples with genotypes
    regions.bed, pairs.txt        regions of the genome, and pairs of sequences
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
    short = [pair for pair in pairs if max(map(len, pair)) <= _LONGEST_SHORT]
    for end in (0, 1):
        _write_fastq(folder / f"short.{end + 1}.fq", [pair[end] for pair in short])
    starts = [(int(rng.integers(11_000)), length) for length in _SINGLE_LENGTHS * 50]
    singles = [_changed(rng, one[at : at + length], _DNA) for at, length in starts]
    # Within the tandem repeat.
    singles += [one[at : at + 100] for at in (12_920, 12_930)]
    _write_fastq(folder / "single.fq", singles)
    _write_fastq(folder / "short.fq", [read for read in singles if len(read) <= _LONGEST_SHORT])

    _write_more_reads(folder, rng, one, pairs)

    starts = range(100, 4_000, 100)
    _write_fasta(folder / "words.fa", "word", [one[at : at + 22] for at in starts])
    _write_fasta(folder / "windows.fa", "window", [one[at : at + 300] for at in starts])
    reads = [_changed(rng, one[at + 100 : at + 200], _DNA) for at in starts]
    _write_fasta(folder / "reads.fa", "read", reads)
    _write_targets(folder, one, reads)
    database = [_letters(rng, length, _PROTEIN) for length in range(50, 900, 20)]
    _write_fasta(folder / "database.fa", "protein", database)
    queries = [_changed(rng, text, _PROTEIN) for text in database[:20:5]]
    _write_fasta(folder / "proteins.fa", "query", queries)


def _write_more_reads(folder: Path, rng: np.random.Generator, one: str, pairs) -> None:
    both = [read for pair in pairs for read in pair]
    names = [f"read_{i // 2}" for i in range(len(both))]
    _write_fastq(folder / "both.fq", both, names)
    for end in (0, 1):
        names = [f"read_{i} RX:Z:{'ACGT'[i % 4] * 4}\tBC:Z:AC" for i in range(len(pairs))]
        _write_fastq(folder / f"comments.{end + 1}.fq", [pair[end] for pair in pairs], names)
        text = (folder / f"{end + 1}.fq").read_bytes()
        (folder / f"{end + 1}.fq.gz").write_bytes(gzip.compress(text))
    long = [_changed(rng, one[at : at + 3_000], _DNA) for at in range(0, 8_000, 1_000)]
    # An insertion and a deletion too long for one alignment.
    long += [one[:500] + _letters(rng, 900, _DNA) + one[500:1_000], one[:500] + one[2_000:2_500]]
    _write_fastq(folder / "long.fq", long)


def _write_targets(folder: Path, one: str, reads: Sequence[str]) -> None:
    """Write the queries for searches in the genome, and the regions."""
    _write_fasta(folder / "iupac.fa", "word", [f"{one[at : at + 20]}RN" for at in (50, 90)])
    guides = [one[at - 21 : at - 1] for at in range(50, 6_000) if one[at : at + 2] == "GG"]
    _write_fasta(folder / "guides.fa", "guide", guides[:5])
    _write_variants(folder, one)
    turned = one[::-1].translate(_COMPLEMENT)
    primers = [(one[at : at + 20], turned[-at - 300 : -at - 280 or None]) for at in (200, 3_000)]
    lines = [f"pair_{i}\t{first}\t{second}\n" for i, (first, second) in enumerate(primers)]
    (folder / "primers.tsv").write_text("".join(lines))
    (folder / "regions.bed").write_text("contig_0\t100\t3000\tone\ncontig_1\t0\t500\ttwo\n")
    lines = [f"{one[at : at + 80]}\t{read}\n" for at, read in enumerate(reads)]
    (folder / "pairs.txt").write_text("".join(lines))


def _write_variants(folder: Path, one: str) -> None:
    """Write variants of the first contig: SNVs, insertions and deletions."""
    head = "#CHROM POS ID REF ALT QUAL FILTER INFO".replace(" ", "\t")
    body = []
    for number, at in enumerate(range(40, 6_000, 11)):
        ref = one[at : at + 1 + number % 3]
        alt = ref[0] + "T" * (number % 2) if number % 3 else "ACGT".replace(ref, "")[0]
        body.append(f"contig_0\t{at + 1}\trs{number}\t{ref}\t{alt}\t.\t.\tAF=0.1")
    (folder / "sites.vcf").write_text("\n".join([head, *body, ""]))
    lines = [f"{head}\tFORMAT\ts1\ts2\ts3", *(f"{line}\tGT\t0|1\t1\t0/1" for line in body[:-9])]
    lines += [f"{line}\tGT\t1|0\t0\t1|1" for line in body[-9:]]
    (folder / "phased.vcf").write_text("\n".join([*lines, ""]))
    (folder / "samples.tsv").write_text("s1\tnorth\ns2\tsouth\n")


def _letters(rng: np.random.Generator, length: int, alphabet: str) -> str:
    return "".join(rng.choice(list(alphabet), length))


def _changed(rng: np.random.Generator, text: str, alphabet: str) -> str:
    """Return the text with substitutions, and a deletion and an insertion in the middle."""
    letters = list(text)
    for at in rng.integers(0, len(letters), max(len(letters) // 60, 1)):
        letters[at] = str(rng.choice(list(alphabet)))
    if rng.random() < 0.3:
        at = len(letters) // 2
        letters[at : at + int(rng.integers(4))] = _letters(rng, int(rng.integers(6)), alphabet)
    return "".join(letters)


def _pair(rng: np.random.Generator, one: str, two: str, number: int) -> tuple[str, str]:
    start, size = int(rng.integers(len(one) - 600)), int(rng.normal(400, 40))
    length = 300 if number % 10 == 5 else 150  # long reads need 16-bit scores
    first = _changed(rng, one[start : start + length], _DNA)
    second = _changed(rng, one[start + size - length : start + size], _DNA)
    if number % 10 == 1:  # split: its halves are from two contigs
        first = first[:75] + two[start // 4 : start // 4 + 75]
    elif number % 10 == 2:  # too many errors for seeds: only its mate leads to it
        second = "".join("A" if i % 9 == 0 else letter for i, letter in enumerate(second))
    elif number % 10 == 3:  # random
        second = _letters(rng, 150, _DNA)
    elif number % 10 == 4:  # the same every time
        first, second = one[1_000:1_150], one[1_250:1_400]
    second = second[::-1].translate(_COMPLEMENT)
    return (first, second) if number % 2 else (second, first)


def _write_fasta(path: Path, name: str, texts: Iterable[str]) -> None:
    path.write_text("".join(f">{name}_{i}\n{text}\n" for i, text in enumerate(texts)))


def _write_fastq(path: Path, reads: Sequence[str], names: Sequence[str] = ()) -> None:
    names = names or [f"read_{i}" for i in range(len(reads))]
    lines = zip(names, reads, strict=True)
    path.write_text("".join(f"@{name}\n{text}\n+\n{'I' * len(text)}\n" for name, text in lines))

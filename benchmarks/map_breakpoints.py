"""Map reads over structural breakpoints with bwarp and other mappers, and count correct parts.

    python benchmarks/map_breakpoints.py                        reads of a simulated genome
    python benchmarks/map_breakpoints.py --reference chr20.fa --mappers 'bwa mem' bwarp

Each pair has a read over its own breakpoint: of a deletion, a tandem duplication, an inversion or
an insertion of random bases, with 50 to 10,000 bases, or of a translocation. A part of a read is
its sequence on one side of a breakpoint; parts of at least 20 bases are counted. A part is correct
if a primary or supplementary record of the read has at least half of the part's bases at their
origin; a read is correct if all its parts are. The program also counts records with a mapping
quality of at least 30 that have fewer than half of their bases at their origin, and reads away from
breakpoints with more than one record. Of the correct records of reads with two parts or more, it
states the percentages of primary ones with quality 0, and of supplementary ones with at least 20.

One JSON object for each mapper is printed and appended to --output.
"""

import itertools
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pysam
from frame.options import add_threads, new_parser, read_options
from frame.results import Results
from frame.simulated import make_genome
from frame.timing import run_program
from parts.mappers import commands, make_indexes, mapper_version

from bwarp.sequence import decode, encode

KINDS = ("deletion", "duplication", "inversion", "insertion", "translocation")
SMALLEST, LARGEST, LONG_GAP = 50, 10_000, 100
#: Shorter parts of a read are not counted.
LEAST_PART = 20
#: Reads are counted by their shortest part: up to 29 bases, up to 49, and longer.
SHORTEST_PARTS = (30, 50)
INSERT_MEAN, INSERT_SD = 400, 50
ERROR_RATE = 0.005
RANDOM = -1


@dataclass(frozen=True)
class Haplotype:
    """A sequence with a variant, and the origin of each base.

    Attributes
    ----------
    codes : ndarray, shape=(n,), dtype=uint8
    origins : ndarray, shape=(n,), dtype=int64
        Position in the genome (contigs concatenated), or `RANDOM`.
    reverse : ndarray, shape=(n,), dtype=bool
    breakpoints : list of int
    """

    codes: np.ndarray
    origins: np.ndarray
    reverse: np.ndarray
    breakpoints: list[int]


@dataclass(frozen=True)
class Read:
    """A simulated read and the origins of its bases; `kind` is "" away from breakpoints."""

    codes: np.ndarray
    origins: np.ndarray
    reverse: np.ndarray
    kind: str
    size: int


def parse_options():
    parser = new_parser(__doc__)
    parser.add_argument("--reference", type=Path, help="FASTA file, plain (default: simulated)")
    parser.add_argument("--bases", type=int, default=20_000_000, help="of the simulated genome")
    parser.add_argument("--pairs", type=int, default=20_000)
    parser.add_argument("--read-length", type=int, default=150)
    parser.add_argument("--mappers", nargs="+", help="only these (default: all there are)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="where to keep indexes, one folder a genome")
    add_threads(parser)
    return read_options(parser, "map_breakpoints.jsonl", bases=200_000, pairs=200)


def contigs_of(fasta: Path) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Return names, concatenated codes, and the start of each contig."""
    with pysam.FastxFile(str(fasta)) as file:
        records = [(record.name, encode(record.sequence.encode())) for record in file]
    starts = np.cumsum([0, *(len(codes) for _, codes in records)])
    return [name for name, _ in records], np.concatenate([codes for _, codes in records]), starts


def haplotype(rng, genome, starts, kind: str, size: int, flank: int) -> Haplotype:
    """Return a sequence without ambiguous bases around a variant of this kind."""
    while True:
        at, other = rng.integers(flank, len(genome) - flank - size, 2)
        # The origin of each piece: first and last base, and strand.
        pieces = {
            "deletion": [(at - flank, at, 0), (at + size, at + size + flank, 0)],
            "duplication": [(at - flank, at + size, 0), (at, at + size + flank, 0)],
            "inversion": [
                (at - flank, at, 0), (at, at + size, 1), (at + size, at + size + flank, 0)
            ],
            "insertion": [(at - flank, at, 0), None, (at, at + flank, 0)],
            "translocation": [(at - flank, at, 0), (other, other + flank, int(rng.integers(2)))],
        }[kind]  # fmt: skip
        codes, origins, reverse, breakpoints = [], [], [], [0]
        for piece in pieces:
            if piece is None:
                places, strand = np.full(size, RANDOM), 0
                bases = rng.integers(0, 4, size).astype(np.uint8)
            else:
                first, last, strand = piece
                places = np.arange(first, last)
                bases = genome[first:last]
                if np.searchsorted(starts, first, "right") != np.searchsorted(starts, last, "left"):
                    bases = np.array([4], np.uint8)
            codes.append(3 - bases[::-1] if strand else bases)
            origins.append(places[::-1] if strand else places)
            reverse.append(np.full(len(places), bool(strand)))
            breakpoints.append(breakpoints[-1] + len(places))
            if bases.max() > 3:
                break
        else:
            return Haplotype(*map(np.concatenate, (codes, origins, reverse)), breakpoints[1:-1])


def cut(rng, variant: Haplotype, first: int, length: int, turned: bool, kind, size) -> Read:
    """Return a read of a haplotype, with errors."""
    inside = slice(first, first + length)
    codes, origins = variant.codes[inside].copy(), variant.origins[inside]
    reverse = variant.reverse[inside]
    wrong = rng.random(length) < ERROR_RATE
    codes[wrong] = (codes[wrong] + rng.integers(1, 4, wrong.sum())) % 4
    if turned:
        codes, origins, reverse = 3 - codes[::-1], origins[::-1], ~reverse[::-1]
    return Read(codes.astype(np.uint8), origins, reverse, kind, size)


def parts_of(read: Read) -> list[slice]:
    """Return the parts of a read that are contiguous in the genome and long enough."""
    step = np.where(read.reverse, -1, 1)
    jumps = np.diff(read.origins) != step[1:]
    jumps |= read.reverse[1:] != read.reverse[:-1]
    jumps &= (read.origins[1:] != RANDOM) | (read.origins[:-1] != RANDOM)
    ends = [0, *(np.flatnonzero(jumps) + 1), len(read.codes)]
    parts = [slice(first, last) for first, last in itertools.pairwise(ends)]
    return [
        part
        for part in parts
        if part.stop - part.start >= LEAST_PART and read.origins[part.start] != RANDOM
    ]


def simulate(rng, genome, starts, options) -> list[tuple[Read, Read]]:
    pairs, length = [], options.read_length
    while len(pairs) < options.pairs:
        kind = KINDS[len(pairs) % len(KINDS)]
        size = int(np.exp(rng.uniform(np.log(SMALLEST), np.log(LARGEST))))
        size = min(size, len(genome) // 20)
        variant = haplotype(rng, genome, starts, kind, size, 1000)
        breakpoint_ = int(rng.choice(variant.breakpoints))
        insert = max(length, round(rng.normal(INSERT_MEAN, INSERT_SD)))
        over = breakpoint_ - int(rng.integers(LEAST_PART, length - LEAST_PART + 1))
        # The read over the breakpoint is the left or the right end of its fragment.
        left = rng.random() < 0.5
        first = over if left else over + length - insert
        if first < 0 or first + insert > len(variant.codes):
            continue
        reads = [
            cut(rng, variant, first, length, False, kind, size),
            cut(rng, variant, first + insert - length, length, True, kind, size),
        ]
        for end in range(2):
            if len(parts_of(reads[end])) == 1 and (reads[end].origins != RANDOM).all():
                reads[end] = Read(
                    *(getattr(reads[end], name) for name in ("codes", "origins", "reverse")), "", 0
                )
        if rng.random() < 0.5:
            reads.reverse()
        pairs.append(tuple(reads))
    return pairs


def write_fastq(path: Path, reads: list[Read]) -> None:
    with open(path, "wb") as file:
        for number, read in enumerate(reads):
            quality = b"I" * len(read.codes)
            file.write(b"@%d\n%s\n+\n%s\n" % (number, decode(read.codes), quality))


def placed(record, starts_of: dict, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the aligned bases of a record, in sequencing order, and their positions."""
    before = record.cigartuples[0][1] if record.cigartuples[0][0] == 5 else 0
    pairs = np.array(record.get_aligned_pairs(matches_only=True), np.int64).reshape(-1, 2)
    bases, places = pairs[:, 0] + before, pairs[:, 1] + starts_of[record.reference_name]
    return (length - 1 - bases if record.is_reverse else bases), places


def count(path: Path, pairs: list[tuple[Read, Read]], starts_of: dict) -> dict:
    """Count a mapper's reads and correct reads by kind, size and shortest part."""
    records = {}
    with pysam.AlignmentFile(str(path)) as file:
        for record in file.fetch(until_eof=True):
            if not record.is_unmapped and not record.is_secondary:
                key = int(record.query_name), int(record.is_read2)
                records.setdefault(key, []).append(record)
    totals, right = {}, {}
    sure = wrong = plain = split = 0
    qualities: dict[bool, list[int]] = {False: [], True: []}
    for number, pair in enumerate(pairs):
        for end, read in enumerate(pair):
            found = records.get((number, end), [])
            parts = parts_of(read)
            is_right = np.zeros(len(read.codes), bool)
            for record in found:
                bases, places = placed(record, starts_of, len(read.codes))
                here = read.reverse[bases] == record.is_reverse
                here &= read.origins[bases] == places
                is_right[bases[here]] = True
                sure += record.mapping_quality >= 30
                is_wrong = 2 * here.sum() < len(bases)
                wrong += record.mapping_quality >= 30 and is_wrong
                if read.kind and len(parts) > 1 and not is_wrong:
                    qualities[record.is_supplementary].append(record.mapping_quality)
            if not read.kind:
                plain += 1
                split += len(found) > 1
                continue
            if not parts:
                continue
            shortest = min(part.stop - part.start for part in parts)
            group = sum(shortest >= least for least in SHORTEST_PARTS)
            size = "small" if read.size <= LONG_GAP else "large"
            fine = all(2 * is_right[part].sum() >= part.stop - part.start for part in parts)
            for key in (f"{read.kind}, {size}", f"parts of {(LEAST_PART, *SHORTEST_PARTS)[group]}"):
                totals[key] = totals.get(key, 0) + 1
                right[key] = right.get(key, 0) + fine
    at_0 = sum(quality == 0 for quality in qualities[False])
    at_20 = sum(quality >= 20 for quality in qualities[True])
    return {
        "primary_q0": round(100 * at_0 / max(1, len(qualities[False])), 2),
        "supplementary_q20": round(100 * at_20 / max(1, len(qualities[True])), 2),
        "right": {key: round(100 * right[key] / totals[key], 2) for key in sorted(totals)},
        "reads": {key: totals[key] for key in sorted(totals)},
        "wrong_ppm_q30": round(1e6 * wrong / max(1, sure)),
        "split_elsewhere_ppm": round(1e6 * split / max(1, plain)),
    }


def main():
    options = parse_options()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kept = options.folder or folder
        kept.mkdir(exist_ok=True)
        reference = options.reference or make_genome(folder, options.bases)
        fasta = kept / reference.name
        if not fasta.exists():
            shutil.copy(reference, fasta)
        names, genome, starts = contigs_of(fasta)
        pairs = simulate(np.random.default_rng(options.seed), genome, starts, options)
        reads = [folder / "1.fq", folder / "2.fq"]
        for end in range(2):
            write_fastq(reads[end], [pair[end] for pair in pairs])
        mappers = commands(fasta, reads, options.threads, options.read_length)
        if options.mappers:
            mappers = {mapper: mappers[mapper] for mapper in options.mappers}
        results = Results(
            options.output,
            reference=reference.name,
            pairs=options.pairs,
            read_length=options.read_length,
            seed=options.seed,
        )
        make_indexes(fasta, mappers)
        for mapper, (_, command) in mappers.items():
            with open(folder / "mapped.sam", "wb") as sam:
                run_program(command, stdout=sam)
            starts_of = dict(zip(names, starts.tolist(), strict=False))
            results.add(
                mapper=mapper,
                version=mapper_version(mapper),
                **count(folder / "mapped.sam", pairs, starts_of),
            )


if __name__ == "__main__":
    main()

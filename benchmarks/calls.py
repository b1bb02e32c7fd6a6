#!/usr/bin/env python3
"""Call variants from the records of bwarp and of other mappers, and count correct calls.

    python benchmarks/calls.py                                    a simulated genome
    python benchmarks/calls.py --reference chr20.fa --mappers 'bwa mem' bwarp
    python benchmarks/calls.py --structural                       structural variants

Reads are drawn from a simulated person: two haplotypes with substitutions, insertions and
deletions, and sequencing errors. Each mapper writes records, samtools sorts them, and bcftools and
freebayes, where they are on PATH, call variants with their default options. Calls with a quality of
at least 20 and the true variants are normalized and split into alleles by bcftools. A call is
correct if the person has the allele; genotypes are not compared. Repeats of the genome make some
reads ambiguous, so that no mapper reaches 100 %.

With --structural, one haplotype has deletions, tandem duplications and inversions of 200 to 5,000
bases, and delly and lumpy call them, where they are on PATH. A call is correct if the person has a
variant of its kind, with both ends within 50 bases.

One JSON object for each mapper and caller is printed and appended to --output: for SNVs and indels,
or for each kind of structural variant, the numbers of true ones, correct calls and incorrect calls.
`absent` names the callers that are not on PATH.
"""

import tempfile
from pathlib import Path
from typing import NamedTuple

import pysam
from frame.options import add_folder, add_threads, new_parser, read_options, skip
from frame.peers import found, version_of
from frame.results import Results
from frame.simulated import make_genome, run_script
from frame.timing import run_program
from parts.mappers import commands, make_indexes, mapper_version
from parts.structural_variants import correct_calls, variants_in, write_haplotype

READ_LENGTH, LEAST_QUALITY = 150, 20


def parse_options():
    parser = new_parser(__doc__)
    parser.add_argument("--reference", type=Path, help="FASTA file, plain (default: simulated)")
    parser.add_argument("--bases", type=int, default=5_000_000, help="of the simulated genome")
    parser.add_argument("--depth", type=float, default=30, help="reads per base (default: 30)")
    parser.add_argument("--mappers", nargs="+", help="only these (default: all there are)")
    parser.add_argument("--structural", action="store_true", help="call structural variants")
    parser.add_argument("--seed", type=int, default=1)
    add_folder(parser)
    add_threads(parser)
    return read_options(parser, "calls.jsonl", bases=100_000, depth=8, mappers=["bwarp"])


class Caller(NamedTuple):
    """Commands that call variants; the last one writes VCF on standard output unless `written`."""

    commands: list[list]
    written: Path | None = None


def callers(fasta: Path, bam: Path, structural: bool) -> dict[str, Caller]:
    """Return the callers by name."""
    called = bam.with_suffix(".called.bcf")
    if structural:
        vcf = bam.with_suffix(".lumpy.vcf")
        return {
            "delly": Caller([["delly", "call", "-g", fasta, "-o", called, bam]], called),
            "lumpyexpress": Caller([["lumpyexpress", "-B", bam, "-o", vcf]], vcf),
        }
    return {
        "bcftools": Caller([
            ["bcftools", "mpileup", "-Ou", "-o", called, "-f", fasta, bam],
            ["bcftools", "call", "-mv", "-Ov", called],
        ]),
        "freebayes": Caller([["freebayes", "-f", fasta, bam]]),
    }  # fmt: skip


def called_by(name: str, caller: Caller, bam: Path) -> Path:
    """Run a caller; return its VCF or BCF file."""
    *before, last = caller.commands
    for command in before:
        run_program(command)
    if caller.written:
        run_program(last)
        return caller.written
    vcf = bam.with_suffix(f".{name}.vcf")
    with open(vcf, "wb") as file:
        run_program(last, stdout=file)
    return vcf


def alleles(fasta: Path, vcf: Path) -> dict[str, set]:
    """Return the alternative alleles in a VCF file, normalized: SNVs and indels."""
    normal = vcf.with_suffix(".normal.vcf")
    run_program(
        ["bcftools", "norm", "--atomize", "-m", "-both", "-f", fasta, "-o", normal, vcf]
    )  # fmt: skip
    kinds: dict[str, set] = {"SNVs": set(), "indels": set()}
    with pysam.VariantFile(str(normal)) as file:
        for record in file:
            if not record.alts or (record.qual is not None and record.qual < LEAST_QUALITY):
                continue
            # A caller also lists alleles that it assigns to no haplotype.
            if record.samples and not any(
                1 in (s.allele_indices or ()) for s in record.samples.values()
            ):
                continue
            kind = "SNVs" if len(record.ref) == len(record.alts[0]) else "indels"
            kinds[kind].add((record.contig, record.pos, record.ref, record.alts[0]))
    return kinds


def counted(true: dict[str, set], called: dict[str, set]) -> dict:
    return {
        kind: {
            "true": len(true[kind]),
            "correct": len(true[kind] & called[kind]),
            "incorrect": len(called[kind] - true[kind]),
        }
        for kind in true
    }


def sorted_records(command: list, bam: Path) -> None:
    """Run a mapper, and write its records as sorted, indexed BAM."""
    sam = bam.with_suffix(".sam")
    with open(sam, "wb") as file:
        run_program(command, stdout=file)
    # freebayes requires a sample.
    group = "@RG\\tID:1\\tSM:sample"
    grouped = bam.with_suffix(".grouped.bam")
    pysam.addreplacerg("-r", group, "-o", str(grouped), str(sam), catch_stdout=False)
    pysam.sort("-o", str(bam), str(grouped))
    pysam.index(str(bam))
    sam.unlink()
    grouped.unlink()


def simulate(options, fasta: Path, reads: list[Path], pairs: int):
    """Write reads of a person; return a function that counts the calls of a file."""
    ends = ["-1", reads[0], "-2", reads[1], "--read-length", READ_LENGTH]
    if not options.structural:
        truth = fasta.with_name("truth.vcf")
        run_script(
            "simulate_reads", "--reference", fasta, *ends, "--pairs", pairs, "--vcf", truth,
            "--seed", options.seed,
        )  # fmt: skip
        true = alleles(fasta, truth)
        return lambda vcf: counted(true, alleles(fasta, vcf))
    haplotype = fasta.with_name("haplotype.fa")
    variants = write_haplotype(fasta, haplotype, options.seed)
    both = [b"", b""]
    for number, source in enumerate((fasta, haplotype)):
        run_script(
            "simulate_reads", "--reference", source, *ends, "--pairs", pairs // 2,
            "--seed", 2 * options.seed + number,
        )  # fmt: skip
        both = [text + read.read_bytes() for text, read in zip(both, reads, strict=True)]
    for text, read in zip(both, reads, strict=True):
        read.write_bytes(text)
    return lambda vcf: correct_calls(variants, variants_in(vcf))


def measure(options, folder: Path):
    fasta = folder / "genome.fa"
    given = options.reference or make_genome(folder, options.bases)
    fasta.write_bytes(given.read_bytes())
    pysam.faidx(str(fasta))
    reads = [folder / "1.fq", folder / "2.fq"]
    bases = sum(pysam.FastaFile(str(fasta)).lengths)
    count = simulate(options, fasta, reads, int(options.depth * bases / (2 * READ_LENGTH)))
    mappers = commands(fasta, reads, options.threads, READ_LENGTH)
    if options.mappers:
        mappers = {mapper: mappers[mapper] for mapper in options.mappers}
    make_indexes(fasta, mappers)
    for mapper, (_, command) in mappers.items():
        bam = folder / f"{mapper.replace(' ', '-')}.bam"
        sorted_records(command, bam)
        every = callers(fasta, bam, options.structural)
        here = [name for name in every if found(name)]
        for name in here:
            yield {
                "what": "structural calls" if options.structural else "calls",
                "reference": given.name,
                "depth": options.depth,
                "seed": options.seed,
                "mapper": mapper,
                "version": mapper_version(mapper),
                "caller": name,
                "caller_version": version_of(name),
                "absent": [other for other in every if other not in here],
                **count(called_by(name, every[name], bam)),
            }


def main():
    options = parse_options()
    required = ("delly", "lumpyexpress") if options.structural else ("bcftools",)
    if not any(found(name) for name in required):
        skip(f"{' or '.join(required)} is not on PATH")
    results = Results(options.output)
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        for line in measure(options, Path(name)):
            results.add(**line)


if __name__ == "__main__":
    main()

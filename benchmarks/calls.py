#!/usr/bin/env python3
"""Call variants from the records of bwarp and of other mappers, and count correct calls.

    python benchmarks/calls.py                                    a simulated genome
    python benchmarks/calls.py --reference chr20.fa --mappers 'bwa mem' bwarp

Reads are drawn from a simulated person: two haplotypes with substitutions, insertions and
deletions, and sequencing errors. Each mapper writes records, samtools sorts them, and bcftools and
freebayes, where they are on PATH, call variants with their default options. Calls with a quality of
at least 20 and the true variants are normalized and split into alleles by bcftools. A call is
correct if the person has the allele; genotypes are not compared. Repeats of the genome make some
reads ambiguous, so that no mapper reaches 100 %.

One JSON object for each mapper and caller is printed and appended to --output: for SNVs and indels,
the numbers of true alleles, correct calls and incorrect calls.
"""

import tempfile
from pathlib import Path

import pysam
from frame.options import add_folder, add_threads, new_parser, read_options, skip
from frame.peers import found, version_of
from frame.results import Results
from frame.simulated import make_genome, run_script
from frame.timing import run_program
from parts.mappers import commands, make_indexes, mapper_version

READ_LENGTH, LEAST_QUALITY = 150, 20


def parse_options():
    parser = new_parser(__doc__)
    parser.add_argument("--reference", type=Path, help="FASTA file, plain (default: simulated)")
    parser.add_argument("--bases", type=int, default=5_000_000, help="of the simulated genome")
    parser.add_argument("--depth", type=float, default=30, help="reads per base (default: 30)")
    parser.add_argument("--mappers", nargs="+", help="only these (default: all there are)")
    parser.add_argument("--seed", type=int, default=1)
    add_folder(parser)
    add_threads(parser)
    return read_options(parser, "calls.jsonl", bases=100_000, depth=8, mappers=["bwarp"])


def callers(fasta: Path, bam: Path) -> dict[str, list[list]]:
    """Return, for each caller on PATH, its commands, the last of which writes VCF."""
    piled = bam.with_suffix(".bcf")
    every = {
        "bcftools": [
            ["bcftools", "mpileup", "-Ou", "-o", piled, "-f", fasta, bam],
            ["bcftools", "call", "-mv", "-Ov", piled],
        ],
        "freebayes": [["freebayes", "-f", fasta, bam]],
    }
    return {caller: commands for caller, commands in every.items() if found(caller)}


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


def measure(options, folder: Path):
    fasta = folder / "genome.fa"
    given = options.reference or make_genome(folder, options.bases)
    fasta.write_bytes(given.read_bytes())
    pysam.faidx(str(fasta))
    reads, truth = [folder / "1.fq", folder / "2.fq"], folder / "truth.vcf"
    bases = sum(pysam.FastaFile(str(fasta)).lengths)
    pairs = int(options.depth * bases / (2 * READ_LENGTH))
    run_script(
        "simulate_reads", "--reference", fasta, "-1", reads[0], "-2", reads[1], "--pairs", pairs,
        "--read-length", READ_LENGTH, "--vcf", truth, "--seed", options.seed,
    )  # fmt: skip
    true = alleles(fasta, truth)
    mappers = commands(fasta, reads, options.threads, READ_LENGTH)
    if options.mappers:
        mappers = {mapper: mappers[mapper] for mapper in options.mappers}
    make_indexes(fasta, mappers)
    for mapper, (_, command) in mappers.items():
        bam = folder / f"{mapper.replace(' ', '-')}.bam"
        sorted_records(command, bam)
        for caller, (*before, last) in callers(fasta, bam).items():
            vcf = bam.with_suffix(f".{caller}.vcf")
            for preparing in before:
                run_program(preparing)
            with open(vcf, "wb") as file:
                run_program(last, stdout=file)
            yield {
                "what": "calls",
                "reference": given.name,
                "depth": options.depth,
                "seed": options.seed,
                "mapper": mapper,
                "version": mapper_version(mapper),
                "caller": caller,
                "caller_version": version_of(caller),
                **counted(true, alleles(fasta, vcf)),
            }


def main():
    options = parse_options()
    if not found("bcftools"):
        skip("bcftools is not on PATH (apt install bcftools)")
    results = Results(options.output)
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        for line in measure(options, Path(name)):
            results.add(**line)


if __name__ == "__main__":
    main()

"""Simulate sequencing reads of a reference, with the truth in their names.

An individual with two haplotypes is made from the reference by substitutions and short indels;
reads are drawn from it with sequencing errors. The name of a read states its origin:
NUMBER:CONTIG:START:STOP:STRAND:VARIANTS:ERRORS, the last five again for read 2 of a pair, or
NUMBER:* for random sequence (docs/simulate.md). The same options and seed give the same reads.
"""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import fields

from bwarp.cli.program import program_parser
from bwarp.counted import counted
from bwarp.errors import UsageError
from bwarp.io.atomic_output import atomic_file, check_outputs
from bwarp.options.option import Whole
from bwarp.reference import codes_of, read_reference
from bwarp.runtime.progress import say
from bwarp.simulation.reads import ReadParameters, encode_contig_names, fastq_pieces, simulate_reads
from bwarp.simulation.variants import VariantParameters, simulate_variants, vcf_lines

EXAMPLES = """
bwarp simulate-reads --reference demo.fa -1 R1.fq.gz -2 R2.fq.gz --pairs 10000
bwarp simulate-reads --reference demo.fa -1 single.fq --reads 5000 --read-length 100 \\
    --vcf truth.vcf
bwarp simulate-reads --reference demo.fa -1 exact.fq --reads 5000 --variant-rate 0 \\
    --error-rate-start 0 --error-rate-end 0 --random-fraction 0
"""

#: Reads simulated at once, both ends together; the output does not depend on it.
CHUNK_READS = 1 << 17


def parse_options():
    parser = program_parser(__doc__, EXAMPLES)
    parser.add_argument(
        "--reference", required=True, metavar="REF.fa[.gz]", help="FASTA file to draw reads from"
    )
    parser.add_argument(
        "-1", dest="output1", required=True, metavar="R1.fq[.gz]", help="FASTQ file to write"
    )
    parser.add_argument(
        "-2", dest="output2", metavar="R2.fq[.gz]", help="FASTQ file of read 2, with --pairs"
    )
    how_many = parser.add_mutually_exclusive_group(required=True)
    how_many.add_argument(
        "--pairs", **Whole(0, 2**40).argument(), help="number of pairs to simulate"
    )
    how_many.add_argument(
        "--reads", **Whole(0, 2**40).argument(), help="number of single reads to simulate"
    )
    parser.add_argument(
        "--vcf", metavar="OUT.vcf[.gz]", help="also write the variants of the individual"
    )
    parser.add_argument(
        "--seed", **Whole(0, 2**63 - 1).argument(), default=1,
        help="seed of the random numbers",
    )  # fmt: skip
    parser.add_argument(
        "--read-length",
        **Whole(1, 50_000).argument(),
        default=ReadParameters.length,
        help="bases per read",
    )
    for option, default, what in (
        ("insert-mean", ReadParameters.insert_mean, "mean insert size, both reads included"),
        ("insert-sd", ReadParameters.insert_sd, "standard deviation of the insert size"),
        ("variant-rate", VariantParameters.rate, "variants per base of the reference"),
        ("indel-fraction", VariantParameters.indel_fraction,
         "fraction of variants that are indels"),
        ("error-rate-start", ReadParameters.error_rate_start, "errors per base in the first cycle"),
        ("error-rate-end", ReadParameters.error_rate_end, "errors per base in the last cycle"),
        ("error-indel-fraction", ReadParameters.error_indel_fraction,
         "fraction of errors that are indels"),
        ("random-fraction", ReadParameters.random_fraction,
         "fraction of reads that are random sequence"),
    ):  # fmt: skip
        parser.add_argument(f"--{option}", type=float, default=default, metavar="F", help=what)
    return parser


def _outputs(options) -> list[str]:
    if options.reads is not None and options.output2 is not None:
        raise UsageError("--reads simulates single reads: omit -2, or use --pairs")
    if options.pairs is not None and options.output2 is None:
        raise UsageError("--pairs requires a second file: use -2, or --reads for single reads")
    outputs = [name for name in (options.output1, options.output2) if name is not None]
    check_outputs([*outputs, options.vcf], [options.reference])
    return outputs


def main(options):
    outputs = _outputs(options)
    ends = len(outputs)
    total = options.pairs if ends == 2 else options.reads
    variant_parameters = VariantParameters(
        rate=options.variant_rate, indel_fraction=options.indel_fraction
    )
    read_parameters = ReadParameters(
        length=options.read_length,
        ends=ends,
        **{field.name: getattr(options, field.name) for field in fields(ReadParameters)[2:]},
    )
    with ExitStack() as stack:
        files = [stack.enter_context(atomic_file(output)) for output in outputs]
        vcf = stack.enter_context(atomic_file(options.vcf)) if options.vcf else None
        reference = read_reference(options.reference, options.threads)
        codes = codes_of(reference)
        names, offsets = reference.names, reference.contig_starts
        encode_contig_names(names)
        variants = simulate_variants(
            codes, offsets, variant_parameters, options.seed, options.threads
        )
        if vcf is not None:
            vcf.writelines(line.encode() for line in vcf_lines(codes, offsets, names, variants))
        # One thread per file compresses and writes while the next reads are simulated.
        writers = [stack.enter_context(ThreadPoolExecutor(1)) for _ in files]
        pending = []
        chunk = CHUNK_READS // ends
        for first in range(0, total, chunk):
            reads = simulate_reads(
                codes,
                offsets,
                variants,
                read_parameters,
                options.seed,
                first,
                min(chunk, total - first),
                options.threads,
            )
            texts = [fastq_pieces(reads, end, names, options.threads) for end in range(ends)]
            for write in pending:
                write.result()
            pending = [
                writer.submit(file.writelines, text)
                for writer, file, text in zip(writers, files, texts, strict=True)
            ]
        for write in pending:
            write.result()
    what = counted(total, "pair" if ends == 2 else "read")
    n_variants = variants.positions.size
    say(f"{' '.join(outputs)}: {what} of an individual with {counted(n_variants, 'variant')}")

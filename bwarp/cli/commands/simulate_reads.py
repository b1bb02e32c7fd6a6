"""Simulate sequencing reads of a reference, with the truth in their names."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from bwarp.cli.program import bounded_int, program_parser, say
from bwarp.errors import UsageError
from bwarp.io.atomic_output import atomic_file
from bwarp.io.output_names import check_outputs
from bwarp.reference import codes_of, read_reference
from bwarp.simulation.fastq_text import fastq_pieces
from bwarp.simulation.read_names import encode_contig_names
from bwarp.simulation.reads import ReadParameters, simulate_reads
from bwarp.simulation.variants import VariantParameters, simulate_variants, vcf_lines

#: Reads made at once, both ends together; what is written does not depend on it.
CHUNK_READS = 1 << 17


def parse_options():
    parser = program_parser(
        __doc__ + " An individual with two haplotypes is made from the reference by substitutions "
        "and short indels; reads are drawn from it and get sequencing errors. A read's name says "
        "where it is from: NUMBER:CONTIG:START:STOP:STRAND:VARIANTS:ERRORS, the last five again "
        "for read 2 of a pair, or NUMBER:* for random sequence (docs/simulate.md). The same "
        "options and seed give the same reads.",
        """
        simulate_reads.py --reference demo.fa -1 R1.fq.gz -2 R2.fq.gz --pairs 10000
        simulate_reads.py --reference demo.fa -1 single.fq --reads 5000 --read-length 100 \\
            --vcf truth.vcf
        simulate_reads.py --reference demo.fa -1 exact.fq --reads 5000 --variant-rate 0 \\
            --error-rate-start 0 --error-rate-end 0 --random-fraction 0
        """,
    )
    reads, variants = ReadParameters(), VariantParameters()
    add = parser.add_argument
    add("--reference", required=True, metavar="REF.fa[.gz]", help="FASTA file to draw from")
    add("-1", dest="output1", required=True, metavar="R1.fq[.gz]", help="FASTQ file to write")
    add("-2", dest="output2", metavar="R2.fq[.gz]", help="FASTQ file of read 2, with --pairs")
    how_many = parser.add_mutually_exclusive_group(required=True)
    number = bounded_int(0, 2**40)
    how_many.add_argument("--pairs", type=number, metavar="N", help="make N pairs of reads")
    how_many.add_argument("--reads", type=number, metavar="N", help="make N single reads")
    add("--vcf", metavar="OUT.vcf[.gz]", help="write the individual's variants as well")
    add(
        "--seed",
        type=bounded_int(0, 2**63 - 1),
        default=1,
        metavar="N",
        help="another seed makes another individual and other reads (default: %(default)s)",
    )
    add(
        "--read-length",
        type=bounded_int(1, 50_000),
        default=reads.length,
        metavar="N",
        help="bases a read (default: %(default)s)",
    )
    for option, default, what in (
        ("insert-mean", reads.insert_mean, "mean length of a pair's fragment, reads included"),
        ("insert-sd", reads.insert_sd, "standard deviation of that length"),
        ("variant-rate", variants.rate, "variants a base of the reference"),
        ("indel-fraction", variants.indel_fraction, "the part of the variants that is indels"),
        ("error-rate-start", reads.error_rate_start, "sequencing errors a base, first cycle"),
        ("error-rate-end", reads.error_rate_end, "sequencing errors a base, last cycle"),
        (
            "error-indel-fraction",
            reads.error_indel_fraction,
            "the part of the errors that inserts or leaves out a base",
        ),
        ("random-fraction", reads.random_fraction, "the part of the reads that is random"),
    ):
        add(
            f"--{option}",
            type=float,
            default=default,
            metavar="F",
            help=f"{what} (default: {default:g})",
        )
    return parser


def _outputs(arguments) -> list[str]:
    if arguments.reads is not None:
        if arguments.output2 is not None:
            raise UsageError("--reads makes single reads: leave -2 out, or ask for --pairs")
        outputs = [arguments.output1]
    else:
        if arguments.output2 is None:
            raise UsageError("--pairs needs a second file: give it with -2, or ask for --reads")
        outputs = [arguments.output1, arguments.output2]
    check_outputs([*outputs, arguments.vcf], [arguments.reference])
    return outputs


def main(arguments):
    outputs = _outputs(arguments)
    ends = len(outputs)
    total = arguments.pairs if ends == 2 else arguments.reads
    variant_parameters = VariantParameters(
        rate=arguments.variant_rate, indel_fraction=arguments.indel_fraction
    )
    read_parameters = ReadParameters(
        length=arguments.read_length,
        ends=ends,
        insert_mean=arguments.insert_mean,
        insert_sd=arguments.insert_sd,
        error_rate_start=arguments.error_rate_start,
        error_rate_end=arguments.error_rate_end,
        error_indel_fraction=arguments.error_indel_fraction,
        random_fraction=arguments.random_fraction,
    )
    with ExitStack() as stack:
        files = [stack.enter_context(atomic_file(output)) for output in outputs]
        vcf = stack.enter_context(atomic_file(arguments.vcf)) if arguments.vcf else None
        reference = read_reference(arguments.reference, arguments.threads)
        codes = codes_of(reference)
        names, offsets = reference.names, reference.contig_starts
        encode_contig_names(names)
        variants = simulate_variants(
            codes, offsets, variant_parameters, arguments.seed, arguments.threads
        )
        if vcf is not None:
            vcf.writelines(line.encode() for line in vcf_lines(codes, offsets, names, variants))
        # One thread compresses and writes each file while the next reads are made.
        writers = [stack.enter_context(ThreadPoolExecutor(1)) for _ in files]
        pending = []
        chunk = CHUNK_READS // ends
        for first in range(0, total, chunk):
            reads = simulate_reads(
                codes,
                offsets,
                variants,
                read_parameters,
                arguments.seed,
                first,
                min(chunk, total - first),
                arguments.threads,
            )
            texts = [fastq_pieces(reads, end, names, arguments.threads) for end in range(ends)]
            for write in pending:
                write.result()
            pending = [
                writer.submit(file.writelines, text)
                for writer, file, text in zip(writers, files, texts, strict=True)
            ]
        for write in pending:
            write.result()
    what = "pairs" if ends == 2 else "reads"
    n_variants = variants.positions.size
    say(f"{' '.join(outputs)}: {total:,} {what} of an individual with {n_variants:,} variants")

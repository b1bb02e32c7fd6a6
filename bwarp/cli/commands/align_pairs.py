"""Align pairs of sequences, query i to reference i, and report score, position and CIGAR.

A gap of n bases costs gap-open + n * gap-extend; costs are positive numbers. Positions in TSV are
0-based starts in the reference; query bases outside the alignment are S in the CIGAR. Among equally
good alignments, the one with the smallest reference end, then the smallest query end is reported,
with gaps placed leftmost.

--mode gatk reproduces GATK's SmithWatermanJavaAligner base for base (GATK's alternate is the
query). Its gap costs follow GATK: the first base of a gap costs gap-open, each further base
gap-extend.
"""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from bwarp.alignment.pair_aligner import pair_aligner
from bwarp.alignment.pair_files import NamedPairs, read_pair_table, read_paired_files
from bwarp.alignment.pair_text import TSV_HEADER, paf_lines, sam_records, tsv_lines
from bwarp.bam.header import LONGEST_READ_NAME, is_contig_name, program_record
from bwarp.cli.program import choose_engine, compile_first, program_parser
from bwarp.counted import counted
from bwarp.errors import InputError, UsageError
from bwarp.io.atomic_output import atomic_file, check_outputs
from bwarp.io.fastx import read_sequences
from bwarp.io.names import first_bad_name, query_names
from bwarp.io.table_writer import TableWriter
from bwarp.options.aligning import FREE_ENDS, PAIRS
from bwarp.runtime.chunks import read_ahead
from bwarp.runtime.progress import progress, say
from bwarp.sequence import CODE_OF_BYTE

EXAMPLES = """
bwarp pairs --references R.fa --queries Q.fa -o alignments.tsv
bwarp pairs --references R.fa --queries Q.fq.gz -o alignments.sam --mode fitting
bwarp pairs --pairs pairs.tsv -o alignments.paf --mode local --matrix BLOSUM62
bwarp pairs --references windows.fa --queries reads.fa -o alignments.tsv \\
    --free-ends reference-start,reference-end --match 2 --mismatch -3 --gap-open 5 --gap-extend 2
bwarp pairs --references haplotypes.fa --queries reads.fa -o gatk.tsv --mode gatk \\
    --parameters alignment-to-best-haplotype --overhang softclip
"""

FORMATS = ("tsv", "paf", "sam")

#: Maximum number of threads that parse each file, and that format lines; more would wait for the
#: thread that reads the file, or for the GPU.
MOST_THREADS = 4

ALIGNER_OPTIONS = (
    *("mode", "free_ends", "match", "mismatch", "matrix", "gap_open", "gap_extend"),
    *("overhang", "parameters", "algorithm"),
)


def parse_options():
    return program_parser(__doc__, EXAMPLES, PAIRS)


def main(options):
    output_format = format_of(options)
    check_outputs([options.output], [options.pairs, options.references, options.queries])
    backend = choose_engine(options.backend)
    if options.mode == "gatk" and output_format != "tsv":
        raise UsageError("--mode gatk requires .tsv output, because its CIGARs follow GATK's rules")
    check_pairs_given(options)
    chosen = {name: getattr(options, name) for name in ALIGNER_OPTIONS}
    aligner = pair_aligner(
        backend, options.threads, **chosen, small_on_cpu=options.backend == "auto"
    )
    compile_first(backend, options, options.pairs, options.references, options.queries)
    scoring, code_of_byte, threads = aligner.scoring, aligner.code_of_byte, options.threads
    header = header_of(options, output_format, scoring)
    helpers = min(threads, MOST_THREADS)
    pairs = read_pairs(options, code_of_byte, helpers)
    if threads > 1:
        # Read the first pairs while the engine is loaded.
        pairs = read_ahead(pairs)
        aligner.load()
    lines = line_format(options, output_format, scoring)
    count, used = 0, set()
    files = [options.pairs] if options.pairs else [options.references, options.queries]
    with atomic_file(options.output) as output, progress("pair", files=files) as report:
        output.write(header.encode())
        with TableWriter(output.write, helpers) as writer:
            for named in pairs:
                used.add(aligner.backend_for(named.pairs))
                writer.add(partial(lines, named, aligner.align(named.pairs)), 1)
                count += named.pairs.count
                report(count)
    say(f"aligned {counted(count, 'pair')} on {' and '.join(sorted(used) or [backend])}")


def line_format(options, output_format: str, scoring) -> Callable:
    """Return the function that formats the lines of a batch of pairs."""

    def lines(named: NamedPairs, alignments, _first: int, _last: int) -> np.ndarray:
        # A batch is formatted as a whole, as one row of the writer.
        if output_format == "sam":
            refuse_read_names(options.queries, named)
            return sam_records(named, alignments, scoring)
        return (paf_lines if output_format == "paf" else tsv_lines)(named, alignments)

    return lines


def format_of(options) -> str:
    name = options.output.removesuffix(".gz")
    if options.output == "-":
        return "tsv"
    for ending in FORMATS:
        if name.endswith("." + ending):
            return ending
    raise UsageError(
        f"{options.output}: the output must end in .tsv, .paf or .sam, or one with .gz"
    )


def check_pairs_given(options):
    if options.pairs:
        if options.queries or options.references:
            raise UsageError("--pairs cannot be combined with --queries or --references")
    elif not options.queries or not options.references:
        raise UsageError("no sequences are given: use --queries with --references, or --pairs")


def read_pairs(options, code_of_byte, threads: int) -> Iterator[NamedPairs]:
    if options.pairs:
        return read_pair_table(options.pairs, code_of_byte, threads)
    return read_paired_files(options.queries, options.references, code_of_byte, threads)


def header_of(options, output_format, scoring) -> str:
    if output_format == "tsv":
        return TSV_HEADER
    if output_format == "paf":
        return ""
    if scoring.code_of_byte is not CODE_OF_BYTE:
        raise UsageError("SAM output requires nucleotides: with --matrix, write .tsv or .paf")
    lengths: dict[str, int] = {}
    if options.pairs or options.references == "-":
        raise UsageError(
            "SAM output requires a file of --references: with --pairs or -, write .tsv or .paf"
        )
    threads = min(options.threads, MOST_THREADS)
    for batch in read_sequences(options.references, threads=threads):
        of_batch = np.diff(batch.offsets).tolist()
        names = query_names(batch).strings()
        for i, (name, length) in enumerate(zip(names, of_batch, strict=True)):
            if not is_contig_name(name):
                raise InputError(
                    f"{options.references}, record {batch.first_record + i + 1}: SAM does not "
                    f"allow the contig name {name!r} (printable ASCII, no comma, quote or bracket, "
                    "no * or = at the start): rename it, or write .tsv or .paf"
                )
            if lengths.setdefault(name, length) != length:
                raise InputError(
                    f"{options.references}, record {batch.first_record + i + 1}: an earlier record "
                    f"is also named {name}: rename one, or write .tsv or .paf"
                )
    lines = [f"@SQ\tSN:{name}\tLN:{length}\n" for name, length in lengths.items()]
    return "".join(["@HD\tVN:1.6\tSO:unknown\n", *lines, f"{program_of(options, scoring)}\n"])


def program_of(options, scoring) -> str:
    """Return the @PG record, with all options that affect the records."""
    ends = options.free_ends and options.free_ends.split(",")
    match, mismatch = scoring.matrix[0, :2]
    return program_record(
        "pairs",
        {"--references": "REFERENCES.fa", "--queries": "QUERIES.fa", "-o": "OUT.sam"},
        {
            "mode": options.mode,
            "free-ends": ends and ",".join(end for end in FREE_ENDS if end in ends),
            "match": match,
            "mismatch": mismatch,
            "gap-open": scoring.gap_open,
            "gap-extend": scoring.gap_extend,
        },
    )


def refuse_read_names(path, named: NamedPairs) -> None:
    text, bounds = named.query_names
    bad = first_bad_name(text, bounds)
    too_long = np.flatnonzero(bounds[:, 1] - bounds[:, 0] > LONGEST_READ_NAME)[:1].tolist()
    for i in sorted([*too_long, *([bad] if bad >= 0 else [])])[:1]:
        raise InputError(
            f"{path}, record {named.first + i + 1}: SAM does not allow the read name "
            f"{named.query_names.name(i)!r} (printable ASCII, at most {LONGEST_READ_NAME} "
            "characters, no @ at the start): rename it, or write .tsv or .paf"
        )

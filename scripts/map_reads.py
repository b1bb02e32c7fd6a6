#!/usr/bin/env python3
"""Map sequencing reads to an indexed reference: FASTQ in, SAM or BAM out."""

import json
import re

from bwarp.errors import UsageError
from bwarp.index.store import load_index
from bwarp.mapping.alignment_file import AlignmentOutput, alignment_file, default_sort_bytes
from bwarp.mapping.alignment_records import alignment_records
from bwarp.mapping.engine import map_chunks, reads_a_chunk
from bwarp.mapping.extension_cpu import Genome
from bwarp.mapping.read_chunks import interleaved_chunks, paired_chunks, single_chunks
from bwarp.mapping.statistics import add_chunk, empty_statistics
from bwarp.output import atomic_file
from bwarp.program import (
    add_mapping_options,
    bounded_int,
    choose_engine,
    mapping_options,
    program_parser,
    run_program,
    say,
)
from bwarp.progress import progress
from bwarp.reference import codes_of

EXAMPLES = """
scripts/map_reads.py --index genome.index -1 R1.fq.gz -2 R2.fq.gz -o sample.bam --sort
scripts/map_reads.py --index genome.index -1 reads.fq.gz -o sample.sam
scripts/map_reads.py --index genome.index -1 both.fq --interleaved -o sample.bam \\
    --read-group '@RG\\tID:1\\tSM:sample'
"""


def parse_options():
    parser = program_parser(__doc__, EXAMPLES)
    parser.add_argument("--index", required=True, metavar="INDEX", help="folder of the index")
    parser.add_argument(
        "-1", dest="first", required=True, metavar="R1.fq[.gz]", help="reads, or first reads"
    )
    parser.add_argument("-2", dest="second", metavar="R2.fq[.gz]", help="second reads of pairs")
    parser.add_argument(
        "--interleaved", action="store_true", help="pairs stand one after the other in R1"
    )
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="OUT.bam|OUT.cram|OUT.sam",
        help="- is SAM to stdout",
    )
    parser.add_argument(
        "--sort", action="store_true", help="sort by position; BAM and CRAM get an index"
    )
    parser.add_argument(
        "--mark-duplicates",
        action="store_true",
        help="flag all but the best of pairs and reads that are alike, as samtools markdup does",
    )
    parser.add_argument(
        "--reference",
        metavar="REF.fa[.gz]",
        help="for CRAM, where the reference has IUPAC letters other than N",
    )
    parser.add_argument(
        "--sort-memory",
        type=bounded_int(1, 1 << 20),
        metavar="MB",
        help="records sorted in memory; more are sorted in parts, on disk beside the output "
        "(default: 512 a thread, at most a quarter of the memory there is)",
    )
    parser.add_argument("--read-group", metavar="'@RG\\tID:..'", help="header line of the reads")
    parser.add_argument(
        "--comments",
        action="store_true",
        help="keep what follows the names, which must be SAM tags, such as BC:Z:ACGT",
    )
    parser.add_argument("--stats", metavar="OUT.json", help="counts of what became of the reads")
    add_mapping_options(parser)
    return parser


def main(options):
    if options.second and options.interleaved:
        raise UsageError("give either -2 or --interleaved, not both")
    group_line, group = parse_read_group(options.read_group)
    backend = choose_engine(options.backend)
    index = load_index(options.index)
    reference = index.reference
    genome = Genome(codes_of(reference, options.threads), reference.contig_starts)
    statistics = empty_statistics()
    sort_bytes = default_sort_bytes(options.threads)
    if options.sort_memory:
        sort_bytes = options.sort_memory << 20
    output = AlignmentOutput(
        path=options.output,
        sort=options.sort,
        mark_duplicates=options.mark_duplicates,
        read_group=group_line,
        read_group_id=group,
        comments=options.comments,
        reference_file=options.reference,
        sort_bytes=sort_bytes,
    )
    with (
        alignment_file(output, reference, genome, options.threads) as write,
        progress("reads", files=[options.first, *filter(None, [options.second])]) as report,
    ):
        chunks = chunks_of(options, reads_a_chunk(backend))
        mapped_chunks = map_chunks(
            index, genome, chunks, mapping_options(options), backend, options.threads
        )
        for done in mapped_chunks:
            records = alignment_records(
                genome.contig_starts, done.chunk, done.mapped, done.choice, done.supplementary,
                done.alternatives,
            )  # fmt: skip
            write(done.chunk, done.both, records)
            add_chunk(statistics, done)
            share = 100 * statistics["mapped"] / max(statistics["reads"], 1)
            report(statistics["reads"], f"{share:.1f} % mapped")
    say(
        f"{statistics['reads']:,} reads, {statistics['mapped']:,} mapped, "
        f"{statistics['properly_paired']:,} properly paired"
    )
    if options.stats:
        with atomic_file(options.stats, "w") as file:
            file.write(json.dumps(statistics, indent=1) + "\n")


def chunks_of(options, reads: int):
    if options.second:
        return paired_chunks(options.first, options.second, reads)
    if options.interleaved:
        return interleaved_chunks(options.first, reads)
    return single_chunks(options.first, reads)


def parse_read_group(typed: str | None) -> tuple[str | None, bytes]:
    """The header line of a read group and its ID; a typed \\t is a tab."""
    if typed is None:
        return None, b""
    line = typed.replace("\\t", "\t")
    found = re.search(r"\tID:([^\t]+)", line)
    if not line.startswith("@RG\t") or not found or "\n" in line:
        raise UsageError(
            f"read group {typed!r} is not one line like '@RG\\tID:1\\tSM:sample': it needs an ID"
        )
    return line, found[1].encode()


if __name__ == "__main__":
    run_program(parse_options(), main)

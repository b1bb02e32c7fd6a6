"""Options that several programs have, and what was typed of them."""

import argparse

from bwarp.cli.program import bounded_int
from bwarp.errors import UsageError
from bwarp.mapping.output.output_options import (
    AlignmentOutput,
    default_sort_bytes,
    parse_read_group,
)
from bwarp.mapping.parameters import (
    LOCAL,
    MODES,
    MOST_SCORE,
    ORIENTATIONS,
    MappingParameters,
    mapping_parameters,
)

__all__ = [
    "add_index_option",
    "add_kmer_options",
    "add_mapping_options",
    "add_output_options",
    "add_queries_option",
    "add_read_options",
    "add_stage_input",
    "add_table_option",
    "kmer_options",
    "mapping_options",
    "output_options",
]


def add_index_option(parser: argparse.ArgumentParser) -> None:
    """The index to search, or that was searched."""
    parser.add_argument(
        "--index", required=True, metavar="INDEX", help="folder that index_reference.py made"
    )


def add_stage_input(
    parser: argparse.ArgumentParser,
    flag: str,
    program: str,
    or_input: str = "; - is standard input",
    old: str | None = None,
) -> None:
    """A chunk file that another program wrote; `old` is what the flag was called before."""
    parser.add_argument(
        *filter(None, [flag, old]), dest=flag[2:], required=True, metavar=flag[2:].upper(),
        help=f"file that {program} wrote{or_input}",
    )  # fmt: skip


def add_queries_option(parser: argparse.ArgumentParser) -> None:
    """Queries of DNA or RNA."""
    parser.add_argument(
        "--queries",
        required=True,
        metavar="Q.fa",
        help="FASTA or FASTQ of DNA or RNA, plain or compressed; - is standard input",
    )


def add_table_option(parser: argparse.ArgumentParser) -> None:
    """A table in a format that its ending names."""
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="OUT",
        help="table to write: .tsv, .bed (each also .gz) or .parquet by its ending; "
        "- is TSV on standard output",
    )


def add_kmer_options(parser: argparse.ArgumentParser, shortest: int, longest: int) -> None:
    """What of the queries is searched."""
    parser.add_argument(
        "-k",
        type=bounded_int(shortest, longest),
        metavar="K",
        help=f"cut k-mers of this length, {shortest} to {longest} "
        "(default: take every query whole)",
    )
    parser.add_argument(
        "--step",
        type=bounded_int(1, 10**9),
        metavar="S",
        help="with -k: bases between the starts of two k-mers (default: 1)",
    )


def kmer_options(options: argparse.Namespace) -> tuple[int | None, int]:
    """The length of k-mers, None for whole queries, and their step."""
    if options.step is not None and options.k is None:
        raise UsageError("--step is for cut k-mers: give their length with -k, or leave it out")
    return options.k, options.step or 1


def add_mapping_options(parser: argparse.ArgumentParser) -> None:
    """How reads are aligned: scores, what may be clipped, and how pairs lie."""
    group = parser.add_argument_group("alignment")
    group.add_argument(
        "--mode",
        choices=MODES,
        default=LOCAL,
        help="local: ends of reads may be clipped; end-to-end: not (default: %(default)s)",
    )
    whole = bounded_int(0, MOST_SCORE)
    for flag, kind, meaning in (
        ("--match", bounded_int(1, MOST_SCORE), "score of a match (default: 1)"),
        ("--mismatch", bounded_int(-MOST_SCORE, -1), "score of a mismatch (default: -4)"),
        ("--gap-open", whole, "a gap of n bases costs this and n times the next (default: 6)"),
        ("--gap-extend", bounded_int(1, MOST_SCORE), "cost of each base of a gap (default: 1)"),
        ("--clip", whole, "cost of a clipped end (default: 5)"),
        ("--min-score", bounded_int(1, 10**6), "lower alignments are not told (default: 30)"),
    ):
        group.add_argument(flag, type=kind, metavar="N", help=meaning)
    group.add_argument(
        "--insert-size",
        type=_mean_and_deviation,
        metavar="MEAN,SD",
        help="distance of pairs, both reads included (default: that of the first pairs)",
    )
    group.add_argument(
        "--orientation",
        choices=ORIENTATIONS,
        help="how the ends of a pair lie (default: as most of the first pairs do)",
    )


def mapping_options(options: argparse.Namespace) -> MappingParameters:
    """The parameters that were typed; what counts in matches grows with --match."""
    return mapping_parameters(
        match=1 if options.match is None else options.match,
        mode=options.mode,
        mismatch=options.mismatch,
        gap_open=options.gap_open,
        gap_extend=options.gap_extend,
        clip=options.clip,
        least_score=options.min_score,
        insert_size=options.insert_size,
        orientation=options.orientation,
    )


def _mean_and_deviation(text: str) -> tuple[float, float]:
    parts = text.split(",")
    try:
        mean, deviation = (float(part) for part in parts)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r}: write mean and deviation with a comma between, such as 400,60"
        ) from None
    return mean, deviation


def add_read_options(parser: argparse.ArgumentParser) -> None:
    """Which reads are mapped."""
    parser.add_argument(
        "-1", dest="first", required=True, metavar="R1.fq[.gz]", help="reads, or first reads"
    )
    parser.add_argument("-2", dest="second", metavar="R2.fq[.gz]", help="second reads of pairs")
    parser.add_argument(
        "--interleaved", action="store_true", help="pairs stand one after the other in R1"
    )


def add_output_options(parser: argparse.ArgumentParser) -> None:
    """What is written of mapped reads, and how."""
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


def output_options(options: argparse.Namespace) -> AlignmentOutput:
    """What was typed of `add_output_options`."""
    line, group = parse_read_group(options.read_group)
    in_memory = options.sort_memory
    return AlignmentOutput(
        path=options.output,
        sort=options.sort,
        mark_duplicates=options.mark_duplicates,
        read_group=line,
        read_group_id=group,
        comments=options.comments,
        reference_file=options.reference,
        sort_bytes=in_memory << 20 if in_memory else default_sort_bytes(options.threads),
    )

"""Options that several programs have, and what was typed of them.

Short names are those of bwa mem, samtools, minimap2 and bowtie where these agree.
"""

import argparse
import os
import re
from collections.abc import Sequence

from bwarp.cli.program import bounded_int, say, whole
from bwarp.counted import counted
from bwarp.errors import UsageError
from bwarp.index.alt_contigs import named_like_alt
from bwarp.io.bam.compression import COMPRESS
from bwarp.io.bam.sorted_file_and_duplicates import CRAM_VERSIONS
from bwarp.mapping.output.cram_reference import is_readable_by_samtools
from bwarp.mapping.output.output_options import (
    AlignmentOutput,
    default_sort_bytes,
    parse_read_group,
)
from bwarp.mapping.output.statistics import few_mapped
from bwarp.mapping.parameters import (
    ALL,
    LOCAL,
    MODES,
    MOST_SCORE,
    ORIENTATIONS,
    MappingParameters,
    mapping_parameters,
)
from bwarp.mapping.reads.read_files import ReadFiles, holds_pairs
from bwarp.offtargets.pam import SIDES
from bwarp.reference import Reference
from bwarp.seeding.hits import ALGORITHMS, LOCATE_MODES, MOST_MISMATCHES
from bwarp.seeding.kmers import LONGEST_KMER, SHORTEST_KMER

__all__ = [
    "add_barcode_tag_option",
    "add_cram_options",
    "MOST_NAMED",
    "SEQUENCES",
    "add_alignment_options",
    "add_gpus_option",
    "add_index_option",
    "add_kmer_options",
    "add_mapping_options",
    "add_orientation_option",
    "add_output_option",
    "add_output_options",
    "add_pair_options",
    "add_pam_options",
    "add_queries_option",
    "add_read_options",
    "add_score_options",
    "add_search_options",
    "add_compress_option",
    "add_sort_memory_option",
    "add_stage_input",
    "add_table_option",
    "kmer_options",
    "mapping_options",
    "output_options",
    "read_files",
    "sort_bytes",
    "warn_of_names_like_alt",
    "warn_of_unmapped_reads",
    "warn_of_unnamed_reference",
]

#: Contigs named in one warning.
MOST_NAMED = 5

#: Files of sequences.
SEQUENCES = "FASTA or FASTQ, plain or compressed"


def add_index_option(parser, required: bool = True) -> None:
    """The index to search, or that was searched."""
    parser.add_argument(
        "-x", "--index", required=required, metavar="INDEX",
        help="folder that index_reference.py made",
    )  # fmt: skip


def add_stage_input(
    parser, flag: str, program: str, or_input: str = "; - is standard input"
) -> None:
    """A file of chunks that another program wrote."""
    parser.add_argument(
        flag, required=True, metavar=flag[2:].upper(), help=f"file that {program} wrote{or_input}"
    )


def add_gpus_option(parser, what: str) -> None:
    parser.add_argument(
        "--gpus", **whole(1, 1024), default=1,
        help=f"share the {what} among up to N GPUs, those that are free",
    )  # fmt: skip


def add_queries_option(parser) -> None:
    """Queries of DNA or RNA."""
    parser.add_argument(
        "--queries", required=True, metavar="Q.fa",
        help="FASTA or FASTQ of DNA or RNA, plain or compressed; - is standard input",
    )  # fmt: skip


def add_output_option(parser, metavar: str, meaning: str) -> None:
    """What is written."""
    parser.add_argument("-o", "--output", required=True, metavar=metavar, help=meaning)


def add_table_option(parser) -> None:
    """A table in a format that its ending names."""
    formats = ".tsv, .bed (each also .gz) or .parquet by its ending; - is TSV on standard output"
    add_output_option(parser, "OUT", f"table to write: {formats}")


def add_kmer_options(parser) -> None:
    """What of the queries is searched."""
    parser.add_argument(
        "-k", type=bounded_int(SHORTEST_KMER, LONGEST_KMER), metavar="K",
        help=f"cut queries into k-mers of this length, {SHORTEST_KMER} to {LONGEST_KMER} "
        "(default: search every query whole)",
    )  # fmt: skip
    parser.add_argument(
        "--step", **whole(1, 10**9),
        help="with -k: bases between the starts of two k-mers (default: 1)",
    )  # fmt: skip


def kmer_options(options: argparse.Namespace) -> tuple[int | None, int]:
    """The length of k-mers, None for whole queries, and their step."""
    if options.step is not None and options.k is None:
        raise UsageError("--step is for cut k-mers: give their length with -k, or leave it out")
    return options.k, options.step or 1


def add_search_options(parser, locate: str) -> None:
    """How k-mers are searched in an index; `locate` is the help of --locate."""
    parser.add_argument(
        "-v", "--mismatches", **whole(0, MOST_MISMATCHES), default=0,
        help=f"most substitutions in a hit, 0 to {MOST_MISMATCHES}",
    )  # fmt: skip
    parser.add_argument(
        "-m", "--max-hits", **whole(0, 2**32), default=128,
        help="list a k-mer with more hits on both strands together in OUT.over.tsv instead; "
        "0: no limit",
    )  # fmt: skip
    parser.add_argument("--locate", choices=LOCATE_MODES, default="auto", help=locate)
    parser.add_argument(
        "--algorithm", choices=ALGORITHMS, default="schemes",
        help="how to search with mismatches: bidirectional search schemes, or Liu and Schmidt's "
        "bounded backtracking. Results are the same",
    )  # fmt: skip


def add_score_options(parser, most: int, most_gap: int, least: int = 0, **helps: str) -> None:
    """Scores of matches, mismatches and gaps; `helps` replaces the help of some."""
    penalty = bounded_int(least, most)
    for flags, kind, meaning in (
        ("-A --match", bounded_int(least, most), "score of a match (default: 1)"),
        ("--mismatch", bounded_int(-most, -least), "score of a mismatch (default: -4)"),
        ("-B", lambda text: -penalty(text), "the same as a penalty, a positive number"),
        ("-O --gap-open", bounded_int(0, most_gap),
         "cost of a gap, besides that of its bases (default: 6)"),
        ("-E --gap-extend", bounded_int(least, most_gap),
         "cost of each base of a gap (default: 1)"),
    ):  # fmt: skip
        name = "mismatch" if flags == "-B" else flags.partition("--")[2].replace("-", "_")
        meaning = helps.get(name, meaning) if flags != "-B" else meaning
        parser.add_argument(*flags.split(), dest=name, type=kind, metavar="N", help=meaning)


def add_mapping_options(parser) -> None:
    """How reads are aligned: scores, what may be clipped, and how pairs lie."""
    group = parser.add_argument_group("alignment")
    add_alignment_options(group)
    add_pair_options(group)
    group.add_argument(
        "--hic", action="store_true",
        help="pairs of Hi-C: map each end by itself, with the 5' part of a split read as its "
        "primary record, as bwa mem -5SP does",
    )  # fmt: skip
    group.add_argument(
        "--alt", metavar="FILE|NAMES",
        help="ALT contigs, instead of those that the index knows: a file with a name in each line, "
        "names with commas between them, or none",
    )  # fmt: skip


def add_alignment_options(group) -> None:
    """How a read is aligned by itself."""
    group.add_argument(
        "--mode", choices=MODES, default=LOCAL,
        help="local: ends of reads may be clipped; end-to-end: not",
    )  # fmt: skip
    add_score_options(group, MOST_SCORE, MOST_SCORE, least=1)
    group.add_argument(
        "-L", "--clip", **whole(0, MOST_SCORE), help="cost of a clipped end (default: 5)"
    )
    group.add_argument(
        "-T", "--min-score", **whole(1, 10**6),
        help="lowest score of an alignment that is reported (default: 30)",
    )  # fmt: skip


def add_pam_options(parser) -> None:
    """The PAM of guides, and the end of the protospacer that it is at."""
    parser.add_argument(
        "--pam", default="NGG", help="PAMs, IUPAC, with commas between them, or none"
    )
    parser.add_argument(
        "--pam-side", type=int, choices=SIDES, default=3,
        help="end of the protospacer that the PAM is at",
    )  # fmt: skip


def add_pair_options(parser) -> None:
    """How the ends of pairs lie to each other."""
    parser.add_argument(
        "-I", "--insert-size", type=_mean_and_sd, metavar="MEAN,SD",
        help="mean and standard deviation of the insert size, both reads included (default: "
        "estimated from the first pairs)",
    )  # fmt: skip
    add_orientation_option(parser)


def add_orientation_option(parser) -> None:
    """On which strands the ends of pairs lie, and in which order."""
    parser.add_argument(
        "--orientation", choices=ORIENTATIONS,
        help="orientation of pairs (default: that of most of the first pairs)",
    )  # fmt: skip


def mapping_options(options: argparse.Namespace) -> MappingParameters:
    """The parameters that were typed; what counts in matches grows with --match."""
    if options.hic and not (options.batches or holds_pairs(read_files(options))):
        raise UsageError("--hic is for pairs: give -2 or --interleaved, or leave it out")
    if options.max_secondary is not None and not options.all:
        raise UsageError("--max-secondary is for secondary records: give --all, or leave it out")
    named = (
        "mode", "mismatch", "gap_open", "gap_extend", "clip", "insert_size", "orientation", "hic"
    )  # fmt: skip
    return mapping_parameters(
        match=options.match or 1,
        least_score=options.min_score,
        secondary_records=(options.max_secondary or ALL) if options.all else 0,
        **{name: getattr(options, name) for name in named},
    )


def _mean_and_sd(text: str) -> tuple[float, float]:
    try:
        mean, sd = map(float, text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r}: write mean and standard deviation with a comma between, such as 400,60"
        ) from None
    return mean, sd


def add_read_options(parser, required: bool = True) -> None:
    """Which reads are mapped."""
    parser.add_argument(
        "-1", dest="first", required=required, nargs="+", action="extend", default=[],
        metavar="R1.fq[.gz]",
        help="reads, or first reads; or reads and pairs without alignments, BAM or CRAM",
    )  # fmt: skip
    parser.add_argument(
        "-2", dest="second", nargs="+", action="extend", default=[], metavar="R2.fq[.gz]",
        help="second reads of pairs: as many files as of first ones",
    )  # fmt: skip
    parser.add_argument(
        "-U", "--single", nargs="+", action="extend", default=[], metavar="S.fq[.gz]",
        help="single reads beside the pairs",
    )  # fmt: skip
    parser.add_argument(
        "-p", "--interleaved", action="store_true",
        help="both reads of each pair are in R1, one after the other",
    )  # fmt: skip


def read_files(options: argparse.Namespace) -> ReadFiles:
    """The files that were typed of `add_read_options`."""
    lists = (tuple(files) for files in (options.first, options.second, options.single))
    first, second, single = lists
    return ReadFiles(first, second, options.interleaved, single)


def add_output_options(parser) -> None:
    """What is written of mapped reads, and how."""
    add_output_option(
        parser, "OUT.bam|OUT.cram|OUT.sam|OUT.paf", "file to write; - is SAM to stdout"
    )
    parser.add_argument(
        "--sort", action="store_true", help="sort by position; BAM and CRAM get an index"
    )
    parser.add_argument(
        "--mark-duplicates", action="store_true",
        help="flag all but the best of duplicate pairs and reads, as samtools markdup does",
    )  # fmt: skip
    add_barcode_tag_option(parser)
    add_cram_options(parser)
    add_sort_memory_option(parser)
    parser.add_argument(
        "-R", "--read-group", metavar="'@RG\\tID:..'", help="read group of the reads"
    )
    parser.add_argument(
        "-C", "--comments", action="store_true",
        help="copy the comments of the FASTQ headers, which must be SAM tags such as BC:Z:ACGT",
    )  # fmt: skip
    parser.add_argument(
        "-a", "--all", action="store_true",
        help="write a secondary record (flag 256) for every other hit found, in place of XA",
    )  # fmt: skip
    parser.add_argument(
        "--max-secondary", **whole(1, 10**6),
        help="with --all: the most secondary records of a read, best first (default: no limit)",
    )  # fmt: skip
    parser.add_argument(
        "-Y", "--soft-clip", action="store_true",
        help="keep clipped bases in supplementary records, too (S in place of H)",
    )  # fmt: skip
    parser.add_argument("--eqx", action="store_true", help="write = and X in CIGARs in place of M")
    parser.add_argument(
        "--regions", metavar="REGIONS.bed",
        help="write only reads that overlap these regions, with their mates",
    )  # fmt: skip
    parser.add_argument("--stats", metavar="OUT.json", help="statistics of the reads to write")
    add_compress_option(parser)


def add_cram_options(parser) -> None:
    """What CRAM refers to, and which CRAM."""
    parser.add_argument(
        "--reference", metavar="REF.fa[.gz]",
        help="for CRAM: FASTA of the reference, plain or bgzip, which the header names (UR), so "
        "that samtools finds it; needed if it has IUPAC letters other than N",
    )  # fmt: skip
    parser.add_argument(
        "--cram-version", choices=CRAM_VERSIONS,
        help=f"version of CRAM (default: {CRAM_VERSIONS[0]}, which older programs can read, too)",
    )  # fmt: skip


def warn_of_unmapped_reads(
    reads: int, mapped: int, files: Sequence[str | os.PathLike] = ()
) -> None:
    """Say so if there are no reads in the files, or few are mapped."""
    warning = few_mapped(reads, mapped)
    if warning:
        say(f"warning: {warning}")
    elif not reads and files:
        say(f"warning: {', '.join(map(str, files))}: no reads")


def warn_of_unnamed_reference(path: str, fasta: str | None) -> None:
    """Say so if a file of alignments is CRAM whose header names no reference."""
    if path.endswith(".cram") and not (fasta and is_readable_by_samtools(fasta)):
        say(
            f"warning: {path}: the header does not name the reference, so readers need it "
            "(samtools view -T REF.fa): give --reference REF.fa, plain or bgzip, to name it"
        )


def add_barcode_tag_option(parser) -> None:
    """What tells duplicates apart besides their position."""
    parser.add_argument(
        "--barcode-tag", type=_tag, metavar="TAG",
        help="with --mark-duplicates: duplicates have the same value of this tag, too, such as RX",
    )  # fmt: skip


def _tag(text: str) -> str:
    if not re.fullmatch("[A-Za-z][A-Za-z0-9]", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not the name of a tag, such as RX")
    return text


def warn_of_names_like_alt(reference: Reference) -> None:
    """Say so if contigs are named like ALT contigs and none is known as one."""
    names = named_like_alt(reference.names)
    if names and not reference.alt:
        shown = ", ".join(names[:MOST_NAMED]) + (", ..." if len(names) > MOST_NAMED else "")
        say(
            f"warning: {counted(len(names), 'contig looks', 'contigs look')} like ALT contigs "
            f"({shown}), but none is listed "
            "as one, so reads that align to them get low mapping qualities: list them in "
            "REF.fa.alt beside the reference and index again, or give --alt when mapping"
        )


def add_sort_memory_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--sort-memory", type=bounded_int(1, 1 << 20), metavar="MB",
        help="memory for sorting; more records are sorted in parts, on disk beside the output "
        "(default: 512 a thread, at most a quarter of the machine's memory)",
    )  # fmt: skip


def add_compress_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--compress", choices=COMPRESS, default="auto",
        help="where BAM is compressed: auto is the GPU, if one maps and nvCOMP is installed; the "
        "records are the same, the bytes of the file are not",
    )  # fmt: skip


def sort_bytes(options: argparse.Namespace) -> int:
    """What was typed of `add_sort_memory_option`, or what suits the machine."""
    in_memory = options.sort_memory
    return in_memory << 20 if in_memory else default_sort_bytes(options.threads)


def output_options(options: argparse.Namespace) -> AlignmentOutput:
    """What was typed of `add_output_options`."""
    line, group = parse_read_group(options.read_group)
    return AlignmentOutput(
        path=options.output,
        sort=options.sort,
        mark_duplicates=options.mark_duplicates,
        barcode_tag=options.barcode_tag,
        read_group=line,
        read_group_id=group,
        comments=options.comments,
        soft_clip=options.soft_clip,
        eqx=options.eqx,
        regions_file=options.regions,
        reference_file=options.reference,
        cram_version=options.cram_version,
        sort_bytes=sort_bytes(options),
    )

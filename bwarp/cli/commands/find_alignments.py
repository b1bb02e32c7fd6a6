"""Find every locus where reads align with at most so many edits: none is missed."""

import argparse
import json
from dataclasses import asdict

from bwarp.cli.options import add_index_option, add_output_option, add_read_options
from bwarp.cli.program import choose_engine, compile_first, program_parser, say, whole
from bwarp.errors import UsageError
from bwarp.index.store import load_index
from bwarp.io.atomic_output import atomic_file
from bwarp.io.output_names import check_outputs
from bwarp.io.program_record import program_record
from bwarp.loci.engine import load, reads_a_chunk
from bwarp.loci.find import Certificate, find_chunks
from bwarp.loci.options import ALL, LocusOptions
from bwarp.loci.output.locus_bam import BamOptions, open_bam
from bwarp.loci.output.locus_tables import SIBLINGS, format_of, open_tables
from bwarp.mapping.output.output_options import default_sort_bytes, parse_read_group
from bwarp.mapping.reads.read_chunks import read_chunks
from bwarp.runtime.backend import or_on_cpu
from bwarp.runtime.progress import progress
from bwarp.runtime.threads import read_ahead
from bwarp.seeding.output.seed_tables import sibling

EXAMPLES = """
scripts/find_alignments.py --index genome.index -1 reads.fq.gz -o loci.tsv --edits 4
scripts/find_alignments.py --index genome.index -1 reads.fq.gz -o loci.tsv --edits 3% \\
    --report best
scripts/find_alignments.py --index genome.index -1 probes.fa -o probes.tsv --edits 3 --gaps 0 \\
    --max-places 1000
"""


def parse_options():
    parser = program_parser(__doc__, EXAMPLES)
    add_index_option(parser)
    add_read_options(parser)
    add_output_option(
        parser,
        "OUT",
        "loci to write: .bam (sorted, with its index), .tsv or .paf (either also .gz); "
        "- is TSV on standard output",
    )
    parser.add_argument(
        "-e", "--edits", type=edits_or_share, required=True, metavar="E",
        help="most edits of a locus: mismatches, inserted and deleted bases; or 3%% for a share "
        "of a read's length, rounded down",
    )  # fmt: skip
    parser.add_argument(
        "--gaps", **whole(0, 31),
        help="most inserted and deleted bases among the edits (default: as many as edits); 0 "
        "counts mismatches alone",
    )  # fmt: skip
    parser.add_argument(
        "--report", type=strata_of, default=ALL, metavar="WHAT",
        help="all: every locus (the default); best: those with fewest edits; strata:X: those "
        "with at most X more than the best",
    )  # fmt: skip
    parser.add_argument(
        "--max-places", **whole(0, 2**40), default=0,
        help="a read with more loci is listed in OUT.over.tsv with their number instead "
        "(default: 0, no limit)",
    )  # fmt: skip
    parser.add_argument(
        "--seed-mismatches", type=mismatches_or_auto, metavar="M",
        help="mismatches with which parts of a read are searched, 0 to 4, or auto for what is "
        "fastest (the default). Results are the same",
    )  # fmt: skip
    parser.add_argument(
        "--filter", choices=("auto", "on", "off"), default="auto",
        help="drop candidates by a bound before they are verified. Results are the same",
    )  # fmt: skip
    parser.add_argument(
        "-R", "--read-group", metavar="LINE",
        help="@RG line of the BAM, such as '@RG\\tID:1\\tSM:sample'",
    )  # fmt: skip
    parser.add_argument("--stats", metavar="OUT.json", help="write what was searched and found")
    return parser


def edits_or_share(text: str) -> tuple[int, float | None]:
    """4 or 3%: edits, and the share of a read's length in per cent."""
    try:
        if text.endswith("%"):
            return 0, float(text[:-1])
        return int(text), None
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither a whole number nor a share such as 3%"
        ) from None


def strata_of(text: str) -> int:
    """How far from the best locus others are reported; ALL."""
    if text in ("all", "best"):
        return ALL if text == "all" else 0
    kind, _, number = text.partition(":")
    if kind != "strata" or not number.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not all, best, or strata:1 and the like")
    return int(number)


def mismatches_or_auto(text: str) -> int | None:
    if text == "auto":
        return None
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 to 4, or auto")
    return int(text)


def bam_options(options, loci: LocusOptions) -> BamOptions:
    read_group, read_group_id = parse_read_group(options.read_group)
    edits = loci.edits if loci.percent is None else f"{loci.percent:g}%"
    report = {ALL: "all", 0: "best"}.get(loci.strata, f"strata:{loci.strata}")
    program = program_record(
        "allmap",
        {
            "edits": edits,
            "gaps": loci.gaps,
            "report": report,
            "max-places": options.max_places or None,
        },
    )
    memory = default_sort_bytes(options.threads)
    return BamOptions(program, read_group, read_group_id, memory)


def main(options):
    edits, percent = options.edits
    locus_options = LocusOptions(
        edits, percent, options.gaps, options.report, options.seed_mismatches,
        options.filter != "off",
    )  # fmt: skip
    output_format = format_of(options.output)
    outputs = [options.output, options.stats]
    if output_format == "bam":
        outputs.append(f"{options.output}.bai")
    elif options.read_group:
        raise UsageError("--read-group is for BAM: leave it out, or name the output .bam")
    if options.output != "-":
        outputs += [sibling(options.output, kind) for kind in SIBLINGS]
    check_outputs(outputs, [options.index, options.first, options.second])
    backend = choose_engine(options.backend)
    size = reads_a_chunk(backend, locus_options)
    chunks = read_chunks(options.first, options.second, options.interleaved, size, options.threads)
    chunks = read_ahead(chunks)
    index = load_index(options.index)
    backend, (genome, kept) = or_on_cpu(
        options.backend, backend, lambda engine: load(index, engine, options.threads), say
    )
    compile_first(backend, options, options.first, options.second)
    certificate = Certificate()
    if output_format == "bam":
        opened = open_bam(
            options.output, bam_options(options, locus_options), index.reference, genome.blocks,
            certificate, options.threads,
        )  # fmt: skip
    else:
        opened = open_tables(options.output, index.reference)
    with (
        opened as (encode, write),
        progress("reads", files=[options.first, *filter(None, [options.second])]) as report,
    ):

        def then(found):
            return encode(found), found.certificate

        for texts, counts in find_chunks(
            index, genome, chunks, locus_options, options.max_places, options.threads, then, kept
        ):
            write(texts)
            certificate.add(counts)
            report(certificate.reads, f"{certificate.loci:,} loci")
    say(certificate.sentence())
    if options.stats:
        with atomic_file(options.stats, "wt") as file:
            file.write(json.dumps(asdict(certificate), indent=1) + "\n")

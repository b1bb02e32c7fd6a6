"""Options of a search for loci, and the files it writes; one program has all, of the chain some."""

import argparse
import json
import os
from contextlib import AbstractContextManager
from dataclasses import asdict

import numpy as np

from bwarp.cli.options import (
    add_pair_options,
    add_score_options,
    add_sort_memory_option,
    read_files,
    sort_bytes,
)
from bwarp.cli.program import whole
from bwarp.errors import UsageError
from bwarp.io.atomic_output import atomic_file
from bwarp.io.bam.compression import ON_HOST, Compression
from bwarp.io.program_record import files_of_reads, program_record
from bwarp.loci.find import Certificate
from bwarp.loci.options import (
    ALL,
    EXTENSIONS,
    Extension,
    LocusOptions,
    extension_of,
    parse_edits,
    parse_report,
)
from bwarp.loci.output.locus_bam import BamOptions, open_bam
from bwarp.loci.output.locus_tables import SIBLINGS, format_of, open_tables
from bwarp.loci.pairs_cpu import PairOptions
from bwarp.mapping.output.output_options import parse_read_group
from bwarp.mapping.pairing.insert_size import given_insert_size
from bwarp.mapping.parameters import MOST_SCORE, mapping_parameters
from bwarp.mapping.reads.read_files import holds_pairs
from bwarp.reference import Reference
from bwarp.seeding.output.seed_tables import sibling

__all__ = [
    "add_locus_options",
    "add_locus_output_options",
    "add_locus_pair_options",
    "add_report_option",
    "given_extension",
    "locus_options",
    "open_locus_output",
    "outputs_of",
    "pair_options",
    "write_certificate",
]


def add_locus_options(parser: argparse.ArgumentParser) -> None:
    """Which loci are looked for, and how parts are searched."""
    parser.add_argument(
        "-e", "--edits", type=_edits_or_share, required=True, metavar="E",
        help="most edits of a locus: mismatches, inserted and deleted bases; or 3%% for a share "
        "of a read's length, rounded down",
    )  # fmt: skip
    parser.add_argument(
        "--gaps", **whole(0, 31),
        help="most inserted and deleted bases among the edits (default: as many as edits); 0 "
        "counts mismatches alone",
    )  # fmt: skip
    add_report_option(parser, "of loci")
    parser.add_argument(
        "--seed-mismatches", type=_mismatches_or_auto, metavar="M",
        help="mismatches with which parts of a read are searched, 0 to 4, or auto for what is "
        "fastest (the default). Results are the same",
    )  # fmt: skip


def add_report_option(parser: argparse.ArgumentParser, of_what: str) -> None:
    """How near the best others are reported."""
    parser.add_argument(
        "--report", type=_strata_of, default=ALL, metavar="WHAT",
        help=f"{of_what} all (the default); best: those with fewest edits; strata:X: those with "
        "at most X more than the best",
    )  # fmt: skip


def add_locus_output_options(parser: argparse.ArgumentParser) -> None:
    """What is written of loci."""
    parser.add_argument(
        "--max-places", **whole(0, 2**40), default=0,
        help="a read with more loci is listed in OUT.over.tsv with their number instead "
        "(default: 0, no limit)",
    )  # fmt: skip
    parser.add_argument(
        "--extension", choices=EXTENSIONS, default="edits",
        help="how reads are aligned at their loci: with the fewest edits (the default), or by "
        "scores: whole, or with ends clipped. Loci are the same",
    )  # fmt: skip
    add_score_options(
        parser, MOST_SCORE, MOST_SCORE, 1,
        match="with --extension semiglobal or local: score of a match (default: 1); the defaults "
        "of the others grow with it",
    )  # fmt: skip
    parser.add_argument(
        "--xa", action="store_true",
        help="of every read one record of the BAM, its other loci in the tag XA, as bwa writes it",
    )  # fmt: skip
    parser.add_argument(
        "-R", "--read-group", metavar="LINE",
        help="@RG line of the BAM, such as '@RG\\tID:1\\tSM:sample'",
    )  # fmt: skip
    add_sort_memory_option(parser)
    parser.add_argument("--stats", metavar="OUT.json", help="write what was searched and found")


def given_extension(options: argparse.Namespace) -> Extension | None:
    """The scores that were typed; None for alignments with the fewest edits."""
    scores = (getattr(options, name) for name in ("match", "mismatch", "gap_open", "gap_extend"))
    return extension_of(options.extension, *scores)


def add_locus_pair_options(parser: argparse.ArgumentParser) -> None:
    """How the ends of pairs lie to each other, and whether that counts."""
    add_pair_options(parser)
    parser.add_argument(
        "--unpaired", action="store_true",
        help="report the loci of both ends of pairs one by one",
    )  # fmt: skip


def pair_options(options: argparse.Namespace) -> PairOptions | None:
    """What was typed of `add_locus_pair_options`; None for reads that are not paired."""
    paired = holds_pairs(read_files(options))
    if paired and not options.unpaired:
        parameters = mapping_parameters(
            insert_size=options.insert_size, orientation=options.orientation
        )
        return PairOptions(given_insert_size(parameters), options.orientation)
    if options.insert_size or options.orientation:
        raise UsageError(
            "--insert-size and --orientation are for pairs: give -2 or --interleaved, or leave "
            "them out"
        )
    return None


def locus_options(options: argparse.Namespace, use_filter: bool = True) -> LocusOptions:
    """What was typed of `add_locus_options`."""
    edits, percent = options.edits
    return LocusOptions(
        edits, percent, options.gaps, options.report, options.seed_mismatches, use_filter
    )


def _edits_or_share(text: str) -> tuple[int, float | None]:
    return _parsed(parse_edits, text)


def _strata_of(text: str) -> int:
    return _parsed(parse_report, text)


def _parsed(parse, text: str):
    try:
        return parse(text)
    except UsageError as error:
        raise argparse.ArgumentTypeError(error) from None


def _mismatches_or_auto(text: str) -> int | None:
    if text == "auto":
        return None
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 to 4, or auto")
    return int(text)


def outputs_of(
    output: str, stats: str | os.PathLike | None, read_group: str | None = None, xa: bool = False
) -> list:
    """The files that a run with this output writes."""
    outputs = [output, stats]
    if format_of(output) == "bam":
        outputs.append(f"{output}.bai")
    elif read_group or xa:
        named = "--read-group" if read_group else "--xa"
        raise UsageError(f"{named} is for BAM: leave it out, or name the output .bam")
    if output != "-":
        outputs += [sibling(output, kind) for kind in SIBLINGS]
    return outputs


def open_locus_output(
    options: argparse.Namespace,
    loci: LocusOptions,
    reference: Reference,
    genome: np.ndarray,
    certificate: Certificate,
    paired: bool = False,
    extension: Extension | None = None,
    compression: Compression = ON_HOST,
) -> AbstractContextManager:
    """What makes records or lines of a chunk, and what writes them."""
    if format_of(options.output) != "bam":
        return open_tables(options.output, reference, paired, extension is not None)
    read_group, read_group_id = parse_read_group(options.read_group)
    edits = loci.edits if loci.percent is None else f"{loci.percent:g}%"
    report = {ALL: "all", 0: "best"}.get(loci.strata, f"strata:{loci.strata}")
    limits = {"edits": edits, "gaps": loci.gaps, "report": report}
    limits |= {"max-places": options.max_places or None, "xa": options.xa}
    scores = _scores_of(options.extension, extension)
    program = program_record("allmap", files_of_reads(paired), limits | scores)
    bam = BamOptions(
        program, read_group, read_group_id, sort_bytes(options), options.xa, compression
    )
    return open_bam(options.output, bam, reference, genome, certificate, options.threads)


def _scores_of(name: str, extension: Extension | None) -> dict:
    if extension is None:
        return {}
    scoring = extension.scoring
    match, mismatch = scoring.match_mismatch
    return {
        "extension": name,
        "match": match,
        "mismatch": mismatch,
        "gap-open": scoring.gap_open,
        "gap-extend": scoring.gap_extend,
    }


def write_certificate(path: str | os.PathLike, certificate: Certificate) -> None:
    with atomic_file(path, "wt") as file:
        file.write(json.dumps(asdict(certificate), indent=1) + "\n")

"""Convert the typed options of a search for loci to library parameters, and open its outputs."""

import argparse
import os
from contextlib import AbstractContextManager
from dataclasses import asdict

import numpy as np

from bwarp.allmap.find import Certificate
from bwarp.allmap.locus_bam import BamOptions, open_bam
from bwarp.allmap.locus_text import SIBLINGS, format_of, open_tables
from bwarp.allmap.options import Extension, LocusOptions, extension_of
from bwarp.allmap.pairs_cpu import PairOptions
from bwarp.bam.compression_engine import ON_HOST, Compression
from bwarp.bam.header import files_of_reads, program_record
from bwarp.cli.options import read_files, sort_bytes
from bwarp.errors import UsageError
from bwarp.io.atomic_output import write_text
from bwarp.mapping.insert_size import given_insert_size
from bwarp.mapping.parameters import mapping_parameters
from bwarp.options.mapping import ALL, SCORES
from bwarp.reads.read_files import holds_pairs
from bwarp.records.output_options import parse_read_group
from bwarp.records.statistics import statistics_text
from bwarp.reference import Reference
from bwarp.seeding.seed_tables import sibling

#: Arguments of `extension_of` that have other names in the header.
_STATED = {"name": "extension", "gap_open": "gap-open", "gap_extend": "gap-extend"}


def given_extension(options: argparse.Namespace) -> Extension | None:
    """Return the typed scores, or None for alignments with the fewest edits."""
    scores = (getattr(options, name) for name in SCORES)
    return extension_of(options.extension, *scores)


def pair_options(options: argparse.Namespace) -> PairOptions | None:
    """Return insert size and orientation of pairs, or None if reads are not reported as pairs."""
    paired = holds_pairs(read_files(options))
    if paired and not options.unpaired:
        parameters = mapping_parameters(
            insert_size=options.insert_size, orientation=options.orientation
        )
        return PairOptions(given_insert_size(parameters), options.orientation)
    if options.insert_size or options.orientation:
        raise UsageError("--insert-size and --orientation require pairs: use -2 or --interleaved")
    return None


def locus_options(options: argparse.Namespace, filter: str = "auto") -> LocusOptions:
    """Return the options that decide which loci are searched."""
    edits, percent = options.edits
    return LocusOptions(
        edits, percent, options.gaps, options.report, options.seed_mismatches, filter
    )


def outputs_of(
    output: str,
    stats: str | os.PathLike | None,
    read_group: str | None = None,
    xa: bool = False,
    uncompressed: bool = False,
) -> list:
    """Return the files that a run with this output writes."""
    outputs = [output, stats]
    if format_of(output) == "bam":
        outputs.append(f"{output}.bai")
    elif read_group or xa or uncompressed:
        named = "--read-group" if read_group else "--xa" if xa else "--uncompressed"
        raise UsageError(f"{output}: {named} requires BAM output")
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
    """Return a function that formats a chunk as records or lines, and one that writes them."""
    if format_of(options.output) != "bam":
        return open_tables(options.output, reference, paired, extension is not None)
    read_group, read_group_id = parse_read_group(options.read_group)
    edits = loci.edits if loci.percent is None else f"{loci.percent:g}%"
    report = {ALL: "all", 0: "best"}.get(loci.strata, f"strata:{loci.strata}")
    limits = {"edits": edits, "gaps": loci.gaps, "report": report}
    limits |= {"max-places": options.max_places or None, "xa": options.xa}
    scores = {} if extension is None else extension.arguments
    scores = {_STATED.get(name, name): score for name, score in scores.items()}
    program = program_record("allmap", files_of_reads(paired), limits | scores)
    bam = BamOptions(
        program, read_group, read_group_id, sort_bytes(options), options.xa, compression,
        to_merge=getattr(options, "uncompressed", False),
    )  # fmt: skip
    return open_bam(options.output, bam, reference, genome, certificate, options.threads)


def write_certificate(path: str | os.PathLike, certificate: Certificate) -> None:
    write_text(path, statistics_text(asdict(certificate)))

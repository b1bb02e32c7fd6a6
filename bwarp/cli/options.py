"""Convert typed options shared by several programs to parameters of the library."""

import argparse
import os
from collections.abc import Sequence
from dataclasses import replace

from bwarp.checks.check_files import CheckFiles
from bwarp.counted import counted
from bwarp.errors import UsageError
from bwarp.mapping.parameters import MappingParameters, mapping_parameters, secondary_records
from bwarp.options.mapping import ALIGNMENT
from bwarp.options.option import Option
from bwarp.reads.read_files import ReadFiles, holds_pairs
from bwarp.reads.record_files import holds_records
from bwarp.records.output_options import (
    AUTO,
    AlignmentOutput,
    default_sort_bytes,
    is_readable_by_samtools,
    parse_read_group,
)
from bwarp.records.statistics import few_mapped
from bwarp.runtime.progress import say


def mapping_options(options: argparse.Namespace) -> MappingParameters:
    """Return the typed parameters; defaults given in matches scale with --match."""
    if options.hic and not (options.batches or holds_pairs(read_files(options))):
        raise UsageError("--hic requires pairs: use -2 or --interleaved")
    given = {name: getattr(options, name) for name in (*ALIGNMENT, "insert_size", "hic")}
    return mapping_parameters(
        least_score=given.pop("min_score"),
        secondary_records=secondary_records(options.all, options.max_secondary),
        **given,
    )


def read_files(options: argparse.Namespace) -> ReadFiles:
    """Return the typed files of `READ_FILES`."""
    lists = (tuple(files) for files in (options.first, options.second, options.single))
    first, second, single = lists
    return ReadFiles(first, second, options.interleaved, single)


def warn_of_unmapped_reads(
    reads: int, mapped: int, files: Sequence[str | os.PathLike] = ()
) -> None:
    """Warn if the files contain no reads, or if few are mapped."""
    warning = few_mapped(reads, mapped)
    if warning:
        say(f"warning: {warning}")
    elif not reads and files:
        say(f"warning: {', '.join(map(str, files))}: no reads")


def warn_of_unnamed_reference(path: str, fasta: str | None) -> None:
    """Warn if the output is CRAM and its header names no reference."""
    if path.endswith(".cram") and not (fasta and is_readable_by_samtools(fasta)):
        say(
            f"warning: {path}: the header does not contain the path of the reference, which "
            "readers then need (samtools view -T REF.fa): use --reference REF.fa, plain or bgzip"
        )


def sort_bytes(options: argparse.Namespace) -> int:
    """Return the typed memory for sorting in bytes, or a default that suits the machine."""
    in_memory = options.sort_memory
    return in_memory << 20 if in_memory else default_sort_bytes(options.threads)


def output_options(options: argparse.Namespace) -> AlignmentOutput:
    """Return which records of mapped reads to write, and in what form."""
    # `with_read_groups` handles several read groups.
    line, group = parse_read_group(options.read_group[0] if options.read_group else None)
    return AlignmentOutput(
        path=options.output,
        sort=options.sort,
        mark_duplicates=options.mark_duplicates,
        barcode_tag=options.barcode_tag,
        optical_distance=options.optical_distance,
        duplicate_metrics=options.duplicate_metrics,
        duplicate_tags=options.duplicate_tags,
        read_group=line,
        read_group_id=group,
        comments=options.comments,
        soft_clip=options.soft_clip,
        eqx=options.eqx,
        regions_file=options.regions,
        reference_file=options.reference,
        cram_version=options.cram_version,
        check_files=check_files(options),
        sort_bytes=sort_bytes(options),
    )


def with_read_groups(
    options: argparse.Namespace, files: ReadFiles, output: AlignmentOutput
) -> tuple[ReadFiles, AlignmentOutput]:
    """Return the files and the output with a read group per file, if several were given.

    Raises
    ------
    UsageError
        If they do not match the files, or cannot be combined with other options.
    """
    if len(options.read_group) < 2:
        return files, output
    given = [*files.first, *files.single]
    if len(options.read_group) != len(given):
        raise UsageError(
            f"--read-group is given {len(options.read_group):,} times for "
            f"{counted(len(given), 'file')}: give one for all reads, or one for each file of -1 "
            "and --single"
        )
    lines: dict[bytes, str] = {}
    groups = []
    for line, group in map(parse_read_group, options.read_group):
        if lines.setdefault(group, line) != line:
            raise UsageError(
                f"read group {group.decode()!r} is given with different lines: give each group "
                "another ID"
            )
        groups.append(group)
    if len(lines) == 1:
        return files, output
    if options.comments or any(map(holds_records, given)):
        raise UsageError(
            "several read groups require FASTQ without --comments: map each file separately, and "
            "use bwarp merge"
        )
    if any(AUTO in line.split("\t") for line in lines.values()):
        raise UsageError("PU:auto requires a single read group: write the platform units")
    return (
        replace(files, groups=tuple(groups)),
        replace(output, read_group="\n".join(lines.values()), read_group_id=b""),
    )


def say_without_effect(options: argparse.Namespace, declared: Sequence[Option]) -> None:
    """Say which of the given options have no effect, and why."""
    for option in declared:
        if getattr(options, option.name) is not option.default:
            say(f"{option.flags[-1]} has {option.help}")


def check_files(options: argparse.Namespace) -> CheckFiles | None:
    """Return the files of --qc, or None without --qc."""
    if options.qc is None:
        if options.qc_regions is not None:
            raise UsageError("--qc-regions requires --qc")
        return None
    return CheckFiles(options.qc, options.output, options.qc_regions)

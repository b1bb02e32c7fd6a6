"""Merge the sorted BAM files of a sample's units into BAM or CRAM, and sum their statistics."""

import os
from functools import partial
from pathlib import Path

from bwarp.bam.duplicate_metrics import metrics_text
from bwarp.bam.header import program_record, with_program
from bwarp.bam.sorted_file import merge_files, sorted_file, templates_of_files
from bwarp.cli.options import check_files, warn_of_unmapped_reads, warn_of_unnamed_reference
from bwarp.cli.program import program_parser
from bwarp.counted import counted
from bwarp.errors import UsageError
from bwarp.index.store import load_index
from bwarp.io.atomic_output import check_outputs, named_together, private_folder, write_text
from bwarp.options.common import INDEX_FOLDER, output
from bwarp.options.mapping import (
    BARCODE_TAG,
    CRAM_VERSION,
    CRAM_VERSIONS,
    DUPLICATE_METRICS,
    DUPLICATE_TAGS,
    MARK_DUPLICATES,
    OPTICAL_DISTANCE,
    QC,
    QC_REGIONS,
    REFERENCE_OF_CRAM,
    check_duplicate_options,
    counted_distance,
)
from bwarp.records.alignment_file import files_of, put_in_place
from bwarp.records.output_options import default_sort_bytes, naming_reference, write_sequences
from bwarp.records.statistics import (
    merged_statistics,
    read_statistics,
    statistics_of_parts,
    statistics_text,
)
from bwarp.runtime.progress import say

EXAMPLES = """
bwarp merge lane1.bam lane2.bam -o sample.bam
bwarp merge lane1.bam lane2.bam -o sample.cram --index genome.index
bwarp merge 1.bam 2.bam other.bam --units lane1 lane1 lane2 -o sample.bam
"""


def parse_options():
    parser = program_parser(
        __doc__ + " Each X.bam has its statistics in X.stats.json, written by bwarp map --stats; "
        "the output gets their sum and an index.",
        EXAMPLES,
        output("OUT.bam|OUT.cram", "sorted file to write, with its index"),
        INDEX_FOLDER._replace(
            required=False,
            help="for CRAM: the index that the units were mapped to, which contains the reference",
        ),
        REFERENCE_OF_CRAM,
        CRAM_VERSION,
        MARK_DUPLICATES,
        BARCODE_TAG,
        OPTICAL_DISTANCE,
        DUPLICATE_METRICS,
        DUPLICATE_TAGS,
        QC,
        QC_REGIONS,
    )
    parser.add_argument("units", nargs="+", metavar="UNIT.bam", help="sorted BAM files")
    parser.add_argument(
        "--units", dest="names", nargs="+", metavar="NAME",
        help="unit of each file; files of the same unit are its parts, in order (default: each "
        "file is a unit with the name of the file)",
    )  # fmt: skip
    return parser


def main(options):
    output = Path(options.output)
    check_format(options)
    counts = [Path(unit).with_suffix(".stats.json") for unit in options.units]
    outputs = [*files_of(options.output), output.with_suffix(".stats.json")]
    outputs.append(options.duplicate_metrics)
    qc = check_files(options)
    outputs += qc.outputs if qc is not None else []
    inputs = [*options.units, *counts, options.index, options.reference, options.qc_regions]
    check_outputs(outputs, inputs)
    units = files_of_units(options)
    statistics = {
        name: statistics_of_parts(
            [read_statistics(Path(file).with_suffix(".stats.json")) for file in files]
        )
        for name, files in units.items()
    }
    with named_together(), private_folder(output) as folder:
        made = folder.absolute() / f"out{output.suffix}"
        if output.suffix == ".cram":
            reference = load_index(options.index).reference
            write_sequences(reference, options.reference, folder, options.threads)
        files = [file for files in units.values() for file in files]
        duplicates = None
        if options.mark_duplicates:
            duplicates = templates_of_files(
                files, options.barcode_tag, counted_distance(options), options.threads, folder,
                default_sort_bytes(options.threads), options.duplicate_tags,
            )  # fmt: skip
            first = 0
            for name, parts in units.items():
                if len(parts) > 1:
                    # Duplicates marked within a part ignore the other parts.
                    of_unit = range(first, first + len(parts))
                    statistics[name]["duplicates"] = duplicates.count_in(of_unit)
                first += len(parts)
            duplicates.find()
        merge_files(
            files,
            made,
            options.threads,
            options.output,
            partial(
                sorted_file, cram_version=options.cram_version or CRAM_VERSIONS[0], check_files=qc
            ),
            lambda header: naming_reference(
                with_program(header, merging_program(options)), options.reference
            ),
            duplicates,
        )
        found = None if duplicates is None else duplicates.counts.reads
        merged_counts = merged_statistics(statistics, found)
        write_text(output.with_suffix(".stats.json"), statistics_text(merged_counts))
        if duplicates is not None and options.duplicate_metrics:
            write_text(options.duplicate_metrics, metrics_text(duplicates.counts))
        put_in_place(made, os.path.realpath(output))
    found = merged_counts["duplicates"]
    marked = "" if found is None else f", {counted(found, 'duplicate')}"
    warn_of_unnamed_reference(options.output, options.reference)
    say(f"{output}: {counted(len(statistics), 'unit')} merged{marked}")
    warn_of_unmapped_reads(merged_counts["reads"], merged_counts["mapped"])


def merging_program(options) -> str:
    """Return the @PG record, with every option that affects the records.

    Like the bytes of the file, it does not depend on the number of parts.
    """
    return program_record(
        "merge UNIT.bam",
        {"-o": "OUT.bam"},
        {
            "mark-duplicates": options.mark_duplicates,
            "barcode-tag": options.barcode_tag,
            "optical-distance": options.optical_distance if options.duplicate_tags else None,
            "duplicate-tags": options.duplicate_tags,
        },
    )


def check_format(options) -> None:
    """Reject outputs that are not BAM or CRAM, and options that do not apply."""
    ending = Path(options.output).suffix
    if ending not in (".bam", ".cram"):
        raise UsageError(f"{options.output}: the output must end in .bam or .cram")
    if ending == ".cram" and options.index is None:
        raise UsageError(f"{options.output}: CRAM output requires --index")
    if ending == ".bam" and (options.index or options.reference or options.cram_version):
        raise UsageError(
            f"{options.output}: --index, --reference and --cram-version require CRAM output"
        )
    check_duplicate_options(options)


def files_of_units(options) -> dict[str, list[str]]:
    """Return the files of each unit by its name."""
    units = {}
    if options.names is None:
        for file in options.units:
            name = Path(file).stem
            if name in units:
                raise UsageError(f"{file}: an earlier unit is also named {name}: rename one")
            units[name] = [file]
        return units
    if len(options.names) != len(options.units):
        raise UsageError(
            f"--units has {counted(len(options.names), 'name')} for "
            f"{counted(len(options.units), 'file')}: name the unit of each file"
        )
    for name, file in zip(options.names, options.units, strict=True):
        units.setdefault(name, []).append(file)
    return units

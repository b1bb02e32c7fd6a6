# The sample sheet: its samples, their units, and the reads of each.
import os
from pathlib import Path

from bwarp_sheet import files_of_cell, read_sheet


def read_units():
    """Return the rows of the sample sheet by sample and unit."""
    sheet = config.get("samples")
    if not isinstance(sheet, str) or not os.path.isfile(sheet):
        return {}
    rows, _ = read_sheet(sheet, Path(sheet).read_bytes(), SHEET_SCHEMA)
    cells = [
        {"unit": "1", "platform": "ILLUMINA", "interleaved": "no", **row.cells} for row in rows
    ]
    return {(row["sample"], row["unit"]): row for row in cells}


def of_samples(files):
    """Return an input function for these files, which require a sample sheet."""

    def named(wildcards):
        if not SAMPLES:
            message = "is missing: write the path of a sample sheet such as config/samples.tsv"
            refuse([Problem("the configuration", None, "samples", message)])
        return files

    return named


# Columns of the sheet that name reads, and the option for each.
READ_COLUMNS = {"fq1": "-1", "fq2": "-2", "fq_single": "--single"}

# Columns of the sheet that go into a read group.
GROUP_COLUMNS = {"platform": "PL", "library": "LB", "platform_unit": "PU", "center": "CN"}


def reads_in(row):
    """Return the read files of a row of the sheet."""
    return [path for key in READ_COLUMNS for path in files_of_cell(row.get(key))]


def reads_of(wildcards):
    """Return the files of a unit."""
    return list(map(as_named, reads_in(UNITS[wildcards.sample, wildcards.unit])))


def holds_pairs(wildcards):
    """Return whether the reads of a unit are pairs; for BAM and CRAM their flags tell."""
    row = UNITS[wildcards.sample, wildcards.unit]
    paths = map(seen_here, files_of_cell(row["fq1"]))
    records = [path for path in paths if path.endswith((".bam", ".cram"))]
    if not records or not all(map(os.path.isfile, records)):
        return "fq2" in row or row["interleaved"] == "yes"
    from bwarp.reads.record_files import has_pairs

    return any(map(has_pairs, records))


def read_options(row, paths):
    """Return -1, -2 and --single with the files of a row, and --interleaved."""
    paths, words = iter(paths), []
    for key, option in READ_COLUMNS.items():
        named = [next(paths) for _ in files_of_cell(row.get(key))]
        words += [option, *named] if named else []
    return [*words, *(["--interleaved"] if row["interleaved"] == "yes" else [])]


def read_files(wildcards, input):
    """Return the options for the files of a unit."""
    return read_options(UNITS[wildcards.sample, wildcards.unit], input.reads)


def reads_in_order(wildcards):
    """The same options with the paths of the sheet.

    Snakemake compares the inputs of a job with those of an earlier run, but not their order, and no
    params that depend on inputs. These show that two files were exchanged.
    """
    row = UNITS[wildcards.sample, wildcards.unit]
    return read_options(row, reads_in(row))


def units_in_order(wildcards):
    """Return the units of a sample in the order of the sheet, in which records are merged."""
    return [unit for _, unit in UNITS_OF[wildcards.sample]]


def read_group(wildcards):
    """Return the read group of a unit."""
    sample, unit = wildcards.sample, wildcards.unit
    row = UNITS[sample, unit]
    tags = [f"{tag}:{row[column]}" for column, tag in GROUP_COLUMNS.items() if column in row]
    return ["--read-group", r"\t".join(["@RG", f"ID:{sample}.{unit}", f"SM:{sample}", *tags])]


# Keys of the section map for which mapping jobs have no flags.
NOT_OF_JOBS = (
    "batch_reads", "keep_units", "output", "cram_version", "duplicate_tags", "qc", "qc_regions",
    "timeline",
)  # fmt: skip


def map_options(wildcards):
    """Return the read group of a unit, and the flags for the section map."""
    return [*read_group(wildcards), *flags(config["map"], *NOT_OF_JOBS)]

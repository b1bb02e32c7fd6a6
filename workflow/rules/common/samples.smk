# The sample sheet: its samples, their units, and the reads of each.
import os
from pathlib import Path

from bwarp_configuration import read_sheet


def read_units():
    """The rows of the sample sheet by sample and unit."""
    sheet = config.get("samples")
    if not isinstance(sheet, str) or not os.path.isfile(sheet):
        return {}
    rows, _ = read_sheet(sheet, Path(sheet).read_bytes(), read_schema("samples"))
    cells = [{"unit": "1", "platform": "ILLUMINA", **row.cells} for row in rows]
    return {(row["sample"], row["unit"]): row for row in cells}


def of_samples(files):
    """An input function: these files, which there are none of without a sample sheet."""

    def named(wildcards):
        if not SAMPLES:
            message = "is missing; write the path of a sample sheet such as config/samples.tsv"
            refuse([Problem("the configuration", None, "samples", message)])
        return files

    return named


def reads_of(wildcards):
    """The one or two files of a unit."""
    row = UNITS[wildcards.sample, wildcards.unit]
    return [as_named(row[key]) for key in ("fq1", "fq2") if row.get(key)]


def read_files(wildcards, input):
    """-1 and -2 with the files of a unit."""
    return [word for pair in zip(("-1", "-2"), input.reads) for word in pair]


def read_group(wildcards):
    """The read group of a unit."""
    sample, unit = wildcards.sample, wildcards.unit
    group = rf"@RG\tID:{sample}.{unit}\tSM:{sample}\tPL:{UNITS[sample, unit]['platform']}"
    return ["--read-group", group]


def map_options(wildcards):
    """The read group of a unit, and the flags for the section map."""
    return [*read_group(wildcards), *flags(config["map"])]


def units_of(ending):
    """An input function: a file of every unit of a sample."""

    def paths(wildcards):
        return [
            f"results/map/units/{sample}/{unit}{ending}"
            for sample, unit in UNITS
            if sample == wildcards.sample
        ]

    return paths

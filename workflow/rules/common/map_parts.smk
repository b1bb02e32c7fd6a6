# Split the reads of a large unit into parts, each mapped by a separate job.
import os
from pathlib import Path

from bwarp.io.sequence_parts import estimated_reads
from bwarp.options.mapping import ALIGNMENT

# With `batch_reads: auto`: a few minutes of work for 16 cores, which is long relative to queueing.
AUTO_BATCH_READS = 50_000_000

# Pieces per part: parts consist of whole pieces, so their sizes differ by at most an eighth.
PIECES = 8

BATCH_READS = {"auto": AUTO_BATCH_READS}.get(
    config["map"]["batch_reads"], config["map"]["batch_reads"]
)


def piece_size(wildcards, input):
    """Return the number of reads per piece; like `batch_size`, not compared with an earlier run."""
    return max(1, BATCH_READS // PIECES)


def n_reads_of(row):
    """Estimate the number of reads of a unit; 0 if its files do not exist yet."""
    paths = list(map(seen_here, reads_in(row)))
    if not all(map(os.path.isfile, paths)):
        return 0
    return sum(map(estimated_reads, paths))


# The units that are split, and their numbers of parts. This depends on file sizes rather than a
# checkpoint, so that all jobs are known from the start, and temporary files can be removed once
# mapped.
PARTS = {}
if BATCH_READS:
    for key, row in UNITS.items():
        n_parts = -(-n_reads_of(row) // BATCH_READS)
        if n_parts > 1:
            PARTS[key] = n_parts


def parts_of_unit(sample, unit):
    """Return the files of a unit without extensions: one, or those of its parts."""
    n_parts = PARTS.get((sample, unit), 1)
    if n_parts == 1:
        return [f"results/map/units/{sample}/{unit}"]
    return [
        f"results/map/parts/{sample}/{unit}/{part}-of-{n_parts}" for part in range(1, n_parts + 1)
    ]


def file_of_unit(path):
    """Return an output of a unit or part, which is removed after merging unless it is to be kept."""
    return path if config["map"]["keep_units"] else temp(path)


def timeline_of(path):
    """Return the additional output of a mapping job if timelines are wanted."""
    return {"timeline": path} if config["map"]["timeline"] else {}


def timeline_flags(wildcards, output):
    """Return --timeline with the result of `timeline_of`."""
    return ["--timeline", output.timeline] if config["map"]["timeline"] else []


def timelines():
    """Return the pictures of all mapping jobs, if wanted."""
    if not config["map"]["timeline"]:
        return []
    return [
        f"results/map/timelines/{sample}/{unit}/{Path(path).name if n_parts > 1 else 'all'}.svg"
        for sample, unit in UNITS
        for n_parts in [PARTS.get((sample, unit), 1)]
        for path in parts_of_unit(sample, unit)
    ]


def timeline_labels(wildcards):
    """Return the name of a timeline picture in the report."""
    labels = {"sample": wildcards.sample, "unit": wildcards.unit}
    return labels if wildcards.part == "all" else labels | {"part": wildcards.part}


def parts_of(ending):
    """Return an input function: one file per unit of a sample, or per part."""

    def paths(wildcards):
        return [
            f"{path}{ending}"
            for sample, unit in UNITS_OF[wildcards.sample]
            for path in parts_of_unit(sample, unit)
        ]

    return paths


def unit_names(wildcards):
    """Return --units with the unit of every file."""
    names = [
        unit
        for sample, unit in UNITS_OF[wildcards.sample]
        for _ in range(PARTS.get((sample, unit), 1))
    ]
    return ["--units", *names]


def merging_flags(wildcards):
    """Return how to find duplicates, if wanted."""
    names = ("mark_duplicates", "barcode_tag", "optical_distance", "duplicate_tags")
    return flags_for(config["map"], *names)


def metrics_flags(wildcards, output):
    """Return the file for the counts of duplicates, if they are marked."""
    return ["--duplicate-metrics", output.metrics] if METRICS else []


def check_flags(wildcards, input, output):
    """Return the folder for the files of samtools and mosdepth, and the regions, if wanted."""
    if not CHECKS:
        return []
    regions = ["--qc-regions", *input.qc_regions] if input.qc_regions else []
    return ["--qc", os.path.dirname(output.checks[0]), *regions]


def cram_flags(wildcards, input):
    """Return the reference of CRAM files, and the version of CRAM."""
    if MAP_FORMAT != "cram":
        return []
    version = format(config["map"]["cram_version"], ".1f")
    files = ["--index", *input.index, "--reference", *input.reference]
    return [*files, "--cram-version", version]


def measured_insert_size(wildcards):
    """Return the insert size of a unit of pairs, unless the configuration gives one."""
    settings = config["map"]
    if settings["hic"] or "insert_size" in settings or not holds_pairs(wildcards):
        return []
    return ["results/map/parts/{sample}/{unit}/insert_size.json".format(**wildcards)]


def part_flags(wildcards, input):
    """Return the flags for a part of a unit, and for the estimates from the whole unit."""
    words = ["--batches", input.reads, "--part", f"{wildcards.part}/{wildcards.parts}"]
    for path in input.insert_size:
        words += ["--estimated-insert-size", path]
    return words


def alignment_flags(wildcards):
    """Return the settings of the section map that affect the estimate of insert sizes."""
    return flags_for(config["map"], *ALIGNMENT)

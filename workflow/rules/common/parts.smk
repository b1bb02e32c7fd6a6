# Into how many parts the reads of a large unit are cut, each of which is mapped by a job of its own.
import os
from pathlib import Path

from bwarp.io.sequence_parts import estimated_reads
from bwarp.options.mapping import ALIGNMENT

# With `batch_reads: auto`: some minutes of work for 16 cores, beside which a queue counts little.
AUTO_BATCH_READS = 50_000_000

# Pieces of a part: parts consist of whole ones, and so are alike to an eighth.
PIECES = 8

BATCH_READS = {"auto": AUTO_BATCH_READS}.get(
    config["map"]["batch_reads"], config["map"]["batch_reads"]
)


def piece_size(wildcards, input):
    """The reads of a piece; not compared with that of an earlier run, as `batch_size`."""
    return max(1, BATCH_READS // PIECES)


def n_reads_of(row):
    """About how many reads a unit has; none where its files are not there yet."""
    paths = list(map(seen_here, reads_in(row)))
    if not all(map(os.path.isfile, paths)):
        return 0
    return sum(map(estimated_reads, paths))


# The units that are cut, and into how many parts. By sizes, not by a checkpoint: what will run is
# known from the start, and what was cut can be removed once it is mapped.
PARTS = {}
if BATCH_READS:
    for key, row in UNITS.items():
        n_parts = -(-n_reads_of(row) // BATCH_READS)
        if n_parts > 1:
            PARTS[key] = n_parts


def parts_of_unit(sample, unit):
    """The files of a unit without their endings: one, or those of its parts."""
    n_parts = PARTS.get((sample, unit), 1)
    if n_parts == 1:
        return [f"results/map/units/{sample}/{unit}"]
    return [
        f"results/map/parts/{sample}/{unit}/{part}-of-{n_parts}" for part in range(1, n_parts + 1)
    ]


def timeline_of(path):
    """What a job of mapping writes besides, where timelines are wanted."""
    return {"timeline": path} if config["map"]["timeline"] else {}


def timeline_flags(wildcards, output):
    """--timeline with what `timeline_of` named."""
    return ["--timeline", output.timeline] if config["map"]["timeline"] else []


def timelines():
    """The pictures of all jobs of mapping, where they are wanted."""
    if not config["map"]["timeline"]:
        return []
    return [
        f"results/map/timelines/{sample}/{unit}/{Path(path).name if n_parts > 1 else 'all'}.svg"
        for sample, unit in UNITS
        for n_parts in [PARTS.get((sample, unit), 1)]
        for path in parts_of_unit(sample, unit)
    ]


def timeline_labels(wildcards):
    """What the report calls the picture of a timeline."""
    labels = {"sample": wildcards.sample, "unit": wildcards.unit}
    return labels if wildcards.part == "all" else labels | {"part": wildcards.part}


def parts_of(ending):
    """An input function: a file of every unit of a sample, or of each of its parts."""

    def paths(wildcards):
        return [
            f"{path}{ending}"
            for sample, unit in UNITS_OF[wildcards.sample]
            for path in parts_of_unit(sample, unit)
        ]

    return paths


def unit_names(wildcards):
    """--units with the unit of every file."""
    names = [
        unit
        for sample, unit in UNITS_OF[wildcards.sample]
        for _ in range(PARTS.get((sample, unit), 1))
    ]
    return ["--units", *names]


def merging_flags(wildcards):
    """How duplicates are found, if they are looked for."""
    return flags_for(config["map"], "mark_duplicates", "barcode_tag")


def cram_flags(wildcards, input):
    """Where the bases of the reference are that CRAM refers to, and which CRAM."""
    if MAP_FORMAT != "cram":
        return []
    version = format(config["map"]["cram_version"], ".1f")
    files = ["--index", *input.index, "--reference", *input.reference]
    return [*files, "--cram-version", version]


def measured_insert_size(wildcards):
    """The insert size of a unit of pairs, where the configuration gives none."""
    settings = config["map"]
    if settings["hic"] or "insert_size" in settings or not holds_pairs(wildcards):
        return []
    return ["results/map/parts/{sample}/{unit}/insert_size.json".format(**wildcards)]


def part_flags(wildcards, input):
    """The flags for a part of a unit, and for what was estimated of the whole."""
    words = ["--batches", input.reads, "--part", f"{wildcards.part}/{wildcards.parts}"]
    for path in input.insert_size:
        words += ["--estimated-insert-size", path]
    return words


def alignment_flags(wildcards):
    """What the section map says of scores and orientation, by which insert sizes are estimated."""
    return flags_for(config["map"], *ALIGNMENT)

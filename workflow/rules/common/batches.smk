# The batches of reads that the steps of allmap work on, and what they need of each other.
from itertools import takewhile
from pathlib import Path


def batch_folder(sample, unit):
    """The folder of the batches of a unit, once the checkpoint has run: of a storage the one there."""
    made = checkpoints.batch_reads.get(sample=sample, unit=unit).output[0]
    if STORAGE == "fs":
        return Path(seen_here(path_here(f"results/allmap/batches/{sample}/{unit}")))
    return Path(made)


def batches_of(sample, unit):
    """The numbers of the batches that the reads of a unit have been cut into."""
    return sorted(int(path.stem) for path in batch_folder(sample, unit).glob("*.reads"))


def batch_of(wildcards):
    """The file of a batch: it is there once the checkpoint has run."""
    batches_of(wildcards.sample, wildcards.unit)
    return "results/allmap/batches/{sample}/{unit}/{batch}.reads".format(**wildcards)


def first_round(wildcards):
    """What the first round has found, for the second."""
    if wildcards.round == "1":
        return []
    return ["results/allmap/units/{sample}/{unit}/{batch}.1.loci".format(**wildcards)]


def after_flags(wildcards, input):
    """--after with what `first_round` named."""
    return [word for path in input.first_round for word in ("--after", path)]


def is_paired(wildcards):
    """Whether the proper pairs of a unit are reported, not its reads one by one."""
    return holds_pairs(wildcards) and not section("allmap")["unpaired"]


def rounds_of(wildcards):
    """The loci of all rounds: a proper pair may have any locus of its ends, so pairs have one."""
    path = "results/allmap/units/{sample}/{unit}/{batch}".format(**wildcards)
    numbers = (1,) if is_paired(wildcards) else ALLMAP_ROUNDS
    return [f"{path}.{number}.loci" for number in numbers]


def batch_size(wildcards, input):
    """The reads of a batch.

    What depends on inputs is not compared with that of an earlier run: results are the same for any
    size, so batches that are there stay.
    """
    return section("allmap")["batch_size"]


def first_batches(path):
    """An input function: a file of each of the batches that the insert size is estimated from."""

    def paths(wildcards):
        from bwarp.mapping.insert_size import FIRST_PAIRS
        from bwarp.reads.stored_reads import first_template_of

        sample, unit = wildcards.sample, wildcards.unit
        folder = batch_folder(sample, unit)
        first = takewhile(
            lambda batch: first_template_of(folder / f"{batch}.reads") < FIRST_PAIRS,
            batches_of(sample, unit),
        )
        return [path.format(**wildcards, batch=batch) for batch in first]

    return paths


def estimated_insert_size(wildcards):
    """The insert size of a unit of pairs, where the configuration gives none."""
    if not is_paired(wildcards) or "insert_size" in section("allmap"):
        return []
    return ["results/allmap/units/{sample}/{unit}/insert_size.json".format(**wildcards)]


def estimated_insert_size_flags(wildcards, input):
    """--estimated-insert-size with what `estimated_insert_size` named."""
    return [word for path in input.insert_size for word in ("--estimated-insert-size", path)]


def orientation_flags(wildcards):
    """The flag for the orientation that the estimate is made of."""
    return flags_for(section("allmap"), "orientation")


def locus_limits(wildcards):
    """Which loci of a unit are searched: of pairs all."""
    left_out = "report" if is_paired(wildcards) else None
    return flags_for(section("allmap"), *(key for key in LOCI_SEARCHED if key != left_out))


def to_verify(wildcards):
    """The hits that are verified: all, or those that the filter has left."""
    kind = "hits" if section("allmap")["filter"] == "off" else "candidates"
    path = "results/allmap/units/{sample}/{unit}/{batch}.{round}".format(**wildcards)
    return f"{path}.{kind}"


def locus_flags(wildcards):
    """What is written of the loci of a unit: its read group, where the format knows one."""
    settings, keys = section("allmap"), list(LOCI_WRITTEN)
    if is_paired(wildcards):
        keys.append("report")
        keys += ["insert_size", "orientation"] if "insert_size" in settings else []
    words = flags_for(settings, *keys)
    return [*read_group(wildcards), *words] if ALLMAP_FORMAT == "bam" else words


def batches(*endings):
    """An input function: files of every batch of a sample."""

    def paths(wildcards):
        return [
            f"results/allmap/units/{sample}/{unit}/{batch}.{ending}"
            for sample, unit in UNITS
            if sample == wildcards.sample
            for batch in batches_of(sample, unit)
            for ending in endings
        ]

    return paths


def times_of_steps(wildcards, input, output):
    """What Snakemake has measured of the jobs of a sample, as far as it is there."""
    results = Path(output.table).parent.parent
    logs, sample = results.parent / "logs", wildcards.sample
    names = [f"merge_loci/{sample}"]
    for unit in [unit for other, unit in UNITS if other == sample]:
        names.append(f"batch_reads/{sample}/{unit}")
        for batch in sorted((results / "allmap" / "batches" / sample / unit).glob("*.reads")):
            names.append(f"write_alignments/{sample}/{unit}/{batch.stem}")
            names += [
                f"{step}/{sample}/{unit}/{batch.stem}.{number}"
                for step in ("seed_reads", "locate_seeds", "filter_candidates", "extend_candidates")
                for number in ALLMAP_ROUNDS
            ]
    paths = [logs / f"{name}.benchmark.tsv" for name in names]
    return [str(path) for path in paths if path.exists()]

# The batches of reads that the steps of allmap process, and their inputs.
import os
from itertools import takewhile
from pathlib import Path

from bwarp_pipes import cores_in_pipes, threads_in_pipes
from snakemake.exceptions import IncompleteCheckpointException

from bwarp.gpu.device import DEVICES, DRIVER, visible_gpus


def batch_folder(sample, unit):
    """Return the folder of a unit's batches after the checkpoint; for a storage, a local copy."""
    made = checkpoints.batch_reads.get(sample=sample, unit=unit).output[0]
    # A local copy may be missing.
    return Path(made.storage_object.query if STORAGE == "fs" else made)


def batches_of(sample, unit):
    """Return the numbers of the batches of a unit."""
    return sorted(int(path.stem) for path in batch_folder(sample, unit).glob("*.reads"))


def made_batch(wildcards, number):
    """Return the existing file of a batch; None before the checkpoint.

    A job on another machine asks too, before it knows that the checkpoint has run.
    """
    try:
        path = batch_folder(wildcards.sample, wildcards.unit) / f"{number}.reads"
    except IncompleteCheckpointException:
        return None
    return path if path.is_file() else None


def batch_of(wildcards):
    """Return the file of a batch, after the checkpoint."""
    batches_of(wildcards.sample, wildcards.unit)
    return "results/allmap/batches/{sample}/{unit}/{batch}.reads".format(**wildcards)


def first_round(wildcards):
    """Return the results of the first round, for the second."""
    if wildcards.round == "1":
        return []
    return ["results/allmap/units/{sample}/{unit}/{batch}.1.loci".format(**wildcards)]


def after_flags(wildcards, input):
    """Return --after with the result of `first_round`."""
    return [word for path in input.first_round for word in ("--after", path)]


def is_paired(wildcards):
    """Return whether the proper pairs of a unit are reported, rather than its reads."""
    return holds_pairs(wildcards) and not section("allmap")["unpaired"]


def rounds_of(wildcards):
    """Return the loci of all rounds; one for pairs, which may have any locus of their ends."""
    path = "results/allmap/units/{sample}/{unit}/{batch}".format(**wildcards)
    numbers = (1,) if is_paired(wildcards) else ALLMAP_ROUNDS
    return [f"{path}.{number}.loci" for number in numbers]


def batch_size_flags(wildcards, input):
    """Return the flag for the number of reads per batch, or for the engine that will search them.

    Snakemake does not compare parameters that depend on inputs with those of an earlier run.
    Results are the same for any size, so existing batches are kept.
    """
    size = section("allmap")["batch_size"]
    if size == "auto":
        return ["--backend", "cuda" if gpus(wildcards) else "cpu"]
    return ["--batch-size", size]


def cores_for_pipes():
    """Return the cores of the steps of a batch if pipes connect them, and 0 if files do.

    Pipes are used on one machine with one GPU, which the steps share. If steps ran one after
    another, the GPU would be idle between them. Without a GPU, steps of two batches at the same
    time keep the cores as busy. With several GPUs, steps of several batches use them.
    With a limit on memory, steps run one by one.
    """
    limits = workflow.resource_settings
    has_one_gpu = gpus(None) and len(visible_gpus(os.environ, DRIVER, DEVICES)) < 2
    has_limit = any(name.startswith("mem") for name in limits.resources)
    if STORAGE or has_limit or not jobs_run_here() or not has_one_gpu:
        return 0
    return cores_in_pipes(limits.cores)


def may_hold_pairs(row):
    """Return whether a row of the sample sheet may have pairs; BAM and CRAM may."""
    records = [path for path in files_of_cell(row["fq1"]) if path.endswith((".bam", ".cram"))]
    return bool(records) or "fq2" in row or row["interleaved"] == "yes"


def are_loci_read_once(settings, rounds):
    """Return whether only the last step reads the loci of a batch: neither a second round nor an
    estimate of the insert size does.
    """
    pairs = not settings.get("unpaired") and any(map(may_hold_pairs, UNITS.values()))
    return len(rounds) == 1 and ("insert_size" in settings or not pairs)


def group_of_batch(wildcards):
    """Return the group of the steps of a batch: one job on a cluster, and none on this machine.

    With a storage, each step is a job, because groups have not been tested with one.
    """
    return None if STORAGE or jobs_run_here() else "allmap_batch"


def group_of_writing(wildcards):
    """Return the group of the last step of a batch: that of the others, unless an estimate from
    several batches comes in between.
    """
    return None if estimated_insert_size(wildcards) else group_of_batch(wildcards)


def first_batches(path):
    """Return an input function: one file per batch from which the insert size is estimated."""

    def paths(wildcards):
        from bwarp.mapping.first_pairs import FIRST_PAIRS
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
    """Return the insert size of a unit of pairs, unless the configuration gives one."""
    if not is_paired(wildcards) or "insert_size" in section("allmap"):
        return []
    return ["results/allmap/units/{sample}/{unit}/insert_size.json".format(**wildcards)]


def estimated_insert_size_flags(wildcards, input):
    """Return --estimated-insert-size with the result of `estimated_insert_size`."""
    return [word for path in input.insert_size for word in ("--estimated-insert-size", path)]


def orientation_flags(wildcards):
    """Return the flag for the orientation to estimate for."""
    return flags_for(section("allmap"), "orientation")


def locus_limits(wildcards):
    """Return which loci of a unit are searched; all for pairs."""
    left_out = "report" if is_paired(wildcards) else None
    return flags_for(section("allmap"), *(key for key in LOCI_SEARCHED if key != left_out))


def to_verify(wildcards):
    """Return the hits to verify: all, or those that passed the filter."""
    kind = "hits" if section("allmap")["filter"] == "off" else "candidates"
    path = "results/allmap/units/{sample}/{unit}/{batch}.{round}".format(**wildcards)
    return f"{path}.{kind}"


def extension_flags(wildcards):
    """Return how the reads of a unit are aligned; for pairs, at all loci of their ends."""
    keys = LOCI_ALIGNED if is_paired(wildcards) else ("max_places", *LOCI_ALIGNED)
    return flags_for(section("allmap"), *keys)


def locus_flags(wildcards):
    """Return which loci of a unit are written, and its read group if the format has read groups."""
    settings, keys = section("allmap"), ["max_places"]
    if is_paired(wildcards):
        keys.append("report")
        keys += ["insert_size", "orientation"] if "insert_size" in settings else []
    words = flags_for(settings, *keys)
    if ALLMAP_FORMAT == "bam":
        words = [*read_group(wildcards), "--uncompressed", *words]
    return words


def batches(*endings):
    """Return an input function: files of every batch of a sample."""

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
    """Return Snakemake's existing benchmark files of the jobs of a sample."""
    results = Path(output.table).parent.parent
    sample = wildcards.sample
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
    return existing_benchmarks(results, names)


def passed_on(path, to):
    """Return the output of a step: a pipe to the following step, or a temporary file."""
    return pipe(path) if to in IN_PIPES else temp(path)


def step_threads(step):
    """Return a function for the threads of a step."""
    if step not in IN_PIPES:
        return batch_threads
    return lambda wildcards: threads_in_pipes(step, IN_PIPES, CORES_IN_PIPES)


def gpus_after_seeding(wildcards):
    """Return the GPUs of a job after seed_reads: with pipes none, as it shares that of seed_reads."""
    return 0 if IN_PIPES else gpus(wildcards)


def gpus_shared(wildcards, resources):
    """Return the GPUs that a job after seed_reads uses, for params."""
    return gpus(wildcards) if IN_PIPES else gpus_given(wildcards, resources)

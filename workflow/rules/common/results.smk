# Messages at the end of a run, and contents of its report.
import json
import os
import shutil
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

from snakemake.settings.types import DeploymentMethod

from bwarp_configuration import listed

from bwarp.checks.check_numbers import with_checks
from bwarp.report.mapping_summary import summarise, summary_lines

# The results of each target, for the list at the end of a run; every rule file adds its own.
RESULTS = {}

# The targets with a manifest.
MANIFESTS = ("map", "allmap", *TABLES)


def print_results():
    """Summarise the fate of the reads, and list the results, at the end of a run."""
    if os.path.isdir("results"):
        shutil.copyfile(of_checkout("workflow/report/results.md"), "results/README.md")
    summaries = {sample: summary_of(sample) for sample in SAMPLES}
    summaries = {sample: summary for sample, summary in summaries.items() if summary}
    if summaries:
        print("\n".join(["", *summary_lines(summaries), ""]))
    print("Results:")
    for path, what in RESULTS.items():
        if os.path.exists(path):
            print(f"  {path:<40}  {what}")
    if not HAS_MULTIQC:
        print("No page of MultiQC: type pip install -e '.[report]' to install it.")
    print_truth()


def summary_of(sample):
    """Return the mapping statistics of a sample; None if it has not been mapped."""
    statistics, truth = (
        json.loads(Path(path).read_text()) if os.path.exists(path) else None
        for path in (f"results/map/{sample}.stats.json", f"results/qc/truth/{sample}.json")
    )
    if statistics is None:
        return None
    # The statistics may be those of an earlier run without these files.
    checks = expand(CHECKS, sample=sample)
    if checks and all(map(os.path.exists, checks)):
        statistics = with_checks(statistics, os.path.dirname(CHECKS[0]), sample)
    return summarise(statistics, truth)


def print_truth():
    """Report how many reads of the demo are mapped to the origin in their names."""
    from bwarp.evaluation.agreement import TruthCounts

    for sample in SIMULATED:
        path = Path(f"results/qc/truth/{sample}.json")
        if path.exists():
            counts = TruthCounts(**json.loads(path.read_text()))
            print(
                f"{sum(counts.correct):,} of the demo's {counts.total:,} reads are mapped "
                f"correctly ({100 * sum(counts.correct) / counts.total:.2f} %)."
            )


def manifest_inputs(wildcards):
    """Return the input files of the results of a target."""
    target = wildcards.target
    rules = SCHEMA["properties"][target]["properties"]
    files = [listed(section(target).get(key)) for key, rule in rules.items() if rule.get("file")]
    named = list(chain.from_iterable(files))
    if target in ("map", "allmap"):
        named += [config.get("samples"), *chain.from_iterable(map(reads_in, UNITS.values()))]
    if target not in ("pairs", "search"):
        named = [config["reference"], *alt_list(config["reference"]), *named]
    return [as_named(path) for path in named if path]


def manifest_results(wildcards):
    """Return the files that a target makes."""
    target = wildcards.target
    of_reads = {"map": MAPPED, "allmap": ALLMAPPED}
    if target in of_reads:
        return of_samples(of_reads[target])(wildcards)
    if target == "seeds":
        return SEED_TABLES
    return [path for path in RESULTS if path.startswith(f"results/{target}/")]


def manifest_parameters(wildcards):
    """Return the configuration of a target and, for targets with samples, their units."""
    keys = ("reference", "samples", "index", wildcards.target)
    kept = {"configuration": {key: config[key] for key in keys if key in config}}
    if wildcards.target in ("map", "allmap"):
        kept["units"] = list(UNITS.values())
    return json.dumps(kept)


def existing_benchmarks(results, names):
    """Return Snakemake's existing benchmark files of jobs, next to the folder of results."""
    paths = [results.parent / "logs" / f"{name}.benchmark.tsv" for name in names]
    return [str(path) for path in paths if path.exists()]


def times_of_mapping(wildcards, input, output):
    """Return the benchmark files of indexing and mapping."""
    names = [f"index_reference/{REFERENCE}"]
    for sample, unit in UNITS:
        names += [f"{step}/{sample}/{unit}" for step in ("cut_reads", "map_reads")]
        parts = [Path(path).name for path in parts_of_unit(sample, unit)]
        names += [f"map_part/{sample}/{unit}/{part}" for part in parts]
    return existing_benchmarks(Path(output.page).parent, names)


def previewed_table(wildcards):
    """Return the table of a target for the preview in the report."""
    return result_of(wildcards.target, TABLES[wildcards.target])


def header_option(wildcards):
    """Return whether tables have a header; those in MUMmer's format have none."""
    return "--no-header" if wildcards.target == "mems" else ""


def multiqc_settings(wildcards, input):
    """Return the settings of MultiQC.

    Not compared with an earlier run: from a repository, each run may have a new copy of the file.
    """
    return relative("workflow/report/multiqc.yaml")


# MultiQC is large, and mapping does not need it. Jobs may run in a conda environment.
HAS_MULTIQC = find_spec("multiqc") is not None or (
    REPORT_ENVIRONMENT is not None
    and DeploymentMethod.CONDA in workflow.deployment_settings.deployment_method
)

# Small helpers of the other rule files, and the check of everything the user wrote.
import atexit
import json
import os
import shlex
import sys
from importlib.util import find_spec
from pathlib import Path

import yaml
from snakemake.common import NOTHING_TO_BE_DONE_MSG
from snakemake.io import flag
from snakemake.logging import logger
from snakemake.path_modifier import PATH_MODIFIER_FLAG
from snakemake.settings.types import DeploymentMethod, ExecMode

# Whether this workflow runs by itself, and not as a module of another one.
IS_MAIN = workflow.modifier.is_main_snakefile()

if not isinstance(workflow.current_basedir, os.PathLike):
    clone = "clone bwarp and let the module name workflow/Snakefile of the clone"
    print(f"Nothing was run: the rules call the programs beside them; {clone}.", file=sys.stderr)
    sys.exit(2)

CHECKOUT = Path(workflow.current_basedir).parent.parent
sys.path[:0] = [str(CHECKOUT), str(CHECKOUT / "workflow" / "lib")]

from bwarp.index.alt_list import alt_list_beside
from bwarp.runtime.backend import may_have_gpu
from bwarp_configuration import (
    ConfigFile,
    Problem,
    config_file_problems,
    config_problems,
    in_reading_order,
    read_sheet,
    sheet_file_problems,
    sheet_problems,
    with_defaults,
)
from bwarp.report.mapping_summary import summarise, summary_lines
from bwarp.runtime.source_digest import program_digest

# The programs run with the Python that runs Snakemake, or with that of a conda environment where
# one is active, and in both cases with the library of this checkout.
os.environ.update(PATH=os.pathsep.join([str(Path(sys.executable).parent), *os.get_exec_path()]))
shell.prefix(f"set -euo pipefail; export PYTHONPATH={shlex.quote(str(CHECKOUT))}; ")

# What the rules of demo.smk make; the demo need not be there to be named.
DEMO_GENOME = "resources/demo/demo.fa.gz"
DEMO_READS = ["resources/demo/reads_1.fq.gz", "resources/demo/reads_2.fq.gz"]


def read_schema(name):
    """The parsed schema workflow/schemas/NAME.schema.yaml."""
    return yaml.safe_load((CHECKOUT / "workflow" / "schemas" / f"{name}.schema.yaml").read_text())


def config_files():
    """The configuration files in the order in which later ones override, then the command line."""
    typed = workflow.config_settings
    names = [name for name in workflow.configfiles if name not in typed.configfiles]
    files = [
        ConfigFile.parse(os.path.relpath(name), Path(name).read_text(encoding="utf-8"))
        for name in [*names, *typed.configfiles]
    ]
    return [*files, ConfigFile("--config", {(key,): None for key in typed.config}, ())]


def check_configuration():
    """Every problem of the configuration and of the sample sheet."""
    # Where this workflow is a module of another one, that one may make the input files.
    check_files = IS_MAIN
    made = {DEMO_GENOME, *DEMO_READS}
    schema, files = read_schema("config"), config_files()
    problems = config_problems(config, schema, files)
    if check_files:
        problems += config_file_problems(config, schema, files, made)
    sheet = config.get("samples")
    if isinstance(sheet, str) and os.path.isfile(sheet):
        schema = read_schema("samples")
        rows, problems_of_shape = read_sheet(sheet, Path(sheet).read_bytes(), schema)
        problems += problems_of_shape
        problems += sheet_problems(sheet, rows, schema, unique=("sample", "unit"))
        if check_files:
            problems += sheet_file_problems(sheet, rows, schema, made)
    return in_reading_order(problems)


def refuse(problems):
    """Print every problem of what the user wrote, and leave with the exit code of a usage error."""
    there_are = f"there are {len(problems)} problems" if len(problems) > 1 else "there is a problem"
    print(f"Nothing was run: {there_are} in the configuration.", file=sys.stderr)
    for problem in problems:
        print(f"  {problem}", file=sys.stderr)
    print("config/README.md explains every key and column.", file=sys.stderr)
    sys.exit(2)


def section(name):
    """A section of the configuration that a target cannot do without."""
    if name not in config:
        message = f"is missing; config/examples/{name}.yaml shows one"
        refuse([Problem("the configuration", None, name, message)])
    return config[name]


def of_samples(files):
    """An input function: these files, which there are none of without a sample sheet."""

    def named(wildcards):
        if not SAMPLES:
            message = "is missing; write the path of a sample sheet such as config/samples.tsv"
            refuse([Problem("the configuration", None, "samples", message)])
        return files

    return named


def as_named(path):
    """An input that the user named: only what is made here goes under the prefix of a module."""
    if path in (DEMO_GENOME, *DEMO_READS):
        return path
    path = workflow.modifier.path_modifier.apply_default_storage(path)
    return flag(path, PATH_MODIFIER_FLAG)


def alt_list(reference):
    """The list of ALT contigs beside a reference, or none."""
    beside = alt_list_beside(reference)
    return [as_named(str(beside))] if beside else []


def file_of(name, key):
    """An input function: the file that a key of a section names."""

    def path(wildcards):
        return as_named(section(name)[key])

    return path


def options_of(name, *files):
    """A function for params: the flags for the keys of a section, except its input files."""

    def options(wildcards):
        return flags(section(name), *files)

    return options


def seed_options(wildcards):
    """The flags for the section seeds; whole queries have no step."""
    settings = section("seeds")
    return flags(settings, "queries", *(["step"] if settings["k"] == "whole" else []))


def annotation_of(wildcards):
    """The features that off-targets are annotated by, where the section names a file of them."""
    path = section("offtargets").get("annotation")
    return [as_named(path)] if path else []


def annotation_flags(wildcards, input):
    """--annotation with what `annotation_of` named.

    Apart from the other flags: what depends on inputs is not compared with that of an earlier run.
    """
    return [word for path in input.annotation for word in ("--annotation", path)]


def reverse_for(name, needs):
    """An input function: what is made once the index has its reverse BWT, where `needs(section)`.

    Nothing else waits for that, and no search at which the index is has to be run again.
    """

    def table(wildcards):
        return [WITH_REVERSE] if needs(section(name)) else []

    return table


def result_of(name, ending):
    """The result of a section, which has the name of its queries."""
    key = {"offtargets": "guides", "primers": "pairs"}.get(name, "queries")
    queries = config.get(name, {}).get(key, "missing_section")
    return f"results/{name}/{stem(queries)}{ending}"


def relative(path):
    """A path of the checkout from the folder snakemake is started in."""
    return os.path.relpath(CHECKOUT / path)


def program(name):
    """The path of scripts/NAME from the folder snakemake is started in."""
    return relative(f"scripts/{name}")


def code(name):
    """A digest of scripts/NAME and the library it imports: edited code makes its rules run again."""
    return program_digest(CHECKOUT / "scripts" / name, CHECKOUT / "bwarp")


def flags(settings, *left_out):
    """Command-line flags for settings; auto, and whole queries, are what programs do without one."""
    words = []
    for key, value in settings.items():
        if key in left_out:
            continue
        flag = f"-{key}" if len(key) == 1 else f"--{key.replace('_', '-')}"
        if value is True:
            words.append(flag)
        elif value is not False and value not in ("auto", "whole"):
            words += [flag, str(value)]
    return words


def reference_mb():
    """About how many million bases the genome has; gz files of DNA grow about fourfold."""
    path = config["reference"]
    growth = 4 if path.endswith(".gz") else 1
    return growth * os.path.getsize(path) / 1e6 if os.path.exists(path) else 10


def index_memory_mb(wildcards, attempt):
    """Memory to build an index: 8 bytes a base and some, and more where that did not do."""
    return attempt * (1500 + round(8 * reference_mb()))


def search_memory_mb(wildcards, attempt):
    """Memory to search an index: 5 bytes a base, batches of reads, and more where it did not do."""
    return attempt * (4000 + round(5 * reference_mb()))


def chunk_memory_mb(wildcards, attempt):
    """Memory to read a few chunks of reads, and more where it did not do."""
    return attempt * 1000


def map_memory_mb(wildcards, attempt, threads):
    """Memory to search an index, and to sort what is found: half a gigabyte a thread."""
    return search_memory_mb(wildcards, attempt) + 512 * threads


def jobs_run_here():
    """Whether jobs run on this machine.

    A plan does not know what will run it; jobs that are sent elsewhere have a number of nodes. A
    job that was sent asks too, and gets the answer that it was sent with.
    """
    if workflow.exec_mode != ExecMode.DEFAULT:
        return False
    if workflow.executor_plugin is None or workflow.dryrun:
        return workflow.resource_settings.nodes is None
    return workflow.local_exec


def gpus(wildcards):
    """The GPUs of a job: none with `backend: cpu`, or if it runs here and there is none here.

    Jobs that count on a GPU run one at a time, or as many as there are GPUs. On a cluster the
    machine that sends the jobs says nothing about those that run them.
    """
    if config["backend"] == "auto" and jobs_run_here():
        return int(may_have_gpu())
    return int(config["backend"] != "cpu")


def gpus_given(wildcards, resources):
    """The GPUs that a job has got, for params: what is said of resources elsewhere counts too."""
    return resources.get("gpu", 0)


def environment(wildcards, params):
    """The environment for conda: with the parts for CUDA where a job has, or insists on, a GPU."""
    return GPU_ENVIRONMENT if params.gpus or config["backend"] == "cuda" else CPU_ENVIRONMENT


def print_results():
    """Say what became of the reads, and where the results lie, at the end of a run."""
    summaries = {sample: summary_of(sample) for sample in SAMPLES}
    summaries = {sample: summary for sample, summary in summaries.items() if summary}
    if summaries:
        print("\n".join(["", *summary_lines(summaries), ""]))
    print("Results:")
    for path, what in RESULTS.items():
        if os.path.exists(path):
            print(f"  {path:<40}  {what}")
    if not REPORT_TOOLS:
        print("No plots and no report: pip install -e '.[report]' brings what they need.")
    print_truth()


def print_results_of_an_earlier_run(record):
    """At the end of a run that finds nothing to do, for which Snakemake calls no onsuccess."""
    if record.msg == NOTHING_TO_BE_DONE_MSG and not workflow.dryrun:
        atexit.register(print_results)
    return True


def summary_of(sample):
    """What became of the reads of a sample; None where it has not been mapped."""
    statistics, truth = (
        json.loads(Path(path).read_text()) if os.path.exists(path) else None
        for path in (f"results/map/{sample}.stats.json", f"results/qc/truth/{sample}.json")
    )
    return None if statistics is None else summarise(statistics, truth)


def read_units():
    """The rows of the sample sheet by sample and unit."""
    sheet = config.get("samples")
    if not isinstance(sheet, str) or not os.path.isfile(sheet):
        return {}
    rows, _ = read_sheet(sheet, Path(sheet).read_bytes(), read_schema("samples"))
    cells = [{"unit": "1", "platform": "ILLUMINA", **row.cells} for row in rows]
    return {(row["sample"], row["unit"]): row for row in cells}


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


def batches_of(sample, unit):
    """The numbers of the batches that the reads of a unit have been cut into."""
    folder = checkpoints.batch_reads.get(sample=sample, unit=unit).output[0]
    return sorted(int(path.stem) for path in Path(folder).glob("*.reads"))


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
    return len(reads_of(wildcards)) == 2 and not section("allmap")["unpaired"]


def rounds_of(wildcards):
    """The loci of all rounds: a proper pair may have any locus of its ends, so pairs have one."""
    path = "results/allmap/units/{sample}/{unit}/{batch}".format(**wildcards)
    numbers = (1,) if is_paired(wildcards) else ALLMAP_ROUNDS
    return [f"{path}.{number}.loci" for number in numbers]


def first_batches(path):
    """An input function: a file of each of the batches that the insert size is estimated from."""

    def paths(wildcards):
        from bwarp.mapping.pairing.insert_size import FIRST_PAIRS

        n_batches = -(-2 * FIRST_PAIRS // section("allmap")["batch_size"])
        batches = batches_of(wildcards.sample, wildcards.unit)[:n_batches]
        return [path.format(**wildcards, batch=batch) for batch in batches]

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
    settings = section("allmap")
    return flags({key: settings[key] for key in ("orientation",) if key in settings})


def locus_limits(wildcards):
    """Which loci of a unit are searched: of pairs all."""
    others = ("report",) if is_paired(wildcards) else ()
    return flags(section("allmap"), *NOT_SEARCHED, *others)


def to_verify(wildcards):
    """The hits that are verified: all, or those that the filter has left."""
    kind = "hits" if section("allmap")["filter"] == "off" else "candidates"
    path = "results/allmap/units/{sample}/{unit}/{batch}.{round}".format(**wildcards)
    return f"{path}.{kind}"


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


def locus_flags(wildcards):
    """What is written of the loci of a unit: its read group, where the format knows one."""
    settings, keys = section("allmap"), ["max_places"]
    if is_paired(wildcards):
        keys.append("report")
        keys += ["insert_size", "orientation"] if "insert_size" in settings else []
    words = flags({key: value for key, value in settings.items() if key in keys})
    return [*read_group(wildcards), *words] if ALLMAP_FORMAT == "bam" else words


def print_truth():
    """Report how many of the demo's reads are mapped to the origin in their names."""
    from bwarp.evaluation.truth import TruthCounts
    from bwarp.report.mapping_summary import current_names

    for sample in SIMULATED:
        path = Path(f"results/qc/truth/{sample}.json")
        if path.exists():
            counts = TruthCounts(**current_names(json.loads(path.read_text())))
            print(
                f"Of the demo's {counts.total:,} reads, {sum(counts.correct):,} are mapped "
                f"correctly ({100 * sum(counts.correct) / counts.total:.2f} %)."
            )


def plot_labels(wildcards):
    """What the report calls a plot."""
    return {"plot": PLOTS[wildcards.plot]}


def previewed_table(wildcards):
    """The table of a target that the report shows the beginning of."""
    return result_of(wildcards.target, TABLES[wildcards.target])


def header_option(wildcards):
    """Tables in MUMmer's format have no line that names the columns."""
    return "--no-header" if wildcards.target == "mems" else ""


def can_report():
    """Whether the plots and the report can be made: in this environment, or in one of conda's."""
    methods = workflow.deployment_settings.deployment_method
    here = all(find_spec(name) for name in ("multiqc", "matplotlib"))
    return here or DeploymentMethod.CONDA in methods


def stem(path):
    """The name of a sequence file without its folder and endings."""
    name = Path(path).name.removesuffix(".gz")
    return name.rsplit(".", 1)[0] or name


problems = check_configuration()
if problems:
    refuse(problems)
config.update(with_defaults(config, read_schema("config")))

REFERENCE = stem(config["reference"])
INDEX = f"results/index/{REFERENCE}"
WITH_REVERSE = f"{INDEX}.with_reverse.txt"

# For conda; seen from the folder of the rules.
CPU_ENVIRONMENT = "../../envs/cpu.yaml"
GPU_ENVIRONMENT = "../../envs/gpu.yaml"

# Targets with a table, and how its name ends.
TABLES = {
    "seeds": ".tsv",
    "offtargets": ".tsv",
    "primers": ".tsv",
    "mems": ".mums",
    "scan": ".tsv",
    "pairs": ".tsv",
    "search": ".tsv",
}

# What the report calls the plots of draw_report.py.
PLOTS = {
    "mapping_quality": "Mapping quality",
    "insert_size": "Insert size",
    "stages": "Where candidates went",
    "truth": "Correct and incorrect reads",
    "index_sizes": "Index sizes",
}

# MultiQC and matplotlib are large, and mapping needs neither.
REPORT_TOOLS = can_report()

if IS_MAIN:
    logger.addFilter(print_results_of_an_earlier_run)

# What each target makes, for the list at the end of a run; every rule file adds its own.
RESULTS = {}

# What jobs ask of the machine that they run on: memory, and GPUs.
import os

from snakemake.settings.types import ExecMode

from bwarp.runtime.backend import may_have_gpu


def letters_mb(path):
    """About how many million letters a sequence file has; gz files of DNA grow about fourfold."""
    path = seen_here(path)
    growth = 4 if path.endswith(".gz") else 1
    return growth * os.path.getsize(path) / 1e6 if os.path.exists(path) else 10


def reference_mb():
    """About how many million bases the genome has."""
    return letters_mb(config["reference"])


def index_memory_mb(wildcards, attempt):
    """Memory to build an index: 8 bytes a base and some, and more where that did not do."""
    return attempt * (1500 + round(8 * reference_mb()))


def search_memory_mb(wildcards, attempt):
    """Memory to search an index: 5 bytes a base, batches of reads, and more where it did not do."""
    return attempt * (4000 + round(5 * reference_mb()))


def scan_memory_mb(wildcards, attempt):
    """Memory to scan a genome: 8 bytes a base, and 40 for the sums of `gather`."""
    a_base = 40 if section("scan")["algorithm"] == "gather" else 8
    queries = letters_mb(section("scan")["queries"])
    return attempt * (2000 + round(a_base * reference_mb() + 4 * queries))


def database_memory_mb(wildcards, attempt):
    """Memory to search a database: 5 bytes a residue, and what is found of each query."""
    residues, queries = (letters_mb(section("search")[key]) for key in ("database", "queries"))
    return attempt * (2000 + round(5 * residues + 10 * queries))


def cutting_memory_mb(wildcards, attempt):
    """Memory to cut queries: 4 bytes a letter, and 12 for scan, for which they are sorted."""
    a_letter = 12 if wildcards.target == "scan" else 4
    return attempt * (1000 + round(a_letter * letters_mb(section(wildcards.target)["queries"])))


def chunk_memory_mb(wildcards, attempt):
    """Memory to read a few chunks of reads, and more where it did not do."""
    return attempt * 1000


def map_memory_mb(wildcards, attempt, threads):
    """Memory to search an index, and to sort what is found: half a gigabyte a thread."""
    return search_memory_mb(wildcards, attempt) + 512 * threads


def unit_megabytes(wildcards):
    """The size of the reads of a unit, or of one of its parts; 0 where they are not there yet."""
    paths = list(map(seen_here, reads_in(UNITS[wildcards.sample, wildcards.unit])))
    size = sum(os.path.getsize(path) for path in paths if os.path.isfile(path))
    return size / int(wildcards.get("parts", 1)) / 1e6


def read_minutes(wildcards, attempt):
    """Time to read a unit once, of which gz is slowest: 20 MB a second."""
    return attempt * (20 + round(unit_megabytes(wildcards) / 20 / 60))


def map_minutes(wildcards, attempt, threads):
    """Time to load an index, and to map reads: one core 0.5 MB of gz a second, or more."""
    return attempt * (60 + round(unit_megabytes(wildcards) / 0.5 / threads / 60))


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


def sharing_flags(wildcards, resources):
    """For programs that share their work among several GPUs, where a profile gives a job several."""
    given = resources.get("gpu", 0)
    return ["--gpus", given] if given > 1 else []

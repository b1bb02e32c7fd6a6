# Resources of jobs: memory, time and GPUs.
import os

from bwarp.runtime.backend import may_have_gpu


def letters_mb(path):
    """Estimate the million letters of a sequence file; gzipped DNA grows about fourfold."""
    path = seen_here(path)
    growth = 4 if path.endswith(".gz") else 1
    return growth * os.path.getsize(path) / 1e6 if os.path.exists(path) else 10


def reference_mb():
    """Estimate the million bases of the genome."""
    return letters_mb(config["reference"])


def index_memory_mb(wildcards, attempt):
    """Return memory to build an index: slightly more than 8 bytes per base, and more after a
    failure.
    """
    return attempt * (1500 + round(8 * reference_mb()))


def search_memory_mb(wildcards, attempt):
    """Return memory to search an index: 5 bytes per base, batches of reads, and more after a
    failure.
    """
    return attempt * (4000 + round(5 * reference_mb()))


def scan_memory_mb(wildcards, attempt):
    """Return memory to scan a genome: 8 bytes per base, and 40 for the sums of `gather`."""
    a_base = 40 if section("scan")["algorithm"] == "gather" else 8
    queries = letters_mb(section("scan")["queries"])
    return attempt * (2000 + round(a_base * reference_mb() + 4 * queries))


def database_memory_mb(wildcards, attempt):
    """Return memory to search a database: 5 bytes per residue, and the results of each query."""
    residues, queries = (letters_mb(section("search")[key]) for key in ("database", "queries"))
    return attempt * (2000 + round(5 * residues + 10 * queries))


def cutting_memory_mb(wildcards, attempt):
    """Return memory to split queries: 4 bytes per letter, and 12 for scan, which sorts them."""
    target = wildcards.target
    a_letter = 12 if target == "scan" else 4
    return attempt * (1000 + round(a_letter * letters_mb(section(target)[query_key(target)])))


def chunk_memory_mb(wildcards, attempt):
    """Return memory to read a few chunks of reads, and more after a failure."""
    return attempt * 1000


def map_memory_mb(wildcards, attempt, threads):
    """Return memory to search an index and sort the results: half a gigabyte per thread."""
    return search_memory_mb(wildcards, attempt) + 512 * threads


def unit_megabytes(wildcards):
    """Return the size of the reads of a unit, or of one of its parts; 0 if they do not exist."""
    paths = list(map(seen_here, reads_in(UNITS[wildcards.sample, wildcards.unit])))
    size = sum(os.path.getsize(path) for path in paths if os.path.isfile(path))
    return size / int(wildcards.get("parts", 1)) / 1e6


def read_minutes(wildcards, attempt):
    """Return time to read a unit once; the slowest format is gz, at 20 MB/s."""
    return attempt * (20 + round(unit_megabytes(wildcards) / 20 / 60))


def map_minutes(wildcards, attempt, threads):
    """Return time to load an index and map reads; one core maps 0.5 MB of gz per second or more."""
    return attempt * (60 + round(unit_megabytes(wildcards) / 0.5 / threads / 60))


def batch_minutes(wildcards, attempt, threads):
    """Return time to load an index and take a batch through a step of allmap.

    All loci with 4 edits of reads of 100 bases take 4 ms of a core per read and billion bases of
    the genome, all steps together (benchmarks/results/allmap_h200.jsonl: 16.4 s for 20,000 reads on
    16 cores), and a read takes 170 bytes. Each step gets that much, and a GPU needs less.
    """
    path = made_batch(wildcards, wildcards.batch)
    size = os.path.getsize(path) / 1e6 if path else 0
    return attempt * (5 + round(size / 170 * 4e3 * reference_mb() / 1e3 / threads / 60))


def batch_threads(wildcards):
    """Return the cores of a step of a batch: 8, or half of those of this machine if that is fewer
    and the unit has several batches. While a step of one batch starts, another one computes.
    """
    cores = workflow.resource_settings.cores
    if not cores or not jobs_run_here() or not made_batch(wildcards, 1):
        return 8
    return max(1, min(8, cores // 2))


def merging_minutes(wildcards, input, attempt):
    """Return time to merge files; the slowest format is gz, at 20 MB/s."""
    return attempt * (10 + round(input.size_mb / 20 / 60))


def jobs_run_here():
    """Return whether jobs run on this machine.

    A plan does not know what will run it; jobs that are sent elsewhere have a number of nodes. A
    job that was sent asks too, and gets the answer that it was sent with.
    """
    if not workflow.is_main_process:
        return False
    if workflow.executor_plugin is None or workflow.dryrun:
        return workflow.resource_settings.nodes is None
    return workflow.local_exec


def gpus(wildcards):
    """Return the GPUs of a job: none with `backend: cpu`, or if it runs here without a GPU.

    Jobs that count on a GPU run one at a time, or as many as there are GPUs. On a cluster the
    machine that sends the jobs says nothing about those that run them.
    """
    if config["backend"] == "auto" and jobs_run_here():
        return int(may_have_gpu())
    return int(config["backend"] != "cpu")


def gpus_given(wildcards, resources):
    """Return the GPUs that a job has got, for params; resources set elsewhere count too."""
    return resources.get("gpu", 0)


def sharing_flags(wildcards, resources):
    """Return flags for programs that use several GPUs, if a profile gives a job several."""
    given = resources.get("gpu", 0)
    return ["--gpus", given] if given > 1 else []


def spreading_flags(name):
    """Return a function for params: flags as above; several GPUs share an index in chunks."""

    def words(wildcards, resources):
        shared = sharing_flags(wildcards, resources)
        return [*shared, "--spread"] if shared and "chunk_bases" in section(name) else shared

    return words

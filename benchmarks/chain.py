#!/usr/bin/env python3
"""Time the chain of allmap, batch by batch, against the one program bwarp allmap.

    python benchmarks/chain.py -o benchmarks/results/chain.jsonl --reads 2000000
    python benchmarks/chain.py -o benchmarks/results/chain.jsonl --backends cuda \\
        --reference chr20.fa --reads 10000000 --batch-sizes 1000000 5000000 10000000

Reads are simulated from the reference, by default human chr20, or a simulated genome if it is
missing. A short run of everything comes first, because the first run on a machine compiles. Then
the one program and, for each batch size, `snakemake results/allmap/s.bam` search the same reads in
the same index. The seconds of the rules are from the start of the first job to the end of the last
one, without the start of Snakemake; those of each step are the sums of its benchmark files.

If Snakemake is not installed, the programs of the rules run by themselves, in the order and with
the flags of the rules, and the line says so. As many batches are searched at once as have cores,
with one job at a time on the GPU, as Snakemake does it. On a GPU and enough cores, pipes connect
the steps of a batch, as in the rules; --without-pipes times files, by hand. The counts must be
those of the one program, and the records too with --compare.

One JSON object per line is appended to --output.
"""

import gzip
import json
import os
import shutil
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from frame.environment import CHECKOUT, gpu_name
from frame.options import add_folder, add_threads, large_file, new_parser, read_options
from frame.results import Results
from frame.simulated import make_genome, run_script, script
from frame.timing import run_program
from map_gpu import hash_of

from bwarp.runtime.backend import gpu_problem

sys.path.append(str(CHECKOUT / "workflow" / "lib"))
from bwarp_pipes import SHARES, cores_in_pipes, sorting_flags, threads_in_pipes  # noqa: E402

#: The steps of a batch, and those of them that use a GPU.
STEPS = tuple(SHARES)
ON_GPU = ("seed_reads", "filter_candidates", "extend_candidates")

#: What a line says about a run without Snakemake.
BY_HAND = "steps by the rules' commands, without Snakemake"

#: The read group that the rules give to the unit 1 of the sample s.
READ_GROUP = r"@RG\tID:s.1\tSM:s\tPL:ILLUMINA"


def parse_options():
    parser = new_parser(__doc__)
    parser.add_argument("--reference", type=Path, help="FASTA of the reference")
    parser.add_argument("--reads", type=int, default=1_000_000)
    parser.add_argument("--read-length", type=int, default=100)
    parser.add_argument("--edits", type=int, default=4)
    parser.add_argument("--report", default="all", help="all, best or strata:X")
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--backends", nargs="+", choices=("cpu", "cuda"), default=["cpu", "cuda"])
    parser.add_argument(
        "--job-threads", type=int, help="of a step; by default as in the rules for several batches"
    )
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--without-snakemake", action="store_true", help="even if it is installed")
    parser.add_argument("--without-pipes", action="store_true", help="with files; by hand only")
    parser.add_argument("--compare", action="store_true", help="the records, not only the counts")
    add_threads(parser)
    add_folder(parser)
    small = {"reads": 2000, "batch_sizes": [1000], "compare": True}
    return read_options(parser, "chain.jsonl", **small)


def measure(options):
    with tempfile.TemporaryDirectory(dir=options.folder) as work:
        work = Path(work)
        reference = options.reference or (None if options.small else large_file("chr20.fa"))
        if reference is None:
            print("left out chr20.fa, not in $BWARP_LARGE: a genome is simulated", file=sys.stderr)
            reference = make_genome(work, 200_000 if options.small else 20_000_000)
        reference = reference.resolve()
        few, reads = work / "few.fq", work / "reads.fq"
        for path, n_reads in ((few, 1000), (reads, options.reads)):
            size = "--reads", n_reads, "--read-length", options.read_length
            run_script("simulate_reads", "--reference", reference, "-1", path, *size)
        run_script("index_reference", reference, "-o", work / "index")
        for backend in options.backends:
            if backend == "cuda" and (problem := gpu_problem()):
                print(f"left out cuda: {problem}", file=sys.stderr)
                continue
            in_one(work, few, backend, options)
            by_hand(work, few, backend, 1000, options)
            for _ in range(options.repeats):
                yield from runs_of(work, reference, reads, backend, options)


def runs_of(work, reference, reads, backend, options):
    """Return a line for each batch size, all compared with the same run of the one program."""
    one, counts, made = in_one(work, reads, backend, options)
    with_snakemake = find_spec("snakemake") and not options.without_snakemake
    for size in options.batch_sizes:
        if with_snakemake:
            whole, steps, chained = by_rules(work, reference, reads, backend, size, options)
        else:
            whole, steps, chained = by_hand(work, reads, backend, size, options)
        stats = json.loads(chained.with_suffix(".stats.json").read_text())
        if stats != counts:
            sys.exit(f"counts differ: {stats} and {counts}")
        if options.compare and hash_of(made, gzip.open) != hash_of(chained, gzip.open):
            sys.exit(f"{made} and {chained} differ")
        seconds = whole.pop("seconds")
        yield {
            "what": "the chain and the one program",
            "how": f"snakemake {version('snakemake')}" if with_snakemake else BY_HAND,
            "reference": reference.name,
            "reads": options.reads,
            "length": options.read_length,
            "edits": options.edits,
            "report": options.report,
            "backend": backend,
            "gpu": gpu_name() if backend == "cuda" else "",
            "threads": options.threads,
            "job_threads": threads_of_job(options),
            "in_pipes": steps_in_pipes(backend, options, bool(with_snakemake)),
            "batch_size": size,
            "batches": -(-options.reads // size),
            "seconds": round(seconds, 2),
            "one_program_seconds": one.wall,
            "one_program_processor_seconds": one.processor,
            "ratio": round(seconds / one.wall, 3),
            "processor_ratio": round(whole["processor_seconds"] / one.processor, 3),
            **whole,
            "steps": {step: round(taken, 2) for step, taken in steps.items()},
            "loci": counts["loci"],
        }


def threads_of_job(options) -> int:
    if options.job_threads:
        return min(options.job_threads, options.threads)
    return max(1, min(8, options.threads // 2))


def steps_in_pipes(backend, options, with_snakemake: bool) -> list[str]:
    """Return the steps of a batch that run at once, as in the rules; the last one reads the loci of
    all rounds.
    """
    if backend == "cpu" or not cores_in_pipes(options.threads):
        return []
    if options.without_pipes and not with_snakemake:
        return []
    return list(STEPS if options.report == "all" else STEPS[:-1])


def search_flags(options) -> tuple:
    return "--edits", options.edits, "--report", options.report


def in_one(work, reads, backend, options):
    """Run the one program; return what it used, its counts and its BAM."""
    output = work / "one.bam"
    output.unlink(missing_ok=True)
    used = run_script(
        "find_alignments", "--index", work / "index", "-1", reads, "-o", output, "--stats",
        work / "one.stats.json", "-R", READ_GROUP, "--backend", backend, "--threads",
        options.threads, *search_flags(options),
    )  # fmt: skip
    return used, json.loads((work / "one.stats.json").read_text()), output


def by_hand(work, reads, backend, size, options):
    """Run the programs of the rules; return the whole, the seconds of each step, and the BAM."""
    flow = work / "by_hand"
    shutil.rmtree(flow, ignore_errors=True)
    flow.mkdir()
    start = time.perf_counter()
    jobs = Jobs(work / "index", backend, options)
    threads = min(4, options.threads)
    jobs.run(
        "batch_reads", "-1", reads, "-o", flow / "b", "--batch-size", size, "--threads", threads
    )
    batches = sorted((flow / "b").iterdir(), key=lambda path: int(path.stem))
    at_once = 1 if jobs.in_pipes else max(1, options.threads // jobs.threads)
    with ThreadPoolExecutor(at_once) as pool:
        written = list(pool.map(lambda batch: jobs.search(flow, batch), batches))
    merged = flow / "s.bam"
    jobs.run("merge_loci", *written, "-o", merged, "--threads", min(16, options.threads))
    whole = {
        "seconds": time.perf_counter() - start,
        "processor_seconds": round(sum(jobs.processor_seconds.values()), 2),
        "steps_processor_seconds": {
            step: round(s, 2) for step, s in jobs.processor_seconds.items()
        },
    }
    return whole, jobs.seconds, merged


class Jobs:
    """Runs the programs of the rules; several threads may, with one job at a time on the GPU."""

    def __init__(self, index, backend, options):
        self.index, self.backend, self.options = index, backend, options
        self.threads = threads_of_job(options)
        self.in_pipes = steps_in_pipes(backend, options, False)
        self.seconds: dict[str, float] = {}
        self.processor_seconds: dict[str, float] = {}
        self._counting, self._gpu = threading.Lock(), threading.Lock()

    def run(self, step, *arguments):
        alone = self.backend == "cuda" and step in ON_GPU and not self.in_pipes
        with self._gpu if alone else nullcontext():
            used = run_program(script(step, *arguments))
        with self._counting:
            self.seconds[step] = self.seconds.get(step, 0.0) + used.wall
            before = self.processor_seconds.get(step, 0.0)
            self.processor_seconds[step] = before + used.processor

    def search(self, flow, batch):
        """Take a batch through all steps; return its BAM."""
        loci, waiting = [], []
        output = flow / f"{batch.stem}.bam"
        for number in (1,) if self.options.report == "all" else (1, 2):
            kinds = "seeds", "hits", "candidates", "loci"
            files = [flow / f"{batch.stem}.{number}.{kind}" for kind in kinds]
            after = ("--after", loci[0]) if loci else ()
            waiting += zip(STEPS, self.arguments_of_steps(batch, after, files), strict=False)
            loci.append(files[-1])
            if STEPS[-1] not in self.in_pipes:
                self.run_steps(waiting, files[:-1])
                waiting = []
        given = self.given(batch, STEPS[-1])
        written = (
            *given, "--loci", *loci, "-o", output, "--stats", output.with_suffix(".stats.json"),
            "--read-group", READ_GROUP, "--uncompressed",
            *(sorting_flags() if STEPS[-1] in self.in_pipes else ()),
        )  # fmt: skip
        self.run_steps([*waiting, (STEPS[-1], written)], files if waiting else [])
        return output

    def arguments_of_steps(self, batch, after, files):
        """Return the arguments of all steps but the last one."""
        seeds, hits, candidates, found = files
        seed, locate, refuse, extend = (self.given(batch, step) for step in STEPS[:-1])
        return (
            (*seed, *after, *search_flags(self.options), "-o", seeds),
            (*locate, "--seeds", seeds, "-o", hits),
            (*refuse, "--hits", hits, "-o", candidates),
            (*extend, "--candidates", candidates, "-o", found),
        )

    def given(self, batch, step):
        """Return the arguments of a step except for its files."""
        threads = self.threads
        if step in self.in_pipes:
            cores = cores_in_pipes(self.options.threads)
            threads = threads_in_pipes(step, self.in_pipes, cores)
        reads = () if step == "locate_seeds" else ("--reads", batch)
        engine = ("--backend", self.backend) if step in ON_GPU else ()
        return "--index", self.index, *reads, "--threads", threads, *engine

    def run_steps(self, steps, between):
        """Run steps, at once if there are pipes between them; remove the files between them."""
        if self.in_pipes:
            for path in between:
                os.mkfifo(path)
        with ThreadPoolExecutor(len(steps) if self.in_pipes else 1) as pool:
            for job in [pool.submit(self.run, step, *arguments) for step, arguments in steps]:
                job.result()
        for path in between:
            path.unlink()


def by_rules(work, reference, reads, backend, size, options):
    """Run Snakemake; return the whole, the seconds of each step, and the BAM."""
    flow = work / "rules"
    index = flow / "results" / "index" / f"{reference.name.removesuffix('.gz').rsplit('.', 1)[0]}"
    for name in ("results/allmap", "logs"):
        shutil.rmtree(flow / name, ignore_errors=True)
    flow.mkdir(exist_ok=True)
    (flow / "units.tsv").write_text(f"sample\tunit\tfq1\ns\t1\t{reads}\n")
    settings = {
        "reference": str(reference),
        "samples": "units.tsv",
        "backend": backend,
        "allmap": {"edits": options.edits, "report": options.report, "batch_size": size},
    }
    (flow / "mine.yaml").write_text(json.dumps(settings))
    command = [
        sys.executable, "-m", "snakemake", "--quiet", "all", "--snakefile",
        CHECKOUT / "Snakefile", "--directory", flow, "--configfile", flow / "mine.yaml",
        "--resources", "gpu=1", "--cores", options.threads,
    ]  # fmt: skip
    if not steps_in_pipes(backend, options, True):
        command += ["--set-threads", *(f"{step}={threads_of_job(options)}" for step in STEPS)]
    command.append("--")
    if not index.exists():
        run_program([*command, "index"])
    used = run_program([*command, "results/allmap/s.bam"])
    seconds: dict[str, float] = {}
    starts, ends = [], []
    for path in sorted(flow.glob("logs/*/**/*.benchmark.tsv")):
        step = path.relative_to(flow / "logs").parts[0]
        if step == "index_reference":
            continue
        taken = sum(float(row.split("\t")[0]) for row in path.read_text().splitlines()[1:])
        seconds[step] = seconds.get(step, 0.0) + taken
        ends.append(path.stat().st_mtime)
        starts.append(ends[-1] - taken)
    whole = {
        "seconds": max(ends) - min(starts),
        "processor_seconds": used.processor,
        "with_start_of_snakemake": used.wall,
    }
    return whole, seconds, flow / "results" / "allmap" / "s.bam"


if __name__ == "__main__":
    options = parse_options()
    results = Results(options.output)
    for line in measure(options):
        results.add(**line)

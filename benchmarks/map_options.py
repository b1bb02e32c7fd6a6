#!/usr/bin/env python3
"""Time each option of mapping, and each form of reads and output, beside a run without it.

    python benchmarks/map_options.py -o benchmarks/results/map_options.jsonl
    python benchmarks/map_options.py --backends cuda --pairs 3000000 --reference genome.fa
    python benchmarks/map_options.py --options qc,--all,CRAM

The same simulated pairs of 2 x 150 are mapped with and without each option, on the CPUs and on a
GPU if there is one. The run without options alternates with every four options, so that a machine
that becomes faster or slower favours none. Each job first runs once to compile what it calls: with
few reads on the CPUs, with all on a GPU, where their number decides which kernels run. Seconds are
medians of whole programs. The genome is simulated or given; a copy of 2 % of it with 1 % of
differences is added, which --alt names as ALT contig. Comments of the reads are UMIs, the unaligned
BAM file has two read groups, and with single reads, a tenth of the pairs have no mate.

One JSON object per engine and option is printed and appended to --output as soon as it is measured:
`beside` names the run without it. For sorted BAM, `records` and `records_without` are the numbers
of records that both write.
"""

import statistics
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pysam
from frame.environment import gpu_name
from frame.options import add_threads, new_parser, read_options
from frame.results import Results
from frame.simulated import make_genome, make_index, make_reads, run_script, script
from frame.timing import Used, in_turn, run_program

from bwarp.runtime.backend import gpu_problem

#: Jobs that alternate with the run without options.
JOBS_A_TURN = 4

#: Pairs for the runs on CPUs that only compile.
FEW = 5_000

PLAIN, UNSORTED, SAM, UNALIGNED = "sorted BAM", "BAM", "SAM", "unaligned BAM, one read group"


class Job(NamedTuple):
    """A run with an option, and the run beside which it is shown."""

    beside: str | None
    reads: str
    output: str
    options: tuple = ()


class Run(NamedTuple):
    """What a run used, and the number of records it wrote, if known."""

    used: Used
    records: int | None


def parse_options():
    parser = new_parser(__doc__)
    parser.add_argument("--reference", type=Path, help="FASTA file, plain (default: simulated)")
    parser.add_argument("--bases", type=int, default=20_000_000, help="of the simulated genome")
    parser.add_argument("--pairs", type=int, default=150_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--backends", nargs="+", help="cpu and cuda (default: those there are)")
    parser.add_argument(
        "--options", type=lambda text: text.split(","), default=[""],
        help="words, separated by commas: time only runs whose names contain one (default: all)",
    )  # fmt: skip
    add_threads(parser)
    return read_options(parser, "map_options.jsonl", bases=200_000, pairs=500, repeats=1)


def jobs(folder: Path) -> dict[str, Job]:
    """Return the jobs by name; a run precedes those shown beside it."""
    sort = ("--sort",)
    with_option = {
        "`--read-group`": ("--read-group", r"@RG\tID:1\tSM:sample"),
        "`--comments`: UMIs": ("--comments",),
        "`--mark-duplicates`": ("--mark-duplicates",),
        "`--mark-duplicates --comments --barcode-tag RX`": (
            "--mark-duplicates", "--comments", "--barcode-tag", "RX",
        ),
        "`--alt`": ("--alt", "alternate"),
        "`--qc`": ("--qc", folder / "checks"),
        "`--all`": ("--all",),
        "`--soft-clip`": ("--soft-clip",),
        "`--eqx`": ("--eqx",),
        "`--regions`: half of the genome": ("--regions", folder / "half.bed"),
        "`--hic`": ("--hic",),
        "`--mode end-to-end`": ("--mode", "end-to-end"),
    }  # fmt: skip
    groups = (rf"@RG\tID:{lane}\tSM:sample" for lane in (1, 2))
    return {
        PLAIN: Job(None, "pairs", "o.bam", sort),
        **{name: Job(PLAIN, "pairs", "o.bam", sort + more) for name, more in with_option.items()},
        "two lanes": Job(PLAIN, "lanes", "o.bam", sort),
        "two lanes, two read groups": Job(
            PLAIN, "lanes", "o.bam", (*sort, "--read-group", *groups)
        ),
        "a tenth of the pairs as single reads": Job(PLAIN, "orphans", "o.bam", sort),
        "the same bases as pairs of 2 x 600": Job(PLAIN, "long", "o.bam", sort),
        UNALIGNED: Job(None, "group", "o.bam", sort),
        "unaligned BAM, two read groups": Job(UNALIGNED, "groups", "o.bam", sort),
        "CRAM": Job(PLAIN, "pairs", "o.cram", sort),
        UNSORTED: Job(None, "pairs", "o.bam"),
        SAM: Job(UNSORTED, "pairs", "o.sam"),
        "SAM with `--comments`": Job(SAM, "pairs", "o.sam", ("--comments",)),
        "PAF": Job(UNSORTED, "pairs", "o.paf"),
    }


def turns(every: dict[str, Job], words: list[str]) -> Iterator[tuple[str, ...]]:
    """Yield the names of jobs that alternate: those whose names contain one of the words, with the
    run beside which they are shown."""
    for beside in dict.fromkeys(job.beside for job in every.values() if job.beside):
        chosen = [
            name for name, job in every.items()
            if job.beside == beside and any(word in name for word in words)
        ]  # fmt: skip
        for first in range(0, len(chosen), JOBS_A_TURN):
            yield beside, *chosen[first : first + JOBS_A_TURN]


def add_alternate(genome: Path, folder: Path) -> Path:
    """Copy a genome with a contig that is like the first bases of the first one."""
    text = genome.read_bytes()
    letters = np.frombuffer(text.split(b">")[1].partition(b"\n")[2].replace(b"\n", b""), np.uint8)
    copy, rng = letters[: max(1000, len(text) // 50)].copy(), np.random.default_rng(1)
    changed = np.flatnonzero(rng.random(copy.size) < 0.01)
    copy[changed] = np.frombuffer(b"ACGT", np.uint8)[rng.integers(0, 4, changed.size)]
    path = folder / "genome.fa"
    path.write_bytes(text.rstrip(b"\n") + b"\n>alternate\n" + copy.tobytes() + b"\n")
    return path


def write_half(genome: Path) -> None:
    """Write regions of 100,000 bases, every second one, to half.bed."""
    with pysam.FastxFile(str(genome)) as file, open(genome.parent / "half.bed", "w") as bed:
        for contig in file:
            length = len(contig.sequence)
            for start in range(0, length, 200_000):
                bed.write(f"{contig.name}\t{start}\t{min(start + 100_000, length)}\n")


class Reads:
    """The same pairs in several forms, as arguments of bwarp map."""

    def __init__(self, folder: Path, genome: Path, pairs: int):
        folder.mkdir()
        self._folder = folder
        self._ends = [self._with_umis(path) for path in make_reads(folder, genome, pairs)]
        first, second = self._ends
        self.forms = {
            "pairs": ("-1", first, "-2", second),
            "lanes": self._lanes(pairs // 2),
            "orphans": self._orphans(pairs // 10),
            "long": self._long(genome, pairs // 4),
            "group": ("-1", self._unaligned("one.bam", 1)),
            "groups": ("-1", self._unaligned("two.bam", 2)),
        }

    def _lines(self, end: int) -> list[bytes]:
        return self._ends[end].read_bytes().splitlines(keepends=True)

    def _write(self, name: str, lines: list[bytes]) -> Path:
        path = self._folder / name
        path.write_bytes(b"".join(lines))
        return path

    def _with_umis(self, path: Path) -> Path:
        """Add the same UMI to both ends of a pair."""
        lines, rng = path.read_bytes().splitlines(keepends=True), np.random.default_rng(2)
        umis = np.frombuffer(b"ACGT", np.uint8)[rng.integers(0, 4, (len(lines) // 4, 8))]
        for number, umi in enumerate(umis):
            name = lines[4 * number].split()[0]
            lines[4 * number] = b"%s RX:Z:%s\tMI:i:%d\n" % (name, umi.tobytes(), number)
        path.write_bytes(b"".join(lines))
        return path

    def _lanes(self, first: int) -> tuple:
        halves = []
        for end in (0, 1):
            lines = self._lines(end)
            halves.append([
                self._write(f"lane1_{end}.fq", lines[: 4 * first]),
                self._write(f"lane2_{end}.fq", lines[4 * first :]),
            ])  # fmt: skip
        return "-1", *halves[0], "-2", *halves[1]

    def _orphans(self, single: int) -> tuple:
        """Return an interleaved file in which one of every ten pairs has no mate."""
        one, two, both = self._lines(0), self._lines(1), []
        for number in range(0, len(one), 4):
            both += one[number : number + 4]
            if number // 4 % 10 or number // 40 >= single:
                both += two[number : number + 4]
        return "-1", self._write("orphans.fq", both), "--interleaved"

    def _long(self, genome: Path, pairs: int) -> tuple:
        reads = "-1", self._folder / "long_1.fq", "-2", self._folder / "long_2.fq"
        run_script(
            "simulate_reads", "--reference", genome, *reads, "--pairs", pairs,
            "--read-length", 600, "--insert-mean", 1500,
        )  # fmt: skip
        return reads

    def _unaligned(self, name: str, groups: int) -> Path:
        lines = [b"@HD\tVN:1.6\tSO:unsorted\tGO:query\n"]
        lines += [b"@RG\tID:g%d\tSM:s\n" % group for group in range(groups)]
        ends = [self._lines(end) for end in (0, 1)]
        for at in range(0, len(ends[0]), 4):
            for flag, (header, bases, _, qualities) in zip(
                (77, 141), (end[at : at + 4] for end in ends), strict=True
            ):
                read, _, umi = header[1:].rstrip().partition(b" ")
                fields = b"%b\t%d\t*\t0\t0\t*\t*\t0\t0\t%b\t%b\tRG:Z:g%d\t%b\n"
                values = bases.rstrip(), qualities.rstrip(), at // 4 % groups, umi
                lines.append(fields % (read.removesuffix(b"/1").removesuffix(b"/2"), flag, *values))
        text, path = self._write("unaligned.sam", lines), self._folder / name
        pysam.view("-b", "--no-PG", "-o", str(path), str(text), catch_stdout=False)
        return path


def main():
    options = parse_options()
    backends = options.backends or (["cpu"] if gpu_problem() else ["cpu", "cuda"])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        every = jobs(folder)
        names_of_turns = list(turns(every, options.options))
        if not names_of_turns:
            raise SystemExit(f"no run's name contains {' or '.join(options.options)}")
        source = options.reference or make_genome(folder, options.bases)
        genome = add_alternate(source, folder)
        write_half(genome)
        index = make_index(folder, genome)
        reads = Reads(folder / "all", genome, options.pairs)
        few = Reads(folder / "few", genome, min(FEW, options.pairs))

        def run(backend: str, reads: Reads, job: Job) -> Run:
            out = folder / job.output
            used = run_program(
                script(
                    "map_reads", "--index", index, *reads.forms[job.reads], *job.options,
                    "-o", out, "--backend", backend, "--threads", options.threads,
                )
            )  # fmt: skip
            is_sorted_bam = out.suffix == ".bam" and "--sort" in job.options
            return Run(used, n_records(out) if is_sorted_bam else None)

        for backend in backends:
            gpu = {"gpu": gpu_name()} if backend == "cuda" else {}
            results = Results(
                options.output, **gpu, backend=backend, reference=source.name,
                reads=2 * options.pairs, threads=options.threads,
            )  # fmt: skip
            compiled = set()
            for names in names_of_turns:
                for name in names:
                    if name not in compiled:
                        run(backend, few if backend == "cpu" else reads, every[name])
                        compiled.add(name)
                runs = {name: partial(run, backend, reads, every[name]) for name in names}
                add_lines(results, every, in_turn(runs, options.repeats))


def n_records(path: Path) -> int:
    """Return the number of records of an indexed BAM file."""
    lines = pysam.idxstats(str(path)).splitlines()
    return sum(int(count) for line in lines for count in line.split("\t")[2:])


def add_lines(results: Results, every: dict[str, Job], measured: dict[str, list[Run]]) -> None:
    """Add a line per job that was measured in turn."""
    used = {name: [run.used for run in runs] for name, runs in measured.items()}
    seconds = {name: statistics.median(one.wall for one in some) for name, some in used.items()}
    for name, some in used.items():
        beside = every[name].beside
        # A run that is itself shown beside another has its line in the turn of that one.
        if beside is None or beside in used:
            results.add(
                option=name,
                beside=beside,
                seconds=seconds[name],
                seconds_without=seconds.get(beside),
                cpu_seconds=statistics.median(one.processor for one in some),
                all_seconds=[one.wall for one in some],
                records=measured[name][0].records,
                records_without=measured[beside][0].records if beside else None,
            )


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Time the search for all loci of reads on the CPU against other programs, in turns.

    python benchmarks/allmap.py -o benchmarks/results/allmap_cpu.jsonl
    python benchmarks/allmap.py -o benchmarks/results/allmap_cpu.jsonl --length 100 --report best

Reads of 100 and 150 bases come from human chr20, or from a simulated genome if it is missing. The
programs search all loci within 4 and 3 % of edits, or only the best, from FASTQ to BAM with
existing indexes. Yara and RazerS 3 (apt install seqan-apps) run with options for full sensitivity;
RazerS 3 gets one read in fifty, because it scans the genome once per few reads. Columba is built
from its repository, with the programs columba and columba_build on PATH; it writes SAM.

The loci of each other program are compared with those of bwarp, in both directions: a locus is
covered if the other program has a locus of the same read and strand with at most as many edits,
whose start differs by at most twice the allowed edits. The programs divide repeats into loci in
different ways.

One JSON object per line is appended to --output.
"""

import statistics
import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import pysam
from frame.options import add_folder, add_threads, large_file, new_parser, read_options
from frame.peers import found
from frame.results import Results
from frame.simulated import make_genome, run_script, script
from frame.timing import in_turn, run_program

from bwarp.options.option import Whole

#: Bases of a read, and edits in percent.
SETS = ((100, 4), (150, 3))
REPORTS = ("all", "best")


def parse_options():
    parser = new_parser(__doc__)
    parser.add_argument("--repeats", type=Whole(1, 100).parse, default=3)
    parser.add_argument("--reads", type=Whole(1, 10**8).parse, default=100_000)
    parser.add_argument(
        "--length", type=int, choices=[length for length, _ in SETS],
        help="reads of this length alone",
    )  # fmt: skip
    parser.add_argument("--report", choices=REPORTS, help="these loci alone")
    add_threads(parser)
    add_folder(parser)
    return read_options(parser, "allmap_cpu.jsonl", repeats=1, reads=200)


def measure(options):
    with tempfile.TemporaryDirectory(dir=options.folder) as work:
        work = Path(work)
        reference = None if options.small else large_file("chr20.fa")
        if reference is None:
            print("left out chr20.fa, not in $BWARP_LARGE: a genome is simulated", file=sys.stderr)
            reference = make_genome(work, 200_000 if options.small else 20_000_000)
        index = work / "bwarp.index"
        made = {"bwarp": run_script("index_reference", reference, "-o", index).wall}
        if found("yara_mapper"):
            command = ["yara_indexer", reference, "-o", work / "yara"]
            made["yara"] = run_program(command, cwd=work).wall
        if found("columba"):
            command = ["columba_build", "-r", work / "columba", "-f", reference]
            made["columba"] = run_program(command, cwd=work).wall
        for length, percent in SETS:
            if options.length not in (None, length):
                continue
            reads = simulated(reference, work, options.reads, length)
            for report in [options.report] if options.report else REPORTS:
                commands = commands_of(
                    work, reference, index, reads, length, percent, report, options
                )
                what = f"{report} loci within {percent} % edits of "
                what += f"{options.reads:,} reads of {length} b"
                edits = length * percent // 100
                yield from take_turns(what, reference, commands, edits, made, options)


def simulated(reference: Path, work: Path, n_reads: int, length: int) -> Path:
    reads = work / f"reads_{length}.fq"
    ends = "-1", reads, "--reads", n_reads, "--read-length", length
    run_script("simulate_reads", "--reference", reference, *ends)
    return reads


def commands_of(work, reference, index, reads, length, percent, report, options) -> dict:
    """Return commands and outputs by program."""
    threads = str(options.threads)
    out = {name: work / f"{name}.bam" for name in ("bwarp", "yara")}
    out |= {name: work / f"{name}.sam" for name in ("columba", "razers3")}
    commands = {
        "bwarp": script(
            "find_alignments", "--index", index, "-1", reads, "-o", out["bwarp"], "--edits",
            f"{percent}%", "--report", report, "--threads", threads, "--backend", "cpu",
        )
    }  # fmt: skip
    if found("yara_mapper"):
        strata = percent if report == "all" else 0
        commands["yara"] = [
            "yara_mapper", work / "yara", reads, "-e", percent, "-s", strata, "-sa", "record", "-y",
            "full", "-t", threads, "-o", out["yara"],
        ]  # fmt: skip
    if found("columba"):
        limit = ("-e", length * percent // 100) if report == "all" else ("-I", 100 - percent)
        commands["columba"] = [
            "columba", "-r", work / "columba", "-f", reads, "-a", report, *limit, "-m", "edit",
            "-t", threads, "-o", out["columba"],
        ]  # fmt: skip
    if report == "all" and found("razers3"):
        few = work / f"few_{reads.name}"
        lines = reads.read_text().splitlines(keepends=True)
        few.write_text("".join(lines[: 4 * max(1, options.reads // 50)]))
        commands["razers3"] = [
            "razers3", "-i", 100 - percent, "-rr", 100, "-m", 10_000_000, "-tc", threads, "-o",
            out["razers3"], reference, few,
        ]  # fmt: skip
    return {name: (command, out[name]) for name, command in commands.items()}


def take_turns(what: str, reference: Path, commands: dict, edits: int, made: dict, options):
    """Return a line per program: seconds, CPU seconds, memory, loci, and loci that others lack."""
    used = in_turn(
        {name: partial(run_program, command) for name, (command, _) in commands.items()},
        options.repeats + 1,
    )
    loci = {name: loci_of(out) for name, (_, out) in commands.items()}
    ours = loci["bwarp"]
    # The first round compiles and fills the page cache.
    for name, (_, *rounds) in used.items():
        theirs = loci[name]
        some = ours[np.isin(ours[:, 0], theirs[:, 0])]
        yield {
            "what": what,
            "reference": reference.name,
            "program": name,
            "seconds": statistics.median(one.wall for one in rounds),
            "all_seconds": [one.wall for one in rounds],
            "processor_seconds": statistics.median(one.processor for one in rounds),
            "peak_bytes": max(one.peak for one in rounds),
            "index_s": made.get(name),
            "reads": options.reads // 50 if name == "razers3" else options.reads,
            "loci": len(theirs),
            "not_in_bwarp": not_covered(theirs, ours, edits),
            "of_bwarp_not_here": not_covered(some, theirs, edits),
            "threads": options.threads,
        }


def loci_of(path: Path) -> np.ndarray:
    """Return sorted rows of read (a hash of its name), strand, contig, start and edits."""
    with pysam.AlignmentFile(path) as file:
        rows = [
            (
                hash(r.query_name) >> 2,
                r.is_reverse,
                r.reference_id,
                r.reference_start,
                r.get_tag("NM"),
            )
            for r in file
            if not r.is_unmapped
        ]
    return np.array(sorted(rows), np.int64).reshape(-1, 5)


def not_covered(some: np.ndarray, others: np.ndarray, edits: int) -> int:
    """Return the number of loci without another one nearby that has at most as many edits."""
    near: dict[tuple, list] = {}
    for read, strand, contig, start, distance in others.tolist():
        near.setdefault((read, strand, contig), []).append((start, distance))
    return sum(
        not any(
            abs(at - start) <= 2 * edits and d <= distance
            for at, d in near.get((read, strand, contig), ())
        )
        for read, strand, contig, start, distance in some.tolist()
    )


if __name__ == "__main__":
    options = parse_options()
    results = Results(options.output)
    for line in measure(options):
        results.add(**line)

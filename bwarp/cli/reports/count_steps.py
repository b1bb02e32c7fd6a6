"""Write a table of what every step of the chain made of a sample's reads, and of its time.

A row has the step, what is counted, the number, and the seconds of the step's jobs, those of all
batches together, as Snakemake has measured them, without the seconds in which they compiled.
"""

import os
from pathlib import Path

from bwarp.cli.program import program_parser
from bwarp.io.atomic_output import atomic_file, check_outputs
from bwarp.loci.find import Certificate
from bwarp.options.common import output
from bwarp.runtime.progress import seconds_of_compiling

EXAMPLES = """
scripts/count_steps.py results/allmap/demo.stats.json -o demo.steps.tsv \\
    --times logs/*/demo/1.benchmark.tsv logs/*/demo/1/*.benchmark.tsv
"""

#: Step, what it leaves, and what the certificate calls that.
ROWS = (
    ("batch_reads", "reads", "reads"),
    ("seed_reads", "parts of reads searched", "parts"),
    ("locate_seeds", "hits of parts located", "located"),
    ("filter_candidates", "hits dropped by the bound", "dropped"),
    ("extend_candidates", "hits verified; others agree with one of them", "verified"),
    ("", "verified hits with an alignment", "confirmed"),
    ("write_alignments", "loci written", "loci"),
    ("", "loci of reads over the limit", "loci_over"),
    ("merge_loci", "reads with loci", "aligned"),
    ("", "reads over the limit", "over"),
    ("", "reads without a locus", "without"),
    ("", "reads not searched", "skipped"),
)


def parse_options():
    parser = program_parser(__doc__, EXAMPLES, output("OUT.tsv", "table to write"))
    parser.add_argument("stats", metavar="SAMPLE.stats.json", help="of find_alignments.py or merge")
    parser.add_argument(
        "--times", nargs="*", default=[], metavar="BENCHMARK.tsv",
        help="what Snakemake measured of jobs, under a folder named after each step, with the logs "
        "of the jobs beside it",
    )  # fmt: skip
    return parser


def main(options):
    check_outputs([options.output], [options.stats, *options.times])
    certificate = Certificate.read(options.stats)
    times = seconds_of(options.times)
    lines = ["step\tcounted\tnumber\tseconds"]
    for step, meaning, name in ROWS:
        seconds = f"{times[step]:.1f}" if step in times else ""
        lines.append(f"{step}\t{meaning}\t{getattr(certificate, name)}\t{seconds}")
    with atomic_file(options.output, "w") as file:
        file.write("\n".join(lines) + "\n")


def seconds_of(paths: list[str | os.PathLike]) -> dict[str, float]:
    """The seconds of every step, under the folder of whose name the files of its jobs lie."""
    steps = {step for step, _, _ in ROWS if step}
    times: dict[str | None, float] = {}
    for path in map(Path, paths):
        # A job that ran in parts of a second has a line as well; one that was cut off has none.
        rows = path.read_text().splitlines()[1:]
        seconds = sum(float(row.split("\t")[0]) for row in rows)
        log = path.with_name(path.name.replace(".benchmark.tsv", ".log"))
        if log.exists():
            seconds = max(0.0, seconds - seconds_of_compiling(log.read_text(errors="replace")))
        # A sample may have the name of a step, too.
        step = next((part for part in path.parts if part in steps), None)
        times[step] = times.get(step, 0.0) + seconds
    return times

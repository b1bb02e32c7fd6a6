"""Write a table of the counts and the time of each step of the chain for a sample.

A row has the step, the quantity counted, the number, and the seconds of the step's jobs over all
batches as measured by Snakemake, excluding compilation.
"""

import os
from pathlib import Path

from bwarp.allmap.find import Certificate
from bwarp.cli.program import program_parser
from bwarp.io.atomic_output import atomic_file, check_outputs
from bwarp.options.common import output
from bwarp.runtime.progress import seconds_of_compiling

EXAMPLES = """
bwarp count-steps results/allmap/demo.stats.json -o demo.steps.tsv \\
    --times logs/*/demo/1.benchmark.tsv logs/*/demo/1/*.benchmark.tsv
"""

#: Step, quantity, and its key in the certificate.
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
    parser.add_argument(
        "stats", metavar="SAMPLE.stats.json", help="statistics of bwarp allmap or bwarp merge-loci"
    )
    parser.add_argument(
        "--times", nargs="*", default=[], metavar="BENCHMARK.tsv",
        help="Snakemake's benchmark files of the jobs, in folders named after the steps, with the "
        "logs of the jobs next to them",
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
    """Return the seconds of each step; the files of its jobs are in a folder of that name."""
    steps = {step for step, _, _ in ROWS if step}
    times: dict[str | None, float] = {}
    for path in map(Path, paths):
        # Even a job of less than a second has a line; an interrupted one has none.
        rows = path.read_text().splitlines()[1:]
        seconds = sum(float(row.split("\t")[0]) for row in rows)
        log = path.with_name(path.name.replace(".benchmark.tsv", ".log"))
        if log.exists():
            seconds = max(0.0, seconds - seconds_of_compiling(log.read_text(errors="replace")))
        # A sample may have the same name as a step.
        step = next((part for part in path.parts if part in steps), None)
        times[step] = times.get(step, 0.0) + seconds
    return times

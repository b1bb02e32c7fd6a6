"""Write a table of what each step of the chain takes, gives and drops for a sample, with its time.

A row has the step, its engine, the numbers that it takes and gives, and the seconds of its jobs
over all batches as measured by Snakemake, excluding compilation. --page also writes a page with the
table, and with plots of its numbers and times and of the number of loci per read.
"""

from dataclasses import asdict

from bwarp.allmap.find import Certificate
from bwarp.cli.program import program_parser
from bwarp.counted import counted
from bwarp.io.atomic_output import atomic_file, check_outputs
from bwarp.options.common import output
from bwarp.report.charts import BLUE, ORANGE, VERMILION, Bar, bar_chart
from bwarp.report.loci_chart import loci_chart
from bwarp.report.manifest import preview_page
from bwarp.report.page import section, side_by_side
from bwarp.report.step_times import Jobs, jobs_of, times_section

EXAMPLES = """
bwarp count-steps results/allmap/demo.stats.json -o demo.steps.tsv --page demo.steps.html \\
    --times logs/*/demo/1.benchmark.tsv logs/*/demo/1/*.benchmark.tsv
"""

STEPS = (
    "batch_reads", "seed_reads", "locate_seeds", "filter_candidates", "extend_candidates",
    "write_alignments", "merge_loci",
)  # fmt: skip

#: The colours of the positions that bounds drop.
_DROPPED = (ORANGE, VERMILION)

#: The steps that run on the engine that their logs name; the others are for CPUs.
_ON_ENGINE = ("seed_reads", "filter_candidates", "extend_candidates")

_HEADER = "step\tengine\ttakes\tof\tgives\tcounted\tseconds"


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
    parser.add_argument("--page", metavar="OUT.html", help="also write a page with plots")
    return parser


def main(options):
    check_outputs([options.output, options.page], [options.stats, *options.times])
    certificate = Certificate.read(options.stats)
    jobs = jobs_of(options.times, STEPS)
    table = "\n".join([_HEADER, *rows_of(certificate, jobs)]) + "\n"
    with atomic_file(options.output, "w") as file:
        file.write(table)
    if options.page:
        sections = [loci_chart(certificate), chain_chart(certificate)]
        if jobs:
            sections.append(times_section(jobs, STEPS))
        with (
            open(options.output, "rb") as written,
            atomic_file(options.page, "w") as file,
        ):
            picture = side_by_side(sections)
            file.write(preview_page(options.output, written, header=True, picture=picture))


def dropped_by(certificate: Certificate) -> dict[str, int]:
    """Return the numbers of hits dropped, by the names of the bounds."""
    return {
        name.removeprefix("dropped_by_"): count
        for name, count in asdict(certificate).items()
        if name.startswith("dropped_by_")
    }


def rows_of(certificate: Certificate, jobs: dict[str, Jobs]) -> list[str]:
    """Return the rows of the table; those without a step give more numbers of the step above."""
    one, dropped = certificate, dropped_by(certificate)
    kept = one.located - sum(dropped.values())
    # What a step takes, and what it gives, first what it passes on.
    counts = {
        "batch_reads": ((one.reads, "reads"), (one.reads, "reads")),
        "seed_reads": (
            (one.reads, "reads"),
            (one.located, "hits of their parts"),
            (one.parts, "parts of reads searched"),
        ),
        "locate_seeds": ((one.located, "hits"), (one.located, "positions")),
        "filter_candidates": (
            (one.located, "positions"),
            (kept, "candidates"),
            *((n, f"dropped by {bound}") for bound, n in dropped.items()),
        ),
        "extend_candidates": (
            (kept, "candidates"),
            (one.confirmed, "candidates with an alignment"),
            (one.verified, "candidates verified; others agree with one of them"),
        ),
        "write_alignments": (
            (one.confirmed, "candidates with an alignment"),
            (one.loci, "loci written"),
            (one.loci_over, "loci of reads over the limit"),
        ),
        "merge_loci": (
            (one.loci, "loci"),
            (one.aligned, "reads with loci"),
            (one.over, "reads over the limit"),
            (one.without, "reads without a locus"),
            (one.skipped, "reads not searched"),
        ),
    }
    rows: list[tuple] = []
    for step, (takes, first, *more) in counts.items():
        seconds = f"{jobs[step].seconds:.1f}" if step in jobs else ""
        rows.append((step, engine_of(step, jobs), *takes, *first, seconds))
        rows += [("", "", *takes, *gives, "") for gives in more]
    return ["\t".join(map(str, row)) for row in rows]


def chain_chart(certificate: Certificate) -> str:
    """Return the section of a page with bars of the numbers that each step passes on and drops."""
    one = certificate
    dropped = {bound: n for bound, n in dropped_by(one).items() if n}
    n_dropped = sum(dropped.values())
    gives = {
        "batch_reads": (one.reads, "read"),
        "seed_reads": (one.located, "hit"),
        "locate_seeds": (one.located, "position"),
        "filter_candidates": (one.located - n_dropped, "candidate"),
        "extend_candidates": (one.confirmed, "alignment"),
        "write_alignments": (one.loci, "locus"),
        "merge_loci": (one.aligned, "read with loci", "reads with loci"),
    }
    bars = []
    for step, given in gives.items():
        lost = [n if step == "filter_candidates" else 0 for n in dropped.values()]
        bars.append(Bar(step, [given[0], *lost], counted(*given)))
    bounds = {
        f"{n:,} dropped by {bound} ({100 * n / one.located:.0f} %)": colour
        for (bound, n), colour in zip(dropped.items(), _DROPPED, strict=False)
    }
    return section(
        "From reads to loci",
        bar_chart(bars, {"passed on": BLUE, **bounds}),
        f"The filter dropped {n_dropped:,} of {counted(one.located, 'position')}.",
        "The number of reads, hits and so on that each step passes on to the next one. The "
        "filter only drops positions without an alignment.",
    )


def engine_of(step: str, jobs: dict[str, Jobs]) -> str:
    """Return the engine of a step, or both if its jobs used different ones; "" if unknown."""
    if step not in _ON_ENGINE:
        return "cpu"
    return ", ".join(sorted(jobs[step].engines)) if step in jobs else ""

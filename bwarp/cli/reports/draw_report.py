"""Write a report on mapped reads: a page with a table of the samples, plots, and explanations.

The statistics are those of bwarp map and bwarp merge. The page is one file that needs no network.
With --qc, depths, insert sizes and duplicates are those of the files of bwarp map --qc; otherwise,
the breadth is estimated. --steps also writes a page for developers. --multiqc also writes the
sections of a MultiQC report, NAME_mqc.yaml. Plots without data are omitted.
"""

import json
import os
from pathlib import Path

from bwarp import __version__
from bwarp.checks.check_numbers import with_checks
from bwarp.cli.program import program_parser
from bwarp.errors import InputError
from bwarp.index.parameters import PartSize, parse_size_table
from bwarp.io.atomic_output import atomic_files, atomic_folder, check_outputs
from bwarp.options.common import output
from bwarp.report.mapping_page import mapping_page
from bwarp.report.mapping_steps_page import STEPS, mapping_steps_page
from bwarp.report.multiqc_sections import mapping_sections
from bwarp.report.step_times import jobs_of

EXAMPLES = """
bwarp draw-report --statistics results/map/*.stats.json -o report.html
bwarp draw-report --statistics results/map/*.stats.json --qc results/map/qc -o report.html
bwarp draw-report --statistics demo.stats.json --truth demo.json --index-sizes demo.txt \\
    -o report.html --steps steps.html --multiqc sections
"""

#: MultiQC recognises this file by its name.
VERSIONS = "bwarp_mqc_versions.yml"

SECTIONS = ("general", "units", "mapping_quality", "depth", "insert_size")


def parse_options():
    parser = program_parser(__doc__, EXAMPLES, output("OUT.html", "page to write"))
    parser.add_argument(
        "--statistics", nargs="+", required=True, metavar="SAMPLE.stats.json",
        help="statistics, one file per sample, named after the sample",
    )  # fmt: skip
    parser.add_argument(
        "--qc", metavar="FOLDER",
        help="folder written by map --qc, with files named after the samples",
    )  # fmt: skip
    parser.add_argument(
        "--truth",
        nargs="*",
        default=[],
        metavar="SAMPLE.json",
        help="counts of correct reads of simulated samples",
    )
    parser.add_argument(
        "--index-sizes", metavar="INDEX.txt", help="sizes of the parts of the index"
    )
    parser.add_argument("--title", default="Mapped reads", help="title of the page")
    parser.add_argument(
        "--steps",
        metavar="OUT.html",
        help="also write a page on how reads were mapped: candidates, times, index sizes",
    )
    parser.add_argument(
        "--times", nargs="*", default=[], metavar="BENCHMARK.tsv",
        help="Snakemake's benchmark files of the jobs, for --steps",
    )  # fmt: skip
    parser.add_argument(
        "--timelines", nargs="*", default=[], metavar="T.svg",
        help="pictures of bwarp draw-timeline, for --steps",
    )  # fmt: skip
    parser.add_argument("--multiqc", metavar="FOLDER", help="also write sections for MultiQC")
    return parser


def main(options):
    inputs = [*options.statistics, *options.truth, options.index_sizes]
    inputs += [*options.times, *options.timelines]
    check_outputs([options.output, options.steps], inputs, options.multiqc)
    samples = {name_of(path): statistics_of(path, options.qc) for path in options.statistics}
    truths = {name_of(path): read(path, "correct") for path in options.truth}
    parts: list[PartSize] = []
    if options.index_sizes:
        parts = parse_size_table(Path(options.index_sizes).read_text())
    pages = {options.output: mapping_page(options.title, samples, truths)}
    if options.steps:
        jobs = jobs_of(options.times, STEPS)
        timelines = {path: Path(path).read_text() for path in options.timelines}
        pages[options.steps] = mapping_steps_page(samples, truths, parts, jobs, timelines)
    if options.multiqc:
        write_sections(options.multiqc, samples, truths)
    with atomic_files(list(pages), "w") as files:
        for file, page in zip(files, pages.values(), strict=True):
            file.write(page)


def write_sections(folder: str, samples: dict, truths: dict) -> None:
    """Write the folder for MultiQC."""
    import yaml

    texts = {
        f"{name}_mqc.yaml": yaml.safe_dump(section, sort_keys=False)
        for name, section in mapping_sections(samples, truths).items()
    }
    texts[VERSIONS] = yaml.safe_dump({"bwarp": __version__})
    own = [f"{name}_mqc.yaml" for name in SECTIONS]
    with atomic_folder(folder, [*own, VERSIONS]) as made:
        for name, text in texts.items():
            (made / name).write_text(text)


def statistics_of(path: str, checks: str | None) -> dict:
    """Read the statistics of a sample, with the numbers of its files of --qc."""
    statistics = read(path, "mapping_qualities")
    if checks is None:
        return statistics
    return with_checks(statistics, checks, Path(path).name.removesuffix(".stats.json"))


def name_of(path: str) -> str:
    name = os.fsencode(Path(path).name).decode(errors="replace")
    return name.removesuffix(".json").removesuffix(".stats")


def read(path: str, key: str) -> dict:
    """Read the counts in a JSON file, which must contain this key."""
    try:
        counts = json.loads(Path(path).read_text())
    except ValueError as error:
        raise InputError(f"{path}: not JSON: {error}") from None
    if not isinstance(counts, dict) or key not in counts:
        raise InputError(
            f"{path} does not contain {key}: use a file that bwarp wrote for this option"
        )
    return counts

"""Plot the statistics of mapped reads, and write the sections of a MultiQC report.

The statistics of bwarp map and bwarp merge give plots of mapping qualities, insert sizes
and stages, the table of bwarp index a plot of its sizes, and the counts of bwarp count-correct
a plot of correct and incorrect reads. Plots without data are omitted. The output folder has a file
NAME.svg per plot, NAME_mqc.yaml per section, and SAMPLE.samtools_stats.txt with the numbers of a
sample under the names of samtools stats, which MultiQC also reads.
"""

import json
import os
from pathlib import Path

import yaml

from bwarp import __version__
from bwarp.cli.program import program_parser
from bwarp.errors import InputError
from bwarp.index.parameters import parse_size_table
from bwarp.io.atomic_output import atomic_folder, check_outputs
from bwarp.report import figures
from bwarp.report.mapping_summary import mapping_warnings, summarise, summary_table
from bwarp.report.multiqc_sections import (
    index_section,
    insert_size_curve,
    mapping_sections,
    samtools_stats,
)

EXAMPLES = """
bwarp draw-report --statistics results/map/*.stats.json -o plots
bwarp draw-report --statistics demo.stats.json --truth demo.json --index-sizes demo.txt \\
    -o plots
"""

#: Ending of tables with the names of samtools stats.
SAMTOOLS = ".samtools_stats.txt"

PLOTS = ("mapping_quality", "depth", "insert_size", "stages", "truth", "index_sizes")
#: MultiQC recognises this file by its name.
VERSIONS = "bwarp_mqc_versions.yml"

#: Table on the front page of the workflow's report.
TABLE = "samples.rst"

FILES = (
    "general_mqc.yaml",
    "units_mqc.yaml",
    VERSIONS,
    TABLE,
    *(f"{name}{ending}" for name in PLOTS for ending in ("_mqc.yaml", ".svg")),
)


def parse_options():
    parser = program_parser(__doc__, EXAMPLES)
    parser.add_argument(
        "--statistics", nargs="+", required=True, metavar="SAMPLE.stats.json",
        help="statistics, one file per sample, named after the sample",
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
    parser.add_argument("-o", "--output", required=True, metavar="FOLDER", help="folder to write")
    return parser


def main(options):
    inputs = [*options.statistics, *options.truth, options.index_sizes]
    check_outputs([], inputs, options.output)
    samples = {name_of(path): read(path, "mapping_qualities") for path in options.statistics}
    truths = {name_of(path): read(path, "correct") for path in options.truth}
    sections = mapping_sections(samples, truths)
    plots = {"mapping_quality": figures.draw_qualities(samples)}
    paired = {name: s for name, s in samples.items() if insert_size_curve(s)}
    covered = {name: s for name, s in samples.items() if s.get("depths")}
    staged = {name: s for name, s in samples.items() if s.get("stages")}
    if covered:
        plots["depth"] = figures.draw_depths(covered)
    if paired:
        plots["insert_size"] = figures.draw_insert_sizes(paired)
    if staged:
        plots["stages"] = figures.draw_stages(staged)
    if truths:
        plots["truth"] = figures.draw_truth(truths)
    if options.index_sizes:
        parts = parse_size_table(Path(options.index_sizes).read_text())
        sections["index_sizes"] = index_section(parts)
        plots["index_sizes"] = figures.draw_index_sizes(parts)
    tables = {
        f"{name}{SAMTOOLS}": samtools_stats(statistics)
        for name, statistics in samples.items()
        if "edits" in statistics
    }
    names = [*FILES, *tables, *other_tables(options.output)]
    with atomic_folder(options.output, names) as folder:
        summaries = {name: summarise(counts, truths.get(name)) for name, counts in samples.items()}
        (folder / TABLE).write_text(summary_table(summaries) + mapping_warnings(samples))
        (folder / VERSIONS).write_text(yaml.safe_dump({"bwarp": __version__}))
        for name, text in tables.items():
            (folder / name).write_text(text)
        for name, section in sections.items():
            (folder / f"{name}_mqc.yaml").write_text(yaml.safe_dump(section, sort_keys=False))
        for name, figure in plots.items():
            with open(folder / f"{name}.svg", "wb") as file:
                figures.save(figure, file)


def other_tables(folder: str) -> list[str]:
    """Return tables of samples that an earlier run left in the folder."""
    return [path.name for path in Path(folder).glob(f"*{SAMTOOLS}")]


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

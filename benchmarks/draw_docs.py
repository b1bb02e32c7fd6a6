"""Write the tables and pictures of README.md and docs/ from the results in benchmarks/results.

    python benchmarks/draw_docs.py            write them
    python benchmarks/draw_docs.py --check    only check, by the exit code, whether they are current
    python benchmarks/draw_docs.py --falls    list figures that were better at the last release,
                                              or, before the first, at their last measurement

A table is between <!-- table NAME: begin --> and <!-- table NAME: end -->. "older" marks a figure
that was measured before the last change to its code when the table was drawn; --check ignores it.
A table is empty while it has no results.
README.md shows the figures in FRONT_PAGE, and the accuracy of mapping.
"""

import re
import sys

from drawing import accuracy_tables, gpu_tables, paper_tables, speed_tables, whole_runs
from drawing.accuracy import calibration_pictures, roc_pictures
from drawing.age import age_of, earlier_figures, falls
from drawing.figures import Figure, Lines, accuracy_figures, all_figures, lines_in, machine_of
from drawing.speed_chart import speed_chart
from drawing.tables import as_markdown
from frame.options import CHECKOUT, new_parser

MARKED = re.compile(
    r"(<!-- table (?P<name>[^:]*): begin -->\n).*?(<!-- table (?P=name): end -->)", re.DOTALL
)
PAGES = ["README.md", *(f"docs/{path.name}" for path in sorted((CHECKOUT / "docs").glob("*.md")))]

#: The rows of README.md: the job, and a part of the name of its data.
FRONT_PAGE = (
    ("index, FASTA to folder", "133 Mb of human"),
    ("map, FASTQ to SAM, reads per second", "chr20.fa"),
    ("map, FASTQ.gz to sorted BAM, reads per second", "12,000,000 reads"),
    ("mems", "matches of 20 b of E. coli"),
    ("search, whole program", "prepared"),
)
#: The reads whose accuracy README.md shows.
FRONT_PAGE_READS = [("chr20.fa", 150, True, 0.001, 1)]


def front_page(figures: list[Figure]) -> list[Figure]:
    chosen = []
    for what, of in FRONT_PAGE:
        (figure,) = (one for one in figures if one.what == what and of in one.of)
        chosen.append(figure)
    return chosen


def table(figures: list[Figure]) -> str:
    """Return the figures as a Markdown table."""
    lines = [
        "| what | data | bwarp | other programs | machine | commit |",
        "|---|---|---|---|---|---|",
    ]
    for one in figures:
        cells = one.what, one.of, one.shown, one.others, machine_of(one.line)
        lines.append(f"| {' | '.join(cells)} | {age_of(one.line, one.results)} |")
    return "\n".join(lines) + "\n"


def without_age(text: str) -> str:
    return re.sub(r" \((older|age unknown)\)", "", text)


def drawn(lines: Lines) -> dict[str, str]:
    """Return the text of every page and picture by path."""
    figures = all_figures(lines)
    front = [*front_page(figures), *accuracy_figures(lines, FRONT_PAGE_READS)]
    tables = {"front page": table(front), "all figures": table(figures)}
    pages = speed_tables, gpu_tables, accuracy_tables, paper_tables, whole_runs
    for name, draw in (item for page in pages for item in page.TABLES.items()):
        if (drawn_table := draw(lines)).lines:
            tables[name] = as_markdown(drawn_table)
    found = {"docs/speed.svg": speed_chart(lines)}
    for name, svg, _ in (*roc_pictures(lines), *calibration_pictures(lines)):
        found[f"docs/accuracy-{name}.svg"] = svg
    for page in PAGES:
        text = (CHECKOUT / page).read_text()
        found[page] = MARKED.sub(lambda m: m[1] + tables.pop(m["name"], "") + m[3], text)
    if tables:
        sys.exit(f"no page has a place for the table {', '.join(tables)}")
    return found


def main() -> None:
    parser = new_parser(__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--falls", action="store_true")
    options = parser.parse_args()
    lines = lines_in(CHECKOUT / "benchmarks" / "results")
    if options.falls:
        figures = all_figures(lines)
        for before, now in falls(earlier_figures(figures), figures):
            then = age_of(before.line, before.results)
            print(f"{now.what}: {now.of}: {before.shown} at {then}, now {now.shown}")
        return
    old = []
    for name, text in drawn(lines).items():
        path = CHECKOUT / name
        if not path.exists() or without_age(path.read_text()) != without_age(text):
            old.append(name)
        if not options.check:
            path.write_text(text)
    if options.check:
        sys.exit(f"{', '.join(old)}: run python benchmarks/draw_docs.py" if old else 0)


if __name__ == "__main__":
    main()

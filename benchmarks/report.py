#!/usr/bin/env python3
"""Draw the report of a run of the benchmarks: one self-contained HTML page.

    python benchmarks/report.py benchmarks/results/here -o report.html
    python benchmarks/report.py benchmarks/results -o report.html     the results in git

The table has the newest line of each figure: from the folder, or from git if the folder has none. A
line that was measured before the last change to its code is marked.
"""

from collections.abc import Iterator
from pathlib import Path

from drawing import gpu_tables, html, paper_tables, whole_runs
from drawing.accuracy import calibration_pictures, roc_pictures
from drawing.accuracy_tables import TABLES
from drawing.age import age_of, earlier_figures, falls
from drawing.figures import Figure, Lines, all_figures, lines_in, machine_of
from drawing.speed_chart import speed_chart
from drawing.tables import as_html
from frame.environment import commit, machine
from frame.options import CHECKOUT, new_parser
from frame.table import benchmarks

KEPT = CHECKOUT / "benchmarks" / "results"

METHOD = (
    "bwarp and the other programs take turns in one run, on the same files and with the same "
    "number of threads; nothing else that the workflow starts runs beside them. A first run, which "
    "compiles and fills the page cache, is not counted, but where the table says first use. "
    "Seconds are the wall clock of whole programs, from file to file, unless a row names a kernel "
    "or a part; they are medians, for mapping the fastest run.",
    "Answers are compared in the same run: hits, matches and scores must be equal to the other "
    "program's; of mapped reads those are counted that lie where they were simulated.",
    "Every figure is drawn from a line of JSON with the commit, the machine and the versions. A "
    "commit is called older where the code that is measured, without its comments, has changed.",
)
LIMITS = (
    "Simulated genomes and reads are kinder than real ones. Rows that name chr20 or E. coli are of "
    "real genomes, with simulated reads. Real reads are compared with other programs, for nobody "
    "knows where they are from.",
    "A run on a machine that others use, or whose clock changes, gives ratios rather than seconds. "
    "Figures of different machines are not to be compared.",
    "The sizes are those of config.yaml, chosen so that all takes less than an hour on two cores. "
    "Large genomes and many reads are kinder to bwarp than small ones, for it takes half a second "
    "to start.",
)


def parse_options():
    parser = new_parser(__doc__)
    parser.add_argument("folder", type=Path, help="of result lines")
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--alone", action="store_true", help="nothing of what is kept in git")
    parser.add_argument("--cpu-price", type=float, help="of an hour of a machine without a GPU")
    parser.add_argument("--gpu-price", type=float, help="of an hour of a machine with its GPU")
    return parser.parse_args()


def newest(ours: list[Figure], kept: list[Figure]) -> list[Figure]:
    """Return the run's figures, and those of other jobs or machines in git, by job."""
    here = {figure.key for figure in ours}
    every = ours + [figure for figure in kept if figure.key not in here]
    order = list(dict.fromkeys(figure.what for figure in (*kept, *ours)))
    return sorted(every, key=lambda figure: order.index(figure.what))


def figure_table(figures: list[Figure]) -> str:
    rows, older = [], []
    for at, one in enumerate(figures):
        age = age_of(one.line, one.results)
        if "(" in age:
            older.append(at)
        date = one.line.get("date", "")
        rows.append((one.what, one.of, one.shown, one.others, machine_of(one.line), age, date))
    heads = ["what", "data", "bwarp", "other programs", "machine", "commit", "date"]
    return html.table(heads, rows, code=(5, 6), older=older)


def fall_table(before: list[Figure], now: list[Figure]) -> str:
    found = falls(before, now)
    if not found:
        return html.paragraphs("None fell by more than 5 %.")
    rows = [
        (
            one.now.what,
            one.now.of,
            f"{one.before.shown} at {age_of(one.before.line, one.before.results)}",
            f"{one.now.shown} at {age_of(one.now.line, one.now.results)}",
            f"{one.times:.2f} times as good",
        )
        for one in found
    ]
    return html.table(["what", "data", "before", "now", "it was"], rows)


def run_rows(folder: Path, lines: Lines) -> Iterator[tuple]:
    """Return the outcome of each benchmark: seconds, lines, and why there are none."""
    for name, benchmark in benchmarks().items():
        time, log = folder / "times" / f"{name}.tsv", folder / "logs" / f"{name}.txt"
        said = log.read_text().strip().splitlines() if log.exists() else []
        if not (folder / benchmark.results).exists():
            why = "needs a GPU" if benchmark.gpu else "was not run"
            yield name, benchmark.title, "", "", f"failed: {said[-1]}" if said else why
            continue
        seconds = ""
        if time.exists():
            head, values = (line.split("\t") for line in time.read_text().splitlines())
            seconds = f"{float(values[head.index('s')]):.0f}"
        notes = [row for row in said if "not installed" in row or "skipped" in row]
        yield name, benchmark.title, seconds, len(lines(benchmark.results)), "; ".join(notes)


def peer_rows(lines: Lines) -> Iterator[tuple]:
    for line in lines("peers.jsonl"):
        yield line["peer"], line["version"] or "not installed", line["from"]


def accuracy_of(lines: Lines) -> str:
    pictures = [*roc_pictures(lines), *calibration_pictures(lines)]
    parts = [html.picture(svg, caption) for _, svg, caption in pictures]
    return "\n".join([*parts, tables_of(TABLES, lines)])


def whole_runs_of(lines: Lines, an_hour: dict[str, float]) -> str:
    heads, rows = whole_runs.whole_run_rows(lines, an_hour)
    given = [f"{price:g} with{'' if kind == 'gpu' else 'out'} a GPU"
             for kind, price in an_hour.items()]  # fmt: skip
    words = [f"An hour of the machine costs {', '.join(given)}."] if given else []
    return html.paragraphs(*words) + html.table(heads, rows) + tables_of(whole_runs.TABLES, lines)


def tables_of(draw: dict, lines: Lines) -> str:
    """Return the tables that have lines, by name."""
    tables = {name: function(lines) for name, function in draw.items()}
    return "\n".join(
        f"<h3>{html.escape(name[0].upper() + name[1:])}</h3>{as_html(table)}"
        for name, table in tables.items()
        if table.lines
    )


def main():
    options = parse_options()
    lines, kept = lines_in(options.folder), lines_in(KEPT)
    ours, before = all_figures(lines), all_figures(kept)
    if options.folder.resolve() == KEPT:
        before = earlier_figures(ours)
    figures = ours if options.alone else newest(ours, all_figures(kept))

    def either(name: str) -> list[dict]:
        """Return the lines of the run, or those in git if there are none."""
        return lines(name) or ([] if options.alone else kept(name))

    prices = {"cpu": options.cpu_price, "gpu": options.gpu_price}
    an_hour = {kind: price for kind, price in prices.items() if price}
    chart = speed_chart(lines) or speed_chart(either)
    about = f"commit {commit()}, {machine()}"
    runs = list(run_rows(options.folder, lines)) if (options.folder / "times").exists() else []
    text = html.page(
        "bwarp: speed and accuracy",
        [
            ("method", "Method", html.paragraphs(about, *METHOD)),
            ("picture", "Beside other programs", html.picture(chart, "") if chart else ""),
            ("falls", "Figures that fell", "" if options.alone else fall_table(before, ours)),
            ("figures", "All figures", figure_table(figures)),
            ("whole", "Whole runs of mappers", whole_runs_of(either, an_hour)),
            ("gpus", "Programs on GPUs", tables_of(gpu_tables.TABLES, either)),
            ("accuracy", "Accuracy of mapping", accuracy_of(either)),
            ("papers", "The papers' experiments", tables_of(paper_tables.TABLES, either)),
            ("runs", "What was run", runs and html.table(
                ["benchmark", "what", "seconds", "lines", ""], runs)),
            ("programs", "Other programs",
             html.table(["program", "version", "from"], peer_rows(either))),
            ("limits", "Limits", html.paragraphs(*LIMITS)),
        ],
    )  # fmt: skip
    options.output.write_text(text)
    print(f"{options.output}: {len(figures)} figures, {len(ours)} of them measured here")


if __name__ == "__main__":
    main()

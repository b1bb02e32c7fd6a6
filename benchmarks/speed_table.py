"""Write the tables of speed and their chart from the results in benchmarks/results.

    python benchmarks/speed_table.py            write README.md, docs/benchmarks.md, docs/speed.svg
    python benchmarks/speed_table.py --check    only say whether they are new, by the exit code
    python benchmarks/speed_table.py --here     of results/here/, into speed.md and speed.svg there

Every benchmark writes JSON lines of its own; one function for each of them here picks the rows of
docs/benchmarks.md: what was done, on what data, how fast, how fast other programs were in the same
run, and where. README.md shows the rows that FRONT_PAGE names, and the accuracy of mapping.
"""

import json
import re
import sys
from collections.abc import Iterator

from frame.options import CHECKOUT, HERE
from speed_chart import Comparison, chart

RESULTS = HERE if "--here" in sys.argv[1:] else HERE.parent
MARKED = re.compile(
    r"(?<=<!-- speed table: begin -->\n).*?(?=<!-- speed table: end -->)", re.DOTALL
)
Row = tuple[str, str, str, str, str]

#: How the rows of README.md begin.
FRONT_PAGE = (
    ("index, FASTA to folder", "133 Mb of human"),
    ("map, FASTQ to SAM, reads a second", "500,000 reads"),
    ("map, FASTQ.gz to sorted BAM, reads a second", "12,000,000 reads"),
    ("seeds, FASTA to table", "150,000 20-mers"),
    ("mems", "matches of 20 b of E. coli"),
    ("search, GCUPS", "protein of 5,478"),
)
#: The reads whose accuracy README.md shows.
READS = ("reference", "read_length", "paired", "variant_rate", "indel_length")
FRONT_PAGE_READS = (("chr20.fa", 150, True, 0.001, 1), ("chr20.fa", 30, True, 0.001, 1))


def results(name: str) -> list[dict]:
    """The lines of a file of results; none where it is not there."""
    path = RESULTS / name
    return [json.loads(line) for line in path.open()] if path.exists() else []


def in_turn(what: str, name: str) -> Iterator[Row]:
    """Rows of jobs that bwarp and others were timed at in turn, a line for each program."""
    jobs = {}
    for line in results(name):
        if {"what", "program", "seconds"} <= line.keys():
            of = f"{line['what']}, {line['reference'].removesuffix('.ix')}"
            jobs.setdefault(of, {})[line["program"]] = line
    for of, job in jobs.items():
        if "bwarp" in job:
            ours = job.pop("bwarp")
            others = ", ".join(f"{name} {shown(line['seconds'])}" for name, line in job.items())
            machine = ours.get("machine") or f"{ours['threads']} threads"
            yield what, of, shown(ours["seconds"]), others, machine


def locus_rows() -> Iterator[Row]:
    """RazerS 3 is given fewer reads, for it passes over the genome whatever their number."""
    for what, of, ours, others, machine in in_turn("allmap, FASTQ to BAM", "allmap_cpu.jsonl"):
        few = re.sub(r"razers3 ([^,]+)", r"razers3 \1 for a fiftieth of the reads", others)
        yield what, of, ours, few, machine


def index_rows() -> Iterator[Row]:
    runs = {}
    for line in results("index_cpu.json"):
        if line["what"].startswith("index"):
            runs.setdefault(line["reference"], {})[line["program"]] = line
    for reference, line in runs.items():
        others = f"bwa index {shown(line['bwa index']['seconds'])}" if "bwa index" in line else ""
        ours = line["bwarp"]
        yield "index, FASTA to folder", reference, shown(ours["seconds"]), others, ours["machine"]
    for line in results("index_whole_genome.jsonl"):
        if not line["what"].startswith("index"):
            continue
        bases = f"{line['bases'] / 1e9:.1f} Gb simulated"
        yield "index, FASTA to folder", bases, shown(line["seconds"]), "", line["machine"]
    for line in results("suffix_array.jsonl")[-1:]:
        bases = f"{line['letters'] / 1e9:.1f} Gb simulated"
        yield "suffix array alone", bases, shown(line["median_seconds"]), "", line["gpu"]


def mapping_rows() -> Iterator[Row]:
    runs: dict[str, dict[str, dict]] = {}
    for line in results("map_cpu.json"):
        runs.setdefault(line["reference"], {})[line["mapper"]] = line
    for reference, run in runs.items():
        speed = {name: f"{line['reads'] / line['wall_seconds']:,.0f}" for name, line in run.items()}
        ours = run["bwarp"]
        of = f"{ours['reads']:,} reads of 2 x {ours['read_length']} bases, {reference}"
        others = ", ".join(f"{name} {speed[name]}" for name in run if name != "bwarp")
        yield "map, FASTQ to SAM, reads a second", of, speed["bwarp"], others, ours["machine"]
    whole = "gzipped FASTQ to sorted BAM"
    runs_on_gpu = [line for line in results("map_h200.jsonl") if line.get("what") == whole]
    if runs_on_gpu:
        line = runs_on_gpu[0]
        of = f"{2 * line['pairs']:,} reads of 2 x 150 bases, {line['bases'] / 1e9:.1f} Gb simulated"
        every = [run["reads_a_second"] for run in runs_on_gpu]
        speed = f"{min(every):,} to {max(every):,}"
        machine = f"{line['gpu']}, {line['threads']} cores"
        yield "map, FASTQ.gz to sorted BAM, reads a second", of, speed, "", machine


def seed_rows() -> Iterator[Row]:
    yield from in_turn("seeds, FASTA to table", "seeds_cpu.jsonl")
    for line in results("seeds_gpu.jsonl"):
        fastest = {}
        for run in line["exact"]:
            speed = run["searches_a_second"]
            fastest[run["k"]] = max(fastest.get(run["k"], 0), speed)
        for k in (20, 30):
            if k in fastest:
                of = f"{line['bases'] / 1e9:.1f} Gb simulated, {k}-mers"
                speed = f"{fastest[k] / 1e9:.1f} G/s"
                yield "seeds: exact search, kernel", of, speed, "", line["gpu"]


def match_rows() -> Iterator[Row]:
    yield from in_turn("mems", "mems_cpu.jsonl")
    for line in results("mems_h200.jsonl"):
        if "seconds" in line and "unique" in line["what"] and line["strands"] == 2:
            of = f"{line['what']}, {line['bases'] / 1e6:,.0f} Mb"
            yield "mems", of, shown(line["seconds"]), "", line["device"]


def parasail(line: dict) -> str:
    return f"parasail {line['parasail_gcups']:.1f}" if "parasail_gcups" in line else ""


def alignment_rows() -> Iterator[Row]:
    for line in results("pairs_cpu.jsonl"):
        if line.get("part") == "dna" and line["mode"] in ("local", "semiglobal"):
            of = f"DNA {line['lengths']}, {line['mode']}"
            others = parasail(line)
            ours = f"{line['score_gcups']:.1f} (CIGAR {line['cigar_gcups']:.1f})"
            yield "pairs, GCUPS", of, ours, others, f"{line['cpu']}, 1 core"
    proteins = [line for line in results("search_cpu.jsonl") if line.get("part") == "proteins"]
    for line in proteins:
        if line["query"] in ("P02232", "P07756", "Q9UKN1"):
            of = f"protein of {line['length']:,} against Swiss-Prot"
            others = parasail(line)
            yield "search, GCUPS", of, f"{line['gcups']:.1f}", others, f"{line['cpu']}, 1 core"


def gpu_alignment_rows() -> Iterator[Row]:
    path = RESULTS / "alignment_gpu.jsonl"
    report = json.loads(path.read_text()) if path.exists() else {"rows": ()}
    wanted = {"score": "score", "cigar": "CIGAR"}
    for row in report["rows"]:
        on = report["device"]
        if row["part"] == "time pairs" and row["cells"] == "150x300" and row["what"] in wanted:
            of = f"DNA {row['cells'].replace('x', ' x ')}, {row['mode']}, {wanted[row['what']]}"
            yield "pairs, TCUPS, kernels", of, f"{row['tcups_kernels']:.1f}", "", on
        elif row["part"] == "time search" and row["what"] == "profile, all queries":
            of = f"19 proteins of 144 to 5,478 against {row['residues'] / 1e6:,.0f} M residues"
            yield "search, TCUPS", of, f"{row['tcups_wall']:.1f}", "", on


def scan_rows() -> Iterator[Row]:
    for name in ("scan_cpu.jsonl", "scan_h200.jsonl"):
        fastest = 0.0
        for line in results(name):
            if line.get("part") == "paper" and line["algorithm"] != "gather":
                fastest = max(fastest, line["giga_comparisons_a_second"])
        if fastest:
            of = "61,120 queries, 40 Mb"
            what = "scan, comparisons of windows"
            yield what, of, f"{fastest:,.0f} G/s", "", line["machine"]


def start_rows() -> Iterator[Row]:
    for line in results("start_up.jsonl"):
        what = f"{line['what']}, next to nothing to do, {line['use']}"
        of = f"20 pairs of reads, {line['bases'] / 1e6:,.3g} Mb"
        yield what, of, shown(line["seconds"]), "", line["machine"]


def comparisons() -> Iterator[Comparison]:
    """What the chart shows: of every kind of job on the CPU the largest, and what gains least."""
    for what, name, job in (
        ("index", "index_cpu.json", "index, FASTA to folder 133 Mb of human"),
        ("seeds", "seeds_cpu.jsonl", "150,000 20-mers, 1 mismatch"),
        ("exact matches", "mems_cpu.jsonl", "of E. coli DH1"),
        ("exact matches", "mems_cpu.jsonl", "of 200,000 reads"),
    ):
        seconds = {}
        for line in results(name):
            if job in f"{line.get('what')} {line.get('reference')}" and "seconds" in line:
                seconds[line["program"]] = line["seconds"]
        for other, theirs in seconds.items():
            if not other.startswith("bwarp"):
                of = job.removeprefix("index, FASTA to folder ").removeprefix("of ")
                yield Comparison(what, of, other, theirs / seconds["bwarp"])
    mapping = {
        line["mapper"]: line for line in results("map_cpu.json") if line["reference"] == "h133.fa"
    }
    if mapping:
        ours = mapping.pop("bwarp")
        of = f"{ours['reads']:,} reads, 133 Mb"
        for other, line in mapping.items():
            yield Comparison("map", of, other, line["wall_seconds"] / ours["wall_seconds"])
    for line in results("pairs_cpu.jsonl"):
        if "times_parasail" in line and line.get("mode") in ("local", "semiglobal"):
            of = f"{line['mode']}, DNA {line['lengths'].replace('x', ' x ')}"
            yield Comparison("pairs", of, "parasail", line["times_parasail"])
    proteins = [line for line in results("search_cpu.jsonl") if line.get("part") == "proteins"]
    proteins = sorted(
        (line for line in proteins if "times_parasail" in line), key=lambda line: line["length"]
    )
    if proteins:
        for line in (proteins[0], proteins[-1]):
            of = f"protein of {line['length']:,}"
            yield Comparison("search", of, "parasail", line["times_parasail"])


def speed_chart() -> str:
    """The chart, kinds of jobs side by side, the most gain first."""
    found = sorted(comparisons(), key=lambda one: -one.times)
    kinds = list(dict.fromkeys(one.what for one in found))
    found.sort(key=lambda one: kinds.index(one.what))
    note = "Up to two cores of the same machine, in the same run."
    return chart("Speed relative to other programs, on the CPU", note, found)


def accuracy_rows() -> Iterator[Row]:
    """Mapping of simulated reads, as shares of them and as incorrect ones in a million."""
    for wanted in FRONT_PAGE_READS:
        run = {
            line["mapper"]: line
            for line in results("map_accuracy.json")
            if tuple(line[key] for key in READS) == wanted and line["simulator"] == "dwgsim"
        }
        ours = run["bwarp"]
        reads = f"{ours['reads']:,} reads of 2 x {ours['read_length']} bases, {ours['reference']}"
        correct = [
            f"{line['right']:.2f} %, {line['wrong_ppm_q10']:,}" for line in (ours, run["bwa mem"])
        ]
        what = "map, correct reads, and incorrect per million at MAPQ >= 10"
        yield what, reads, correct[0], f"bwa mem {correct[1]}", ours["machine"]


def speed_rows() -> list[Row]:
    """A row for each thing that was timed."""
    kinds = (
        *(index_rows, mapping_rows, seed_rows, locus_rows, match_rows),
        *(alignment_rows, gpu_alignment_rows, scan_rows, start_rows),
    )
    return [row for rows in kinds for row in rows()]


def front_page_rows() -> list[Row]:
    rows = speed_rows()
    chosen = []
    for what, of in FRONT_PAGE:
        (row,) = (row for row in rows if row[0] == what and row[1].startswith(of))
        chosen.append(row)
    return [*chosen, *accuracy_rows()]


def table(rows: list[Row]) -> str:
    """The rows in Markdown."""
    lines = ["| what | data | bwarp | other programs | machine |", "|---|---|---|---|---|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


def shown(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds < 100 else f"{seconds:.0f} s"


def main() -> None:
    if RESULTS == HERE:
        (HERE / "speed.md").write_text(table(speed_rows()))
        if any(comparisons()):
            (HERE / "speed.svg").write_text(speed_chart())
        print(table(speed_rows()), end="")
        return
    drawn = {"docs/speed.svg": speed_chart()}
    for page, rows in (("README.md", front_page_rows()), ("docs/benchmarks.md", speed_rows())):
        drawn[page] = MARKED.sub(lambda _, rows=rows: table(rows), (CHECKOUT / page).read_text())
    if "--check" in sys.argv[1:]:
        old = [name for name, text in drawn.items() if (CHECKOUT / name).read_text() != text]
        sys.exit(f"{', '.join(old)}: run python benchmarks/speed_table.py" if old else 0)
    for name, text in drawn.items():
        (CHECKOUT / name).write_text(text)


if __name__ == "__main__":
    main()

"""Write the speed table of README.md from the results in benchmarks/results.

    python benchmarks/speed_table.py            write it
    python benchmarks/speed_table.py --check    only say whether it is up to date, by the exit code

Every benchmark writes JSON lines of its own; one function for each of them here picks what belongs
on the front page: what was done, on what, how fast, how fast others were in the same run, where.
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
RESULTS = CHECKOUT / "benchmarks" / "results"
MARKED = re.compile(
    r"(?<=<!-- speed table: begin -->\n).*?(?=<!-- speed table: end -->)", re.DOTALL
)
Row = tuple[str, str, str, str, str]


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
        bases = f"{line['bases'] / 1e9:.1f} Gb simulated"
        yield "index, FASTA to folder", bases, shown(line["seconds"]), "", line["machine"]
    for line in results("suffix_array.jsonl")[-1:]:
        letters = f"{line['letters'] / 1e9:.1f} Gb simulated"
        yield "suffix array alone", letters, shown(line["median_seconds"]), "", line["gpu"]


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


def alignment_rows() -> Iterator[Row]:
    for line in results("pairs_cpu.jsonl"):
        if line.get("part") == "dna" and line["mode"] in ("local", "semiglobal"):
            of = f"DNA {line['lengths']}, {line['mode']}"
            others = f"parasail {line['parasail_gcups']:.1f}"
            ours = f"{line['score_gcups']:.1f} (CIGAR {line['cigar_gcups']:.1f})"
            yield "pairs, GCUPS", of, ours, others, f"{line['cpu']}, 1 core"
    proteins = [line for line in results("search_cpu.jsonl") if line.get("part") == "proteins"]
    for line in proteins:
        if line["query"] in ("P02232", "P07756", "Q9UKN1"):
            of = f"protein of {line['length']:,} against Swiss-Prot"
            others = f"parasail {line['parasail_gcups']:.1f}"
            yield "search, GCUPS", of, f"{line['gcups']:.1f}", others, f"{line['cpu']}, 1 core"


def gpu_alignment_rows() -> Iterator[Row]:
    path = RESULTS / "alignment_gpu.json"
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


def speed_table() -> str:
    """A Markdown table with a row for each thing that was timed."""
    table = ["| what | of | bwarp | others | on |", "|---|---|---|---|---|"]
    for rows in (
        *(index_rows, mapping_rows, seed_rows, match_rows),
        *(alignment_rows, gpu_alignment_rows, scan_rows),
    ):
        table += [f"| {' | '.join(row)} |" for row in rows()]
    return "\n".join(table) + "\n"


def shown(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds < 100 else f"{seconds:.0f} s"


def main() -> None:
    page = CHECKOUT / "README.md"
    old = page.read_text()
    new = MARKED.sub(lambda _: speed_table(), old)
    if "--check" in sys.argv[1:]:
        sys.exit(new != old and "README.md: run python benchmarks/speed_table.py")
    page.write_text(new)


if __name__ == "__main__":
    main()

"""Figures of speed, each with its line of results.

Each benchmark writes lines of its own kind; one function per kind of job chooses the lines to show:
the job, its data, its speed, and the speed of other programs in the same run.
"""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = [
    "ROWS",
    "Figure",
    "Lines",
    "accuracy_figures",
    "all_figures",
    "lines_in",
    "machine_of",
    "megabases_of",
    "reference_of",
]

#: The lines of files of results, by file name.
Lines = Callable[[str], list[dict]]


class Figure(NamedTuple):
    """One figure: `value` is a number in `unit`, `shown` is its text in pages."""

    what: str
    of: str
    value: float
    unit: str
    shown: str
    others: str
    line: dict
    results: str

    @property
    def less_is_better(self) -> bool:
        return self.unit in ("s", "ppm")

    @property
    def key(self) -> tuple:
        """Return a key that is equal for figures of the same job on the same machine."""
        return self.what, self.of, machine_of(self.line)


def lines_in(folder: Path) -> Lines:
    """Return a reader of files in a folder; a missing file has no lines."""

    def read(name: str) -> list[dict]:
        path = folder / name
        return [json.loads(line) for line in path.open()] if path.exists() else []

    return read


def machine_of(line: dict) -> str:
    """Return where a line was measured: processor or GPU, and number of cores used."""
    machine = line.get("gpu") or line.get("machine", "")
    machine = re.sub(r"(, | )?\d+ cores$", "", machine)
    cores = re.search(r"(\d+) cores$", line.get("machine", ""))
    n = line.get("threads") or (int(cores[1]) if cores and "gpu" not in line else None)
    return ", ".join(filter(None, (machine, n and f"{n} core{'s' * (n > 1)}")))


def reference_of(line: dict) -> str:
    """Return the reference of a line, which may be identified by the folder of its index."""
    return re.sub(r"\.(ix|index)$", "", line["reference"])


def megabases_of(line: dict) -> int:
    """Return the size in the name of a reference, such as 16 Mb of chr20; 0 if it has none."""
    size = re.match(r"(\d+) Mb of ", line["reference"])
    return int(size[1]) if size else 0


def seconds(what: str, of: str, value: float, others: str, line: dict, results: str) -> Figure:
    return Figure(what, of, value, "s", shown(value), others, line, results)


def shown(value: float) -> str:
    return f"{value:.3g} s" if value < 100 else f"{value:.0f} s"


def in_turn(what: str, lines: Lines, results: str) -> Iterator[Figure]:
    """Return jobs for which bwarp and others were timed in turn, with a line per program."""
    jobs = {}
    for line in lines(results):
        if {"what", "program", "seconds"} <= line.keys():
            of = f"{line['what']}, {reference_of(line)}"
            jobs.setdefault(of, {})[line["program"]] = line
    for of, job in jobs.items():
        if "bwarp" in job:
            ours = job.pop("bwarp")
            others = ", ".join(f"{name} {shown(line['seconds'])}" for name, line in job.items())
            yield seconds(what, of, ours["seconds"], others, ours, results)


def index_figures(lines: Lines) -> Iterator[Figure]:
    what, results, runs = "index, FASTA to folder", "index_cpu.json", {}
    for line in lines(results):
        if line["what"].startswith("index"):
            runs.setdefault(line["reference"], {})[line["program"]] = line
    for reference, line in runs.items():
        others = f"bwa index {shown(line['bwa index']['seconds'])}" if "bwa index" in line else ""
        ours = line["bwarp"]
        yield seconds(what, reference, ours["seconds"], others, ours, results)
    results = "index_whole_genome.jsonl"
    for line in lines(results):
        if line["what"].startswith("index"):
            bases = f"{line['bases'] / 1e9:.1f} Gb simulated"
            if line.get("gb_free"):
                bases += f", {line['gb_free']} GB of GPU memory free"
            yield seconds(what, bases, line["seconds"], "", line, results)
    results = "suffix_array.jsonl"
    for line in lines(results)[-1:]:
        bases = f"{line['letters'] / 1e9:.1f} Gb simulated"
        yield seconds("suffix array alone", bases, line["median_seconds"], "", line, results)


def mapping_figures(lines: Lines) -> Iterator[Figure]:
    results, unit = "map_cpu.json", "reads/s"
    runs: dict[str, dict[str, dict]] = {}
    for line in lines(results):
        runs.setdefault(line["reference"], {})[line["mapper"]] = line
    for reference, run in runs.items():
        speed = {name: line["reads"] / line["wall_seconds"] for name, line in run.items()}
        ours = run["bwarp"]
        of = f"{ours['reads']:,} reads of 2 x {ours['read_length']} bases, {reference}"
        others = ", ".join(f"{name} {speed[name]:,.0f}" for name in run if name != "bwarp")
        what, value = "map, FASTQ to SAM, reads per second", speed["bwarp"]
        yield Figure(what, of, value, unit, f"{value:,.0f}", others, ours, results)
    results, whole = "map_h200.jsonl", "gzipped FASTQ to sorted BAM"
    runs_on_gpu = [line for line in lines(results) if line.get("what") == whole]
    for pairs in dict.fromkeys(line["pairs"] for line in runs_on_gpu):
        runs = [line for line in runs_on_gpu if line["pairs"] == pairs]
        of = f"{2 * pairs:,} reads of 2 x 150 bases, {runs[0]['bases'] / 1e9:.1f} Gb simulated"
        least, most = (end(run["reads_a_second"] for run in runs) for end in (min, max))
        shown = f"{least:,} to {most:,}" if least < most else f"{most:,}"
        what = "map, FASTQ.gz to sorted BAM, reads per second"
        yield Figure(what, of, most, unit, shown, "", runs[0], results)


def seed_figures(lines: Lines) -> Iterator[Figure]:
    yield from in_turn("seeds, FASTA to table", lines, "seeds_cpu.jsonl")
    results = "seeds_gpu.jsonl"
    for line in lines(results):
        fastest = {}
        for run in line["exact"]:
            speed = run["searches_a_second"]
            fastest[run["k"]] = max(fastest.get(run["k"], 0), speed)
        for k in (20, 30):
            if k in fastest:
                of, value = f"{line['bases'] / 1e9:.1f} Gb simulated, {k}-mers", fastest[k]
                yield Figure(
                    "seeds: exact search, kernel", of, value, "1/s", f"{value / 1e9:.1f} G/s", "",
                    line, results,
                )  # fmt: skip


def locus_figures(lines: Lines) -> Iterator[Figure]:
    """RazerS 3 gets fewer reads, because it scans the whole genome for any number of reads."""
    for figure in in_turn("allmap, FASTQ to BAM", lines, "allmap_cpu.jsonl"):
        few = re.sub(r"razers3 ([^,]+)", r"razers3 \1 for a fiftieth of the reads", figure.others)
        yield figure._replace(others=few)


def match_figures(lines: Lines) -> Iterator[Figure]:
    yield from in_turn("mems", lines, "mems_cpu.jsonl")
    results = "mems_h200.jsonl"
    for line in lines(results):
        if "seconds" in line and "unique" in line["what"] and line["strands"] == 2:
            of = f"{line['what']}, {line['bases'] / 1e6:,.0f} Mb"
            yield seconds("mems", of, line["seconds"], "", line, results)


def parasail(line: dict) -> str:
    return f"parasail {line['parasail_gcups']:.1f}" if "parasail_gcups" in line else ""


def alignment_figures(lines: Lines) -> Iterator[Figure]:
    results = "pairs_cpu.jsonl"
    for line in lines(results):
        if line.get("part") == "dna" and line["mode"] in ("local", "semiglobal"):
            of, value = f"DNA {line['lengths']}, {line['mode']}", line["score_gcups"]
            ours = f"{value:.1f} (CIGAR {line['cigar_gcups']:.1f})"
            yield Figure("pairs, GCUPS", of, value, "GCUPS", ours, parasail(line), line, results)
        elif line.get("part") == "edits":
            of = f"edit distance of DNA {line['lengths']}, {line['mode']}"
            value = line["score_gcups"]
            others = f"edlib {line['edlib_gcups']:.1f}" if "edlib_gcups" in line else ""
            yield Figure("pairs, GCUPS", of, value, "GCUPS", f"{value:.1f}", others, line, results)
    results = "search_cpu.jsonl"
    proteins = [line for line in lines(results) if line.get("part") == "proteins"]
    for line in proteins:
        if line["query"] in ("P02232", "P07756", "Q9UKN1", "random_144", "random_5478"):
            named = "simulated ones" if line["query"].startswith("random") else "Swiss-Prot"
            of, value = f"protein of {line['length']:,} against {named}", line["gcups"]
            others = parasail(line)
            yield Figure("search, GCUPS", of, value, "GCUPS", f"{value:.1f}", others, line, results)


def gpu_alignment_figures(lines: Lines) -> Iterator[Figure]:
    results = "alignment_gpu.jsonl"
    wanted = {"score": "score", "cigar": "CIGAR"}
    for row in lines(results):
        if row["part"] == "time pairs" and row["cells"] == "150x300" and row["what"] in wanted:
            of = f"DNA {row['cells'].replace('x', ' x ')}, {row['mode']}, {wanted[row['what']]}"
            what, value = "pairs, TCUPS, kernels", row["tcups_kernels"]
        elif row["part"] == "time search" and row["what"] == "profile, all queries":
            of = f"19 proteins of 144 to 5,478 against {row['residues'] / 1e6:,.0f} M residues"
            what, value = "search, TCUPS", row["tcups_wall"]
        else:
            continue
        yield Figure(what, of, value, "TCUPS", f"{value:.1f}", "", row, results)


def gpu_peer_figures(lines: Lines) -> Iterator[Figure]:
    """Whole programs on a GPU; each program needs its own form of the database or writes its own
    output, which its column names."""
    results = "gpu_peers.jsonl"
    runs: dict[str, dict[tuple, dict]] = {}
    for line in lines(results):
        runs.setdefault(line["part"], {})[line["program"], line["what"]] = line

    def others(part: str, texts: dict[tuple, str]) -> str:
        found = runs[part]
        return ", ".join(
            text.format(shown(found[key]["seconds"])) for key, text in texts.items() if key in found
        )

    if "search" in runs:
        peer = {
            ("cudasw4", "prepared, DPX"): "CUDASW++4 {}",
            ("cudasw4", "preparing"): "its database {}",
        }
        for what in ("FASTA", "prepared"):
            ours = runs["search"]["bwarp", what]
            of = f"{ours['queries']} proteins, {ours['residues'] / 1e6:.1f} M residues, {what}"
            yield seconds(
                "search, whole program", of, ours["seconds"], others("search", peer), ours, results
            )
    for mode in ("local", "global") if "pairs" in runs else ():
        ours = runs["pairs"]["bwarp", f"{mode}, TSV"]
        peers = {
            ("gasal2", f"{mode}, its text"): "GASAL2 {}",
            ("gasal2", f"{mode}, no output, 4 threads"): "without output {}",
            ("wfa.affine.gpu", f"{mode}, its text"): "WFA-GPU {}",
        }
        of = f"{ours['pairs']:,} pairs of DNA, {mode}, CIGARs"
        yield seconds(
            "pairs, whole program", of, ours["seconds"], others("pairs", peers), ours, results
        )


def scan_figures(lines: Lines) -> Iterator[Figure]:
    for results in ("scan_cpu.jsonl", "scan_h200.jsonl"):
        speed = "giga_comparisons_a_second"
        counted = [
            line
            for line in lines(results)
            if line.get("part") == "paper" and line["algorithm"] != "gather"
        ]
        if counted:
            line = max(counted, key=lambda line: line[speed])
            of, what = "61,120 queries, 40 Mb", "scan, comparisons of windows"
            value = line[speed]
            yield Figure(what, of, value, "G/s", f"{value:,.0f} G/s", "", line, results)


def start_figures(lines: Lines) -> Iterator[Figure]:
    results = "start_up.jsonl"
    for line in lines(results):
        what = f"{line['what']}, next to nothing to do, {line['use']}"
        of = f"20 pairs of reads, {line['bases'] / 1e6:,.3g} Mb"
        yield seconds(what, of, line["seconds"], "", line, results)


#: In the order of the pages.
ROWS = (
    *(index_figures, mapping_figures, seed_figures, locus_figures, match_figures),
    *(alignment_figures, gpu_alignment_figures, gpu_peer_figures, scan_figures, start_figures),
)


def all_figures(lines: Lines) -> list[Figure]:
    """Return a figure for each job that was timed."""
    return [figure for figures in ROWS for figure in figures(lines)]


def accuracy_figures(lines: Lines, wanted: list[tuple]) -> Iterator[Figure]:
    """Return shares of correct reads, and incorrect reads per million, for simulated reads.

    Parameters
    ----------
    wanted : list of tuple
        Reference, read length, whether reads are paired, rate of variants, and minimum length of
        indels of the sets to show.
    """
    results = "map_accuracy.json"
    keys = ("reference", "read_length", "paired", "variant_rate", "indel_length")
    for chosen in wanted:
        run = {
            line["mapper"]: line
            for line in lines(results)
            if tuple(line[key] for key in keys) == chosen and line["simulator"] == "dwgsim"
        }
        ours = run["bwarp"]
        of = f"{ours['reads']:,} reads of 2 x {ours['read_length']} bases, {ours['reference']}"
        cells = [
            f"{line['right']:.2f} %, {line['wrong_ppm_q10']:,}" for line in (ours, run["bwa mem"])
        ]
        what = "map, correct reads, and incorrect per million at MAPQ >= 10"
        value = ours["wrong_ppm_q10"]
        yield Figure(what, of, value, "ppm", cells[0], f"bwa mem {cells[1]}", ours, results)

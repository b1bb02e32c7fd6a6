#!/usr/bin/env python3
"""Time indexing on the CPU, from FASTA to a finished index, against bwa index in the same run.

    python benchmarks/index.py -o benchmarks/results/index_cpu.json

References are E. coli K-12 from ../shared/data, and 133 Mb as a substitute for a large genome:
human chr20, a copy with 2 % of its bases changed, and 7 Mb of random bases. If neither is
available, a genome of --bases is simulated. The programs take turns. One JSON line per program and
reference contains the median and all wall times, the CPU time and peak memory; another line, the
time to open a finished index and check every array. A missing reference or bwa is reported and
skipped.
"""

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from frame.options import add_folder, add_threads, large_file, new_parser, read_options
from frame.peers import found, version_of
from frame.references import ecoli
from frame.results import overwrite
from frame.simulated import make_genome, script
from frame.timing import run_program
from parts.mappers import built_mark

import bwarp
from bwarp.sequence import CODE_OF_BYTE, LETTERS

BASE_OF_CODE = np.frombuffer(LETTERS, np.uint8)


def parse_options():
    parser = new_parser(__doc__)
    parser.add_argument("--repeats", type=int, default=3, help="runs of each program")
    parser.add_argument("--large-repeats", type=int, help="runs on 133 Mb (default: as --repeats)")
    parser.add_argument(
        "--large-peer-repeats", type=int, default=1,
        help="bwa's runs on 133 Mb; with 0 the line of an earlier run is kept, with its date",
    )  # fmt: skip
    add_threads(parser)
    add_folder(parser)
    parser.add_argument("--bases", type=int, default=5_000_000, help="of the simulated genome")
    parser.add_argument(
        "--indexes", type=Path, help="folder where bwa's index of 133 Mb is left, for map.py"
    )
    return read_options(parser, "index_cpu.json", bases=100_000, repeats=1)


def measure(options):
    peer_repeats, large = options.large_peer_repeats, options.large_repeats or options.repeats
    with tempfile.TemporaryDirectory(dir=options.folder) as work:
        fasta, simulated = Path(work, "reference.fa"), True
        for name, make, repeats in (
            ("E. coli K-12", ecoli, (options.repeats, options.repeats)),
            ("133 Mb of human", large_stand_in, (large, peer_repeats)),
        ):
            if not options.small and make(fasta):
                simulated = False
                yield from compare(name, fasta, repeats, options)
                if make is large_stand_in and options.indexes and peer_repeats:
                    leave_index(fasta, options.indexes)
        if simulated:
            name = f"{options.bases / 1e6:g} Mb simulated"
            fasta = make_genome(Path(work), options.bases)
            yield from compare(name, fasta, (options.repeats, options.repeats), options)


def large_stand_in(fasta: Path) -> bool:
    chromosome = large_file("chr20.fa")
    if chromosome is None:
        print("left out 133 Mb: chr20.fa is not in $BWARP_LARGE", file=sys.stderr)
        return False
    rng = np.random.default_rng(133)
    text = chromosome.read_bytes()
    codes = CODE_OF_BYTE[np.frombuffer(text[text.index(b"\n") :].replace(b"\n", b""), np.uint8)]
    changed = codes.copy()
    at = np.flatnonzero((codes < 4) & (rng.random(codes.size) < 0.02))
    changed[at] = (codes[at] + rng.integers(1, 4, at.size)) % 4
    with open(fasta, "wb") as file:
        for name, contig in (
            (b"chr20", codes),
            (b"chr20_changed", changed),
            (b"random", rng.integers(0, 4, 7_000_000)),
        ):
            whole = contig.size // 100 * 100
            rows = np.full((whole // 100, 101), ord("\n"), np.uint8)
            rows[:, :100] = BASE_OF_CODE[contig[:whole]].reshape(-1, 100)
            rest = BASE_OF_CODE[contig[whole:]].tobytes()
            file.write(b">" + name + b"\n" + rows.tobytes() + (rest + b"\n" if rest else b""))
    return True


def compare(name: str, fasta: Path, repeats: tuple[int, int], options):
    index, threads = fasta.parent / "reference.index", options.threads
    ours = script("index_reference", fasta, "-o", index, "--threads", threads, "--backend", "cpu")
    programs = {"bwarp": (ours, bwarp.__version__, threads, repeats[0])}
    if found("bwa"):
        peer = ["bwa", "index", fasta], version_of("bwa"), 1, repeats[1]
        programs = {"bwa index": peer} | programs
    measured = {program: [] for program in programs}
    run_program(ours)  # compiles if necessary
    for turn in range(max(repeats)):
        for program, (command, _, _, times) in programs.items():
            if turn < times:
                measured[program].append(run_program(command))
    bases = sum(len(line) for line in fasta.read_bytes().split(b"\n") if line[:1] != b">")
    about = {"reference": name, "bases": bases}
    for program, runs in measured.items():
        if not runs:
            yield from recorded(options.output, name, program)
            continue
        _, version, n_threads, _ = programs[program]
        peak = max(run.peak for run in runs)
        yield {
            "what": "index, FASTA to folder",
            **about,
            "program": program,
            "version": version,
            "threads": n_threads,
            "seconds": round(statistics.median(run.wall for run in runs), 3),
            "all_seconds": [run.wall for run in runs],
            "processor_seconds": round(statistics.median(run.processor for run in runs), 3),
            "peak_mb": round(peak / 1e6, 1),
            "peak_bytes_a_base": round(peak / bases, 2),
        }
    opened = [open_whole(index) for _ in range(5)]
    yield {
        "what": "open an index, every array checked",
        **about,
        "program": "bwarp",
        "version": bwarp.__version__,
        "threads": threads,
        "seconds": statistics.median(opened),
        "all_seconds": opened,
    }


def leave_index(fasta: Path, folder: Path) -> None:
    """Move the genome, renamed to h133.fa, and bwa's index to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    there = folder / "h133.fa"
    for path in fasta.parent.glob(f"{fasta.name}.*"):
        shutil.move(path, f"{there}{path.name.removeprefix(fasta.name)}")
    shutil.move(fasta, there)
    if found("bwa"):
        built_mark(there, "bwa mem").touch()


def recorded(results: Path, reference: str, program: str) -> list[dict]:
    """Return the lines of an earlier run."""
    lines = map(json.loads, results.read_text().splitlines())
    return [line for line in lines if (line["reference"], line["program"]) == (reference, program)]


def open_whole(index: Path) -> float:
    """Time opening an index in a new process and checking all arrays, without imports."""
    program = (
        "import sys, time\n"
        "from bwarp.index.store import load_index\n"
        "start = time.perf_counter()\n"
        "index = load_index(sys.argv[1])\n"
        "index.reference, index.forward, index.reverse, index.prefix_table, index.suffix_array\n"
        "print(time.perf_counter() - start)"
    )
    command = [sys.executable, "-c", program, str(index)]
    return round(float(subprocess.run(command, check=True, capture_output=True).stdout), 3)


if __name__ == "__main__":
    options = parse_options()
    overwrite(options.output, measure(options))

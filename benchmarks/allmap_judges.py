#!/usr/bin/env python3
"""Compare all loci of reads with those of other complete programs, and count all differences.

    python benchmarks/allmap_judges.py -o benchmarks/results/allmap_judges.jsonl

The genome is human chr20, or a simulated one if it is missing. Judges that are not installed are
skipped: bowtie (apt install bowtie), Sassy's module (PyPI sassy-rs), and RazerS 3 and RABEMA (apt
install seqan-apps).

    bowtie   ``-v E -a``, no gaps: the same reads, strands and positions
    sassy    every end of a match within E edits of the read, with its distance. Each locus must
             have such an end, with the same distance; and each end must be covered by a locus with
             at most as many edits that ends within 2 E bases of it. For the reverse complement,
             starts replace ends. Sassy searches each sequence between ambiguous bases separately
    rabema   the benchmark for read mappers (Holtgrewe et al. 2011), in both directions: the loci of
             one program are the gold standard for those of the other. RABEMA does not allow a gap
             at an end of a read: loci that it calls invalid for such a gap are counted, and so are
             missed intervals with a locus of at most as many edits within 2 E bases

One JSON object per line is appended to --output.
"""

import importlib
import re
import shutil
import subprocess
import tempfile
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pysam
from frame.options import add_folder, add_threads, large_file, new_parser, read_options, skip
from frame.peers import found
from frame.results import Results
from frame.simulated import make_genome, run_script
from frame.timing import run_program

from bwarp.options.option import Whole
from bwarp.reference import codes_of, read_reference
from bwarp.sequence import decode

LENGTH, PERCENT = 100, 4
KMER, MOST_MISMATCHES = 20, 3
JUDGES = ("bowtie", "sassy", "rabema")

#: The sequences that Sassy searches, in its processes: contig, start and bases.
_PIECES: list[tuple] = []


def parse_options():
    parser = new_parser(__doc__)
    parser.add_argument("--judge", choices=JUDGES, help="one of them (default: all)")
    parser.add_argument("--reads", type=Whole(1, 10**7).parse, default=10_000)
    parser.add_argument("--first-read", type=int, default=0, help="of those that Sassy is given")
    parser.add_argument("--sassy-reads", type=Whole(1, 10**7).parse, default=10_000)
    parser.add_argument("--kmers", type=Whole(1, 10**7).parse, default=2_000)
    add_threads(parser)
    add_folder(parser)
    return read_options(parser, "allmap_judges.jsonl", reads=100, sassy_reads=20, kmers=50)


def main():
    options = parse_options()
    results = Results(options.output)
    with tempfile.TemporaryDirectory(dir=options.folder) as work:
        work = Path(work)
        reference = None if options.small else large_file("chr20.fa")
        if reference is None:
            reference = make_genome(work, 100_000 if options.small else 5_000_000)
        index = work / "bwarp.index"
        run_script("index_reference", reference, "-o", index, "--with-reverse")
        n_lines = 0
        for judge in JUDGES:
            if options.judge in (None, judge):
                for line in globals()[judge](work, reference, index, options):
                    results.add(judge=judge, reference=reference.name, **line)
                    n_lines += 1
    if n_lines == 0:
        skip("none of the judges is here")


def simulated(work: Path, reference: Path, n_reads: int, length: int) -> Path:
    """Return simulated reads, each named by its number."""
    reads, numbered = work / f"long_names_{length}.fq", work / f"reads_{length}.fq"
    what = "--reads", n_reads, "--read-length", length, "--random-fraction", 0
    run_script("simulate_reads", "--reference", reference, "-1", reads, *what)
    with pysam.FastxFile(str(reads)) as records, numbered.open("w") as file:
        for number, record in enumerate(records):
            file.write(f"@{number}\n{record.sequence}\n+\n{record.quality}\n")
    return numbered


# --- bowtie: the same positions without gaps -----------------------------------------------------


def bowtie(work: Path, reference: Path, index: Path, options):
    if not found("bowtie"):
        return
    run_program(["bowtie-build", "-q", reference, work / "bowtie"])
    for n_reads, length in ((options.reads, LENGTH), (options.kmers, KMER)):
        reads = simulated(work, reference, n_reads, length)
        for mismatches in range(MOST_MISMATCHES + 1):
            ours, theirs = work / "ours.tsv", work / "bowtie.tsv"
            run_script(
                "find_alignments", "--index", index, "-1", reads, "-o", ours, "--edits",
                mismatches, "--gaps", 0,
            )  # fmt: skip
            run_program(
                ["bowtie", "-v", mismatches, "-a", "--suppress", "5,6,7,8", "-p", options.threads,
                 work / "bowtie", reads, theirs]
            )  # fmt: skip
            one, other = table_of(ours), table_of(theirs)
            both = one.merge(other)
            yield {
                "command": f"bowtie -v {mismatches} -a",
                "reads": n_reads,
                "length": length,
                "mismatches": mismatches,
                "loci": len(one),
                "of_judge": len(other),
                "not_in_bwarp": len(other) - len(both),
                "not_of_judge": len(one) - len(both),
            }


def table_of(path: Path) -> pd.DataFrame:
    """Return read, strand, contig and start of each of bwarp's loci or bowtie's hits."""
    ours = path.name == "ours.tsv"
    columns = ["query", "strand", "contig", "start"]
    return pd.read_csv(
        path, sep="\t", header=0 if ours else None, usecols=range(4), names=columns,
        dtype={"query": np.int64, "strand": "category", "contig": str, "start": np.int64},
    )  # fmt: skip


# --- Sassy: every end ----------------------------------------------------------------------------


def sassy(work: Path, reference: Path, index: Path, options):
    if not found("sassy"):
        return
    edits = LENGTH * PERCENT // 100
    reads = simulated(work, reference, options.first_read + options.sassy_reads, LENGTH)
    with pysam.FastxFile(str(reads)) as records:
        sequences = [record.sequence.encode() for record in records][options.first_read :]
    ours = work / "ours.tsv"
    run_script("find_alignments", "--index", index, "-1", reads, "-o", ours, "--edits", edits)
    loci = pd.read_csv(ours, sep="\t", dtype={"contig": str})
    loci = dict(iter(loci.groupby(["query", "strand"])))
    pieces = stretches(read_reference(reference))
    with ProcessPoolExecutor(options.threads, initializer=_give, initargs=(pieces,)) as pool:
        every = pool.map(partial(ends_of, edits=edits), sequences, chunksize=8)
        total = dict.fromkeys(
            ("loci", "loci_no_end", "loci_other_distance", "of_judge", "not_in_bwarp"), 0
        )
        n_reads = 0
        for number, sequence, ends in zip(
            range(options.first_read, len(sequences) + options.first_read),
            sequences, every, strict=True,
        ):  # fmt: skip
            if b"N" in sequence:
                continue
            n_reads += 1
            for strand in "+-":
                compare(loci.get((number, strand)), strand, ends[strand], edits, total)
    yield {
        "command": f"search_all(read, stretch, {edits})",
        "reads": n_reads,
        "length": LENGTH,
        "edits": edits,
        **total,
    }


def stretches(reference) -> list[tuple[str, int, bytes]]:
    """Return contig, start and bases of each maximal sequence without ambiguous bases."""
    codes = codes_of(reference)
    pieces = []
    for name, start, stop in zip(
        reference.names, reference.contig_starts[:-1], reference.contig_starts[1:], strict=True
    ):
        clean = np.concatenate([[0], codes[start:stop] < 4, [0]]).astype(np.int8)
        edges = np.flatnonzero(np.diff(clean)).reshape(-1, 2).tolist()
        for first, last in edges:
            pieces.append((name, first, decode(codes[start + first : start + last])))
    return pieces


def _give(pieces) -> None:
    """Store the sequences in a process that searches them."""
    _PIECES.extend(pieces)


def ends_of(sequence: bytes, edits: int) -> dict[str, dict]:
    """Return distances of a read's ends, or its complement's starts, by contig and position."""
    if b"N" in sequence:
        return {}
    searcher = importlib.import_module("sassy").Searcher("dna", rc=True)
    found = {"+": {}, "-": {}}
    for contig, first, bases in _PIECES:
        for match in searcher.search_all(sequence, bases, edits):
            at = match.text_end if match.strand == "+" else match.text_start
            found[match.strand][contig, first + at] = match.cost
    return found


def compare(loci, strand: str, ends: dict, edits: int, total: dict) -> None:
    """Count the differences of a read on a strand."""
    near = {}
    if loci is not None:
        column = "end" if strand == "+" else "start"
        total["loci"] += len(loci)
        for contig, at, distance in zip(
            loci.contig, loci[column].tolist(), loci.distance.tolist(), strict=True
        ):
            cost = ends.get((contig, at))
            total["loci_no_end"] += cost is None
            total["loci_other_distance"] += cost is not None and cost != distance
            near[contig, at] = min(distance, near.get((contig, at), distance))
    total["of_judge"] += len(ends)
    for (contig, at), cost in ends.items():
        covered = any(
            near.get((contig, at + k), edits + 1) <= cost for k in range(-2 * edits, 2 * edits + 1)
        )
        total["not_in_bwarp"] += not covered


# --- RABEMA: each program's loci as what there is to find ----------------------------------------


def rabema(work: Path, reference: Path, index: Path, options):
    if not all([found("razers3"), found("rabema_evaluate"), found("samtools")]):
        return
    # An index of the reference is written next to it.
    genome = work / "rabema.fa"
    shutil.copy(reference, genome)
    reads = simulated(work, reference, options.reads, LENGTH)
    maps = {"bwarp": work / "ours.bam", "RazerS 3": work / "r.sam"}
    run_script(
        "find_alignments", "--index", index, "-1", reads, "-o", maps["bwarp"], "--edits",
        f"{PERCENT}%",
    )  # fmt: skip
    run_program(
        ["razers3", "-i", 100 - PERCENT, "-rr", 100, "-m", 10_000_000, "-ds", "-tc",
         options.threads, "-o", maps["RazerS 3"], genome, reads]
    )  # fmt: skip
    by_name = {name: prepared(work, path) for name, path in maps.items()}
    for gold, candidate in (("RazerS 3", "bwarp"), ("bwarp", "RazerS 3")):
        intervals = gold_standard(work, genome, by_name[gold])
        report = evaluated(work, genome, intervals, by_name[candidate], LENGTH * PERCENT // 100)
        yield {
            "command": f"rabema_evaluate -e {PERCENT} -c all",
            "reads": options.reads,
            "length": LENGTH,
            "percent": PERCENT,
            "gold": gold,
            "candidate": candidate,
            **report,
        }


def prepared(work: Path, path: Path) -> Path:
    """Return alignments for RABEMA: sorted by read, all with names and bases."""
    by_name, full = path.with_suffix(".name.sam"), path.with_suffix(".full.sam")
    run_program(["samtools", "sort", "-n", "-O", "sam", "-o", by_name, path])
    run_program(["rabema_prepare_sam", "--dont-check-sorting", "-i", by_name, "-o", full])
    return full


def gold_standard(work: Path, genome: Path, path: Path) -> Path:
    by_position, intervals = work / "sorted.sam", work / "gold.gsi"
    run_program(["samtools", "sort", "-O", "sam", "-o", by_position, path])
    run_program(
        ["rabema_build_gold_standard", "-e", PERCENT, "-o", intervals, "-r", genome, "-b",
         by_position]
    )  # fmt: skip
    return intervals


def evaluated(work: Path, genome: Path, intervals: Path, path: Path, edits: int) -> dict:
    """Return the counts in RABEMA's report, and how many differences are gaps at a read's end."""
    report = work / "out.rabema_report_tsv"
    command = [
        "rabema_evaluate", "-e", PERCENT, "-c", "all", "-r", genome, "-g", intervals, "-b", path,
        "--out-tsv", report, "--DONT-PANIC", "--dont-check-sorting", "--show-invalid-hits",
        "--show-missed-intervals",
    ]  # fmt: skip
    done = subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True)
    cells = (line[2:].split("\t") for line in report.read_text().splitlines() if "\t" in line)
    counts = dict(cell for cell in cells if len(cell) == 2)
    names = ("intervals_to_find", "intervals_found", "invalid_alignments", "additional_hits")
    said = (done.stdout + done.stderr).splitlines()
    invalid = [line.split("\t") for line in said if "INVALID\t" in line]
    missed = [line.split("\t")[1:] for line in said if line.startswith("MISSED\t")]
    return {name: int(counts[name]) for name in names} | {
        "invalid_with_gap_at_end": sum(
            bool(re.match(r"\d+[ID]|.*[ID]$", cells[6])) for cells in invalid
        ),
        "missed_near_a_locus": near_a_locus(path, missed, edits),
    }


def near_a_locus(path: Path, missed: list, edits: int) -> int:
    """Count the intervals (read, edits, contig, F or R, first and last end) with a locus nearby."""
    ends: dict[tuple, list] = {}
    with pysam.AlignmentFile(str(path)) as file:
        lengths = dict(zip(file.references, file.lengths, strict=True))
        for record in file:
            if record.is_unmapped:
                continue
            # Ends are in the direction of the read.
            turned, contig = record.is_reverse, record.reference_name
            end = lengths[contig] - record.reference_start if turned else record.reference_end
            key = record.query_name, contig, "R" if turned else "F"
            ends.setdefault(key, []).append((end, record.get_tag("NM")))
    return sum(
        any(
            int(first) - 2 * edits <= end <= int(last) + 2 * edits and distance <= int(errors)
            for end, distance in ends.get((name, contig, strand), ())
        )
        for name, errors, contig, strand, first, last in missed
    )


if __name__ == "__main__":
    main()

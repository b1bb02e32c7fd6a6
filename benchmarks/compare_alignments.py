"""Compare the alignments of two versions, or two programs, read by read.

    python benchmarks/compare_alignments.py OLD.sam NEW.sam --reference genome.fa [--list 20]
    python benchmarks/compare_alignments.py        bwa mem and bwarp, simulated reads

Counts reads by kind of difference (listed in bwarp.evaluation.agreement; "here" is NEW) and changes
of mapping quality; if the names of reads contain the truth, also reads that became correct or
incorrect. --list shows the first reads of every kind other than "same".
"""

import shutil
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

from frame.options import new_parser, read_options, skip
from frame.references import contigs_of
from frame.simulated import make_genome, make_index, make_reads, run_script
from frame.timing import run_program

from bwarp.evaluation.agreement import NEAR, Alignment, kind_of, primary_alignments, true_origin
from bwarp.mapping.parameters import MappingParameters

#: Qualities are counted in bins that begin at these values.
STEPS = (0, 1, 10, 20, 30, 60)


def parse_options():
    parser = new_parser(__doc__)
    parser.add_argument("old", nargs="?", help="SAM or BAM")
    parser.add_argument("new", nargs="?", help="SAM or BAM of the same reads")
    parser.add_argument("--reference", help="FASTA")
    parser.add_argument("--list", type=int, default=0, metavar="N", help="show N reads of a kind")
    parser.add_argument("--bases", type=int, default=5_000_000, help="of the simulated genome")
    parser.add_argument("--pairs", type=int, default=20_000, help="of its reads")
    return read_options(parser, None, bases=200_000, pairs=500)


def step_of(quality: int) -> int:
    return max(step for step in STEPS if step <= quality)


def outcome_of(key: tuple[str, int], found: Alignment) -> str:
    """Return correct, incorrect, unmapped or random by the read's name; "" if it has no truth."""
    try:
        contig, start = true_origin(*key)
    except (ValueError, IndexError):
        return ""
    if contig is None:
        return "random" if found.contig else "unmapped"
    if not found.contig:
        return "unmapped"
    clipped = found.cigar[0][1] if found.cigar[0][0] in (4, 5) else 0
    near = min(abs(found.position - start), abs(found.position - clipped - start)) <= NEAR
    return "correct" if near and found.contig == contig else "incorrect"


def shown(found: Alignment) -> str:
    cigar = "".join(f"{length}{'MIDNSHP'[kind]}" for kind, length in found.cigar) or "*"
    strand = "-" if found.reverse else "+"
    return f"{found.contig or '*'}:{strand}{found.position} {cigar} Q{found.quality} {found.score}"


def main():
    options = parse_options()
    given = (options.old, options.new, options.reference)
    if not any(given):
        with tempfile.TemporaryDirectory() as folder:
            compare(*simulated(Path(folder), options), options)
    elif all(given):
        compare(*given, options)
    else:
        sys.exit("give two files of alignments and their --reference, or none of them")


def simulated(folder: Path, options) -> tuple[str, str, str]:
    """Return alignments of simulated reads by bwa mem and by bwarp, and the reference."""
    if not shutil.which("bwa"):
        skip("bwa is not on PATH, and no alignments are given")
    genome = make_genome(folder, options.bases)
    index, reads = make_index(folder, genome), make_reads(folder, genome, options.pairs)
    old, new = folder / "bwa.sam", folder / "bwarp.sam"
    run_program(["bwa", "index", genome])
    run_program(["bwa", "mem", "-o", old, genome, *reads])
    ends = "-1", reads[0], "-2", reads[1]
    run_script("map_reads", "--index", index, *ends, "-o", new, "--backend", "cpu")
    return str(old), str(new), str(genome)


def compare(old_file, new_file, fasta, options) -> None:
    contigs = contigs_of(fasta)
    parameters = MappingParameters()
    old = dict(primary_alignments(old_file, contigs, parameters))
    kinds, qualities, truths = Counter(), Counter(), Counter()
    examples = defaultdict(list)
    for key, here in primary_alignments(new_file, contigs, parameters):
        if key not in old:
            kinds["only in the new file"] += 1
            continue
        there = old.pop(key)
        kind = kind_of(here, there, contigs)
        kinds[kind] += 1
        if kind not in ("same", "unmapped") and len(examples[kind]) < options.list:
            examples[kind].append((key, there, here))
        qualities[step_of(there.quality), step_of(here.quality)] += 1
        truths[outcome_of(key, there), outcome_of(key, here)] += 1
    kinds["only in the old file"] = len(old)
    for kind, count in sorted(kinds.items()):
        if count:
            print(f"{count:10,}  {kind}")
        for key, there, here in examples[kind]:
            print(f"            {key[0]}/{key[1] + 1}  {shown(there)}  ->  {shown(here)}")
    for title, counts in (("mapping quality at least", qualities), ("truth", truths)):
        print(f"\n{title}, old -> new")
        for (before, after), count in sorted(counts.items()):
            if before != after:
                print(f"{count:10,}  {before} -> {after}")


if __name__ == "__main__":
    main()

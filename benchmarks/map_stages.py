#!/usr/bin/env python3
"""Measure the CPU time of each stage of mapping pairs on the CPU, in one thread.

    python benchmarks/map_stages.py
    python benchmarks/map_stages.py --reference chr20.fa -o benchmarks/results/map_stages_cpu.json

Pairs are simulated, and mapped to SAM twice; the second run is measured. Each stage has one JSON
object: microseconds per read.
"""

import itertools
import tempfile
import time
from pathlib import Path

from frame.options import new_parser, read_options
from frame.results import overwrite
from frame.simulated import make_genome, make_index, make_reads
from frame.stage_clock import StageClock

from bwarp.index.store import load_index
from bwarp.mapping import extension_cpu, pipeline, seeding_rounds_cpu, split_reads
from bwarp.mapping import seeds_cpu as candidates_cpu
from bwarp.mapping.engine import load
from bwarp.mapping.parameters import MappingParameters
from bwarp.reads import read_chunks
from bwarp.records import alignment_file
from bwarp.records import alignment_file as chunk_writer
from bwarp.records.output_options import AlignmentOutput

READS_A_CHUNK = 8192

#: Stages, and their functions.
STAGES = {
    "FASTQ: count records": (read_chunks, "counted_records"),
    "FASTQ: parse, pair": (read_chunks, "_paired"),
    "reverse complements": (pipeline, "both_strands"),
    "seeds: cut, search, select": (candidates_cpu, "seed_rows_of"),
    "hits: locate": (candidates_cpu, "locate"),
    "hits: list rows": (candidates_cpu, "_list_rows"),
    "hits: diagonals": (candidates_cpu, "_make_keys"),
    "hits: group": (candidates_cpu, "_group"),
    "candidates: without gaps": (extension_cpu, "score_diagonals"),
    "candidates: windows": (extension_cpu, "window_sequences"),
    "candidates: with gaps": (extension_cpu, "pair_ends"),
    "scored hits: rank": (extension_cpu, "ranked"),
    "scored hits: merge rounds": (seeding_rounds_cpu, "merge"),
    "mates: rescue": (pipeline, "rescue_candidates"),
    "long gaps": (split_reads, "across_gaps"),
    "primary hits, mapping qualities": (pipeline, "select_paired"),
    "tandem repeats": (pipeline, "lower_tandem_repeats"),
    "final alignments": (pipeline, "align_hits"),
    "supplementary hits": (pipeline, "supplementary_of"),
    "secondary hits": (pipeline, "secondary_of"),
    "records: which": (chunk_writer, "chunk_records"),
    "records: SAM": (alignment_file, "sam_records"),
    "count": (chunk_writer, "counts_of"),
}


def parse_options():
    parser = new_parser(__doc__)
    parser.add_argument("--reference", type=Path, help="FASTA file (default: simulated)")
    parser.add_argument("--pairs", type=int, default=131_072)
    parser.add_argument("--bases", type=int, default=20_000_000, help="of the simulated genome")
    return read_options(parser, "map_stages_cpu.json", pairs=2000, bases=200_000)


def map_once(engine, reads, pairs: int, output: Path) -> int:
    """Map to SAM in this thread; return the number of reads."""
    chunks = read_chunks.paired_chunks(*map(str, reads), READS_A_CHUNK, 1)
    chunks = itertools.islice(chunks, -(-2 * pairs // READS_A_CHUNK))
    counted = chunk_writer.write_mapped(
        engine, chunks, AlignmentOutput(str(output), 1 << 28), engine.index.reference,
        lambda *_: None,
    )  # fmt: skip
    return counted["reads"]


def measured(options, folder: Path) -> list[dict]:
    fasta = options.reference or make_genome(folder, options.bases)
    reads = make_reads(folder, fasta, options.pairs)
    index = load_index(make_index(folder, fasta))
    engine = load(index, MappingParameters())
    map_once(engine, reads, options.pairs, folder / "first.sam")
    with StageClock(STAGES) as clock:
        start = time.process_time()
        n_reads = map_once(engine, reads, options.pairs, folder / "second.sam")
        total = time.process_time() - start
    common = {"reads": n_reads, "threads": 1}
    seconds = {name: stage.processor for name, stage in clock.stages.items()}
    seconds["other"] = total - sum(seconds.values())
    seconds["total"] = total
    return [
        {"stage": name, "microseconds_a_read": round(1e6 * used / n_reads, 3)} | common
        for name, used in seconds.items()
    ]


def main():
    options = parse_options()
    with tempfile.TemporaryDirectory() as name:
        overwrite(options.output, measured(options, Path(name)))


if __name__ == "__main__":
    main()

"""Where mapping spends its time: CPU microseconds a read and what enters every stage, one thread.

    python benchmarks/map_stages.py                reads of a genome made up
    python benchmarks/map_stages.py --index genome.index -1 R1.fq -2 R2.fq

Every stage is timed by itself while the whole chain runs, in the fastest of --repeats runs; reading
the index and compiling do not count. A table is printed; one JSON object is appended to --output.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

from machine import machine
from made_up import add_index_and_reads, index_and_reads
from options import read_options

import bwarp
from bwarp.index.store import load_index
from bwarp.mapping import pipeline
from bwarp.mapping.extension import extension_cpu
from bwarp.mapping.extension.extension_cpu import Genome
from bwarp.mapping.output.alignment_records import alignment_records
from bwarp.mapping.output.comment_tags import no_tags
from bwarp.mapping.output.record_text import contig_names
from bwarp.mapping.output.sam_records import sam_records
from bwarp.mapping.parameters import MappingParameters
from bwarp.mapping.reads.read_chunks import paired_chunks
from bwarp.mapping.seeds import candidates_cpu, seed_selection_cpu
from bwarp.reference import codes_of

#: Module, function, stage, and how many items a call works on.
STAGES = (
    (pipeline, "both_strands", "reverse complements", lambda a: len(a[1]) - 1),
    (seed_selection_cpu, "_cut_seeds", "seeds: cut", lambda a: len(a[5])),
    (seed_selection_cpu, "exact_intervals", "seeds: search, both strands", lambda a: 2 * len(a[1])),
    (seed_selection_cpu, "_select_hits", "seeds: select", lambda a: len(a[0].counts)),
    (candidates_cpu, "locate", "hits: locate", lambda a: len(a[1])),
    (candidates_cpu, "_make_keys", "hits: diagonals", lambda a: len(a[-1])),
    (candidates_cpu, "_group", "hits: group", lambda a: len(a[0])),
    (extension_cpu, "_score_diagonals", "candidates: without gaps", lambda a: len(a[3].reads)),
    (extension_cpu, "pair_ends", "candidates: with gaps", lambda a: a[0].count),
    (extension_cpu, "ranked", "hits: rank", lambda a: len(a[1])),
    (pipeline, "merge", "hits: merge rounds", lambda a: len(a[1].reads)),
    (pipeline, "rescue_candidates", "mates: look for", lambda a: len(a[2]) - 1),
    (pipeline, "select_paired", "primary hits", lambda a: len(a[1])),
    (pipeline, "align_hits", "align", lambda a: len(a[4])),
    (pipeline, "supplementary_of", "split reads", lambda a: len(a[2]) - 1),
    (pipeline, "secondary_of", "other hits", lambda a: len(a[2]) - 1),
)


def parse_options():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_index_and_reads(parser)
    parser.add_argument("--repeats", type=int, default=3)
    return read_options(parser, "map_stages_cpu.json", bases=200_000, pairs=500, repeats=1)


def timed(seconds: dict, items: dict, stage: str, function, count):
    """The function, whose CPU seconds and items are added up under the stage's name."""

    def run(*args, **kwargs):
        start = time.thread_time()
        result = function(*args, **kwargs)
        seconds[stage] = seconds.get(stage, 0.0) + time.thread_time() - start
        items[stage] = items.get(stage, 0) + count(args)
        return result

    return run


def main():
    options = parse_options()
    with tempfile.TemporaryDirectory() as folder:
        measure(options, *index_and_reads(options, Path(folder)))


def measure(options, index, *files) -> None:
    index = load_index(index)
    genome = Genome(codes_of(index.reference), index.reference.contig_starts)
    names = contig_names(index.reference)
    seconds, items = {}, {}
    for module, name, stage, count in STAGES:
        setattr(module, name, timed(seconds, items, stage, getattr(module, name), count))

    def read():
        chunks = paired_chunks(*files)
        following = timed(seconds, items, "read", lambda: next(chunks, None), lambda a: 1)
        yield from iter(following, None)

    def lines(done):
        records = alignment_records(
            genome.contig_starts, done.chunk, done.mapped, done.primary, done.supplementary,
            done.secondary,
        )  # fmt: skip
        tags = no_tags(done.chunk.n_reads)
        return sam_records(genome, names, done.chunk, done.both, records, b"", tags)

    written = timed(seconds, items, "lines", lines, lambda a: a[0].chunk.n_reads)
    best = None
    for _ in range(options.repeats):
        seconds.clear()
        items.clear()
        start, n_reads = time.thread_time(), 0
        for done in pipeline.map_chunks(index, genome, read(), MappingParameters()):
            written(done)
            n_reads += done.chunk.n_reads
        total = time.thread_time() - start
        if best is None or total < best[0]:
            best = total, dict(seconds), dict(items), n_reads
    total, seconds, items, n_reads = best
    seconds["the rest"] = total - sum(seconds.values())
    rows = {
        stage: {
            "microseconds_a_read": round(1e6 * spent / n_reads, 2),
            "items_a_read": round(items.get(stage, 0) / n_reads, 2),
        }
        for stage, spent in seconds.items()
    }
    for stage, row in rows.items():
        print(f"{stage:30}{row['microseconds_a_read']:8.2f} us a read{row['items_a_read']:10.2f}")
    print(f"{'all':30}{1e6 * total / n_reads:8.2f} us a read, {n_reads:,} reads")
    result = {
        "reads": n_reads,
        "microseconds_a_read": round(1e6 * total / n_reads, 2),
        "stages": rows,
        "machine": machine(),
        "bwarp": bwarp.__version__,
    }
    with open(options.output, "a") as file:
        file.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()

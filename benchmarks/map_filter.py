"""What the histogram filter would save in mapping: candidates dropped, and what that costs.

    python benchmarks/map_filter.py                reads of a genome made up
    python benchmarks/map_filter.py --index genome.index -1 R1.fq -2 R2.fq

The candidates of the first and the second round of seeds are given to the filter, all of them
before the gapless check, or those that are to be aligned with gaps. An alignment is wanted that
scores no more than hopeless_margin below the read's best. One JSON object a line is written.
"""

import argparse
import itertools
import json
import os
import platform
import tempfile
import time
from pathlib import Path

import numpy as np
from made_up import add_index_and_reads, index_and_reads
from options import read_options

import bwarp
from bwarp.filtering.candidates import Candidates as Windows
from bwarp.filtering.filter_cpu import filter_candidates
from bwarp.index.store import load_index
from bwarp.mapping.extension import extension_cpu
from bwarp.mapping.extension.extension_cpu import Genome, both_strands, extend
from bwarp.mapping.extension.scored_hits_cpu import (
    FIELDS,
    WINDOW_END,
    WINDOW_START,
    best_scores,
)
from bwarp.mapping.parameters import MappingParameters
from bwarp.mapping.reads.read_chunks import paired_chunks
from bwarp.mapping.seeds.candidates_cpu import find_candidates
from bwarp.reference import codes_of
from bwarp.sequence import pack

PARAMETERS = MappingParameters()


def parse_options():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_index_and_reads(parser)
    return read_options(parser, "map_filter_cpu.jsonl", bases=200_000, pairs=500)


def main():
    options = parse_options()
    with tempfile.TemporaryDirectory() as folder:
        measure(options, *index_and_reads(options, Path(folder)))


def measure(options, index, *reads) -> None:
    index = load_index(index)
    genome = Genome(codes_of(index.reference), index.reference.contig_starts)
    unsure, list_unsure = {}, extension_cpu._list_unsure

    def listed(candidates, margin, scored, numbers):
        n = list_unsure(candidates, margin, scored, numbers)
        starts, stops = scored.reshape(-1, FIELDS)[:, [WINDOW_START, WINDOW_END]].T
        unsure.update(numbers=numbers[:n].copy(), starts=starts, stops=stops)
        return n

    extension_cpu._list_unsure = listed
    rows = {}
    # The first chunk comes twice: once it only compiles.
    chunks = itertools.chain([next(paired_chunks(*reads))], paired_chunks(*reads))
    for number, chunk in enumerate(chunks):
        both = both_strands(chunk.codes, chunk.offsets)
        lengths = np.diff(chunk.offsets)
        words = np.append(pack(np.where(chunk.codes > 3, 0, chunk.codes)), np.uint64(0))
        numbers = np.arange(chunk.n_reads)
        for name, seeds in (("first", PARAMETERS.first), ("second", PARAMETERS.second)):
            found = find_candidates(index, chunk.codes, chunk.offsets, numbers, seeds, PARAMETERS)
            best = best_scores(extend(genome, both, chunk.offsets, found, PARAMETERS))
            ends = found.diagonals + lengths[found.reads]
            gapped = unsure["numbers"]
            for before, kept, starts, stops in (
                ("gapless check", np.arange(len(ends)), found.diagonals, ends),
                ("gapped alignment", gapped, unsure["starts"], unsure["stops"]),
            ):
                of = found.reads[kept].astype(np.int64)
                wanted = np.maximum(PARAMETERS.least_score, best[of] - PARAMETERS.hopeless_margin)
                edits = (lengths[of] - wanted) // (PARAMETERS.match - PARAMETERS.mismatch)
                windows = Windows(
                    of, found.strands[kept], np.maximum(starts[kept], 0),
                    np.minimum(stops[kept], genome.codes.size), edits.astype(np.int32),
                )  # fmt: skip
                for word_length in (0, 4):
                    start = time.thread_time()
                    done = filter_candidates(
                        words, chunk.offsets, index.reference.packed, windows, word_length, 1
                    )
                    spent = time.thread_time() - start
                    row = rows.setdefault((name, before, word_length), np.zeros(3))
                    if number:
                        row += len(of), np.count_nonzero(~done.kept), spent
            numbers = np.flatnonzero(best < found.score_bounds + PARAMETERS.resolved_margin)
    with open(options.output, "a") as file:
        for (name, before, word_length), (n, dropped, spent) in rows.items():
            result = {
                "round": name,
                "before": before,
                "word_length": word_length,
                "candidates": int(n),
                "dropped_percent": round(100 * dropped / n, 1),
                "microseconds_each": round(1e6 * spent / n, 2),
                "machine": f"{platform.machine()}, {os.cpu_count()} cores",
                "bwarp": bwarp.__version__,
            }
            print(*result.values(), sep="\t")
            file.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()

"""Count the candidates of end-to-end mapping that the histogram filter would drop.

    python benchmarks/map_end_to_end_filter.py     reads of a genome made up
    python benchmarks/map_end_to_end_filter.py --index genome.index --reads reads.fq

A candidate may be dropped where the counts of letters and words prove more edits than an alignment
can have that scores `least_score`, or, the strictest use, than one that scores no less than 45
below the read's best place, as candidates are given up anyway. The shares are printed; one JSON
object is appended to --output.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
from made_up import make_genome, make_index, make_reads
from options import read_options

import bwarp
from bwarp.filtering.candidates import Candidates
from bwarp.filtering.filter_cpu import filter_candidates
from bwarp.index.store import load_index
from bwarp.mapping.extension.extension_cpu import Genome, both_strands, extend
from bwarp.mapping.extension.scored_hits_cpu import best_scores
from bwarp.mapping.parameters import END_TO_END, mapping_parameters
from bwarp.mapping.reads.read_chunks import single_chunks
from bwarp.mapping.seeds.candidates_cpu import find_candidates
from bwarp.reference import codes_of
from bwarp.sequence import pack


def parse_options():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--index", help="of a genome (default: of one made up)")
    parser.add_argument("--reads", help="FASTQ")
    parser.add_argument("--bases", type=int, default=20_000_000, help="of the genome made up")
    parser.add_argument("--count", type=int, default=50_000, help="reads to look at")
    return read_options(parser, "map_end_to_end_filter.json", bases=200_000, count=500)


def main():
    options = parse_options()
    if options.index and options.reads:
        count(options, options.index, options.reads)
    elif options.index or options.reads:
        sys.exit("give --index and --reads, or none of them")
    else:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            genome = make_genome(folder, options.bases)
            reads, _ = make_reads(folder, genome, options.count)
            count(options, make_index(folder, genome), str(reads))


def count(options, index, reads: str) -> None:
    index = load_index(index)
    reference = index.reference
    genome = Genome(codes_of(reference), reference.contig_starts)
    parameters = mapping_parameters(mode=END_TO_END)
    chunk = next(single_chunks(reads, options.count))
    offsets, numbers = chunk.offsets, np.arange(chunk.n_reads)
    found = find_candidates(index, chunk.codes, offsets, numbers, parameters.first, parameters)
    both = both_strands(chunk.codes, offsets)
    best = best_scores(extend(genome, both, offsets, found, parameters))
    lengths = np.diff(offsets)[found.reads]
    starts = np.maximum(found.lowest - parameters.largest_gap, 0)
    stops = np.minimum(found.highest + lengths + parameters.largest_gap, genome.codes.size)
    # An edit costs this much at least.
    loss = min(parameters.match - parameters.mismatch, parameters.gap_open + parameters.gap_extend)
    hopeless = best[found.reads] - parameters.hopeless_margin
    shares = {}
    for bound, least in (("least_score", parameters.least_score), ("hopeless", hopeless)):
        least = np.maximum(least, parameters.least_score)
        most_edits = np.maximum(parameters.match * lengths - least, 0) // loss
        windows = Candidates(
            found.reads.astype(np.int64), found.strands, starts, stops, most_edits.astype(np.int32)
        )
        result = filter_candidates(
            pack(chunk.codes), offsets, np.ascontiguousarray(reference.packed), windows, 4, 1
        )
        shares[bound] = round(100 * float(1 - result.kept.mean()), 3)
    about = {"reads": chunk.n_reads, "candidates": int(lengths.size), "bwarp": bwarp.__version__}
    print(about, "dropped %:", shares)
    with open(options.output, "a") as file:
        file.write(json.dumps(about | {"dropped_percent": shares}) + "\n")


if __name__ == "__main__":
    main()

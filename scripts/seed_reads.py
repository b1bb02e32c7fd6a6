#!/usr/bin/env python3
"""Search packed k-mers in an index: what scripts/batch_reads.py wrote, for scripts/locate_seeds.py.

The second of three stages that together do what scripts/find_seeds.py does in one. The output is a
file of frames, each with the rows of the index that k-mers match in, or, with --locate hybrid, a
sampled row and the steps to it for every hit (Liu and Schmidt's j and t); - is standard output.
"""

from functools import partial

from bwarp.backend import choose_backend
from bwarp.index.store import load_index
from bwarp.program import bounded_int, program_parser, run_program, say
from bwarp.seeding.frames import open_frames, write_frames
from bwarp.seeding.hits import ALGORITHMS, MOST_MISMATCHES, SeedOptions
from bwarp.seeding.progress import Progress
from bwarp.seeding.search import search_in_passes, walker
from bwarp.seeding.stages import (
    index_sum,
    kmers_of_frame,
    write_intervals,
    write_kmers,
    write_walked,
)

EXAMPLES = """
scripts/seed_reads.py --index genome.index --kmers reads.kmers -o reads.seeds --mismatches 1
scripts/seed_reads.py --index genome.index --kmers reads.kmers -o reads.seeds --locate hybrid
"""


def parse_options():
    parser = program_parser(__doc__, EXAMPLES)
    parser.add_argument(
        "--index", required=True, metavar="INDEX", help="folder that index_reference.py made"
    )
    parser.add_argument(
        "--kmers",
        required=True,
        metavar="KMERS",
        help="file that batch_reads.py wrote; - is standard input",
    )
    parser.add_argument("-o", "--output", required=True, metavar="SEEDS", help="file to write")
    parser.add_argument(
        "--mismatches",
        type=bounded_int(0, MOST_MISMATCHES),
        default=0,
        metavar="M",
        help=f"most substitutions in a hit, 0 to {MOST_MISMATCHES} (default: %(default)s)",
    )
    parser.add_argument(
        "--max-hits",
        type=bounded_int(0, 2**32),
        default=128,
        metavar="N",
        help="k-mers with more hits on both strands together are only counted; 0: no limit "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--locate",
        choices=("cpu", "hybrid"),
        default="cpu",
        help="cpu leaves all locating to locate_seeds.py; hybrid walks from rows to sampled rows "
        "here, and leaves it the looking up (default: %(default)s)",
    )
    parser.add_argument(
        "--algorithm",
        choices=ALGORITHMS,
        default="schemes",
        help="how mismatches are searched, as for find_seeds.py (default: %(default)s)",
    )
    return parser


def main(options):
    backend = choose_backend(options.backend)
    seed_options = SeedOptions(options.mismatches, options.max_hits, options.algorithm)
    index = load_index(options.index)
    write_found = write_intervals
    if options.locate == "hybrid":
        write_found = partial(write_walked, walk=walker(index, backend, options.threads))
    progress = Progress()
    searched = hits = 0
    with (
        open_frames(options.kmers, "k-mers") as reader,
        write_frames(options.output, holds="seeds", index=index_sum(index)) as writer,
    ):
        for _, arrays in reader:
            kmers, queries = kmers_of_frame(arrays)
            write_kmers(writer, kmers, queries)
            for found in search_in_passes(index, kmers, seed_options, backend, options.threads):
                write_found(writer, found)
                hits += int(found.intervals.n_rows.sum(dtype=int))
            searched += kmers.count
            progress.report(searched, hits)
    progress.clear()
    say(f"{searched:,} k-mers searched: {hits:,} hits")


if __name__ == "__main__":
    run_program(parse_options(), main)

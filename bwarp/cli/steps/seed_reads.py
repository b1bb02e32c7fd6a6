"""Search packed k-mers in an index: what scripts/batch_reads.py wrote, for scripts/locate_seeds.py.

The second of three stages that together do what scripts/find_seeds.py does in one. The output is a
chunk file with the SA intervals of the k-mers; or with --locate hybrid a sampled SA row and the
steps to it for every hit (Liu and Schmidt's j and t); or with --locate gpu the positions. - is
standard output.
"""

from dataclasses import replace
from functools import partial

from bwarp.cli.options import (
    add_index_option,
    add_output_option,
    add_search_options,
    add_stage_input,
)
from bwarp.cli.program import choose_engine, program_parser, say
from bwarp.errors import UsageError
from bwarp.index.store import load_index
from bwarp.io.chunk_files import open_chunk_file, write_chunk_file
from bwarp.io.output_names import check_outputs
from bwarp.runtime.progress import progress
from bwarp.seeding.find import find_in_passes, prepare
from bwarp.seeding.find_cpu import search_in_passes
from bwarp.seeding.hits import SeedOptions
from bwarp.seeding.staged_files import (
    kmers_of_chunk,
    write_intervals,
    write_kmers,
    write_located,
    write_sampled,
)

EXAMPLES = """
scripts/seed_reads.py --index genome.index --kmers reads.kmers -o reads.seeds --mismatches 1
scripts/seed_reads.py --index genome.index --kmers reads.kmers -o reads.seeds --locate hybrid
"""


def parse_options():
    parser = program_parser(__doc__, EXAMPLES)
    add_index_option(parser)
    add_stage_input(parser, "--kmers", "batch_reads.py")
    add_output_option(parser, "SEEDS", "file to write")
    add_search_options(
        parser, "cpu: leave it to locate_seeds.py; hybrid: step to sampled SA rows here, and look "
        "them up there; both search on the CPU. gpu: search and locate on a GPU. auto: gpu if "
        "there is one, else cpu. Results are the same",
    )  # fmt: skip
    return parser


def main(options):
    check_outputs([options.output], [options.index, options.kmers])
    backend = choose_engine(options.backend)
    locate = options.locate
    if locate == "auto":
        locate = "gpu" if backend == "cuda" else "cpu"
    if locate == "gpu" and backend == "cpu":
        raise UsageError(
            "locate gpu needs a GPU, and the backend is cpu: use --locate cpu or hybrid"
        )
    index = load_index(options.index)
    search, write_found = engine(index, locate, options)
    searched = hits = 0
    with (
        open_chunk_file(options.kmers, "k-mers") as reader,
        write_chunk_file(options.output, holds="seeds", index=index.checksum) as writer,
        progress("k-mers", files=[options.kmers]) as report,
    ):
        for _, arrays in reader:
            kmers, queries = kmers_of_chunk(arrays)
            write_kmers(writer, kmers, queries)
            hits += sum(write_found(writer, found) for found in search(kmers))
            searched += kmers.count
            report(searched, f"{hits:,} hits")
    say(f"{searched:,} k-mers searched: {hits:,} hits")


def engine(index, locate, options):
    """What searches a batch of k-mers in passes, and what writes a pass and counts its hits."""
    seeds = SeedOptions(options.mismatches, options.max_hits, options.algorithm)
    if locate == "gpu":
        seeds = replace(seeds, locate="gpu")
        index = prepare(index, seeds, "cuda")
        say(str(index.plan))
        return lambda k: find_in_passes(index, k, seeds, "cuda", options.threads), write_located
    index = prepare(index, seeds, "cpu")
    write = write_intervals
    if locate == "hybrid":
        write = partial(write_sampled, index=index, threads=options.threads)
    return lambda k: search_in_passes(index, k, seeds, options.threads), write

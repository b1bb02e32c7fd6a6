"""Drop candidates that a lower bound of their edits proves to have too many.

The fourth step of the chain, after bwarp locate-seeds. It may be omitted; the results are the
same. The output is a chunk file; - is standard output.
"""

import numpy as np

from bwarp.allmap.candidates_cpu import DROPPED
from bwarp.allmap.chain_files import (
    frame_of_hits,
    hits_of_frame,
    options_of_file,
    searched_chunks,
    stored_options,
)
from bwarp.allmap.find import steps_of
from bwarp.allmap.find_cpu import Segments
from bwarp.allmap.parts_cpu import kept_hits
from bwarp.allmap.verify_cpu import COUNTS
from bwarp.cli.program import choose_engine, program_parser
from bwarp.counted import counted
from bwarp.index.store import load_index
from bwarp.io.atomic_output import check_outputs
from bwarp.io.chunk_files import open_chunk_file, packed_chunk, write_chunk_file
from bwarp.options.common import INDEX_FOLDER, ON_STDIN, chunk_file, output
from bwarp.options.mapping import ALLMAP
from bwarp.reads.stored_reads import TEXTS
from bwarp.runtime.backend import or_on_cpu
from bwarp.runtime.chunks import in_order, read_ahead
from bwarp.runtime.progress import engine_used, progress, say

EXAMPLES = """
bwarp filter-candidates --index genome.index --reads batches/0.reads --hits 0.hits \\
    -o 0.candidates
"""


def parse_options():
    return program_parser(
        __doc__,
        EXAMPLES,
        INDEX_FOLDER,
        chunk_file("reads", "bwarp batch-reads"),
        chunk_file("hits", "bwarp locate-seeds", ON_STDIN),
        ALLMAP["filter"],
        output("CANDIDATES", "file to write"),
    )


def main(options):
    check_outputs([options.output], [options.index, options.reads, options.hits])
    backend = choose_engine(options.backend)
    index = load_index(options.index)

    def steps(engine):
        return steps_of(engine).VerifyingSteps(index.reference, options.threads, options.filter)

    segments = Segments.of(index.reference)
    engine, verifying = or_on_cpu(options.backend, backend, steps, say)
    say(engine_used(engine))

    def keep(of_chunk):
        chunk, (kind, arrays) = of_chunk
        if kind != "hits":
            return packed_chunk(kind, **arrays), 0, 0
        first, items, hits, positions, counts = hits_of_frame(reader, arrays, chunk, segments)
        by = verifying.dropped_by(chunk.blocks, items, hits, positions)
        hits, left = kept_hits(hits, positions, by == 0)
        for number, counter in DROPPED.items():
            counts[COUNTS.index(counter)] += np.count_nonzero(by == number)
        packed = frame_of_hits(first, hits, counts, positions=left)
        return packed, left.size, by.size - left.size

    n_kept = n_dropped = 0
    with (
        open_chunk_file(options.reads, "reads", without=TEXTS) as reads,
        open_chunk_file(options.hits, "hits") as reader,
    ):
        reader.check_index(index.text_checksum, index.folder)
        limits = options_of_file(reader)
        carried = {"index": index.text_checksum, "options": stored_options(limits)}
        frames = searched_chunks(reads, reader, limits)
        with (
            write_chunk_file(options.output, holds="candidates", **carried) as writer,
            progress("hit", files=[options.hits]) as report,
        ):
            for packed, kept, dropped in in_order(keep, read_ahead(frames), options.threads):
                writer.write(packed)
                n_kept += kept
                n_dropped += dropped
                report(n_kept + n_dropped, f"{n_dropped:,} dropped")
    say(f"{counted(n_kept + n_dropped, 'hit')}: {n_dropped:,} dropped, {n_kept:,} kept")

"""Verify candidates: find the loci where reads align with at most the given number of edits, and
align the reads there.

The fifth step of the chain, after bwarp filter-candidates, or directly after
bwarp locate-seeds. Reads that a second round searches again are not aligned. The output is a chunk
file; - is standard output.
"""

import numpy as np

from bwarp.allmap.chain_files import (
    Aligned,
    frame_of_loci,
    hits_of_frame,
    options_of_file,
    searched_chunks,
    stored_aligned,
    stored_options,
)
from bwarp.allmap.find import steps_of
from bwarp.allmap.find_cpu import Segments
from bwarp.allmap.rounds import FoundRound, loci_of_rows, loci_to_write
from bwarp.cli.locus_options import given_extension
from bwarp.cli.program import choose_engine, program_parser
from bwarp.counted import counted
from bwarp.index.store import load_index
from bwarp.io.atomic_output import check_outputs
from bwarp.io.chunk_files import open_chunk_file, packed_chunk, write_chunk_file
from bwarp.options.common import INDEX_FOLDER, ON_STDIN, chunk_file, output
from bwarp.options.mapping import ALLMAP, LOCI_ALIGNED
from bwarp.reads.stored_reads import TEXTS
from bwarp.runtime.backend import or_on_cpu
from bwarp.runtime.chunks import in_order, read_ahead
from bwarp.runtime.progress import engine_used, progress, say

EXAMPLES = """
bwarp extend-candidates --index genome.index --reads batches/0.reads \\
    --candidates 0.candidates -o 0.loci
bwarp extend-candidates --index genome.index --reads batches/0.reads \\
    --candidates 0.candidates -o 0.loci --extension local
"""


def parse_options():
    return program_parser(
        __doc__,
        EXAMPLES,
        INDEX_FOLDER,
        chunk_file("reads", "bwarp batch-reads"),
        chunk_file("candidates", "bwarp filter-candidates or bwarp locate-seeds", ON_STDIN),
        ALLMAP["max_places"]._replace(
            help="do not align reads with more loci than this; 0: no limit. Omit it for pairs, for "
            "which bwarp write-alignments applies the limit"
        ),
        *ALLMAP.only(*LOCI_ALIGNED, "B"),
        output("LOCI", "file to write"),
    )


def main(options):
    extension = given_extension(options)
    aligned = Aligned(extension, options.max_places)
    check_outputs([options.output], [options.index, options.reads, options.candidates])
    backend = choose_engine(options.backend)
    index = load_index(options.index)

    def steps(engine):
        return steps_of(engine).VerifyingSteps(index.reference, options.threads)

    segments = Segments.of(index.reference)
    engine, verifying = or_on_cpu(options.backend, backend, steps, say)
    say(engine_used(engine))

    def extend(of_chunk):
        chunk, (kind, arrays) = of_chunk
        if kind != "hits":
            return packed_chunk(kind, **arrays), 0
        first, items, hits, positions, counts = hits_of_frame(reader, arrays, chunk, segments)
        rows = verifying.find_loci(chunk.blocks, items, hits, positions, counts)
        item = first + rows[:, 0]
        rows[:, 0] = 2 * chunk.reads[item >> 1] + (item & 1)
        found = FoundRound(chunk.reads, chunk.items.edits[::2], rows)
        lengths = np.diff(chunk.offsets)
        written = loci_to_write(found, lengths, limits, options.max_places)
        loci = loci_of_rows(rows[written], np.full(lengths.size, -1, np.int32))
        alignments = verifying.align(
            chunk.both, chunk.blocks, chunk.offsets, loci, limits, extension
        )
        return frame_of_loci(rows, counts, written, alignments, extension), len(rows)

    n_loci = 0
    with (
        open_chunk_file(options.reads, "reads", without=TEXTS) as reads,
        open_chunk_file(options.candidates, "candidates", "hits") as reader,
    ):
        reader.check_index(index.text_checksum, index.folder)
        limits = options_of_file(reader)
        carried = {"index": index.text_checksum, "options": stored_options(limits)}
        carried |= stored_aligned(aligned)
        frames = searched_chunks(reads, reader, limits)
        with (
            write_chunk_file(options.output, holds="loci", **carried) as writer,
            progress("locus", files=[options.candidates]) as report,
        ):
            for packed, n_of_chunk in in_order(extend, read_ahead(frames), options.threads):
                writer.write(packed)
                n_loci += n_of_chunk
                report(n_loci)
    say(counted(n_loci, "locus"))

"""Cut the reads of a batch into parts and search them in an index.

The second step of the chain, after bwarp batch-reads. Each read is cut into as many parts as
are needed to miss no locus. LF steps lead from each SA row of a part to a sampled one (Liu and
Schmidt's j and t), which bwarp locate-seeds looks up. The output is a chunk file; - is
standard output.

If only loci near the best are requested, there are two rounds: the first allows few edits, and the
second, with --after, searches the reads that it left unresolved.
"""

from contextlib import ExitStack
from itertools import repeat

import numpy as np

from bwarp.allmap.chain_files import (
    frame_of_hits,
    frame_of_searched,
    options_of_file,
    stored_options,
    stored_rounds,
)
from bwarp.allmap.find import steps_of
from bwarp.allmap.find_cpu import hit_ranges
from bwarp.allmap.parts_cpu import hits_of, items_of, seed_mismatches
from bwarp.allmap.rounds import following_round
from bwarp.allmap.verify_cpu import COUNTS
from bwarp.cli.locus_options import locus_options
from bwarp.cli.program import choose_engine, program_parser
from bwarp.counted import counted
from bwarp.errors import UsageError
from bwarp.index.store import load_index
from bwarp.io.atomic_output import check_outputs
from bwarp.io.chunk_files import open_chunk_file, write_chunk_file
from bwarp.mapping.extension_cpu import both_strands
from bwarp.options.common import INDEX_FOLDER, chunk_file, output
from bwarp.options.mapping import ALLMAP, LOCI_SEARCHED
from bwarp.options.option import File, Option
from bwarp.reads.read_chunks import pairs_alone
from bwarp.reads.stored_reads import stored_reads
from bwarp.runtime.backend import or_on_cpu
from bwarp.runtime.chunks import in_order, read_ahead
from bwarp.runtime.progress import engine_used, progress, say

EXAMPLES = """
bwarp seed-reads --index genome.index --reads batches/0.reads -o 0.seeds --edits 4
bwarp seed-reads --index genome.index --reads batches/0.reads --after 0.loci -o 0.2.seeds \\
    --edits 4 --report best
"""


def parse_options():
    return program_parser(
        __doc__,
        EXAMPLES,
        INDEX_FOLDER,
        chunk_file("reads", "bwarp batch-reads"),
        Option(
            "after",
            File("LOCI"),
            "file written by bwarp extend-candidates in the first round: search its unresolved "
            "reads",
        ),
        *ALLMAP.only(*LOCI_SEARCHED),
        output("SEEDS", "file to write"),
    )


def main(options):
    limits = locus_options(options)
    check_outputs([options.output], [options.index, options.reads, options.after])
    backend = choose_engine(options.backend)
    index = load_index(options.index)
    engine, seeding = or_on_cpu(
        options.backend, backend, lambda engine: steps_of(engine).SeedingSteps(index, limits), say
    )
    say(engine_used(engine))

    def search(chunk_and_round):
        chunk, before = chunk_and_round
        lengths = np.diff(chunk.offsets)
        reads, edits = following_round(lengths, limits, before)
        gaps = limits.gaps_of(edits)
        mismatches = seed_mismatches(index, lengths[reads], edits, gaps, limits)
        items = items_of(chunk.offsets, reads, edits, gaps, mismatches)
        parts = seeding.search_parts(both_strands(chunk.codes, chunk.offsets), items)
        n_hits, frames = 0, [frame_of_searched(chunk, reads, edits, mismatches)]
        for first, last in hit_ranges(parts):
            hits, rows = hits_of(parts, first, last)
            sampled, steps = seeding.step_to_sampled(rows)
            counts = np.zeros(len(COUNTS), np.int64)
            counts[:2] = hits.starts.size, rows.size
            frames.append(frame_of_hits(first, hits, counts, sampled=sampled, steps=steps))
            n_hits += rows.size
        return chunk.n_reads, n_hits, frames

    n_reads = n_hits = 0
    with (
        ExitStack() as files,
        open_chunk_file(options.reads, "reads", without=["qualities"]) as batch,
        write_chunk_file(
            options.output,
            holds="seeds",
            index=index.text_checksum,
            sa_rate=index.sa_rate,
            options=stored_options(limits),
        ) as writer,
        progress("read", files=[options.reads]) as report,
    ):
        chunks = pairs_alone(options.reads, stored_reads(batch))
        chunks = zip(chunks, repeat(None), strict=False)
        if options.after:
            before = files.enter_context(open_chunk_file(options.after, "loci"))
            before.check_index(index.text_checksum, index.folder)
            if options_of_file(before) != limits:
                raise UsageError(
                    f"--after {options.after}: the first round was searched with other limits: use "
                    "the same --edits, --gaps, --report and --seed-mismatches"
                )
            chunks = (
                (chunk, rounds[0].found)
                for chunk, rounds, _ in stored_rounds(batch, [before], index.reference)
            )
        for reads_of_chunk, hits_of_chunk, frames in in_order(
            search, read_ahead(chunks), options.threads
        ):
            n_reads, n_hits = n_reads + reads_of_chunk, n_hits + hits_of_chunk
            for packed in frames:
                writer.write(packed)
            report(n_reads, counted(n_hits, "hit"))
    say(f"{counted(n_reads, 'read')}: {counted(n_hits, 'hit')} of their parts")

"""Look up the positions of the hits of bwarp seed-reads in the suffix array.

The third step of the chain; it runs on the CPU. If the sampling rate of the index has
changed since bwarp seed-reads, further LF steps lead to the rows that are sampled now. The output
is a chunk file; - is standard output.
"""

from bwarp.allmap.chain_files import options_of_file, rows_of_frame, stored_options
from bwarp.cli.program import program_parser
from bwarp.counted import counted
from bwarp.index.locate_cpu import look_up, step_to_sampled
from bwarp.index.store import load_index
from bwarp.io.atomic_output import check_outputs
from bwarp.io.chunk_files import open_chunk_file, packed_chunk, write_chunk_file
from bwarp.options.common import INDEX_FOLDER, ON_STDIN, chunk_file, output
from bwarp.runtime.chunks import in_order, read_ahead
from bwarp.runtime.progress import progress, say

EXAMPLES = """
bwarp locate-seeds --index genome.index --seeds 0.seeds -o 0.hits
"""


def parse_options():
    return program_parser(
        __doc__,
        EXAMPLES,
        INDEX_FOLDER,
        chunk_file("seeds", "bwarp seed-reads", ON_STDIN),
        output("HITS", "file to write"),
    )


def main(options):
    check_outputs([options.output], [options.index, options.seeds])
    index = load_index(options.index)

    def locate(frame):
        (kind, arrays), n_hits = frame, 0
        if kind == "hits":
            sampled, steps = rows_of_frame(reader, arrays, index)
            if reader.holds.get("sa_rate") != index.sa_rate:
                sampled, more = step_to_sampled(index, sampled)
                steps = steps + more
            arrays["positions"] = look_up(index, sampled, steps)
            n_hits = sampled.size
        return packed_chunk(kind, **arrays), n_hits

    n_hits = 0
    with open_chunk_file(options.seeds, "seeds") as reader:
        reader.check_index(index.text_checksum, index.folder)
        carried = {"index": index.text_checksum, "options": stored_options(options_of_file(reader))}
        with (
            write_chunk_file(options.output, holds="hits", **carried) as writer,
            progress("hit", files=[options.seeds]) as report,
        ):
            for packed, n_of_chunk in in_order(locate, read_ahead(reader), options.threads):
                writer.write(packed)
                n_hits += n_of_chunk
                report(n_hits)
    say(f"{counted(n_hits, 'hit')} located")

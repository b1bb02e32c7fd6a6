"""Estimate the insert size of pairs from the loci of the first batches.

Run it once for all batches of a unit, after bwarp extend-candidates and before
bwarp write-alignments. The output is JSON: mean, standard deviation, bounds of proper pairs,
and orientation; - is standard output.
"""

from bwarp.allmap.chain_files import check_all_loci, stored_rounds
from bwarp.allmap.pairs_cpu import single_insert_sizes
from bwarp.allmap.rounds import joined_rounds
from bwarp.cli.program import program_parser
from bwarp.counted import counted
from bwarp.errors import UsageError
from bwarp.index.store import load_index
from bwarp.io.atomic_output import check_outputs, write_text
from bwarp.io.chunk_files import open_chunk_file
from bwarp.mapping.first_pairs import FIRST_PAIRS, pairs_left
from bwarp.mapping.insert_size import insert_size_of_parts, insert_size_text
from bwarp.options.common import INDEX_FOLDER, ORIENTATION, output
from bwarp.options.mapping import ALL
from bwarp.options.option import File, Option

EXAMPLES = """
bwarp allmap-insert-size --index genome.index \\
    --reads batches/0.reads batches/1.reads --loci 0.loci 1.loci -o insert_size.json
"""


def parse_options():
    return program_parser(
        __doc__,
        EXAMPLES,
        INDEX_FOLDER,
        Option(
            "reads",
            File("READS"),
            f"first files written by bwarp batch-reads, enough to contain {FIRST_PAIRS:,} pairs",
            required=True,
            many=True,
        ),
        Option(
            "loci",
            File("LOCI"),
            "files written by bwarp extend-candidates for these reads",
            required=True,
            many=True,
        ),
        ORIENTATION,
        output("OUT.json", "file to write"),
    )


def main(options):
    check_outputs([options.output], [options.index, *options.reads, *options.loci])
    if len(options.reads) != len(options.loci):
        raise UsageError(
            f"--reads has {counted(len(options.reads), 'file')} but --loci has "
            f"{len(options.loci):,}: give one file of loci per batch"
        )
    index = load_index(options.index)
    sizes = []
    for of_reads, of_loci in zip(options.reads, options.loci, strict=True):
        with open_chunk_file(of_reads, "reads") as reads, open_chunk_file(of_loci, "loci") as loci:
            loci.check_index(index.text_checksum, index.folder)
            check_all_loci(loci)
            for chunk, rounds, _ in stored_rounds(reads, [loci], index.reference):
                if chunk.ends == 1:
                    raise UsageError(f"--reads {of_reads}: no pairs: give batches of pairs")
                most = pairs_left(chunk)
                if not most:
                    break
                found = joined_rounds([one.found for one in rounds], chunk.n_reads, ALL)
                sizes.append(single_insert_sizes(found, index.reference.contig_starts, most))
    insert = insert_size_of_parts(sizes, options.orientation)
    write_text(options.output, insert_size_text(insert))

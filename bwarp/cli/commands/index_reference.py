"""Index a reference for every other program of bwarp."""

import argparse

from bwarp.cli.options import add_output_option
from bwarp.cli.program import choose_engine, program_parser, say
from bwarp.errors import UsageError
from bwarp.index.building.build import build_index
from bwarp.index.index_size import size_table
from bwarp.index.parameters import DEFAULT_OCC_RATE, DEFAULT_SA_RATE, choose_parameters
from bwarp.index.store import load_index, new_index_folder, write_index
from bwarp.index.verify import verify_index
from bwarp.io.output_names import check_outputs
from bwarp.reference import read_reference
from bwarp.runtime.backend import or_on_cpu
from bwarp.runtime.host_memory import available_bytes, parse_size
from bwarp.runtime.progress import steps

EXAMPLES = """
scripts/index_reference.py genome.fa.gz -o genome.index
scripts/index_reference.py genome.fa -o genome.index --sa-rate 1 --prefix-length 12
scripts/index_reference.py --verify -o genome.index     prove an existing index
"""

#: Contigs named in one warning.
MOST_NAMED = 5


def size(text):
    try:
        return parse_size(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(error) from None


def parse_options():
    parser = program_parser(__doc__, EXAMPLES)
    parser.add_argument(
        "reference", metavar="REF.fa[.gz]", nargs="?",
        help="FASTA file of DNA or RNA; may be left out with --verify",
    )  # fmt: skip
    add_output_option(parser, "INDEX", "folder to write the index to")
    parser.add_argument(
        "--occ-rate", type=int, default=DEFAULT_OCC_RATE, metavar="Q",
        help="rows between two counts of ROcc: a multiple of 32; smaller is larger and, below "
        "64, not faster",
    )  # fmt: skip
    parser.add_argument(
        "--sa-rate", type=int, default=DEFAULT_SA_RATE, metavar="P",
        help="rows between two entries of the suffix array; 1 keeps all",
    )  # fmt: skip
    parser.add_argument(
        "--prefix-length", type=int, metavar="K",
        help="length of the k-mers whose SA intervals are tabulated; 0 for no table "
        "(default: by the reference's size)",
    )  # fmt: skip
    parser.add_argument(
        "--memory", type=size, metavar="SIZE",
        help="memory that indexing on the CPU may take, such as 16G; with less it takes longer "
        "(default: what is free)",
    )  # fmt: skip
    parser.add_argument(
        "--verify", action="store_true",
        help="prove the index against its text: after building it, or without REF.fa an existing "
        "one",
    )  # fmt: skip
    return parser


def main(options):
    if options.reference:
        index = build(options)
    elif options.verify:
        index = load_index(options.output)
    else:
        raise UsageError("no reference: give a FASTA file, or --verify to prove an index")
    if options.verify:
        say("verifying ...")
        # What was built is proved as it is on the disk.
        verify_index(load_index(options.output), options.threads)
        say("verified: both BWTs spell the text, and the tables agree with it")
    print(size_table(index))


def build(options):
    # Wrong options, and a folder that cannot be written, are found before any work is done.
    choose_parameters(1, options.occ_rate, options.sa_rate, options.prefix_length)
    check_outputs([], [options.reference], options.output)
    backend = choose_engine(options.backend)
    with new_index_folder(options.output) as folder:
        reference = read_reference(options.reference, options.threads)
        parameters = choose_parameters(
            reference.text_length, options.occ_rate, options.sa_rate, options.prefix_length
        )
        warn_of_contigs_without_bases(reference.contigs_without_segments())
        say(
            f"indexing {reference.n_bases:,} bases of {len(reference.names):,} contigs on {backend}"
        )
        memory = options.memory or available_bytes()
        with steps() as done:
            _, index = or_on_cpu(
                options.backend,
                backend,
                lambda engine: build_index(
                    reference, parameters, engine, options.threads, memory, done
                ),
                say,
            )
            write_index(index, folder, options.threads)
    return index


def warn_of_contigs_without_bases(names):
    if names:
        shown = ", ".join(names[:MOST_NAMED]) + (", ..." if len(names) > MOST_NAMED else "")
        say(f"warning: nothing can match in {len(names):,} contigs without A, C, G or T: {shown}")

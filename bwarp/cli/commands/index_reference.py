"""Build the index of a reference, which the other programs search."""

from dataclasses import replace

from bwarp.cli.index_options import MOST_NAMED, warn_of_names_like_alt
from bwarp.cli.program import choose_engine, compile_first, program_parser
from bwarp.counted import counted
from bwarp.errors import UsageError
from bwarp.index.alt_contigs import alt_list_beside, listed_alt_contigs
from bwarp.index.build import build_index, build_reverse
from bwarp.index.chunk_store import open_index, write_chunks
from bwarp.index.chunks import MOST_CHUNKS, ChunkedIndex, chunks_of, stretch
from bwarp.index.description import OVERLAP
from bwarp.index.parameters import choose_parameters, size_table
from bwarp.index.store import added_to_index, new_index_folder, write_index, write_reverse
from bwarp.index.verify import verify_stored
from bwarp.io.atomic_output import check_outputs
from bwarp.options.mapping import INDEX
from bwarp.reference import read_reference
from bwarp.runtime.backend import or_on_cpu
from bwarp.runtime.host_memory import available_bytes
from bwarp.runtime.progress import say, steps

EXAMPLES = """
bwarp index genome.fa.gz -o genome.index
bwarp index genome.fa -o genome.index --sa-rate 1 --prefix-length 12
bwarp index genome.fa -o genome.index --with-reverse    for seeds with mismatches
bwarp index -o genome.index --with-reverse    the same for an existing index
bwarp index -o genome.index --verify    verify an existing index
bwarp index genome.fa -o genome.chunks --chunk-bases 1000000000    in chunks of 1 Gb
"""


def parse_options():
    parser = program_parser(__doc__, EXAMPLES, INDEX)
    parser.add_argument(
        "reference", metavar="REF.fa[.gz]", nargs="?",
        help="FASTA file of DNA or RNA; optional with --with-reverse or --verify",
    )  # fmt: skip
    return parser


def main(options):
    if options.chunk_bases and not options.reference:
        raise UsageError("--chunk-bases requires REF.fa: chunks are cut when an index is built")
    if options.reference:
        index = build(options)
    elif options.with_reverse:
        index = add_reverse(options)
    elif options.verify:
        index = open_index(options.output)
    else:
        raise UsageError(
            "no reference is given: give a FASTA file, or use --with-reverse or --verify with an "
            "existing index"
        )
    if options.verify:
        say("verifying ...")
        # Verify the index as written to disk.
        verify_stored(open_index(options.output), options.threads)
        spelling = "both BWTs spell" if index.has_reverse else "the BWT spells"
        say(f"verified: {spelling} the text, and the tables match it")
    print(size_table(index))


def build(options):
    # Report wrong options and an unwritable folder before any work is done.
    choose_parameters(1, options.occ_rate, options.sa_rate, options.prefix_length)
    check_outputs([], [options.reference], options.output)
    backend = choose_engine(options.backend)
    with new_index_folder(options.output) as folder:
        # Compile in parallel, before calls compile functions one by one.
        compile_first(backend, options, options.reference)
        reference = read_reference(options.reference, options.threads)
        if alt_list := alt_list_beside(options.reference):
            reference = replace(reference, alt=listed_alt_contigs(alt_list, reference))
            are_alt = counted(
                len(reference.alt), "contig is an ALT contig", "contigs are ALT contigs"
            )
            say(f"{are_alt}, as listed in {alt_list}")
        warn_of_names_like_alt(reference)
        warn_of_contigs_without_bases(reference.contigs_without_segments())
        say(
            f"indexing {counted(reference.n_bases, 'base')} of "
            f"{counted(len(reference.names), 'contig')} on {backend}"
        )
        with steps() as done:
            if not options.chunk_bases:
                index = build_arrays(reference, options, backend, done)
                write_index(index, folder, options.threads)
                return index
            indexes = chunk_indexes(reference, options, backend, done)
            write_chunks(reference, options.chunk_bases, indexes, folder, options.threads)
    return open_index(options.output)


def build_arrays(reference, options, backend, done):
    """Return the index of a reference, or of a chunk of it."""
    parameters = choose_parameters(
        reference.text_length, options.occ_rate, options.sa_rate, options.prefix_length
    )
    memory = options.memory or available_bytes()
    _, index = or_on_cpu(
        options.backend,
        backend,
        lambda engine: build_index(
            reference, parameters, engine, options.threads, memory, done, options.with_reverse
        ),
        say,
    )
    return index


def chunk_indexes(reference, options, backend, done):
    """Yield the chunks of a reference with their indexes, one at a time."""
    chunks = list(chunks_of(reference, options.chunk_bases, OVERLAP))
    if len(chunks) > MOST_CHUNKS:
        raise UsageError(
            f"{counted(len(chunks), 'chunk')} exceed the maximum of {MOST_CHUNKS:,}: use a larger "
            "--chunk-bases"
        )
    for number, chunk in enumerate(chunks, 1):
        bases = stretch(reference, chunk.start, chunk.end, options.threads)
        of_chunk = f", chunk {number} of {len(chunks)}"
        index = build_arrays(bases, options, backend, lambda step, more=of_chunk: done(step + more))
        yield chunk, index


def add_reverse(options):
    """Add the reverse BWT to an index, or to those of all chunks; return the index."""
    index = open_index(options.output)
    if index.has_reverse:
        say(f"{options.output} already has the reverse BWT: nothing was changed")
        return index
    for stored in index.indexes if isinstance(index, ChunkedIndex) else [index]:
        if not stored.has_reverse:
            add_reverse_to(stored, options)
    return open_index(options.output)


def add_reverse_to(index, options):
    """Add the reverse BWT to a stored index, with the text from its packed genome."""
    backend = choose_engine(options.backend)
    with added_to_index(index) as folder:
        reference, memory = index.reference, options.memory or available_bytes()
        say(f"adding the reverse BWT of {counted(reference.n_bases, 'base')} on {backend}")
        with steps() as done:
            _, reverse = or_on_cpu(
                options.backend,
                backend,
                lambda engine: build_reverse(
                    reference, index.occ_rate, engine, options.threads, memory, done
                ),
                say,
            )
            write_reverse(reverse, index.description, folder, options.threads)


def warn_of_contigs_without_bases(names):
    if names:
        shown = ", ".join(names[:MOST_NAMED]) + (", ..." if len(names) > MOST_NAMED else "")
        say(
            f"warning: {counted(len(names), 'contig contains', 'contigs contain')} no A, C, G or "
            f"T, so nothing can match there: {shown}"
        )

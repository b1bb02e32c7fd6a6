"""Find maximal exact matches between queries and a reference, in the format of MUMmer 3.

A match is maximal if it cannot be extended at either end. Matches contain no ambiguous bases and do
not cross the borders of contigs. The output lists all matches of at least --min-length bases
(maxmatch), those unique in the reference (mumreference), or those unique in the reference and in
the strand of the query (mum).

The output is that of MUMmer with -n: a line "> query" per query, "> query Reverse" for its reverse
complement, followed by its matches: position in the reference, position in the query, and length,
with 1-based positions. Positions on the reverse strand count along the reverse complement. If the
name of the output ends in .tsv, .paf or .parquet, this format is written, with 0-based positions on
the forward strands; .gz compresses.

For a single comparison of genomes, the reference can be given as FASTA, without an index.
"""

from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from bwarp.cli.index_options import check_spread, prepare_on_gpus
from bwarp.cli.program import choose_engine, compile_first, program_parser
from bwarp.counted import counted
from bwarp.errors import UsageError
from bwarp.index.chunk_store import open_index
from bwarp.index.chunks import ChunkedIndex
from bwarp.io.atomic_output import atomic_file, check_outputs
from bwarp.io.fastx import read_sequences
from bwarp.io.names import names_of
from bwarp.io.table_writer import TableWriter
from bwarp.mems.find import find_matches, find_table_matches, prepare, queries_at_once
from bwarp.mems.kmer_table_cpu import build_kmer_table
from bwarp.mems.match_text import (
    COLUMNS,
    MummerLayout,
    write_columns,
    write_mummer,
    write_paf,
    write_table,
)
from bwarp.mems.query_text import STRANDS, make_query_text
from bwarp.mems.reference_chunks import find_in_chunks
from bwarp.options.finding import MEMS
from bwarp.reference import read_reference
from bwarp.runtime.backend import or_on_cpu
from bwarp.runtime.chunks import in_turns, read_ahead
from bwarp.runtime.progress import progress, say

EXAMPLES = """
bwarp mems --index genome.index --queries reads.fq.gz -o reads.mums --strands both
bwarp mems --index genome.index --queries assembly.fa -o assembly.paf --kind mum \\
    --min-length 50 --strands both
bwarp mems --reference MG1655.fa --queries DH1.fa -o DH1.mums --kind maxmatch
bwarp mems --index genome.chunks --queries reads.fq.gz -o reads.mums --gpus 4 --spread
"""

#: Endings that choose a format; all others mean MUMmer's.
FORMATS = (".tsv", ".paf", ".parquet")

#: Endings of other formats, which are rejected.
OTHER_FORMATS = (".bam", ".bed", ".csv", ".sam")


def parse_options():
    return program_parser(__doc__, EXAMPLES, MEMS)


def main(options):
    if (options.index is None) == (options.reference is None):
        raise UsageError("no reference is given: use --index or --reference")
    output_format = format_of(options)
    check_outputs([options.output], [options.index, options.reference, options.queries])
    search, indexes, reference, queries = searcher(options)
    strands = STRANDS[options.strands]
    n_queries = n_matches = 0
    with (
        atomic_file(options.output, threads=options.threads) as file,
        match_writer(file, output_format, options, reference, strands) as write,
        progress("query", files=[options.queries]) as report,
    ):
        for (batch, _), found in in_turns(partial(find_in_batch, search), indexes, queries):
            n_queries += batch.count
            for matches in write(found, batch=batch):
                n_matches += matches.n
                report(n_queries, counted(n_matches, "match"))
    say(
        f"{counted(n_queries, 'query')}, {counted(n_matches, 'match')} of at least "
        f"{counted(options.min_length, 'base')}"
    )


def format_of(options) -> str:
    name = Path(options.output.removesuffix(".gz"))
    ending = name.suffix
    if ending == ".parquet" and name.name != Path(options.output).name:
        raise UsageError(f"{options.output}: Parquet is already compressed: omit .gz")
    if ending in OTHER_FORMATS:
        raise UsageError(
            f"{options.output}: matches cannot be written as {ending}: use .mums for MUMmer's "
            "format, or .tsv, .paf or .parquet"
        )
    if ending not in FORMATS:
        return "mummer"
    for option in ("forward_positions", "four_column", "show_lengths"):
        if getattr(options, option):
            raise UsageError(
                f"--{option.replace('_', '-')} requires MUMmer's format: omit it, or use an output "
                f"that does not end in {ending}"
            )
    return ending[1:]


def searcher(options):
    """Return a function of an index and a query text that finds matches, the indexes, the
    reference, and the batches of queries with their texts.

    The first batches are read while the reference is prepared.
    """
    kind, threads = options.kind, options.threads
    searched = {"min_length": options.min_length, "kind": kind, "threads": threads}
    if options.reference or options.chunk_bases:
        return searcher_for_this_run(options, searched)
    backend = choose_engine(options.backend, options.gpus)
    stored = open_index(options.index)
    check_spread(options, stored)
    # Compile in parallel, before calls compile functions one by one.
    compile_first(backend, options, options.queries)
    in_turn = isinstance(stored, ChunkedIndex) and backend == "cuda" and not options.spread
    queries = read_ahead(read_queries(options, in_turn), 1)
    backend, indexes = or_on_cpu(
        options.backend,
        backend,
        lambda engine: prepare_on_gpus(partial(prepare, stored, kind, engine), engine, options),
        say,
    )
    if backend == "cuda":
        say(str(indexes[0].plan))
    search = partial(find_matches, **searched, backend=backend)
    return search, indexes, stored.reference, queries


def searcher_for_this_run(options, searched):
    """Return what `searcher` returns, for a search without a stored index."""
    threads = options.threads
    check_spread(options, None)
    if not options.chunk_bases and options.backend == "cuda":
        raise UsageError("--backend cuda requires --index or --chunk-bases")
    backend = choose_engine(options.backend) if options.chunk_bases else "cpu"
    if options.reference:
        reference = read_reference(options.reference, threads)
    else:
        reference = open_index(options.index).reference
    compile_first(backend, options, options.queries)
    queries = read_ahead(read_queries(options, bool(options.chunk_bases)), 1)
    if options.chunk_bases:
        search = partial(find_in_chunks, **searched, chunk_bases=options.chunk_bases)
        return partial(search, backend=backend), [reference], reference, queries
    table = build_kmer_table(reference, options.min_length, threads)
    return partial(find_table_matches, **searched), [table], reference, queries


def read_queries(options, in_turn):
    """Yield batches of queries, each with its text to search; see `queries_at_once`."""
    at_once = queries_at_once(in_turn)
    for batch in read_sequences(options.queries, chunk_bytes=at_once, threads=options.threads):
        names_of(options.queries, batch)
        yield (
            batch,
            make_query_text(
                batch.codes,
                batch.offsets,
                STRANDS[options.strands],
                options.min_length,
                options.threads,
            ),
        )


def find_in_batch(search, index, query):
    """Return the matches of a batch of queries."""
    _, text = query
    return search(index, text)


@contextmanager
def match_writer(file, output_format, options, reference, strands):
    """Return a function that writes the matches of a batch and passes them on."""
    with ExitStack() as stack:
        write = file.write
        if output_format == "parquet":
            from bwarp.io.parquet_rows import ParquetRows

            rows = stack.enter_context(ParquetRows(file, COLUMNS, "int64", reference.names))
            write = rows.write
        if output_format == "tsv":
            file.write(COLUMNS)
        layout = MummerLayout(
            strands, options.forward_positions, options.four_column, options.show_lengths
        )
        write_batch = {
            "mummer": partial(write_mummer, layout=layout),
            "paf": partial(write_paf, strands=strands),
            "parquet": partial(write_columns, strands=strands),
            "tsv": partial(write_table, strands=strands),
        }[output_format]
        writer = stack.enter_context(TableWriter(write, options.threads))
        yield partial(write_batch, writer, reference=reference)

"""Search a database of proteins or nucleotides for the best hits by exact Smith-Waterman scores.

A gap of n residues costs gap-open + n * gap-extend, as in BLAST. The table lists the hits query by
query, best first, with their scores and the ends of the alignment in query and target. Hits of
equal score are in the order of the database; among equal alignments, the one that ends first in
the target is reported. Selenocysteine U is scored as C, pyrrolysine O as X, and J as the mean of I
and L, as in BLAST.
"""

from functools import partial
from pathlib import Path

from bwarp.cli.program import choose_engine, compile_first, program_parser
from bwarp.counted import counted
from bwarp.database_search.best_hits import (
    MATRIX,
    align_hits,
    check_algorithm,
    end_hits,
    find_best_hits,
    hit_pairs,
    scores_function,
    search_scoring,
    significance,
)
from bwarp.database_search.database import load_database, read_all, read_database
from bwarp.database_search.evalue import karlin_altschul
from bwarp.database_search.hit_text import COLUMNS, SIGNIFICANCE, blast_lines, hit_lines
from bwarp.errors import UsageError
from bwarp.io.atomic_output import atomic_file, check_outputs, write_text
from bwarp.options.aligning import SEARCH
from bwarp.runtime.progress import progress, say
from bwarp.runtime.threads import run_together

EXAMPLES = """
bwarp search --queries Q.fa --database D.fa.gz -o hits.tsv
bwarp search --queries Q.fa --database D.fa -o hits.tsv --evalue --top 50 \\
    --alignments hits.m8
bwarp search --queries Q.fa --database D.search -o hits.tsv    a folder by bwarp search-index
bwarp search --queries Q.fa --database contigs.fa -o hits.tsv --match 2 \\
    --mismatch -3 --gap-open 5 --gap-extend 2
"""


def parse_options():
    return program_parser(__doc__, EXAMPLES, SEARCH)


def main(options):
    chosen = (options.matrix, options.match, options.mismatch)
    scoring = search_scoring(*chosen, options.gap_open, options.gap_extend)
    parameters = None
    if options.evalue or options.alignments:
        if options.match is not None:
            raise UsageError(
                "E-values require a protein matrix: omit --evalue and --alignments with --match"
            )
        parameters = karlin_altschul(options.matrix or MATRIX, options.gap_open, options.gap_extend)
    inputs = [options.queries, options.database]
    check_outputs([options.output, options.alignments], inputs)
    backend = choose_engine(options.backend, options.gpus)
    check_algorithm(options.algorithm, backend)
    compile_first(backend, options, options.database, options.queries)
    # Read the few queries first, to find their errors before a large database is read.
    table = read_all(options.queries, scoring.code_of_byte, options.threads)
    database = opened(options, scoring, table, backend)
    say(
        f"database: {counted(database.count, 'sequence')} of "
        f"{counted(int(database.offsets[-1]), 'residue')}"
    )
    search(options, scoring, parameters, table, database, backend)


def opened(options, scoring, table, backend):
    """Return the database; a GPU meanwhile loads the kernels for the queries."""
    if Path(options.database).is_dir():
        read = partial(load_database, options.database, scoring.letters, options.threads)
    else:
        read = partial(read_database, options.database, scoring.code_of_byte, options.threads)
    if backend != "cuda" or options.algorithm != "profile":
        return read()
    from bwarp.database_search.search_cuda import load_kernels

    database, _ = run_together([read, partial(load_kernels, table.listed(), scoring)], 2)
    return database


def search(options, scoring, parameters, table, database, backend):
    threads, queries = options.threads, table.listed()
    with progress("query", total=len(queries)) as report:
        hits = find_best_hits(
            queries, database, scoring, options.top, options.min_score,
            scores_function(options.algorithm, backend, options.gpus), threads, report,
        )  # fmt: skip
    say(
        f"searched {counted(len(queries), 'query')} on {backend}: "
        f"{counted(hits.scores.size, 'hit')}"
    )

    pairs = hit_pairs(hits, queries, database)
    query_names = table.names.listed(hits.queries)
    target_names = database.names.listed(hits.targets)
    if options.alignments:
        ends = alignments = align_hits(pairs, scoring, backend, threads)
    else:
        ends = end_hits(pairs, scoring, backend, threads)
    header = list(COLUMNS)
    columns = [hits.scores, ends.query_ends, ends.reference_ends]
    if parameters:
        expected, bits = significance(parameters, hits, queries, database)
    if options.evalue:
        header += SIGNIFICANCE
        columns += [expected, bits]
    with atomic_file(options.output, "wt") as output:
        output.write("\t".join(header) + "\n")
        output.write(hit_lines(query_names, target_names, columns))
    if options.alignments:
        lines = blast_lines(query_names, target_names, alignments, expected, bits)
        write_text(options.alignments, lines)

"""Find every hit of k-mers and their reverse complements in a reference, with up to a given number
of mismatches at any position.

Queries are searched whole (8 to 64 bases each), or cut into k-mers with -k. A whole query may
contain IUPAC letters such as R, Y and N; each site has one row, with the fewest mismatches. The
table has the columns query, kmer_start, strand, contig, position and mismatches. Positions are
0-based, of the leftmost base of the hit on the forward strand. Rows are sorted by query, k-mer
start, strand (forward first), contig and position.

OUT.over.tsv lists k-mers with more than --max-hits hits, which have no rows. OUT.skipped.tsv lists
what was not searched: k-mers with an ambiguous base, and queries that are too short, too long, or
match too many sequences.
"""

from functools import partial

from bwarp.cli.index_options import check_spread, prepare_on_gpus
from bwarp.cli.program import choose_engine, compile_first, program_parser
from bwarp.counted import counted
from bwarp.errors import UsageError
from bwarp.index.chunk_store import open_index
from bwarp.io.atomic_output import check_outputs, table_format
from bwarp.offtargets.guides import parse_pam
from bwarp.options.finding import SEEDS
from bwarp.runtime.backend import or_on_cpu
from bwarp.runtime.chunks import read_ahead
from bwarp.runtime.progress import progress, say
from bwarp.seeding.find import BatchSearch, prepare
from bwarp.seeding.hits import SeedOptions, check_options
from bwarp.seeding.queries import kmers_to_cut, read_queries
from bwarp.seeding.seed_tables import open_count_table, open_seed_tables, sibling, tables_at

EXAMPLES = """
bwarp seeds --index genome.index --queries primers.fa -o hits.tsv --mismatches 2
bwarp seeds --index genome.index --queries reads.fq.gz -o hits.tsv.gz -k 20 --step 10
bwarp seeds --index genome.index --queries guides.fa -o hits.bed --mismatches 4 \\
    --max-hits 0
bwarp seeds --index genome.index --queries probes.fa -o counts.tsv --mismatches 1 \\
    --count-only
bwarp seeds --index genome.chunks --queries primers.fa -o hits.tsv --gpus 4 --spread
zcat reads.fq.gz | bwarp seeds --index genome.index --queries - -o - -k 24 | head
"""


def parse_options():
    return program_parser(__doc__, EXAMPLES, SEEDS)


def main(options):
    pam = parse_pam(options.pam, options.pam_side) if options.pam else None
    batches = read_queries(options.queries, *kmers_to_cut(options.k, options.step), options.threads)
    output_format = table_format(options.output)
    if options.site_sequence and (output_format != "tsv" or options.count_only):
        raise UsageError("--site-sequence requires a table of hits, .tsv or .tsv.gz")
    check_outputs(tables_at(options.output), [options.index, options.queries])
    if options.count_only and output_format != "tsv":
        raise UsageError("--count-only requires .tsv or .tsv.gz output")
    backend = choose_engine(options.backend, options.gpus)
    seed_options = SeedOptions(
        options.mismatches, options.max_hits, options.algorithm, options.locate
    )
    check_options(seed_options, backend)
    stored = open_index(options.index)
    check_spread(options, stored)
    # Compile in parallel, before calls compile functions one by one.
    compile_first(backend, options, options.queries)
    # Read and cut the first queries while the index is brought to the GPU.
    batches = read_ahead(batches)
    backend, indexes = or_on_cpu(
        options.backend,
        backend,
        lambda engine: prepare_on_gpus(
            partial(prepare, stored, seed_options, engine), engine, options
        ),
        say,
    )
    if backend == "cuda":
        say(str(indexes[0].plan))
    search = BatchSearch(seed_options, backend, options.threads, stored.reference, pam)
    if options.count_only:
        write_counts(options, search.count(indexes, batches))
    else:
        write_hits(options, search.find(indexes, batches), stored.reference)


def write_hits(options, found_in_batches, reference):
    with (
        open_seed_tables(
            options.output, reference, options.threads, options.site_sequence
        ) as tables,
        progress("k-mer", files=[options.queries]) as report,
    ):
        counts = tables.counts
        for (kmers, queries), found_in_passes in found_in_batches:
            done = counts.searched
            tables.add_kmers(kmers, queries)
            for found in found_in_passes:
                for hits in tables.add_found(found, kmers, queries):
                    report(done + int(hits.kmers[-1]) + 1, counted(counts.hits, "hit"))
    say_outcome(options, counts)


def write_counts(options, counted_batches):
    with (
        open_count_table(options.output, options.threads) as table,
        progress("k-mer", files=[options.queries]) as report,
    ):
        for (kmers, queries), hits in counted_batches:
            table.add(kmers, queries, hits)
            report(table.counts.searched, counted(table.counts.hits, "hit"))
    say_outcome(options, table.counts)


def say_outcome(options, counts):
    if counts.searched + counts.skipped == 0:
        say(f"warning: {options.queries}: the file contains no sequences")
    if counts.skipped and options.k is None and options.output != "-":
        reasons = sibling(options.output, "skipped")
        say(
            f"warning: {counted(counts.skipped, 'query was', 'queries were')} not searched: see "
            f"{reasons} for the reasons"
        )
    say(counts.sentence())

"""Find every window whose base counts are similar to a query's: all queries, all references.

A window of the query's length is a hit if 1 - D / length >= S, where D is the sum over A, C, G and
T of the differences between the counts of query and window. U counts as T. Ambiguous bases are not
counted, so each one in a window or query adds to D. Only the forward strand is scanned, except with
--align. Positions are 0-based.
"""

import math
import shutil
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np

from bwarp.cli.program import choose_engine, compile_first, program_parser
from bwarp.composition.alignment_text import (
    ALIGNMENT_HEADER,
    ALIGNMENT_SCHEMA,
    alignment_bed_lines,
    alignment_lines,
    alignment_table,
)
from bwarp.composition.alignments import (
    alignment_rules,
    both_strands,
    strand_sequences,
    window_aligner,
)
from bwarp.composition.histogram import group_queries, parse_similarity
from bwarp.composition.hit_text import (
    COUNT_HEADER,
    bed_lines,
    count_table,
    hit_schema,
    hit_table,
    rows_of_block,
    string_array,
    tsv_header,
    tsv_lines,
)
from bwarp.composition.references import join_regions, window_count
from bwarp.composition.scan import (
    Scan,
    count_hits,
    count_queries,
    hits_of_queries,
    scan_best,
    scan_hits,
    scan_queries,
    scan_references,
)
from bwarp.counted import counted
from bwarp.errors import InputError, UsageError
from bwarp.io.atomic_output import atomic_file, check_outputs, table_format
from bwarp.io.fastx import read_sequences
from bwarp.io.names import Names
from bwarp.io.table_writer import TableWriter
from bwarp.options.finding import SCAN
from bwarp.runtime.progress import progress, say

EXAMPLES = """
bwarp scan --reference hairpin.fa.gz --queries mature.fa.gz -o hits.tsv \\
    --similarity 0.95
bwarp scan --reference chr20.fa --queries guides.fa -o hits.bed \\
    --similarity 19/20 --regions
bwarp scan --reference chr20.fa --queries reads.fq.gz -o best.parquet \\
    --similarity 0.9 --best 10
bwarp scan --reference chr20.fa --queries reads.fq.gz -o counts.tsv \\
    --similarity 0.9 --count-only
bwarp scan --reference chr20.fa --queries guides.fa -o alignments.tsv \\
    --similarity 0.8 --align --top 5
"""

BYTES_OF_PARQUET_ROW = 8

ALIGNMENT_OPTIONS = ("min_score", "top", "match", "mismatch", "gap_open", "gap_extend")


def parse_options():
    return program_parser(__doc__, EXAMPLES, SCAN)


def main(options):
    output_format = format_of(options)
    rules = alignment_rules(
        options.align, **{name: getattr(options, name) for name in ALIGNMENT_OPTIONS}
    )
    check_outputs([options.output], [options.reference, options.queries])
    similarity = parse_similarity(options.similarity)
    backend = choose_engine(options.backend)
    compile_first(backend, options, options.reference, options.queries)
    threads = options.threads
    references = scan_references(
        options.reference, read_sequences(options.reference, threads=threads)
    )
    if not references.names:
        raise InputError(f"{options.reference}: the file contains no sequences")
    names, codes, offsets = scan_queries(
        options.queries, read_sequences(options.queries, threads=threads)
    )
    if not names:
        raise InputError(f"{options.queries}: the file contains no sequences")
    lengths = np.diff(offsets)
    counts = count_queries(codes, offsets, backend)
    groups = group_queries(*(both_strands(counts, lengths) if rules else (counts, lengths)))
    scan = Scan(references, similarity, options.algorithm, backend, options.threads)
    describe(references, lengths, groups)
    total = None  # with --best or --regions
    if options.best:
        blocks = scan_best(scan, groups, options.best)
    else:
        n_counted = 2 * len(names) if rules else len(names)
        with progress("query", total=n_counted) as report:
            hits = count_hits(scan, groups, report)
        of_queries = hits_of_queries(groups, hits, n_counted)
        total = int(of_queries.sum())
        say(f"{counted(total, 'hit')} at similarity {options.similarity}")
        if options.count_only:
            write_counts(options.output, output_format, names, lengths, of_queries)
            return
        refuse_too_many(options, output_format, total, names, references)
        blocks = scan_hits(scan, groups, hits)
    if rules:
        strands = strand_sequences(codes, offsets)
        aligner = window_aligner(scan, strands, rules)
        write_alignments(options, output_format, names, aligner, blocks)
        return
    if options.regions:
        blocks = (join_regions(block, references.starts) for block in blocks)
        total = None
    n_rows = write_rows(options, output_format, names, references, blocks, total)
    say(f"wrote {counted(n_rows, 'region' if options.regions else 'hit')} to {options.output}")


def format_of(options) -> str:
    if options.count_only and (options.best or options.regions):
        raise UsageError("--count-only cannot be combined with --best or --regions")
    if options.best and options.regions:
        raise UsageError("--best cannot be combined with --regions")
    if options.align and (options.regions or options.count_only):
        raise UsageError("--align cannot be combined with --regions or --count-only")
    output_format = table_format(options.output)
    if output_format == "bed" and options.count_only:
        raise UsageError("--count-only requires .tsv, .tsv.gz or .parquet output")
    return output_format


def describe(references, lengths, groups):
    comparisons = sum(len(g.queries) * window_count(references, g.length) for g in groups)
    say(
        f"{counted(len(lengths), 'query')} of {counted(len(groups), 'length')} and "
        f"{counted(sum(len(g.counts) for g in groups), 'composition')}, "
        f"{counted(len(references.names), 'reference')} of "
        f"{counted(references.codes.size, 'base')}: {counted(comparisons, 'comparison')}"
    )
    if not lengths.all():
        baseless = counted(int((lengths == 0).sum()), "query has", "queries have")
        say(f"{baseless} no bases and therefore no hits")


def refuse_too_many(options, output_format, total, names, references):
    """Report the size of a long list, and stop if it exceeds the disk or --max-hits."""
    if output_format == "parquet":
        row = BYTES_OF_PARQUET_ROW
    else:
        row = 24 + np.mean([len(n) for n in names]) + np.mean([len(n) for n in references.names])
    size = total * row / (5 if options.output.endswith(".gz") else 1)
    instead = "raise --similarity, or use --best or --count-only"
    if total > options.max_hits:
        raise UsageError(
            f"--max-hits {options.max_hits:,} is less than the {counted(total, 'hit')} found "
            f"(about {shown(size)}): {instead}, or raise --max-hits"
        )
    if options.output == "-" or options.regions or options.align:
        return
    folder = Path(options.output).absolute().parent
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    if size > free:
        raise UsageError(
            f"{counted(total, 'hit')} would take about {shown(size)}, but {folder} has only "
            f"{shown(free)} free: {instead}"
        )


def shown(size: float) -> str:
    """Format a number of bytes as 1.2 GB."""
    units = ("bytes", "kB", "MB", "GB", "TB", "PB")
    power = min(int(math.log10(max(size, 1))) // 3, len(units) - 1)
    return f"{size / 1000**power:.{min(power, 1)}f} {units[power]}"


def write_counts(path, output_format, names, lengths, counts):
    with atomic_file(path) as file:
        if output_format == "parquet":
            import pyarrow.parquet

            pyarrow.parquet.write_table(count_table(names, lengths, counts), file)
            return
        rows = zip(names, lengths.tolist(), counts.tolist(), strict=True)
        file.write(COUNT_HEADER)
        file.write("".join(f"{name}\t{length}\t{n}\n" for name, length, n in rows).encode())


def write_rows(options, output_format, names, references, blocks, total) -> int:
    n_rows = 0
    schema = hit_schema(options.regions)
    with (
        atomic_file(options.output, threads=options.threads) as file,
        row_writer(file, output_format, tsv_header(options.regions), schema, options) as writer,
        progress("region" if options.regions else "hit", total=total) as report,
    ):
        of_names = string_array if output_format == "parquet" else Names.of
        queries, targets = of_names(names), of_names(references.names)
        lines = bed_lines if output_format == "bed" else tsv_lines
        for block in blocks:
            for rows in rows_of_block(block, references.starts):
                if output_format == "parquet":
                    # A row group per block, whatever the number of threads.
                    writer.add(lambda *_, rows=rows: hit_table(rows, queries, targets), 1)
                else:
                    writer.add(lines(rows, queries, targets), rows.queries.size)
                n_rows += rows.queries.size
                report(n_rows)
    return n_rows


def write_alignments(options, output_format, names, aligner, blocks):
    path = options.output
    n_windows = n_rows = 0

    def counted_blocks():
        nonlocal n_windows
        for block in blocks:
            n_windows += int(np.diff(block.edges)[block.group_of_query].sum())
            yield block
            report(n_windows)

    with (
        atomic_file(path, threads=options.threads) as file,
        row_writer(file, output_format, ALIGNMENT_HEADER, ALIGNMENT_SCHEMA, options) as writer,
        progress("window") as report,
    ):
        made = {"bed": alignment_bed_lines, "parquet": alignment_table, "tsv": alignment_lines}
        queries, targets = names, aligner.references.names
        if output_format == "parquet":
            queries, targets = string_array(queries), string_array(targets)
        for rows in aligner.align(counted_blocks()):
            # The alignments of a block are formatted by one thread.
            writer.add(lambda *_, rows=rows: made[output_format](rows, queries, targets), 1)
            n_rows += rows.queries.size
    say(f"aligned {counted(n_windows, 'window')} of both strands")
    say(f"wrote {counted(n_rows, 'alignment')} to {path}")


@contextmanager
def row_writer(file, output_format, header, schema, options):
    """Return a writer of lines, or of tables for Parquet, to an open file."""
    with ExitStack() as stack:
        write = file.write
        if output_format == "tsv":
            file.write(header)
        elif output_format == "parquet":
            import pyarrow.parquet as pq

            write = stack.enter_context(pq.ParquetWriter(file, schema)).write_table
        yield stack.enter_context(TableWriter(write, options.threads))

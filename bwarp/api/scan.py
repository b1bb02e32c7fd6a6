"""bwarp.scan: find windows with base counts similar to a query's, as bwarp scan does."""

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pandas as pd

from bwarp.api.engine import prepared, threads_or_all
from bwarp.api.sequences import Sequences, refuse_nothing, sequence_batches
from bwarp.api.tables import frame, named
from bwarp.composition.alignment_text import ALIGNMENT_HEADER, unnamed_columns
from bwarp.composition.alignments import (
    WindowAlignments,
    alignment_rules,
    both_strands,
    strand_sequences,
    window_aligner,
)
from bwarp.composition.histogram import QueryGroups, group_queries, parse_similarity
from bwarp.composition.hit_text import COUNT_HEADER, rows_of_block, tsv_header
from bwarp.composition.references import HitBlock, join_regions
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
from bwarp.errors import UsageError
from bwarp.options.finding import SCAN

COUNTS = COUNT_HEADER.decode().split()
ALIGNMENTS = ALIGNMENT_HEADER.decode().split()


def scan(
    queries: Sequences,
    reference: Sequences,
    *,
    similarity: float | str | Fraction,
    regions: bool = False,
    best: int | None = None,
    count_only: bool = False,
    max_hits: int = 10**9,
    algorithm: str = "auto",
    align: bool = False,
    min_score: int | None = None,
    top: int | None = None,
    match: int | None = None,
    mismatch: int | None = None,
    gap_open: int | None = None,
    gap_extend: int | None = None,
    backend: str = "auto",
    threads: int | None = None,
) -> pd.DataFrame:
    """Find every window of references whose base counts are similar to a query's.

    Parameters
    ----------
    queries, reference : path, or sequences in memory
    similarity : number or str
        Minimum similarity of a hit, taken exactly: 0.95 or "19/20".
    regions : bool, default: False
        Join hits of a query at consecutive positions into regions.
    best : int, optional
        Return only this number of most similar windows per query.
    count_only : bool, default: False
        Return only the number of hits per query: query, length, hits.
    max_hits : int, default: 10**9
        Raise an error instead of listing more hits than this; they are counted first.
    algorithm : {"auto", "classes", "tiles", "gather"}
        How to compare compositions; the results are the same.
    align : bool, default: False
        Scan both strands, and return alignments instead of windows: each whole query with each of
        its windows, extended by the maximum distance of a hit; one alignment per locus, best first.
    min_score : int, optional
        With `align`, minimum score of an alignment, by default 1.
    top : int, optional
        With `align`, maximum number of alignments per query, by default all.
    match, mismatch, gap_open, gap_extend : int, optional
        With `align`, scores; by default those of bwarp scan.
    backend : {"auto", "cpu", "cuda"}
        Engine to use.
    threads : int, optional
        Number of threads; by default all that this process may use.

    Returns
    -------
    hits : DataFrame
        Columns query, reference, position, distance and similarity; regions have start, end and
        windows instead of position. Alignments have query, reference, start, end, strand, score,
        edits, identity and cigar. Rows are in the order of the program's table.
    """
    if count_only and (best or regions):
        raise UsageError("--count-only cannot be combined with --best or --regions")
    if best and regions:
        raise UsageError("--best cannot be combined with --regions")
    if align and (regions or count_only):
        raise UsageError("--align cannot be combined with --regions or --count-only")
    given = {"min_score": min_score, "top": top, "match": match, "mismatch": mismatch}
    given |= {"gap_open": gap_open, "gap_extend": gap_extend}
    rules = alignment_rules(align, **{name: SCAN[name].check(n) for name, n in given.items()})
    least = parse_similarity(str(similarity))
    best = SCAN["best"].check(best)
    max_hits = SCAN["max_hits"].check(max_hits)
    SCAN["algorithm"].check(algorithm)
    threads = threads_or_all(threads)
    names, codes, offsets = scan_queries(*sequence_batches(queries, "queries"))
    lengths = np.diff(offsets)
    where, batches = sequence_batches(reference, "reference")
    references = scan_references(where, batches)
    refuse_nothing(references.names, where)

    def find(engine: str) -> pd.DataFrame:
        counts = count_queries(codes, offsets, engine)
        groups = group_queries(*(both_strands(counts, lengths) if rules else (counts, lengths)))
        task = Scan(references, least, algorithm, engine, threads)
        if best is not None:
            blocks = scan_best(task, groups, best)
        else:
            hits = count_hits(task, groups)
            if count_only:
                return frame(COUNTS, [(names, lengths, hits_of_queries(groups, hits, len(names)))])
            _refuse_too_many(groups, hits, max_hits)
            blocks = scan_hits(task, groups, hits)
        if rules:
            aligner = window_aligner(task, strand_sequences(codes, offsets), rules)
            found = aligner.align(blocks)
            return frame(ALIGNMENTS, (_columns(rows, names, references.names) for rows in found))
        if regions:
            blocks = (join_regions(block, references.starts) for block in blocks)
        columns = tsv_header(regions).decode().split()
        return frame(columns, _parts(blocks, names, references.names, references.starts))

    return prepared(backend, find)[1]


def _refuse_too_many(groups: list[QueryGroups], hits: list[np.ndarray], most: int) -> None:
    total = sum(int(h[g.group_of_query].sum()) for g, h in zip(groups, hits, strict=True))
    if total > most:
        raise UsageError(
            f"{counted(total, 'hit exceeds', 'hits exceed')} max_hits {most:,}: raise similarity, "
            "use best or count_only, or raise max_hits"
        )


def _columns(rows: WindowAlignments, queries, references) -> tuple:
    names = named(queries, rows.queries), named(references, rows.references)
    return *names, *unnamed_columns(rows)


def _parts(blocks: Iterator[HitBlock], queries, references, starts) -> Iterator[tuple]:
    for block in blocks:
        for rows in rows_of_block(block, starts):
            where = (rows.positions, rows.ends, rows.windows) if rows.joined else (rows.positions,)
            yield (
                named(queries, rows.queries),
                named(references, rows.references),
                *where,
                rows.distances,
                1 - rows.distances / np.float64(rows.length),
            )

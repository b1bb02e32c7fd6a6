"""bwarp.find_seeds: find every hit of k-mers or whole queries, as bwarp seeds does."""

import os
import warnings
from collections.abc import Iterator

import pandas as pd

from bwarp.api.engine import prepared, threads_or_all
from bwarp.api.index import Index, arrays_or_chunks_of
from bwarp.api.sequences import Sequences, sequence_batches
from bwarp.api.tables import frame, named
from bwarp.counted import counted
from bwarp.io.names import Names
from bwarp.io.numbered_rows import NumberedRows
from bwarp.options.finding import SEEDS
from bwarp.reference import Reference
from bwarp.seeding.find import count_sites, find_sites, prepare
from bwarp.seeding.hits import SeedOptions, check_options
from bwarp.seeding.kmers import REASONS, KmerBatch
from bwarp.seeding.queries import CODE_OF_LETTER, kmers_of, kmers_to_cut
from bwarp.seeding.seed_tables import HITS_HEADER, NUMBER_HEADER, hit_columns

HITS = HITS_HEADER.decode().split()
COUNTS = NUMBER_HEADER.decode().split()

#: Maximum number of queries named in a warning.
_NAMED = 3


def find_seeds(
    index: Index | str | os.PathLike,
    queries: Sequences,
    *,
    k: int | None = None,
    step: int | None = None,
    mismatches: int = 0,
    max_hits: int = 128,
    locate: str = "auto",
    algorithm: str = "schemes",
    count_only: bool = False,
    backend: str = "auto",
    threads: int | None = None,
) -> pd.DataFrame:
    """Find every hit of k-mers, and of their reverse complements, in a reference.

    Parameters
    ----------
    index : Index, or the folder of one; it may be in chunks
    queries : path, or sequences in memory
        Searched whole, 8 to 64 bases each, IUPAC letters included, or cut into k-mers with `k`.
    k : int, optional
        Length of the k-mers, 8 to 64; by default queries are searched whole.
    step : int, optional
        With `k`, bases between the starts of two k-mers, by default 1.
    mismatches : int, default: 0
        Maximum number of substitutions in a hit, 0 to 4.
    max_hits : int, default: 128
        K-mers with more hits get no rows; 0 is no limit.
    locate : {"auto", "gpu", "hybrid", "cpu"}
        How SA rows are turned into positions; the results are the same.
    algorithm : {"schemes", "backtracking"}
        How to search with mismatches; the hits are the same.
    count_only : bool, default: False
        Return only the number of hits per k-mer, without a limit: query, kmer_start, hits.
    backend : {"auto", "cpu", "cuda"}
        Engine to use.
    threads : int, optional
        Number of threads; by default all that this process may use.

    Returns
    -------
    hits : DataFrame
        Columns query, kmer_start, strand, contig, position and mismatches, in the order of the
        program's table.

    Warns
    -----
    UserWarning
        If k-mers have more than `max_hits` hits, and so no rows, or whole queries cannot be
        searched.
    """
    k, step = kmers_to_cut(SEEDS["k"].check(k), SEEDS["step"].check(step))
    options = SeedOptions(
        SEEDS["mismatches"].check(mismatches),
        SEEDS["max_hits"].check(max_hits),
        algorithm,
        locate,
    )
    threads = threads_or_all(threads)
    given = sequence_batches(queries, "queries", CODE_OF_LETTER)
    batches = kmers_of(*given, k, step)
    stored = arrays_or_chunks_of(index)

    def make_ready(engine: str):
        check_options(options, engine)
        return prepare(stored, options, engine)

    engine, ready = prepared(backend, make_ready)
    reference = stored.reference
    unreported = _Unreported()

    def counts() -> Iterator[tuple]:
        for kmers, names in batches:
            unreported.add_kmers(kmers, names)
            hits = count_sites(ready, kmers, options, engine, threads)
            yield [names.name(number) for number in kmers.queries], kmers.starts, hits

    def hits() -> Iterator[tuple]:
        for kmers, names in batches:
            unreported.add_kmers(kmers, names)
            for found in find_sites(ready, kmers, options, engine, threads):
                unreported.over += found.over_kmers.size
                for part in found.hits:
                    yield _columns(hit_columns(part, kmers, names, reference), reference)

    found = frame(COUNTS, counts()) if count_only else frame(HITS, hits())
    unreported.warn(options.max_hits, whole=k is None)
    return found


def _columns(rows: NumberedRows, reference: Reference) -> tuple:
    return (
        named(rows.names, rows.queries),
        rows.starts,
        named("+-", rows.strands),
        named(reference.names, rows.contigs),
        rows.positions,
        rows.values,
    )


class _Unreported:
    """K-mers over the limit and queries not searched, collected for a warning."""

    def __init__(self):
        self.over = 0
        self.skipped = 0
        self.first_skipped: list[str] = []

    def add_kmers(self, kmers: KmerBatch, names: Names) -> None:
        self.skipped += len(kmers.skipped)
        for number, _, reason in kmers.skipped[: _NAMED - len(self.first_skipped)]:
            self.first_skipped.append(f"{names.name(number)} ({REASONS[reason]})")

    def warn(self, max_hits: int, whole: bool) -> None:
        """Warn the caller's caller; name skipped queries if they are searched whole."""
        if self.over:
            warnings.warn(
                f"{counted(self.over, 'k-mer has', 'k-mers have')} more than "
                f"{counted(max_hits, 'hit')} and no rows: use max_hits=0 to list all hits, or "
                "count_only=True to count them",
                stacklevel=3,
            )
        if self.skipped and whole:
            rest = self.skipped - len(self.first_skipped)
            more = f", and {rest:,} more" if rest else ""
            warnings.warn(
                f"queries not searched: {', '.join(self.first_skipped)}{more}",
                stacklevel=3,
            )

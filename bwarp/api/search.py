"""bwarp.search: find the best hits of queries in a database, as bwarp search does."""

import os

import numpy as np
import pandas as pd

from bwarp.alignment.scoring import Scoring
from bwarp.api.engine import prepared, threads_or_all
from bwarp.api.sequences import Sequences, is_file, refuse_nothing, sequence_batches
from bwarp.api.tables import frame
from bwarp.database_search.best_hits import (
    MATRIX,
    end_hits,
    find_best_hits,
    hit_pairs,
    scores_function,
    search_scoring,
    significance,
)
from bwarp.database_search.database import (
    Database,
    database_of,
    gather_sequences,
    load_database,
    read_database,
)
from bwarp.database_search.evalue import karlin_altschul
from bwarp.database_search.hit_text import COLUMNS, SIGNIFICANCE
from bwarp.errors import UsageError
from bwarp.options.aligning import SEARCH


def search(
    queries: Sequences,
    database: Sequences,
    *,
    matrix: str | None = None,
    match: int | None = None,
    mismatch: int | None = None,
    gap_open: int = 11,
    gap_extend: int = 1,
    top: int = 10,
    min_score: int = 1,
    evalue: bool = False,
    algorithm: str = "profile",
    backend: str = "auto",
    threads: int | None = None,
) -> pd.DataFrame:
    """Search a database of proteins or nucleotides for the best hits by exact local scores.

    Parameters
    ----------
    queries : path, or sequences in memory
    database : path, or sequences in memory
        A FASTA file, a folder that bwarp search-index wrote, or sequences.
    matrix : str, optional
        Substitution matrix.
    match, mismatch : int, optional
        Scores for nucleotides instead of a matrix.
    gap_open : int, default: 11
        Cost to open a gap, in addition to that of its bases.
    gap_extend : int, default: 1
        Cost of each base of a gap.
    top : int, default: 10
        Maximum number of hits per query.
    min_score : int, default: 1
        Minimum score of a hit.
    evalue : bool, default: False
        Add the columns evalue and bits.
    algorithm : {"profile", "prefix-scan"}
        Method to compute scores; the results are the same.
    backend : {"auto", "cpu", "cuda"}
        Engine to use.
    threads : int, optional
        Number of threads; by default all that this process may use.

    Returns
    -------
    hits : DataFrame
        Columns query, target, score, query_end and target_end, query by query, best first, as
        in the program's table.
    """
    scoring = search_scoring(
        SEARCH["matrix"].check(matrix),
        SEARCH["match"].check(match),
        SEARCH["mismatch"].check(mismatch),
        SEARCH["gap_open"].check(gap_open),
        SEARCH["gap_extend"].check(gap_extend),
    )
    SEARCH["algorithm"].check(algorithm)
    top = SEARCH["top"].check(top)
    min_score = SEARCH["min_score"].check(min_score)
    threads = threads_or_all(threads)
    if evalue:
        if match is not None:
            raise UsageError(
                "E-values require a protein matrix: omit --evalue and --alignments with --match"
            )
        parameters = karlin_altschul(matrix or MATRIX, gap_open, gap_extend)
    # Read queries first, so that errors in them are found before a large database is read.
    batches = sequence_batches(queries, "queries", scoring.code_of_byte, threads=threads)
    table = gather_sequences(*batches)
    sequences = table.listed()
    targets = _database(database, scoring, threads)

    def find(engine: str):
        search_scores = scores_function(algorithm, engine)
        hits = find_best_hits(sequences, targets, scoring, top, min_score, search_scores, threads)
        pairs = hit_pairs(hits, sequences, targets)
        return hits, end_hits(pairs, scoring, engine, threads)

    _, (hits, ends) = prepared(backend, find)
    columns = [
        np.array(table.names.listed(hits.queries), object),
        np.array(targets.names.listed(hits.targets), object),
        *(hits.scores, ends.query_ends, ends.reference_ends),
    ]
    if evalue:
        columns += significance(parameters, hits, sequences, targets)
    return frame([*COLUMNS, *(SIGNIFICANCE if evalue else ())], [columns])


def _database(given: Sequences, scoring: Scoring, threads: int) -> Database:
    if isinstance(given, Database):
        return given
    if isinstance(given, str | os.PathLike) and os.path.isdir(given):
        return load_database(given, scoring.letters, threads)
    if is_file(given, "database"):
        return read_database(given, scoring.code_of_byte, threads)
    table = gather_sequences(*sequence_batches(given, "database", scoring.code_of_byte))
    refuse_nothing(table.names.bounds, "database")
    return database_of(table, threads)

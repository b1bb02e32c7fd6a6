"""bwarp.align_pairs: query i with reference i, as align_pairs.py aligns them."""

from collections.abc import Sequence

import pandas as pd

from bwarp.alignment.pair_aligner import pair_aligner, side_by_side
from bwarp.alignment.pair_text import TSV_HEADER, tsv_columns
from bwarp.api.engine import prepared, threads_or_all
from bwarp.api.sequences import Sequences, sequence_batches
from bwarp.api.tables import frame
from bwarp.options.aligning import PAIRS

ALIGNMENTS = TSV_HEADER.split()


def align_pairs(
    queries: Sequences,
    references: Sequences,
    *,
    mode: str = "semiglobal",
    free_ends: str | Sequence[str] | None = None,
    match: int | None = None,
    mismatch: int | None = None,
    matrix: str | None = None,
    gap_open: int | None = None,
    gap_extend: int | None = None,
    overhang: str | None = None,
    parameters: str | None = None,
    algorithm: str = "band",
    backend: str = "auto",
    threads: int | None = None,
) -> pd.DataFrame:
    """Align query i with reference i.

    Parameters
    ----------
    queries, references : path, or sequences in memory
        As many of the one as of the other.
    mode, free_ends, match, mismatch, matrix, gap_open, gap_extend, overhang, parameters
        As of align_pairs.py; None is the default there.
    algorithm, backend
        As of align_pairs.py.
    threads : int, optional
        All that this process may use, if not given.

    Returns
    -------
    alignments : DataFrame
        pair, reference, query, score, position, cigar: the rows of OUT.tsv of the program, one for
        every pair; position is from 0, in the reference.
    """
    costs = {"match": match, "mismatch": mismatch, "gap_open": gap_open, "gap_extend": gap_extend}
    costs = {name: PAIRS[name].check(value) for name, value in costs.items()}
    threads = threads_or_all(threads)
    _, aligner = prepared(
        backend,
        lambda engine: pair_aligner(
            engine,
            threads,
            mode=mode,
            free_ends=free_ends,
            matrix=matrix,
            overhang=overhang,
            parameters=parameters,
            algorithm=algorithm,
            **costs,
        ),
    )
    code_of_byte = aligner.code_of_byte
    pairs = side_by_side(
        sequence_batches(queries, "queries", code_of_byte),
        sequence_batches(references, "references", code_of_byte),
    )
    return frame(ALIGNMENTS, (tsv_columns(part, aligner.align(part.pairs)) for part in pairs))

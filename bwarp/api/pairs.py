"""bwarp.align_pairs: align query i to reference i, as bwarp pairs does."""

from collections.abc import Sequence

import pandas as pd

from bwarp.alignment.pair_aligner import pair_aligner
from bwarp.alignment.pair_files import Side, named_sequences, side_by_side
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
    """Align query i to reference i.

    Parameters
    ----------
    queries, references : path, or sequences in memory
        Both must have the same number of sequences.
    mode : {"semiglobal", "local", "global", "fitting", "gatk"}
        Kind of alignment.
    free_ends : str or sequence of str, optional
        With "semiglobal", the ends that are free; by default all.
    match, mismatch, gap_open, gap_extend : int, optional
        Scores; by default those of bwarp pairs.
    matrix : str, optional
        Substitution matrix instead of `match` and `mismatch`.
    overhang : str, optional
        With "gatk", how to treat query bases beyond the ends of the reference.
    parameters : str, optional
        With "gatk", the parameter set to use.
    algorithm : str, default: "band"
        Data stored for CIGARs: "band" or, with "gatk" on a GPU, "run-lengths".
    backend : {"auto", "cpu", "cuda"}
        Engine to use. With "auto" and a GPU, the CPU aligns small batches, which is faster.
    threads : int, optional
        Number of threads; by default all that this process may use.

    Returns
    -------
    alignments : DataFrame
        Columns pair, reference, query, score, position and cigar, as in OUT.tsv of
        bwarp pairs, with one row per pair; position is the 0-based start in the reference.
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
            matrix=PAIRS["matrix"].check(matrix),
            overhang=overhang,
            parameters=parameters,
            algorithm=algorithm,
            small_on_cpu=backend == "auto",
            **costs,
        ),
    )

    def side(given: Sequences, what: str) -> Side:
        where, batches = sequence_batches(given, what, aligner.code_of_byte)
        return where, (named_sequences(where, batch) for batch in batches)

    pairs = side_by_side(side(queries, "queries"), side(references, "references"))
    return frame(ALIGNMENTS, (tsv_columns(part, aligner.align(part.pairs)) for part in pairs))

"""Which scores, ends and engine align pairs, from the options that a user gives."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bwarp.alignment.gatk.gatk_rules import (
    GATK_PARAMETERS,
    LETTER_OF_BYTE,
    GatkParameters,
)
from bwarp.alignment.pairs import PairBatch
from bwarp.alignment.scoring import MODES, Mode, Scoring, matrix_scoring, nucleotide_scoring
from bwarp.errors import UsageError
from bwarp.options.aligning import FREE_ENDS, PAIRS

__all__ = ["PairAligner", "pair_aligner"]


@dataclass(frozen=True)
class PairAligner:
    """What aligns pairs.

    Attributes
    ----------
    align : function of PairBatch
        Gives `Alignments`, or `GatkAlignments` in GATK's mode.
    code_of_byte : ndarray, shape=(256,), dtype=uint8
        What the sequences are read with.
    scoring : Scoring or None
        None in GATK's mode.
    """

    align: Callable[[PairBatch], object]
    code_of_byte: np.ndarray
    scoring: Scoring | None


def pair_aligner(
    backend: str,
    threads: int = 1,
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
) -> PairAligner:
    """The aligner for the options of align_pairs.py; None stands for a default.

    Parameters
    ----------
    backend : str
        ``"cpu"`` or ``"cuda"``.
    free_ends : str or sequence of str, optional
        Some of `FREE_ENDS`; a str has commas between them.
    algorithm : str
        What is kept for the traceback: directions in a band, or the run lengths of Ren et al.; the
        alignments are the same.

    Raises
    ------
    UsageError
        For options that do not go together, or a value that cannot be used.
    """
    PAIRS["mode"].check(mode)
    PAIRS["algorithm"].check(algorithm)
    if mode == "gatk":
        if matrix or free_ends:
            raise UsageError("--matrix and --free-ends are not for --mode gatk: leave them out")
        rules = _gatk_parameters(parameters, match, mismatch, gap_open, gap_extend)
        align = _gatk_engine(backend, algorithm, threads, rules, overhang or "softclip")
        return PairAligner(align, LETTER_OF_BYTE, None)
    if overhang or parameters:
        raise UsageError("--overhang and --parameters are for --mode gatk: leave them out")
    if algorithm == "run-lengths":
        raise UsageError("--algorithm run-lengths is for --mode gatk: leave it out")
    scoring = _scoring(matrix, match, mismatch, gap_open, gap_extend)
    ends = _mode(mode, free_ends)
    if backend == "cuda":
        from bwarp.alignment.pairwise.pairs_cuda import pair_alignments
    else:
        from bwarp.alignment.pairwise.pairs_cpu import pair_alignments
    return PairAligner(
        lambda pairs: pair_alignments(pairs, scoring, ends, threads), scoring.code_of_byte, scoring
    )


def _scoring(matrix, match, mismatch, gap_open, gap_extend) -> Scoring:
    if matrix:
        if match is not None or mismatch is not None:
            raise UsageError("--matrix takes the place of --match and --mismatch: give one of both")
        return matrix_scoring(matrix, _given(gap_open, 11), _given(gap_extend, 1))
    return nucleotide_scoring(
        _given(match, 1), _given(mismatch, -4), _given(gap_open, 6), _given(gap_extend, 1)
    )


def _given(value, default):
    return default if value is None else value


def _mode(name: str, free_ends: str | Sequence[str] | None) -> Mode:
    if free_ends is None:
        return MODES[name]
    if name != "semiglobal":
        raise UsageError(f"--free-ends is for --mode semiglobal, not {name}")
    ends = free_ends.split(",") if isinstance(free_ends, str) else free_ends
    for end in ends:
        if end not in FREE_ENDS:
            raise UsageError(f"free end {end!r} is not one of {', '.join(FREE_ENDS)}")
    return Mode(**{end.replace("-", "_"): True for end in ends})


def _gatk_parameters(name, match, mismatch, gap_open, gap_extend) -> GatkParameters:
    name = name or "new-sw-parameters"
    if name not in GATK_PARAMETERS:
        raise UsageError(f"parameters {name!r} are not one of {', '.join(GATK_PARAMETERS)}")
    changes = {
        "match": match,
        "mismatch": mismatch,
        "gap_open": None if gap_open is None else -gap_open,
        "gap_extend": None if gap_extend is None else -gap_extend,
    }
    return replace(GATK_PARAMETERS[name], **{key: n for key, n in changes.items() if n is not None})


def _gatk_engine(
    backend: str, algorithm: str, threads: int, rules: GatkParameters, overhang: str
) -> Callable:
    if algorithm == "run-lengths":
        if backend == "cpu":
            raise UsageError(
                "algorithm run-lengths needs a GPU, and the backend is cpu: use --algorithm band"
            )
        from bwarp.alignment.gatk.gatk_run_lengths_cuda import gatk_alignments
    elif backend == "cuda":
        from bwarp.alignment.gatk.gatk_cuda import gatk_alignments
    else:
        from bwarp.alignment.gatk.gatk_cpu import gatk_alignments
    return lambda pairs: gatk_alignments(pairs, rules, overhang, threads)

"""Choose scores, ends and engine from user options."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from bwarp.alignment.gatk_cpu import GATK_PARAMETERS, LETTER_OF_BYTE, GatkAlignments, GatkParameters
from bwarp.alignment.pairs import Alignments, PairBatch
from bwarp.alignment.scoring import MODES, Mode, Scoring, matrix_scoring, nucleotide_scoring
from bwarp.errors import UsageError
from bwarp.options.aligning import FREE_ENDS, PAIRS
from bwarp.runtime.timeline import on_timeline

#: With a GPU, a batch with at most this number of cells is aligned on the CPU if the backend is
#: auto. A call takes 0.7 to 1 ms on an H100, however few the pairs, and one core takes about 1 ms
#: for this number of cells (benchmarks/results, alignment_gpu.jsonl).
FEW_CELLS = 1_500_000

#: A vector of the CPU takes as long for one pair as for this number of pairs.
_LANES = 32


def is_small(pairs: PairBatch) -> bool:
    """Return whether a CPU is expected to align a batch faster than a GPU."""
    cells = pairs.queries.lengths.astype(np.float64) * pairs.references.lengths
    return max(cells.sum(), _LANES * cells.max(initial=0)) <= FEW_CELLS


#: Imports an engine, and returns its function, which aligns a batch.
Engine = Callable[[], Callable[[PairBatch], Alignments | GatkAlignments]]


@dataclass(frozen=True)
class PairAligner:
    """Functions that align pairs, and how to read their sequences.

    Attributes
    ----------
    engines : dict of str to Engine
        By backend, ``"cpu"`` or ``"cuda"``. If there are two, the CPU aligns small batches.
    code_of_byte : ndarray, shape=(256,), dtype=uint8
        The code of each byte of the sequences.
    scoring : Scoring or None
        None in GATK mode.
    """

    engines: dict[str, Engine]
    code_of_byte: np.ndarray
    scoring: Scoring | None

    def backend_for(self, pairs: PairBatch) -> str:
        """Return the backend that aligns a batch."""
        if len(self.engines) == 1:
            return next(iter(self.engines))
        return "cpu" if is_small(pairs) else "cuda"

    @on_timeline("load the engine")
    def load(self) -> None:
        """Import the modules of the engine before the first batch needs them."""
        next(iter(self.engines.values()))()

    @on_timeline("align pairs")
    def align(self, pairs: PairBatch) -> Alignments | GatkAlignments:
        """Align a batch."""
        return self.engines[self.backend_for(pairs)]()(pairs)


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
    small_on_cpu: bool = False,
) -> PairAligner:
    """Return the aligner for the options of bwarp pairs; None selects a default.

    Parameters
    ----------
    backend : str
        ``"cpu"`` or ``"cuda"``.
    free_ends : str or sequence of str, optional
        Some of `FREE_ENDS`; a str is comma-separated.
    algorithm : str
        What is stored for the traceback: directions in a band, or the run lengths of Ren et al.;
        the alignments are the same.
    small_on_cpu : bool
        With ``"cuda"``, align small batches on the CPU, which is faster; the alignments are the
        same. Run lengths are always computed on the GPU.

    Raises
    ------
    UsageError
        If options cannot be combined, or a value is invalid.
    """
    PAIRS["mode"].check(mode)
    PAIRS["algorithm"].check(algorithm)
    if mode == "gatk":
        if matrix or free_ends:
            raise UsageError("--mode gatk cannot be combined with --matrix or --free-ends")
        rules = _gatk_parameters(parameters, match, mismatch, gap_open, gap_extend)
        backends = _backends(backend, small_on_cpu and algorithm == "band")
        engines = {
            name: _gatk_engine(name, algorithm, threads, rules, overhang or "softclip")
            for name in backends
        }
        return PairAligner(engines, LETTER_OF_BYTE, None)
    if overhang or parameters:
        raise UsageError("--overhang and --parameters require --mode gatk")
    if algorithm == "run-lengths":
        raise UsageError("--algorithm run-lengths requires --mode gatk")
    scoring = _scoring(matrix, match, mismatch, gap_open, gap_extend)
    ends = _mode(mode, free_ends)
    engines = {
        name: _engine(name, threads, scoring, ends) for name in _backends(backend, small_on_cpu)
    }
    return PairAligner(engines, scoring.code_of_byte, scoring)


def _backends(backend: str, small_on_cpu: bool) -> list[str]:
    return ["cuda", "cpu"] if backend == "cuda" and small_on_cpu else [backend]


def _engine(backend: str, threads: int, scoring: Scoring, ends: Mode) -> Engine:
    def engine() -> Callable:
        if backend == "cuda":
            from bwarp.alignment.pair_ends_cuda import pair_alignments
        else:
            from bwarp.alignment.pair_ends_cpu import pair_alignments
        return partial(pair_alignments, scoring=scoring, mode=ends, threads=threads)

    return engine


def _scoring(matrix, match, mismatch, gap_open, gap_extend) -> Scoring:
    if matrix:
        if match is not None or mismatch is not None:
            raise UsageError("--matrix cannot be combined with --match or --mismatch")
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
        raise UsageError(f"--free-ends requires --mode semiglobal, not {name}")
    ends = free_ends.split(",") if isinstance(free_ends, str) else free_ends
    for end in ends:
        if end not in FREE_ENDS:
            raise UsageError(f"free end {end!r} is not one of {', '.join(FREE_ENDS)}")
    return Mode(**{end.replace("-", "_"): True for end in ends})


def _gatk_parameters(name, match, mismatch, gap_open, gap_extend) -> GatkParameters:
    name = name or "new-sw-parameters"
    if name not in GATK_PARAMETERS:
        raise UsageError(f"parameters {name!r} is not one of {', '.join(GATK_PARAMETERS)}")
    changes = {
        "match": match,
        "mismatch": mismatch,
        "gap_open": None if gap_open is None else -gap_open,
        "gap_extend": None if gap_extend is None else -gap_extend,
    }
    return replace(GATK_PARAMETERS[name], **{key: n for key, n in changes.items() if n is not None})


def _gatk_engine(
    backend: str, algorithm: str, threads: int, rules: GatkParameters, overhang: str
) -> Engine:
    if algorithm == "run-lengths" and backend == "cpu":
        raise UsageError(
            "algorithm run-lengths requires a GPU, but the backend is cpu: use --algorithm band"
        )

    def engine() -> Callable:
        if algorithm == "run-lengths":
            from bwarp.alignment.gatk_run_lengths_cuda import gatk_alignments
        elif backend == "cuda":
            from bwarp.alignment.gatk_cuda import gatk_alignments
        else:
            from bwarp.alignment.gatk_cpu import gatk_alignments
        return partial(gatk_alignments, parameters=rules, overhang=overhang, threads=threads)

    return engine

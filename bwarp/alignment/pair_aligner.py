"""Choose scores, ends and engine from user options, and read pairs of sequences from files."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bwarp.alignment.gatk_cpu import (
    GATK_PARAMETERS,
    LETTER_OF_BYTE,
    GatkAlignments,
    GatkParameters,
)
from bwarp.alignment.pairs import Alignments, PairBatch, Sequences, sequences_of
from bwarp.alignment.scoring import MODES, Mode, Scoring, matrix_scoring, nucleotide_scoring
from bwarp.counted import counted
from bwarp.errors import InputError, UsageError
from bwarp.io.compressed_files import read_blocks
from bwarp.io.fastx import SequenceBatch, read_sequences
from bwarp.io.names import refuse_nameless
from bwarp.options.aligning import FREE_ENDS, PAIRS

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


@dataclass(frozen=True)
class PairAligner:
    """Functions that align pairs, and how to read their sequences.

    Attributes
    ----------
    engines : dict of str to function of PairBatch
        By backend, ``"cpu"`` or ``"cuda"``. A function returns `Alignments`, or `GatkAlignments` in
        GATK mode. If there are two, the CPU aligns small batches.
    code_of_byte : ndarray, shape=(256,), dtype=uint8
        The code of each byte of the sequences.
    scoring : Scoring or None
        None in GATK mode.
    """

    engines: dict[str, Callable[[PairBatch], Alignments | GatkAlignments]]
    code_of_byte: np.ndarray
    scoring: Scoring | None

    def backend_for(self, pairs: PairBatch) -> str:
        """Return the backend that aligns a batch."""
        if len(self.engines) == 1:
            return next(iter(self.engines))
        return "cpu" if is_small(pairs) else "cuda"

    def align(self, pairs: PairBatch) -> Alignments | GatkAlignments:
        """Align a batch."""
        return self.engines[self.backend_for(pairs)](pairs)


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


def _engine(backend: str, threads: int, scoring: Scoring, ends: Mode) -> Callable:
    if backend == "cuda":
        from bwarp.alignment.pair_ends_cuda import pair_alignments
    else:
        from bwarp.alignment.pair_ends_cpu import pair_alignments
    return lambda pairs: pair_alignments(pairs, scoring, ends, threads)


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
) -> Callable:
    if algorithm == "run-lengths":
        if backend == "cpu":
            raise UsageError(
                "algorithm run-lengths requires a GPU, but the backend is cpu: use --algorithm band"
            )
        from bwarp.alignment.gatk_run_lengths_cuda import gatk_alignments
    elif backend == "cuda":
        from bwarp.alignment.gatk_cuda import gatk_alignments
    else:
        from bwarp.alignment.gatk_cpu import gatk_alignments
    return lambda pairs: gatk_alignments(pairs, rules, overhang, threads)


# Pairs from files: two FASTA or FASTQ files read in parallel, or a table of sequences.
#
# Record i of one file is paired with record i of the other. Nothing is copied: a batch of pairs is
# a view of the current batches of both readers.
#
#     queries      batch 0 ............ | batch 1 ......
#     references   batch 0 .... | batch 1 ............ |
#     pairs        ------------ | ----- | ------------ |


#: Pairs of a table that are aligned at once.
_TABLE_PAIRS = 1 << 16


_Side = tuple[str | os.PathLike, Iterator[SequenceBatch]]


#: The maximum matrix cells of a pair; that many take over an hour on a CPU.
MOST_CELLS = 10**12


@dataclass(frozen=True)
class NamedPairs:
    """Consecutive pairs of an input.

    Attributes
    ----------
    pairs : PairBatch
    query_names, reference_names : list of str
    qualities : list of bytes, or None
        Qualities of the queries, if these came from FASTQ.
    first : int
        The number of the first pair in the input, from 0.
    """

    pairs: PairBatch
    query_names: list[str]
    reference_names: list[str]
    qualities: list[bytes] | None
    first: int


def read_paired_files(
    queries: str | os.PathLike, references: str | os.PathLike, code_of_byte: np.ndarray
) -> Iterator[NamedPairs]:
    """Read record i of one file with record i of the other."""
    return side_by_side(
        (queries, read_sequences(queries, code_of_byte)),
        (references, read_sequences(references, code_of_byte)),
    )


def side_by_side(queries: _Side, references: _Side) -> Iterator[NamedPairs]:
    """Do what `read_paired_files` does for sequences already read.

    Parameters
    ----------
    queries, references : (path or str, iterator of SequenceBatch)
        The source of the sequences, for error messages, and the sequences.
    """
    (queries, left), (references, right) = queries, references
    q, r = next(left, None), next(right, None)
    first = at_q = at_r = 0
    while q is not None and r is not None:
        count = min(q.count - at_q, r.count - at_r)
        _refuse_empty(queries, q, at_q, count)
        _refuse_empty(references, r, at_r, count)
        qualities = None
        if q.qualities is not None:
            qualities = [
                q.qualities[q.offsets[i] : q.offsets[i + 1]].tobytes()
                for i in range(at_q, at_q + count)
            ]
        query_names = [q.name(i) for i in range(at_q, at_q + count)]
        reference_names = [r.name(i) for i in range(at_r, at_r + count)]
        refuse_nameless(queries, query_names, q.first_record + at_q)
        refuse_nameless(references, reference_names, r.first_record + at_r)
        yield _named(
            queries,
            PairBatch(_part(q, at_q, count), _part(r, at_r, count)),
            query_names,
            reference_names,
            qualities,
            first,
        )
        first, at_q, at_r = first + count, at_q + count, at_r + count
        if at_q == q.count:
            q, at_q = next(left, None), 0
        if at_r == r.count:
            r, at_r = next(right, None), 0
    if q is not None or r is not None:
        n_queries = first if q is None else _count(q, left)
        n_references = first if r is None else _count(r, right)
        raise InputError(
            f"{queries} has {counted(n_queries, 'record')} but {references} has {n_references:,}: "
            "query i is aligned to reference i, so their numbers must be equal"
        )


def _named(
    where: str | os.PathLike,
    pairs: PairBatch,
    query_names: list[str],
    reference_names: list[str],
    qualities: list[bytes] | None,
    first: int,
) -> NamedPairs:
    """Make pairs, rejecting any that would take hours to align."""
    lengths = pairs.queries.lengths.astype(np.int64), pairs.references.lengths.astype(np.int64)
    for i in np.flatnonzero(lengths[0] * lengths[1] > MOST_CELLS)[:1]:
        raise InputError(
            f"{where}, pair {first + i + 1:,} ({query_names[i]}): the product of the lengths "
            f"{lengths[0][i]:,} and {lengths[1][i]:,} exceeds {MOST_CELLS:,}: use a program for "
            "long sequences, such as minimap2"
        )
    return NamedPairs(pairs, query_names, reference_names, qualities, first)


def _part(batch, begin: int, count: int) -> Sequences:
    offsets = batch.offsets[begin : begin + count + 1]
    return Sequences(batch.codes, offsets[:-1], np.diff(offsets).astype(np.int32))


def _refuse_empty(path, batch, begin: int, count: int) -> None:
    empty = np.flatnonzero(np.diff(batch.offsets[begin : begin + count + 1]) == 0)
    if empty.size:
        record = begin + int(empty[0])
        raise InputError(
            f"{path}, record {batch.first_record + record + 1} ({batch.name(record)}) has no "
            "sequence: remove it and its partner"
        )


def _count(batch, rest) -> int:
    count = batch.first_record + batch.count
    for later in rest:
        count = later.first_record + later.count
    return count


def read_pair_table(path: str | os.PathLike, code_of_byte: np.ndarray) -> Iterator[NamedPairs]:
    """Read a tab-separated table: query, reference; or name, query, name, reference.

    Without names, both sequences of line i (from 0) are named i. Lines that begin with # are
    skipped.
    """
    rows: list[tuple[str, np.ndarray, str, np.ndarray]] = []
    first = 0
    for number, line in _lines(path):
        fields = line.split(b"\t")
        if len(fields) == 2:
            name = str(first + len(rows))
            fields = [name.encode(), fields[0], name.encode(), fields[1]]
        if len(fields) != 4:
            raise InputError(
                f"{path}, line {number}: found {counted(len(fields), 'column')}: write query and "
                "reference, or query name, query, reference name and reference, separated by tabs"
            )
        rows.append(
            (
                fields[0].decode("utf-8", "replace"),
                _encode(path, number, "query", fields[1], code_of_byte),
                fields[2].decode("utf-8", "replace"),
                _encode(path, number, "reference", fields[3], code_of_byte),
            )
        )
        if len(rows) == _TABLE_PAIRS:
            yield _named_rows(path, rows, first)
            first += len(rows)
            rows = []
    if rows:
        yield _named_rows(path, rows, first)


def _lines(path) -> Iterator[tuple[int, bytes]]:
    number, carried = 0, b""
    for block in read_blocks(path):
        *whole, carried = (carried + block).split(b"\n")
        for line in whole:
            number += 1
            if line.strip() and not line.startswith(b"#"):
                yield number, line.rstrip(b"\r")
    if carried.strip() and not carried.startswith(b"#"):
        yield number + 1, carried.rstrip(b"\r")


def _encode(path, number, side, letters, code_of_byte) -> np.ndarray:
    codes = code_of_byte[np.frombuffer(letters, np.uint8)]
    if codes.size == 0:
        raise InputError(f"{path}, line {number}: the {side} is empty: remove the line")
    if codes.max() == 255:
        letter = letters[int(np.argmax(codes == 255))]
        raise InputError(
            f"{path}, line {number}: {chr(letter)!r} in the {side} is not in the alphabet of the "
            "scores"
        )
    return codes


def _named_rows(path, rows, first: int) -> NamedPairs:
    query_names, queries, reference_names, references = zip(*rows, strict=True)
    return _named(
        path,
        PairBatch(sequences_of(queries), sequences_of(references)),
        list(query_names),
        list(reference_names),
        None,
        first,
    )

"""The score of a residue against a residue, in vectors: one lane a pair.

Three ways to the same number, each a small tuple that the kernels take as `scheme`; Numba compiles
a kernel for the kind of tuple it is given. Codes come in vectors of bytes, one lane a pair, laid
out by `interleave` and translated by the tables that `pair_scheme` gives with the tuple.

    MatchMismatch   two scores; equal codes match. Ambiguous and padding codes are different
                    numbers on the two sides, so that they equal nothing.
    SmallMatrix     at most 7 codes: one 64-byte table, query code * 8 + reference code
    LargeMatrix     at most 27 codes: seven tables of 128 bytes, each for four query codes
"""

from typing import NamedTuple

import numba
import numpy as np

from bwarp.alignment.scoring import Scoring
from bwarp.runtime.simd import add, equal, extend, fill_like, load_like, lookup, select
from bwarp.runtime.simd.compiler import overload, types

__all__ = [
    "LargeMatrix",
    "MatchMismatch",
    "SmallMatrix",
    "Tables",
    "pair_scheme",
    "substitution",
]

_SMALL = 7
_PADDING = 27
_LOWEST = -128


class MatchMismatch(NamedTuple):
    """Two scores, of the kernel's element type."""

    match: int
    mismatch: int


class SmallMatrix(NamedTuple):
    """int8[64]: entry query code * 8 + reference code."""

    small: np.ndarray


class LargeMatrix(NamedTuple):
    """int8[896]: entry query code * 32 + reference code."""

    large: np.ndarray


class Tables(NamedTuple):
    """What a code becomes in the interleaved arrays, and what fills up shorter sequences.

    `query` is uint8[planes, 256]: LargeMatrix takes a query code in two parts.
    """

    query: np.ndarray
    query_padding: np.ndarray
    reference: np.ndarray
    reference_padding: int


def pair_scheme(scoring: Scoring, dtype) -> tuple[NamedTuple, Tables]:
    """The tuple for pairs, with scores of `dtype`, and the tables for their codes."""
    codes = np.arange(256).astype(np.uint8)
    query, reference = codes.copy(), codes.copy()
    if scoring.match_mismatch is not None:
        if scoring.ambiguous >= 0:
            query[scoring.ambiguous], reference[scoring.ambiguous] = 255, 254
        match, mismatch = (dtype(score) for score in scoring.match_mismatch)
        tables = Tables(query[None], np.array([253], np.uint8), reference, np.uint8(252))
        return MatchMismatch(match, mismatch), tables
    size = len(scoring.letters)
    if size <= _SMALL:
        table = np.full((8, 8), _LOWEST, np.int8)
        table[:size, :size] = scoring.matrix
        tables = Tables(
            query[None] * np.uint8(8), np.array([8 * _SMALL], np.uint8), reference, np.uint8(_SMALL)
        )
        return SmallMatrix(table.ravel()), tables
    table = np.full((_PADDING + 1, 32), _LOWEST, np.int8)
    table[:size, :size] = scoring.matrix
    planes = np.array([(query & 3) << 5, query >> 2])
    tables = Tables(
        planes,
        np.array([(_PADDING & 3) << 5, _PADDING >> 2], np.uint8),
        reference,
        np.uint8(_PADDING),
    )
    return LargeMatrix(table.ravel()), tables


def substitution(scheme, codes, at, residues, like):
    """The scores of a row of the query side against `residues`, in compiled code.

    Parameters
    ----------
    scheme : MatchMismatch, SmallMatrix or LargeMatrix
    codes : array of uint8
        Interleaved query codes, plane after plane.
    at : int
        Query row times lanes.
    residues : vector of uint8
        The reference codes, one a lane.
    like : vector
        One of the kernel's element type and lanes.
    """
    raise NotImplementedError("substitution runs in compiled code only")


@overload(substitution, jit_options={"forceinline": True})
def _substitution(scheme, codes, at, residues, like):
    kind = scheme.instance_class if isinstance(scheme, types.BaseNamedTuple) else None
    return _WAYS.get(kind)


def _match_mismatch(scheme, codes, at, residues, like):
    return select(
        equal(load_like(codes, at, residues), residues),
        fill_like(scheme.match, like),
        fill_like(scheme.mismatch, like),
    )


def _small_matrix(scheme, codes, at, residues, like):
    return extend(lookup(scheme.small, 0, 64, add(load_like(codes, at, residues), residues)), like)


def _large_matrix(scheme, codes, at, residues, like):
    low = add(load_like(codes, at, residues), residues)
    four = load_like(codes, codes.size // 2 + at, residues)
    return extend(_one_of_seven(scheme.large, four, low), like)


@numba.njit(forceinline=True)
def _one_of_seven(table, piece, low):
    """table[128 * piece + low], by looking low up in all seven pieces."""
    scores = lookup(table, 0, 128, low)
    for number in range(1, 7):
        here = equal(piece, fill_like(np.uint8(number), low))
        scores = select(here, lookup(table, 128 * number, 128, low), scores)
    return scores


_WAYS = {
    MatchMismatch: _match_mismatch,
    SmallMatrix: _small_matrix,
    LargeMatrix: _large_matrix,
}

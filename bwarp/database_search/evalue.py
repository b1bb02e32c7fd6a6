"""Compute E-values and bit scores of local scores, with published Karlin-Altschul parameters.

The parameters of gapped scores cannot be computed, only fitted to simulations; these are NCBI's, as
used by BLAST (Altschul, Bundschuh, Olsen & Hwa, Nucleic Acids Research 29:351, 2001). Combinations
without published parameters raise an error.

    bits     = (lambda * score - ln K) / ln 2
    E        = (m - l) * (n - sequences * l) * 2 ** -bits
    l        = alpha / lambda * (ln K + ln((m - l) * (n - sequences * l))) + beta

for a query of m residues against n residues of `sequences` sequences; l, the length that an
alignment needs to start, is BLAST's: the largest integer that satisfies the equation.
"""

import math
from dataclasses import dataclass

import numpy as np

from bwarp.errors import UsageError


@dataclass(frozen=True)
class KarlinAltschul:
    """The parameters of one matrix with one pair of gap costs."""

    lam: float
    k: float
    h: float
    alpha: float
    beta: float


# matrix: {(gap open, gap extend): (lambda, K, H, alpha, beta)}; a gap of n costs open + n * extend
_PUBLISHED = {
    "BLOSUM45": {
        (13, 3): (0.207, 0.049, 0.14, 1.5, -22),
        (12, 3): (0.199, 0.039, 0.11, 1.8, -34),
        (11, 3): (0.190, 0.031, 0.095, 2.0, -38),
        (10, 3): (0.179, 0.023, 0.075, 2.4, -51),
        (16, 2): (0.210, 0.051, 0.14, 1.5, -24),
        (15, 2): (0.203, 0.041, 0.12, 1.7, -31),
        (14, 2): (0.195, 0.032, 0.10, 1.9, -36),
        (13, 2): (0.185, 0.024, 0.084, 2.2, -45),
        (12, 2): (0.171, 0.016, 0.061, 2.8, -65),
        (19, 1): (0.205, 0.040, 0.11, 1.9, -43),
        (18, 1): (0.198, 0.032, 0.10, 2.0, -43),
        (17, 1): (0.189, 0.024, 0.079, 2.4, -57),
        (16, 1): (0.176, 0.016, 0.063, 2.8, -67),
    },
    "BLOSUM50": {
        (13, 3): (0.212, 0.063, 0.19, 1.1, -16),
        (12, 3): (0.206, 0.055, 0.17, 1.2, -18),
        (11, 3): (0.197, 0.042, 0.14, 1.4, -25),
        (10, 3): (0.186, 0.031, 0.11, 1.7, -34),
        (9, 3): (0.172, 0.022, 0.082, 2.1, -48),
        (16, 2): (0.215, 0.066, 0.20, 1.05, -15),
        (15, 2): (0.210, 0.058, 0.17, 1.2, -20),
        (14, 2): (0.202, 0.045, 0.14, 1.4, -27),
        (13, 2): (0.193, 0.035, 0.12, 1.6, -32),
        (12, 2): (0.181, 0.025, 0.095, 1.9, -41),
        (19, 1): (0.212, 0.057, 0.18, 1.2, -21),
        (18, 1): (0.207, 0.050, 0.15, 1.4, -28),
        (17, 1): (0.198, 0.037, 0.12, 1.6, -33),
        (16, 1): (0.186, 0.025, 0.10, 1.9, -42),
        (15, 1): (0.171, 0.015, 0.063, 2.7, -76),
    },
    "BLOSUM62": {
        (11, 2): (0.297, 0.082, 0.27, 1.1, -10),
        (10, 2): (0.291, 0.075, 0.23, 1.3, -15),
        (9, 2): (0.279, 0.058, 0.19, 1.5, -19),
        (8, 2): (0.264, 0.045, 0.15, 1.8, -26),
        (7, 2): (0.239, 0.027, 0.10, 2.5, -46),
        (6, 2): (0.201, 0.012, 0.061, 3.3, -58),
        (13, 1): (0.292, 0.071, 0.23, 1.2, -11),
        (12, 1): (0.283, 0.059, 0.19, 1.5, -19),
        (11, 1): (0.267, 0.041, 0.14, 1.9, -30),
        (10, 1): (0.243, 0.024, 0.10, 2.5, -44),
        (9, 1): (0.206, 0.010, 0.052, 4.0, -87),
    },
    "BLOSUM80": {
        (25, 2): (0.342, 0.17, 0.66, 0.52, -1.6),
        (13, 2): (0.336, 0.15, 0.57, 0.59, -3),
        (9, 2): (0.319, 0.11, 0.42, 0.76, -6),
        (8, 2): (0.308, 0.090, 0.35, 0.89, -9),
        (7, 2): (0.293, 0.070, 0.27, 1.1, -14),
        (6, 2): (0.268, 0.045, 0.19, 1.4, -19),
        (11, 1): (0.314, 0.095, 0.35, 0.90, -9),
        (10, 1): (0.299, 0.071, 0.27, 1.1, -14),
        (9, 1): (0.279, 0.048, 0.20, 1.4, -19),
    },
    "BLOSUM90": {
        (9, 2): (0.310, 0.12, 0.46, 0.67, -6),
        (8, 2): (0.300, 0.099, 0.39, 0.76, -7),
        (7, 2): (0.283, 0.072, 0.30, 0.93, -11),
        (6, 2): (0.259, 0.048, 0.22, 1.2, -16),
        (11, 1): (0.302, 0.093, 0.39, 0.78, -8),
        (10, 1): (0.290, 0.075, 0.28, 1.04, -15),
        (9, 1): (0.265, 0.044, 0.20, 1.3, -19),
    },
    "PAM30": {
        (7, 2): (0.305, 0.15, 0.87, 0.35, -3),
        (6, 2): (0.287, 0.11, 0.68, 0.42, -4),
        (5, 2): (0.264, 0.079, 0.45, 0.59, -7),
        (10, 1): (0.309, 0.15, 0.88, 0.35, -3),
        (9, 1): (0.294, 0.11, 0.61, 0.48, -6),
        (8, 1): (0.270, 0.072, 0.40, 0.68, -10),
    },
    "PAM70": {
        (8, 2): (0.301, 0.12, 0.54, 0.56, -5),
        (7, 2): (0.286, 0.093, 0.43, 0.67, -7),
        (6, 2): (0.264, 0.064, 0.29, 0.90, -12),
        (11, 1): (0.305, 0.12, 0.52, 0.59, -6),
        (10, 1): (0.291, 0.091, 0.41, 0.71, -9),
        (9, 1): (0.270, 0.060, 0.28, 0.97, -14),
    },
    "PAM250": {
        (15, 3): (0.205, 0.049, 0.13, 1.6, -23),
        (14, 3): (0.200, 0.043, 0.12, 1.7, -26),
        (13, 3): (0.194, 0.036, 0.10, 1.9, -31),
        (12, 3): (0.186, 0.029, 0.085, 2.2, -41),
        (11, 3): (0.174, 0.020, 0.070, 2.5, -48),
        (17, 2): (0.204, 0.047, 0.12, 1.7, -28),
        (16, 2): (0.198, 0.038, 0.11, 1.8, -29),
        (15, 2): (0.191, 0.031, 0.087, 2.2, -44),
        (14, 2): (0.182, 0.024, 0.073, 2.5, -53),
        (13, 2): (0.171, 0.017, 0.059, 2.9, -64),
        (21, 1): (0.205, 0.045, 0.11, 1.8, -34),
        (20, 1): (0.199, 0.037, 0.10, 1.9, -35),
        (19, 1): (0.192, 0.029, 0.083, 2.3, -52),
        (18, 1): (0.183, 0.021, 0.070, 2.6, -60),
        (17, 1): (0.171, 0.014, 0.052, 3.3, -86),
    },
}


def karlin_altschul(matrix: str, gap_open: int, gap_extend: int) -> KarlinAltschul:
    """Return the published parameters of a matrix and gap costs."""
    known = _PUBLISHED.get(matrix.upper())
    if known is None:
        raise UsageError(
            f"no E-values for matrix {matrix}: parameters are published for {', '.join(_PUBLISHED)}"
        )
    if (gap_open, gap_extend) not in known:
        costs = ", ".join(f"{first}/{more}" for first, more in known)
        raise UsageError(
            f"no E-values for {matrix} with gap-open {gap_open} and gap-extend {gap_extend}: "
            f"parameters are published for {costs}"
        )
    return KarlinAltschul(*known[gap_open, gap_extend])


def bit_scores(parameters: KarlinAltschul, scores: np.ndarray) -> np.ndarray:
    """Convert scores to bits, float64."""
    return (parameters.lam * np.asarray(scores) - math.log(parameters.k)) / math.log(2)


def length_adjustment(
    parameters: KarlinAltschul, query_length: int, residues: int, sequences: int
) -> int:
    """Return the largest l for which BLAST's equation still gives at least l, but at least 0."""

    def given(length: int) -> float:
        space = (query_length - length) * (residues - sequences * length)
        return (
            parameters.alpha / parameters.lam * (math.log(parameters.k) + math.log(space))
            + parameters.beta
        )

    # Beyond this limit, BLAST's own, the search space would be smaller than max(m, n) / K.
    largest = max(query_length, residues) / parameters.k
    low, high = 0, min(query_length, residues // max(sequences, 1)) - 1
    while low < high:
        middle = (low + high + 1) // 2
        space = (query_length - middle) * (residues - sequences * middle)
        if space >= largest and given(middle) >= middle:
            low = middle
        else:
            high = middle - 1
    return max(low, 0)


def evalues(
    parameters: KarlinAltschul,
    scores: np.ndarray,
    query_length: int,
    residues: int,
    sequences: int,
) -> np.ndarray:
    """Return the expected number of chance alignments with at least each score, float64."""
    length = length_adjustment(parameters, query_length, residues, sequences)
    space = (query_length - length) * (residues - sequences * length)
    return space * np.exp2(-bit_scores(parameters, scores))

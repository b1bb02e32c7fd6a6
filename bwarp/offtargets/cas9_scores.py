"""Compute CFD and MIT scores of sites, and the specificity of guides.

CFD multiplies a weight for every mismatch, which depends on its position and both bases, and one
for the last two bases of the PAM. A score of 1 means that the site is cut like the target of the
guide. MIT multiplies a weight for every mismatch with factors for their number and mean distance,
in percent; as in CRISPOR, the MIT score of a site whose PAM is not NGG is divided by five. (CRISPOR
rounds the mean distance down, so its MIT scores are up to a tenth lower.)
"""

from functools import cache
from pathlib import Path

import numpy as np

from bwarp.offtargets.guides import Guides, Pam

SCORED_LENGTH = 20

#: The CFD and MIT score of a perfect target.
WHOLE = np.array([[1.0], [100.0]])

_TABLES = Path(__file__).parent / "cas9_tables"
_G = 2

#: The factor of MIT scores of sites whose PAM is not NGG.
_OTHER_PAM = 0.2


def has_scores(guides: Guides, pam: Pam) -> np.ndarray:
    """Return which guides have scores with these PAMs, shape=(n_guides,), dtype=bool."""
    is_cas9 = (
        pam.side == 3
        and bool((pam.lengths == 3).all())
        and all(text[0] == "N" for text in pam.texts)
        and bool((pam.allowed[:, 1:] & 1 << _G).all(axis=1).any())
    )
    return (guides.lengths == SCORED_LENGTH) & is_cas9


@cache
def _cfd_tables() -> tuple[np.ndarray, np.ndarray]:
    """Return weights of mismatches by position, guide base and site base; of PAMs by last two
    bases.
    """
    mismatches = np.ones((SCORED_LENGTH, 4, 4))
    for key, weight in _cells("cfd_mismatches.txt"):
        mismatches[int(key[2:]) - 1, "ACGT".index(key[0]), "ACGT".index(key[1])] = float(weight)
    pams = np.zeros((4, 4))
    for key, weight in _cells("cfd_pams.txt"):
        pams["ACGT".index(key[0]), "ACGT".index(key[1])] = float(weight)
    return mismatches, pams


@cache
def _mit_weights() -> np.ndarray:
    return np.array([float(weight) for _, weight in _cells("mit_weights.txt")[1:]])


def _cells(name: str) -> list[list[str]]:
    return [line.split() for line in (_TABLES / name).read_text().splitlines()]


def cfd_scores(guides: np.ndarray, sites: np.ndarray, pams: np.ndarray) -> np.ndarray:
    """Compute CFD scores, 0 to 1.

    Parameters
    ----------
    guides, sites : ndarray, shape=(n, 20), dtype=uint8
        Codes from 5' to 3'.
    pams : ndarray, shape=(n, 3), dtype=uint8
        Codes of the PAMs of the sites.

    Returns
    -------
    scores : ndarray, shape=(n,), dtype=float64
    """
    mismatches, of_pam = _cfd_tables()
    scores = of_pam[pams[:, 1], pams[:, 2]]
    for i in range(SCORED_LENGTH):
        scores = scores * mismatches[i, guides[:, i], sites[:, i]]
    return scores


def mit_scores(guides: np.ndarray, sites: np.ndarray, pams: np.ndarray) -> np.ndarray:
    """Compute MIT scores in percent; parameters and result shape as in `cfd_scores`."""
    differ = guides != sites
    count = differ.sum(axis=1)
    product = np.prod(np.where(differ, 1 - _mit_weights(), 1.0), axis=1)
    first = differ.argmax(axis=1)
    last = SCORED_LENGTH - 1 - differ[:, ::-1].argmax(axis=1)
    # The distances of neighbouring mismatches add up to that of the outermost ones.
    distance = (last - first) / np.maximum(count - 1, 1)
    spread = np.where(count > 1, 1 / ((19 - distance) / 19 * 4 + 1), 1.0)
    scores = 100 * product * spread / np.maximum(count, 1) ** 2
    return np.where((pams[:, 1] == _G) & (pams[:, 2] == _G), scores, scores * _OTHER_PAM)


def specificity(total: np.ndarray, best_perfect: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """Return the share of the target of guides in the scores of all sites, on the scale of the
    scores.

    Parameters
    ----------
    total : ndarray, dtype=float64
        The sum of the scores of all sites of each guide.
    best_perfect : ndarray, dtype=float64
        The best score without a mismatch, that of the target; 0 if there is none.
    whole : ndarray, dtype=float64
        The score of a perfect target, such as `WHOLE`.
    """
    return whole * whole / (whole + total - best_perfect)

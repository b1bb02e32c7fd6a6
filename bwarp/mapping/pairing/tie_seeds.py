"""Numbers of templates by which ties are broken: they look random, and are the same in every run.

Both engines use them. Of equal hits of a read one is drawn by its template's number; of equal pairs
that with the highest number of its own.
"""

import numpy as np
from numba import int64, uint64

from bwarp.runtime.compiled_code import compiled

__all__ = ["drawn_of", "pair_tie", "seeds_of_templates", "tie_seed"]

#: Odd numbers without a pattern in their bits.
_MIXER, _SECOND_MIXER = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9

#: No read has as many hits.
_HITS = 7919


@compiled(inline="always")
def tie_seed(template):
    """The number, uint64, of a template (uint64)."""
    mixed = uint64((template + uint64(1)) * uint64(_MIXER))
    mixed = uint64((mixed ^ (mixed >> uint64(29))) * uint64(_SECOND_MIXER))
    return mixed ^ (mixed >> uint64(32))


@compiled(inline="always")
def drawn_of(seed, equals):
    """Which one of so many equal hits is drawn, from 0."""
    return int64(seed % uint64(equals))


@compiled(inline="always")
def pair_tie(seed, i, j):
    """The number, uint64, of a template's pair of hits, `i` of read 1 and `j` of read 2."""
    return uint64((seed ^ uint64(i * _HITS + j)) * uint64(_MIXER))


@compiled
def seeds_of_templates(templates: np.ndarray) -> np.ndarray:
    """The numbers of templates, uint64 as they are."""
    seeds = np.empty_like(templates)
    for i in range(templates.size):
        seeds[i] = tie_seed(templates[i])
    return seeds

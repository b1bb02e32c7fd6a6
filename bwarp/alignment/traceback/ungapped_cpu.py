"""Alignments without a gap on the CPU: the diagonal that ends in a pair's end cell, added up."""

import numba
import numpy as np

from bwarp.alignment.pairs import EQUAL, MISMATCH
from bwarp.alignment.traceback.cigars_cpu import grown, push

__all__ = ["resolve_ungapped"]


@numba.njit(cache=True, nogil=True)
def resolve_ungapped(
    begin,
    end,
    queries,
    references,
    matrix,
    ambiguous,
    costs,
    scores,
    query_ends,
    reference_ends,
    starts,
    distances,
    operations,
    cigar_starts,
    ungapped,
):
    """Resolve the pairs from `begin` to `end` whose alignment has no gap; returns their CIGARs."""
    part = np.empty(16 * (end - begin) + 16, np.uint32)
    used = 0
    for pair in range(begin, end):
        i, j = np.int64(query_ends[pair]), np.int64(reference_ends[pair])
        q, r = queries.starts[pair], references.starts[pair]
        wanted = np.int64(scores[pair])
        collected = np.int64(0)
        while i > 0 and j > 0 and not (costs.local and collected == wanted):
            if collected + costs.top * np.int64(min(i, j)) < wanted:
                break
            i, j = i - 1, j - 1
            collected += matrix[queries.codes[q + i], references.codes[r + j]]
        at_border = (i == 0 and (costs.reference_start or j == 0)) or (
            j == 0 and (costs.query_start or i == 0)
        )
        if collected != wanted or not (at_border or costs.local):
            continue
        ungapped[pair] = True
        starts[0, pair], starts[1, pair] = i, j
        cigar_starts[pair] = used
        length = np.int64(query_ends[pair]) - i
        part = grown(part, used + length)
        runs = part[used:]
        count, distance = np.int64(0), 0
        for k in range(length):
            code = queries.codes[q + i + k]
            if code == references.codes[r + j + k] and code != ambiguous:
                count = push(runs, count, 1 << 4 | EQUAL)
            else:
                count = push(runs, count, 1 << 4 | MISMATCH)
                distance += 1
        operations[pair], distances[pair] = count, distance
        used += count
    return part[:used]

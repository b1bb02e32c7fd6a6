"""Alignments without a gap on the CPU: the diagonal that ends in a pair's end cell, added up."""

import numpy as np

from bwarp.alignment.pairs import EQUAL, MISMATCH
from bwarp.alignment.traceback.cigars_cpu import grown, push
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.uncounted import uncounted

__all__ = ["resolve_ungapped"]


@compiled
def resolve_ungapped(pairs, costs, traced, waiting, begin, end):
    """Resolve the pairs from `begin` to `end` whose alignment has no gap.

    They wait no longer. Returns which these are, and their CIGARs.
    """
    pairs, traced = uncounted((pairs, traced))
    queries, references, matrix, ambiguous, scores, query_ends, reference_ends = pairs
    query_codes, reference_codes = queries.codes, references.codes
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
            collected += matrix[query_codes[q + i], reference_codes[r + j]]
        at_border = (i == 0 and (costs.reference_start or j == 0)) or (
            j == 0 and (costs.query_start or i == 0)
        )
        if collected != wanted or not (at_border or costs.local):
            continue
        waiting[pair] = False
        traced.starts[0, pair], traced.starts[1, pair] = i, j
        traced.cigar_starts[pair] = used
        length = np.int64(query_ends[pair]) - i
        part = grown(part, used + length)
        runs = part[used:]
        count, distance = np.int64(0), 0
        for k in range(length):
            code = query_codes[q + i + k]
            if code == reference_codes[r + j + k] and code != ambiguous:
                count = push(runs, count, 1 << 4 | EQUAL)
            else:
                count = push(runs, count, 1 << 4 | MISMATCH)
                distance += 1
        traced.operations[pair], traced.edit_distances[pair] = count, distance
        used += count
    return begin + np.flatnonzero(~waiting[begin:end]), part[:used]

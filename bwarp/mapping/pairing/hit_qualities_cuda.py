"""What the GPU's threads find out of a hit: its clip-penalised score, the bases of the read that it
aligns, and its mapping quality, by the rules of primary_and_mapq_cpu.
"""

from bwarp.gpu.cuda import cuda, int64
from bwarp.gpu.launch import WARP
from bwarp.gpu.ptx import add_rounded
from bwarp.gpu.warp_reductions import greatest, total
from bwarp.mapping.extension.scored_hits_cpu import (
    END,
    FIELDS,
    GAPLESS,
    READ_END,
    READ_START,
    SCORE,
    START,
)
from bwarp.mapping.pairing.insert_size import SCORE_UNITS
from bwarp.mapping.pairing.likelihoods import HIGHEST_QUALITY, likelihood, mapping_quality
from bwarp.mapping.pairing.primary_and_mapq_cpu import (
    ROUNDING,
    is_near,
    others_beside,
    penalised_score,
    same_bases,
    span_of,
    unique_suboptimal,
    unrounded_mapq,
)

__all__ = ["penalised_at", "quality_of_hit", "span_at"]


@cuda.jit(device=True)
def span_at(hits, hit, length):
    """The bases of the read, as it was read, that a hit aligns."""
    scored = hits.scored
    row = FIELDS * hit
    return span_of(hits.strands[hit], scored[row + READ_START], scored[row + READ_END], length)


@cuda.jit(device=True)
def penalised_at(hits, hit, length, clip):
    """A hit's score with its clipped ends penalised."""
    scored = hits.scored
    row = FIELDS * hit
    return penalised_score(
        scored[row + SCORE], scored[row + GAPLESS], scored[row + READ_START],
        scored[row + READ_END], length, clip,
    )  # fmt: skip


@cuda.jit(device=True)
def unique_mapq(score, aligned, factors, scores):
    """bwa's mapping quality of a unique hit."""
    suboptimal = unique_suboptimal(scores.match)
    if suboptimal >= score:
        return int64(0)
    unrounded = unrounded_mapq(
        score, suboptimal, aligned, factors[aligned], scores.match, scores.mismatch
    )
    return min(max(int64(add_rounded(unrounded, ROUNDING)), int64(0)), int64(HIGHEST_QUALITY))


@cuda.jit(device=True)
def quality_of_hit(hits, first, last, hit, length, unlocated, factors, scores):
    """What `primary_and_mapq_cpu.select` finds of a primary hit: mapping quality, best score of
    others and best clip-penalised one. A whole warp, a lane every 32nd hit.

    The CPU ends where raw scores, which fall, are so low that nothing changes: no clip-penalised
    score is above its raw one, so those to come are no better than the best, raw or penalised, and
    `MOST_LESS` matches below the primary one, which makes their likelihood 0. Here all are seen.
    """
    scored = hits.scored
    score = penalised_at(hits, hit, length, scores.clip)
    span = span_at(hits, hit, length)
    best, best_penalised = int64(0), int64(0)
    near, others = int64(0), int64(0)
    for i in range(first + int64(cuda.laneid), last, WARP):
        if i != hit and same_bases(span, span_at(hits, i, length)):
            penalised = penalised_at(hits, i, length, scores.clip)
            best = max(best, scored[FIELDS * i + SCORE])
            best_penalised = max(best_penalised, penalised)
            likely = likelihood(SCORE_UNITS * (score - penalised), scores.match)
            if is_near(score - penalised, length, scores.near):
                near += likely
            else:
                others += likely
    if last - first > 1:
        best, best_penalised = greatest(best), greatest(best_penalised)
        near, others = total(near), total(others)
    others = others_beside(score, near, others, unlocated, length, scores.match, scores.mismatch)
    row = FIELDS * hit
    alone = unique_mapq(score, scored[row + END] - scored[row + START], factors, scores)
    return min(alone, mapping_quality(others)), best, best_penalised

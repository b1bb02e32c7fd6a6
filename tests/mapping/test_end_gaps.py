"""Gaps near ends, and pairs of gaps inside, against trying every gap at every place."""

import numpy as np
import pytest

from bwarp.mapping import final_alignments
from bwarp.mapping.extension_cpu import OnDiagonal, both_strands, extend
from bwarp.mapping.final_alignments import (
    align_hits,
    end_costs,
    gap_may_gain,
    two_inside_may_gain,
)
from bwarp.mapping.parameters import END_TO_END, MappingParameters
from tests.helpers.oracles.mapping_oracle import candidates_at, codes_in, flat, genome_with

#: A base outside the contig.
NEVER = -(10**6)

#: Bases at an end that are checked.
OUTER = 64


def scores_on(read, bases, diagonal, parameters):
    """Return the score of each base of a read on a diagonal."""
    at = diagonal + np.arange(len(read))
    inside = (at >= 0) & (at < len(bases))
    same = (bases[np.clip(at, 0, len(bases) - 1)] == read) & (read < 4)
    return np.where(inside, np.where(same, parameters.match, parameters.mismatch), NEVER)


def clip_of(parameters):
    return 10**5 if parameters.mode == END_TO_END else parameters.clip


def best_stretch(read, bases, diagonal, parameters):
    """Return (clip-penalised score, begin, end) of the best part of a diagonal."""
    clip, length = clip_of(parameters), len(read)
    sums = np.concatenate([[0], np.cumsum(scores_on(read, bases, diagonal, parameters))])
    begins = -sums - clip * (np.arange(length + 1) > 0)
    ends = sums - clip * (np.arange(length + 1) < length)
    is_stretch = np.triu(np.ones((length + 1, length + 1), bool), 1)
    stretches = np.where(is_stretch, begins[:, None] + ends[None, :], NEVER)
    begin, end = np.unravel_index(np.argmax(stretches), stretches.shape)
    return int(stretches[begin, end]), int(begin), int(end)


def best_with_gap(read, bases, diagonal, begin, end, parameters):
    """Return the best score with one gap near the right end, and the bases after the gap.

    If the last bases are inserted, nothing follows the gap.
    """
    clip, length = clip_of(parameters), len(read)
    near = np.cumsum(scores_on(read, bases, diagonal, parameters)[begin:]) - clip * (begin > 0)
    best = NEVER
    for shift in range(-parameters.largest_gap, parameters.largest_gap + 1):
        if shift == 0:
            continue
        inserted = max(-shift, 0)
        far = np.concatenate([[0], np.cumsum(scores_on(read, bases, diagonal + shift, parameters))])
        ends = far - clip * (np.arange(length + 1) < length)
        gap = parameters.gap_open + parameters.gap_extend * abs(shift)
        for split in range(max(begin + 1, length - OUTER), length - inserted + (shift < 0)):
            after = split + inserted
            score = (
                near[split - begin - 1] + ends[min(after + 1, length) :].max() - far[after] - gap
            )
            best = max(best, int(score))
    return best


def best_near_ends(read, bases, diagonal, begin, end, parameters):
    length = len(read)
    return max(
        best_with_gap(read, bases, diagonal, begin, end, parameters),
        best_with_gap(
            read[::-1], bases[::-1], len(bases) - length - diagonal, length - end, length - begin,
            parameters,
        ),
    )  # fmt: skip


def found_by_bits(genome, read, diagonal, begin, end, parameters, contig=0):
    # Other bases on both sides, as from other reads.
    both = np.concatenate([np.full(7, 1, np.uint8), read, np.full(70, 2, np.uint8)])
    low, high = genome.contig_starts[contig : contig + 2]
    read_there = OnDiagonal(7, len(read), diagonal, low, high)
    return gap_may_gain(genome.blocks, both, read_there, begin, end, end_costs(parameters))


def random_genome(rng, n):
    """Return a contig with tandem repeats and ambiguous bases."""
    bases = rng.integers(0, 4, n).astype(np.uint8)
    for _ in range(n // 150):
        at, period = int(rng.integers(0, n - 60)), int(rng.integers(1, 8))
        unit = rng.integers(0, 4, period)
        bases[at : at + 60] = np.resize(unit, 60)
    bases[rng.random(n) < 0.01] = 4
    return bases


def changed_read(rng, bases, length, start):
    """Return a read with mismatches, gaps near its ends, and foreign bases outside these."""
    read = bases[start : start + length].copy()
    flips = rng.random(length) < rng.choice([0, 0.03, 0.1])
    read[flips] = rng.integers(0, 5, flips.sum())
    for _ in range(int(rng.integers(0, 3))):
        if len(read) < 8:
            break
        at = int(rng.integers(1, min(70, len(read) - 1)))
        at = len(read) - at if rng.random() < 0.5 else at
        size = int(rng.choice([1, 2, 3, 7, 15, 30]))
        if rng.random() < 0.5:
            read = np.delete(read, slice(at, at + size))
        else:
            read = np.insert(read, at, rng.integers(0, 4, size))
    if rng.random() < 0.4 and len(read) > 20:
        n = int(rng.integers(1, 18))
        read[slice(n) if rng.random() < 0.5 else slice(-n, None)] = rng.integers(0, 4, n)
    return read.astype(np.uint8)


PARAMETERS = {
    "default": MappingParameters(),
    "no clipping penalty": MappingParameters(clip=0),
    "dear clipping": MappingParameters(clip=12),
    "end to end": MappingParameters(mode=END_TO_END),
    "doubled": MappingParameters(match=2, mismatch=-3, gap_open=5, gap_extend=2, clip=4),
    "cheap gaps": MappingParameters(match=1, mismatch=-9, gap_open=0, gap_extend=1, clip=3),
    "dear gaps": MappingParameters(match=3, mismatch=-2, gap_open=20, gap_extend=4, clip=9),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_gap_is_searched_only_where_one_may_score_as_much(name):
    parameters = PARAMETERS[name]
    rng = np.random.default_rng(list(PARAMETERS).index(name))
    bases = random_genome(rng, 1500)
    genome = genome_with(bases, [0, len(bases)])
    n_gains = n_none = 0
    for _ in range(120):
        length, start = int(rng.choice([8, 20, 36, 64, 65, 100, 150])), int(rng.integers(200, 1100))
        read = changed_read(rng, bases, length, start)
        if len(read) < 4:
            continue
        diagonals = np.arange(start - 31, start + 32)
        sums = [scores_on(read, bases, diagonal, parameters).sum() for diagonal in diagonals]
        diagonal = int(diagonals[int(np.argmax(sums))])
        score, begin, end = best_stretch(read, bases, diagonal, parameters)
        if max(begin, len(read) - end) > OUTER:
            assert found_by_bits(genome, read, diagonal, begin, end, parameters)
            continue
        with_gap = best_near_ends(read, bases, diagonal, begin, end, parameters)
        found = found_by_bits(genome, read, diagonal, begin, end, parameters)
        assert found == (with_gap >= score), (read.tolist(), diagonal, begin, end, with_gap, score)
        n_gains += found
        n_none += not found
    assert n_gains > 5
    assert n_none > 20


def test_at_contig_ends_no_useful_gap_is_missed():
    rng = np.random.default_rng(5)
    parameters = MappingParameters()
    bases = random_genome(rng, 700)
    starts = [0, 40, 250, 330, 333, 700]
    genome = genome_with(bases, starts)
    n_gains = 0
    for _ in range(300):
        contig = int(rng.choice([0, 1, 2, 4]))
        low, high = starts[contig], starts[contig + 1]
        length = int(rng.choice([20, 36, 100]))
        diagonal = int(rng.integers(low - length // 2, high - length // 2))
        own = np.concatenate([bases[max(diagonal, 0) :], bases[:200]])
        read = changed_read(rng, own, length, 0)
        if len(read) < 4:
            continue
        score, begin, end = best_stretch(read, bases[low:high], diagonal - low, parameters)
        if score < 1:
            continue
        with_gap = best_near_ends(read, bases[low:high], diagonal - low, begin, end, parameters)
        n_gains += with_gap >= score
        if with_gap >= score:
            assert found_by_bits(genome, read, diagonal, begin, end, parameters, contig)
    assert n_gains > 10


@pytest.mark.parametrize("mismatches", [[], [3]])
def test_partial_reads_that_match_further_are_aligned(mismatches):
    """It ends with the part; only alignment finds how far the diagonal matches."""
    rng = np.random.default_rng(9)
    parameters = MappingParameters()
    for _ in range(20):
        bases = rng.integers(0, 4, 600).astype(np.uint8)
        genome = genome_with(bases, [0, 600])
        read = rng.integers(0, 4, 100).astype(np.uint8)
        read[:70] = bases[200:270]
        read[[55 + at for at in mismatches]] ^= 1
        assert found_by_bits(genome, read, 200, 0, 55, parameters)
        # The same at the other end.
        other = genome_with(bases[::-1].copy(), [0, 600])
        assert found_by_bits(other, read[::-1].copy(), 300, 45, 100, parameters)


def test_gaps_of_more_bases_than_are_compared_may_gain():
    rng = np.random.default_rng(10)
    bases = rng.integers(0, 4, 4000).astype(np.uint8)
    genome = genome_with(bases, [0, 4000])
    read = np.delete(bases[300:1400], slice(960, 1040))
    parameters = MappingParameters(match=4)
    _, begin, end = best_stretch(read, bases, 300, parameters)
    assert (begin, 40 < len(read) - end <= OUTER) == (0, True)
    assert found_by_bits(genome, read, 300, begin, end, parameters)


def test_longer_gaps_are_searched_in_long_reads():
    rng = np.random.default_rng(6)
    bases = rng.integers(0, 4, 2000).astype(np.uint8)
    genome = genome_with(bases, [0, 2000])
    read = np.delete(bases[300:900], slice(500, 540))
    for outer, found in ((560, True), (300, False)):
        diagonal = 300 + 560 - outer
        _, begin, end = best_stretch(read[-outer:], bases, diagonal, MappingParameters())
        assert outer - end > 50
        gains = found_by_bits(genome, read[-outer:], diagonal, begin, end, MappingParameters())
        assert gains == found


def test_two_gaps_near_an_end_are_found():
    rng = np.random.default_rng(11)
    bases = rng.integers(0, 4, 3000).astype(np.uint8)
    genome = genome_with(bases, [0, 3000])
    inserted = rng.integers(0, 4, (2, 2)).astype(np.uint8)
    parts = bases[1000:1030], inserted[0], bases[1030:1036], inserted[1], bases[1036:1100]
    read = np.concatenate(parts)
    reads = [read, 3 - read[::-1]]
    codes, offsets = flat(reads)
    both = both_strands(codes, offsets)
    # The position of the longer part, which is scored alone: no seed shows the gaps.
    found = candidates_at(range(2), [0, 1], [996, 996], 2)
    hits = extend(genome, both, offsets, found, MappingParameters())
    hits = hits._replace(gapless=np.ones(2, bool), scores=np.full(2, 64, np.int32))
    for column, value in (
        ("read_starts", 40),
        ("read_ends", 104),
        ("starts", 1036),
        ("ends", 1100),
    ):
        getattr(hits, column)[:] = value
    mapped = align_hits(genome, both, offsets, hits, np.arange(2), MappingParameters())
    assert mapped.positions.tolist() == [1000, 1000]
    gaps = [size >> 4 for size in mapped.cigar[mapped.cigar & 15 == 1]]
    assert gaps == [2, 2] * 2


def test_alignments_are_made_only_where_a_gap_may_gain(monkeypatch):
    rng = np.random.default_rng(8)
    bases = rng.integers(0, 4, 20_000).astype(np.uint8)
    genome = genome_with(bases, [0, 20_000])
    reads, starts = [], rng.integers(200, 19_000, 200)
    for i, start in enumerate(starts):
        read = bases[start : start + 100].copy()
        # Mismatches near one end, clipped or not; every tenth read has a deletion.
        read[[4, 11]] = (read[[4, 11]] + 1) % 4
        if i % 10 == 0:
            read = np.concatenate([bases[start - 2 : start + 12], bases[start + 14 : start + 100]])
        reads.append(read)
    codes, offsets = flat(reads)
    both = both_strands(codes, offsets)
    found = candidates_at(range(200), [0] * 200, starts, 200)
    parameters = MappingParameters()
    hits = extend(genome, both, offsets, found, parameters)
    counts = []
    aligned = final_alignments.pair_alignments

    def counting(pairs, *others):
        counts.append(pairs.queries.lengths.size)
        return aligned(pairs, *others)

    monkeypatch.setattr(final_alignments, "pair_alignments", counting)
    mapped = align_hits(genome, both, offsets, hits, np.arange(200), parameters)
    gapped = np.diff(mapped.cigar_offsets) > 1
    assert gapped.reshape(20, 10)[:, 0].all()
    assert gapped.sum() <= sum(counts) < 24


def best_with_two_inside(read, bases, diagonal, begin, end, parameters):
    """Return the most that an insertion and a deletion of one size gain inside a stretch."""
    near = np.concatenate([[0], np.cumsum(scores_on(read, bases, diagonal, parameters))])
    best = NEVER
    for shift in range(-parameters.largest_gap, parameters.largest_gap + 1):
        size = abs(shift)
        if size == 0 or end - begin <= size:
            continue
        far = np.concatenate([[0], np.cumsum(scores_on(read, bases, diagonal + shift, parameters))])
        # The inserted bases follow the part on the other diagonal if that lies ahead.
        if shift > 0:
            ends = far[begin : end - size + 1] - near[begin + size : end + 1]
            begins = far[begin : end - size + 1] - near[begin : end - size + 1]
        else:
            ends = far[begin + size : end + 1] - near[begin + size : end + 1]
            begins = far[begin + size : end + 1] - near[begin : end - size + 1]
        gain = (ends - np.minimum.accumulate(begins)).max()
        best = max(best, int(gain) - 2 * (parameters.gap_open + parameters.gap_extend * size))
    return best


def found_inside(genome, read, diagonal, begin, end, parameters):
    score = int(scores_on(read, codes_in(genome), diagonal, parameters)[begin:end].sum())
    both = np.concatenate([np.full(7, 1, np.uint8), read, np.full(70, 2, np.uint8)])
    read_there = OnDiagonal(7, len(read), diagonal, *genome.contig_starts[:2])
    return two_inside_may_gain(
        genome.blocks, both, read_there, begin, end, score, end_costs(parameters)
    )


def with_two_gaps(rng, bases, start, length, size, apart):
    """Return a read with an insertion and a deletion `apart` bases from each other."""
    at = int(rng.integers(25, length - 25 - apart - size))
    inserted = rng.integers(0, 4, size).astype(np.uint8)
    part = bases[start : start + length]
    if rng.random() < 0.5:
        return np.concatenate([
            part[:at], inserted, part[at : at + apart], part[at + apart + size :]
        ])  # fmt: skip
    return np.concatenate([
        part[:at], part[at + size : at + size + apart], inserted, part[at + size + apart :]
    ])  # fmt: skip


@pytest.mark.parametrize("name", PARAMETERS)
def test_two_gaps_inside_are_found_only_where_they_gain(name):
    parameters = PARAMETERS[name]
    rng = np.random.default_rng(40 + list(PARAMETERS).index(name))
    bases = random_genome(rng, 1500)
    genome = genome_with(bases, [0, len(bases)])
    n_found = n_gains = 0
    for _ in range(60):
        start, size, apart = int(rng.integers(200, 1100)), *rng.integers(1, [8, 50])
        read = with_two_gaps(rng, bases, start, 150, size, apart)
        flips = rng.random(150) < rng.choice([0, 0.02])
        read[flips] = rng.integers(0, 5, flips.sum())
        gain = best_with_two_inside(read, bases, start, 0, 150, parameters)
        found = found_inside(genome, read, start, 0, 150, parameters)
        assert gain > 0 or not found
        n_found += found
        n_gains += gain > 0
    assert n_gains > 5
    # Parts with few mismatches, and long ones, may be missed.
    assert n_found >= 0.9 * n_gains


@pytest.mark.parametrize("size", [1, 2, 5, 20])
def test_two_gaps_inside_are_aligned(size):
    rng = np.random.default_rng(size)
    bases = rng.integers(0, 4, 20_000).astype(np.uint8)
    genome = genome_with(bases, [0, 20_000])
    starts = np.arange(200, 16_000, 400)
    reads = [with_two_gaps(rng, bases, start, 150, size, 20 + 2 * size) for start in starts]
    codes, offsets = flat(reads)
    both = both_strands(codes, offsets)
    found = candidates_at(range(len(reads)), [0] * len(reads), starts, len(reads))
    parameters = MappingParameters()
    hits = extend(genome, both, offsets, found, parameters)
    mapped = align_hits(genome, both, offsets, hits, np.arange(len(reads)), parameters)
    assert (np.diff(mapped.cigar_offsets) == 5).all()
    assert (mapped.scores == 150 - size - 2 * (6 + size)).mean() > 0.5

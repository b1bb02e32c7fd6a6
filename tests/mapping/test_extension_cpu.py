"""Scored hits, against all parts of a diagonal and against whole alignment matrices."""

import numpy as np
import pytest

from bwarp.mapping.extension_cpu import (
    both_strands,
    costs_of,
    extend,
    first_sums,
    no_stretch,
    pass_end,
    pass_mismatch,
    put_stretch,
    score_diagonals,
    valid_score,
)
from bwarp.mapping.parameters import MODES, MappingParameters
from bwarp.mapping.scored_hits_cpu import FIELDS, merge
from tests.helpers.oracles.mapping_oracle import (
    best_scores,
    best_stretch,
    candidates_at,
    codes_in,
    flat,
    index_and_genome,
    opposite,
    random_bases,
)

PARAMETERS = MappingParameters(least_score=1, largest_gap=6)


def genome_of(*contigs):
    return index_and_genome(list(contigs))[1]


def edited(rng, read, substitutions, indels):
    """Return a copy with random substitutions and short indels."""
    letters = read.tolist()
    for _ in range(substitutions):
        letters[rng.integers(len(letters))] = int(rng.integers(0, 5))
    for _ in range(indels):
        at, n = int(rng.integers(1, len(letters) - 5)), int(rng.integers(1, 4))
        if rng.random() < 0.5:
            del letters[at : at + n]
        else:
            letters[at:at] = rng.integers(0, 4, n).tolist()
    return np.array(letters, np.uint8)


def crowded_end(read, bases) -> bool:
    """Return whether two mismatches are within 16 bases of an end, so a gap is possible."""
    differs = (read != bases[: read.size]) | (read > 3)
    return max(differs[:16].sum(), differs[-16:].sum()) > 1


def test_scores_and_the_rule_that_saves_alignments():
    rng = np.random.default_rng(1)
    genome = genome_of(random_bases(rng, 300), random_bases(rng, 200))
    bases = codes_in(genome)
    reads, strands, diagonals = [], [], []
    for number in range(120):
        start = int(rng.integers(0, 150))
        read = edited(rng, bases[start : start + 45], number % 6, number % 3 // 2)
        strands.append(int(rng.integers(2)))
        reads.append(opposite(read) if strands[-1] else read)
        diagonals.append(start)
    codes, offsets = flat(reads)
    both = both_strands(codes, offsets)
    wanted = candidates_at(range(len(reads)), strands, diagonals, len(reads))
    hits = extend(genome, both, offsets, wanted, PARAMETERS)
    assert len(hits.reads) == len(reads)
    n_sure = n_gapped = n_looked = 0
    for i, (read, strand) in enumerate(zip(reads, strands, strict=True)):
        turned = opposite(read) if strand else read
        window = bases[hits.window_starts[i] : hits.window_ends[i]].tolist()
        local, priced = best_scores(turned.tolist(), window, PARAMETERS)
        raw_scores = best_stretch(turned, bases, diagonals[i], 0, len(read), 0)
        if not hits.gapless[i]:
            n_gapped += 1
            assert hits.scores[i] == local > raw_scores
            continue
        begin, end = hits.read_starts[i], hits.read_ends[i]
        assert hits.starts[i] - begin == hits.ends[i] - end == diagonals[i]
        clips = (begin > 0) + (end < len(read))
        penalised = hits.scores[i] - PARAMETERS.clip * clips
        stretch = best_stretch(turned, bases, diagonals[i], 0, len(read), PARAMETERS.clip)
        assert penalised == stretch
        gap = PARAMETERS.gap_open + PARAMETERS.gap_extend
        if stretch >= len(read) - gap:
            n_sure += 1
            assert penalised == priced
        elif clips or crowded_end(turned, bases[diagonals[i] :]):
            n_looked += 1
            assert local == raw_scores
    assert n_sure > 30
    assert n_looked > 10
    assert n_gapped > 15


@pytest.mark.parametrize(("between", "is_aligned"), [(70, True), (30, True), (6, False)])
def test_two_gaps_that_cancel_each_other_show_as_mismatches_between_them(between, is_aligned):
    rng = np.random.default_rng(6)
    genome = genome_of(random_bases(rng, 400))
    bases = codes_in(genome)[100:250]
    # Two bases inserted and two deleted: both ends are on the same diagonal, with all seeds.
    read = np.concatenate([bases[:40], 3 - bases[38:40], bases[40 : 40 + between],
                           bases[42 + between :]])  # fmt: skip
    codes, offsets = flat([read])
    hits = extend(
        genome, both_strands(codes, offsets), offsets, candidates_at([0], [0], [100], 1),
        MappingParameters(),
    )  # fmt: skip
    assert (not hits.gapless[0]) == is_aligned
    if is_aligned:
        window = codes_in(genome)[70:280].tolist()
        assert hits.scores[0] == best_scores(read.tolist(), window, MappingParameters())[0]


def stretch_by_stretch(genome, turned, diagonal, costs):
    """Return the best stretch of a diagonal, its highest raw score, and whether an end is crowded.

    Each mismatch is passed separately.
    """
    genome_codes = codes_in(genome)
    starts, length = genome.contig_starts, len(turned)
    contig = max(int(np.searchsorted(starts, diagonal, side="right")) - 1, 0)
    best, highest, crowded = no_stretch.py_func(contig), 0, False
    while contig < len(starts) - 1 and starts[contig] < diagonal + length:
        low, high = max(0, starts[contig] - diagonal), min(length, starts[contig + 1] - diagonal)
        sums = first_sums.py_func(low, costs.clip, highest)
        bases = np.arange(low, high)
        differs = (turned[low:high] != genome_codes[diagonal + bases]) | (turned[low:high] > 3)
        mismatches = bases[differs]
        for at in mismatches:
            sums, best = pass_mismatch.py_func(sums, best, at, length, contig, costs)
        crowded |= max((mismatches < 16).sum(), (mismatches >= length - 16).sum()) > 1
        highest, best = pass_end.py_func(sums, best, high, length, contig, costs)
        contig += 1
    return best, highest, crowded


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("scores", [(1, -4, 5), (1, -1, 0), (2, -3, 1), (100, -1, 3), (1, -100, 9)])
def test_passing_several_mismatches_at_once_changes_nothing(mode, scores):
    match, mismatch, clip = scores
    parameters = MappingParameters(match=match, mismatch=mismatch, clip=clip, mode=mode)
    costs = costs_of(parameters)
    rng = np.random.default_rng(5)
    genome = genome_of(random_bases(rng, 900), random_bases(rng, 150), random_bases(rng, 400))
    bases = codes_in(genome)
    reads, strands, diagonals = [], [], []
    for _ in range(300):
        diagonal = int(rng.integers(-20, 1300))
        read = rng.integers(0, 4, int(rng.integers(1, 260))).astype(np.uint8)
        # Runs of matches of all lengths, some with a few mismatches.
        for _ in range(rng.integers(0, 5)):
            begin, n = int(rng.integers(0, read.size)), int(rng.integers(1, 80))
            begin = max(begin, -diagonal)
            copied = bases[diagonal + begin : diagonal + begin + n][: read.size - begin]
            copied = np.where(rng.random(copied.size) < rng.choice([0, 0.1, 0.3]), 4, copied)
            read[begin : begin + copied.size] = copied
        if rng.random() < 0.3:
            # Without a positive score, the first of many bad parts matters.
            read = bases[max(diagonal, 0) :][: rng.integers(2, 20)].copy()
            read[rng.random(read.size) < 0.3] = 4
            read[0] = 4
        strands.append(int(rng.integers(2)))
        reads.append(opposite(read) if strands[-1] else read)
        diagonals.append(diagonal)
    codes, offsets = flat(reads)
    candidates = candidates_at(range(len(reads)), strands, diagonals, len(reads))
    scored, raw_scores = np.zeros(FIELDS * len(reads), np.int64), np.zeros(len(reads), np.int32)
    score_diagonals(
        genome, both_strands(codes, offsets), offsets, candidates, costs, scored, raw_scores
    )
    for i, (read, strand, diagonal) in enumerate(zip(reads, strands, diagonals, strict=True)):
        turned = opposite(read) if strand else read
        best, highest, crowded = stretch_by_stretch(genome, turned, diagonal, costs)
        rows = np.zeros_like(scored)
        put_stretch.py_func(
            rows, candidates, i, best, crowded, len(read), genome.contig_starts, costs
        )
        assert raw_scores[i] == valid_score.py_func(highest, best, len(read), costs)
        row = slice(FIELDS * i, FIELDS * (i + 1))
        assert scored[row].tolist() == rows[row].tolist()


def test_a_read_over_a_border_is_clipped_where_it_scores_most():
    rng = np.random.default_rng(2)
    genome = genome_of(random_bases(rng, 100), b"", random_bases(rng, 20), random_bases(rng, 90))
    bases = codes_in(genome)
    for start, first, last in ((75, 75, 100), (-20, 0, 40), (90, 120, 150), (160, 160, 210)):
        read = rng.integers(0, 4, 60).astype(np.uint8)
        read[first - start : last - start] = bases[first:last]
        codes, offsets = flat([read])
        hits = extend(
            genome, both_strands(codes, offsets), offsets, candidates_at([0], [0], [start], 1),
            PARAMETERS,
        )  # fmt: skip
        contig = np.searchsorted(genome.contig_starts, first, side="right") - 1
        border, after = genome.contig_starts[contig : contig + 2]
        assert border <= hits.starts[0] <= first
        assert last <= hits.ends[0] <= after


def test_a_contig_shorter_than_the_read():
    rng = np.random.default_rng(3)
    genome = genome_of(random_bases(rng, 40))
    read = np.concatenate([rng.integers(0, 4, 30), codes_in(genome), rng.integers(0, 4, 30)])
    codes, offsets = flat([read])
    hits = extend(
        genome, both_strands(codes, offsets), offsets, candidates_at([0], [0], [-30], 1), PARAMETERS
    )
    assert (hits.starts[0], hits.ends[0], hits.scores[0]) == (0, 40, 40)


def test_low_scores_and_duplicates_are_dropped():
    rng = np.random.default_rng(4)
    genome = genome_of(random_bases(rng, 300))
    read = np.delete(codes_in(genome)[50:130], [40, 41])
    codes, offsets = flat([read, rng.integers(0, 4, 60)])
    both = both_strands(codes, offsets)
    least = MappingParameters(least_score=40)
    # Both diagonals of a read with a deletion lead to the same alignment.
    twice = candidates_at([0, 0, 1], [0, 0, 0], [50, 52, 100], 2)
    hits = extend(genome, both, offsets, twice, least)
    assert hits.offsets.tolist() == [0, 1, 1]
    assert (hits.scores[0], hits.ends[0], hits.gapless[0]) == (78 - 8, 130, False)


def test_a_window_that_cuts_an_alignment_short_gives_no_other_place():
    rng = np.random.default_rng(6)
    genome = genome_of(random_bases(rng, 300))
    codes, offsets = flat([codes_in(genome)[50:150]])
    # The window of the second candidate ends 4 bases before the true alignment.
    found = candidates_at([0, 0], [0, 0], [50, 150 - 4 - 30 - 100], 1)
    hits = extend(genome, both_strands(codes, offsets), offsets, found, PARAMETERS)
    assert hits.scores.tolist() == [100]


def test_merged_hits_are_sorted_and_unique():
    rng = np.random.default_rng(5)
    unit = random_bases(rng, 70)
    genome = genome_of(unit + random_bases(rng, 50) + unit + random_bases(rng, 50) + unit[:60])
    bases = codes_in(genome)
    codes, offsets = flat([bases[:70], bases[180:250], bases[75:115]])
    both = both_strands(codes, offsets)

    def places_at(reads, diagonals):
        wanted = candidates_at(reads, [0] * len(reads), diagonals, 3)
        return extend(genome, both, offsets, wanted, PARAMETERS)

    merged = merge(places_at([0, 0, 2], [240, 0, 75]), places_at([0, 0], [120, 240]))
    assert merged.reads.tolist() == [0, 0, 0, 2]
    assert merged.starts.tolist() == [0, 120, 240, 75]
    assert merged.scores.tolist() == [70, 70, 60, 40]
    assert merged.offsets.tolist() == [0, 3, 3, 4]
    nothing = places_at([], [])
    assert merge(merged, nothing) is merged
    assert merge(nothing, merged).starts.tolist() == merged.starts.tolist()

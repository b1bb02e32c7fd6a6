"""Scored hits against all stretches of a diagonal and against whole alignment matrices."""

import numpy as np

from bwarp.mapping.extension.extension_cpu import both_strands, extend
from bwarp.mapping.extension.scored_hits_cpu import merge
from bwarp.mapping.parameters import MappingParameters
from tests.helpers.oracles.mapping_oracle import (
    best_scores,
    best_stretch,
    candidates_at,
    flat,
    index_and_genome,
    opposite,
    random_bases,
)

PARAMETERS = MappingParameters(least_score=1, largest_gap=6)


def genome_of(*contigs):
    return index_and_genome(list(contigs))[1]


def edited(rng, read, substitutions, indels):
    """A copy with random substitutions and short indels."""
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
    """Two mismatches within 16 bases of an end: a gap may be there."""
    differs = (read != bases[: read.size]) | (read > 3)
    return max(differs[:16].sum(), differs[-16:].sum()) > 1


def test_scores_and_the_rule_that_saves_alignments():
    rng = np.random.default_rng(1)
    genome = genome_of(random_bases(rng, 300), random_bases(rng, 200))
    reads, strands, diagonals = [], [], []
    for number in range(120):
        start = int(rng.integers(0, 150))
        read = edited(rng, genome.codes[start : start + 45], number % 6, number % 3 // 2)
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
        window = genome.codes[hits.window_starts[i] : hits.window_ends[i]].tolist()
        local, priced = best_scores(turned.tolist(), window, PARAMETERS)
        raw_scores = best_stretch(turned, genome.codes, diagonals[i], 0, len(read), 0)
        if not hits.gapless[i]:
            n_gapped += 1
            assert hits.scores[i] == local > raw_scores
            continue
        begin, end = hits.read_starts[i], hits.read_ends[i]
        assert hits.starts[i] - begin == hits.ends[i] - end == diagonals[i]
        clips = (begin > 0) + (end < len(read))
        penalised = hits.scores[i] - PARAMETERS.clip * clips
        stretch = best_stretch(turned, genome.codes, diagonals[i], 0, len(read), PARAMETERS.clip)
        assert penalised == stretch
        gap = PARAMETERS.gap_open + PARAMETERS.gap_extend
        if stretch >= len(read) - gap:
            n_sure += 1
            assert penalised == priced
        elif clips or crowded_end(turned, genome.codes[diagonals[i] :]):
            n_looked += 1
            assert local == raw_scores
    assert n_sure > 30
    assert n_looked > 10
    assert n_gapped > 15


def test_a_read_over_a_border_is_clipped_where_it_scores_most():
    rng = np.random.default_rng(2)
    genome = genome_of(random_bases(rng, 100), b"", random_bases(rng, 20), random_bases(rng, 90))
    for start, first, last in ((75, 75, 100), (-20, 0, 40), (90, 120, 150), (160, 160, 210)):
        read = rng.integers(0, 4, 60).astype(np.uint8)
        read[first - start : last - start] = genome.codes[first:last]
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
    read = np.concatenate([rng.integers(0, 4, 30), genome.codes, rng.integers(0, 4, 30)])
    codes, offsets = flat([read])
    hits = extend(
        genome, both_strands(codes, offsets), offsets, candidates_at([0], [0], [-30], 1), PARAMETERS
    )
    assert (hits.starts[0], hits.ends[0], hits.scores[0]) == (0, 40, 40)


def test_low_scores_and_second_sights_are_left_out():
    rng = np.random.default_rng(4)
    genome = genome_of(random_bases(rng, 300))
    read = np.delete(genome.codes[50:130], [40, 41])
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
    codes, offsets = flat([genome.codes[50:150]])
    # The second candidate's window ends 4 bases before the true alignment does.
    found = candidates_at([0, 0], [0, 0], [50, 150 - 4 - 30 - 100], 1)
    hits = extend(genome, both_strands(codes, offsets), offsets, found, PARAMETERS)
    assert hits.scores.tolist() == [100]


def test_merged_hits_are_in_order_and_there_once():
    rng = np.random.default_rng(5)
    unit = random_bases(rng, 70)
    genome = genome_of(unit + random_bases(rng, 50) + unit + random_bases(rng, 50) + unit[:60])
    codes, offsets = flat([genome.codes[:70], genome.codes[180:250], genome.codes[75:115]])
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

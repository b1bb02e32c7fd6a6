"""Final alignments, against whole matrices with a penalty for each clipped end."""

from dataclasses import replace

import numpy as np
import pytest

from bwarp.evaluation.agreement import score_of
from bwarp.mapping.extension_cpu import both_strands, extend
from bwarp.mapping.final_alignments import align_hits
from bwarp.mapping.parameters import END_TO_END, MappingParameters
from tests.helpers.oracles.mapping_oracle import (
    best_scores,
    candidates_at,
    codes_in,
    flat,
    genome_with,
    index_and_genome,
    opposite,
    random_bases,
)

PARAMETERS = MappingParameters(least_score=1)


def cigar_of(mapped, row, length):
    """Return the CIGAR as in pysam, with soft clips."""
    aligned = mapped.cigar[mapped.cigar_offsets[row] : mapped.cigar_offsets[row + 1]]
    ends = ((4, int(mapped.read_starts[row])), (4, length - int(mapped.read_ends[row])))
    cigar = [ends[0], *((int(part & 15), int(part >> 4)) for part in aligned), ends[1]]
    return tuple(part for part in cigar if part[1])


def changed_reads(genome, rng, count):
    """Return (read, strand, start) with mismatches, gaps, foreign ends; some cross contig ends."""
    bases = codes_in(genome)
    reads = []
    for _ in range(count):
        start = int(rng.integers(0, 140))
        read = bases[start : start + 60].copy()
        flips = rng.random(60) < 0.06
        read[flips] = rng.integers(0, 5, flips.sum())
        at = int(rng.integers(2, 58))
        if rng.random() < 0.5:
            read = np.delete(read, slice(at, at + int(rng.integers(1, 6))))
        elif rng.random() < 0.5:
            read = np.insert(read, at, rng.integers(0, 4, int(rng.integers(1, 6))))
        foreign = int(rng.integers(0, 12)) * (rng.random() < 0.4)
        read = np.concatenate([rng.integers(0, 4, foreign), read]).astype(np.uint8)
        reads.append((read, int(rng.integers(2)), start - foreign))
    return reads


@pytest.mark.parametrize("clip", [0, 5, 11])
def test_clip_penalised_scores_are_the_best(clip):
    rng = np.random.default_rng(clip)
    _, genome = index_and_genome([random_bases(rng, 100), random_bases(rng, 100)])
    bases = codes_in(genome)
    parameters = replace(PARAMETERS, clip=clip)
    made = changed_reads(genome, rng, 60)
    reads = [opposite(read) if strand else read for read, strand, _ in made]
    codes, offsets = flat(reads)
    both = both_strands(codes, offsets)
    found = candidates_at(
        range(60), [strand for _, strand, _ in made], [start for *_, start in made], 60
    )
    hits = extend(genome, both, offsets, found, parameters)
    assert len(hits.reads) == 60
    mapped = align_hits(genome, both, offsets, hits, np.arange(60), parameters)
    n_gapped = n_missed = 0
    for row, (read, strand, _) in enumerate(made):
        assert mapped.strands[row] == strand
        cigar = cigar_of(mapped, row, len(read))
        assert sum(length for kind, length in cigar if kind != 2) == len(read)
        penalised = score_of(cigar, read, bases, int(mapped.positions[row]), parameters)
        clips = sum(kind == 4 for kind, _ in cigar)
        assert penalised == mapped.scores[row] - clip * clips
        window = bases[hits.window_starts[row] : hits.window_ends[row]]
        _, best = best_scores(read, window, parameters)
        # Without a sign of a gap on the diagonal, none is searched; other content of the window is
        # not the hit.
        if hits.gapless[row] and penalised < best:
            n_missed += 1
            assert [kind for kind, _ in cigar if kind != 4] == [0]
            assert mapped.positions[row] == hits.starts[row]
        else:
            assert penalised == best
        n_gapped += any(kind in (1, 2) for kind, _ in cigar)
        borders = [0, 100, 200]
        end = mapped.positions[row] + sum(length for kind, length in cigar if kind in (0, 2))
        assert np.searchsorted(borders, mapped.positions[row], "right") == np.searchsorted(
            borders, end, "left"
        )
    assert n_gapped > 15
    assert n_missed < 3


def test_end_to_end_nothing_is_clipped():
    rng = np.random.default_rng(7)
    _, genome = index_and_genome([random_bases(rng, 100), random_bases(rng, 100)])
    bases = codes_in(genome)
    parameters = replace(PARAMETERS, mode=END_TO_END)
    made = changed_reads(genome, rng, 60)
    reads = [opposite(read) if strand else read for read, strand, _ in made]
    codes, offsets = flat(reads)
    both = both_strands(codes, offsets)
    found = candidates_at(
        range(60), [strand for _, strand, _ in made], [start for *_, start in made], 60
    )
    hits = extend(genome, both, offsets, found, parameters)
    mapped = align_hits(genome, both, offsets, hits, np.arange(len(hits.reads)), parameters)
    dear = replace(parameters, clip=10**6)
    bests = []
    for read, *_, start in made:
        low, high = (0, 100) if start + 30 < 100 else (100, 200)
        window = bases[max(low, start - 30) : min(high, start + len(read) + 30)]
        bests.append(best_scores(read, window, dear)[1])
    scores = dict(zip(hits.reads.tolist(), mapped.scores.tolist(), strict=True))
    inside = [i for i, (read, _, at) in enumerate(made) if at >= 0 and not at < 100 < at + 80]
    assert len(inside) > 15
    for i in inside:
        assert scores.get(i, 0) == max(bests[i], 0)
    for row, read_number in enumerate(hits.reads):
        read = made[read_number][0]
        cigar = cigar_of(mapped, row, len(read))
        assert all(kind in (0, 1, 2) for kind, _ in cigar)
        position = int(mapped.positions[row])
        assert score_of(cigar, read, bases, position, parameters) == mapped.scores[row]


def test_where_clipping_costs_nothing_more_the_end_is_clipped():
    rng = np.random.default_rng(1)
    _, genome = index_and_genome([random_bases(rng, 200)])
    read = codes_in(genome)[60:140].copy()
    # Two mismatches cost 10; clipping five bases saves these, but costs the other matches, and 5.
    read[[2, 4]] = (read[[2, 4]] + 1) % 4
    read[30] = (read[30] + 1) % 4
    codes, offsets = flat([read])
    both = both_strands(codes, offsets)
    hits = extend(genome, both, offsets, candidates_at([0], [0], [60], 1), PARAMETERS)
    mapped = align_hits(genome, both, offsets, hits, np.array([0]), PARAMETERS)
    assert (mapped.read_starts[0], mapped.read_ends[0], mapped.scores[0]) == (5, 80, 70)


def test_a_short_gap_near_an_end_is_found():
    rng = np.random.default_rng(2)
    _, genome = index_and_genome([random_bases(rng, 200)])
    read = np.delete(codes_in(genome)[60:142], [72, 73])
    codes, offsets = flat([read])
    both = both_strands(codes, offsets)
    hits = extend(genome, both, offsets, candidates_at([0], [0], [60], 1), PARAMETERS)
    mapped = align_hits(genome, both, offsets, hits, np.array([0]), PARAMETERS)
    assert sum(length for kind, length in cigar_of(mapped, 0, 80) if kind == 2) == 2
    assert (mapped.read_ends[0], mapped.scores[0]) == (80, 72)


def test_rows_may_be_any_hits_and_none():
    rng = np.random.default_rng(3)
    _, genome = index_and_genome([random_bases(rng, 300)])
    bases = codes_in(genome)
    reads = [bases[20:80].copy(), np.delete(bases[100:180], 40)]
    codes, offsets = flat(reads)
    both = both_strands(codes, offsets)
    found = candidates_at([0, 1], [0, 0], [20, 100], 2)
    hits = extend(genome, both, offsets, found, PARAMETERS)
    mapped = align_hits(genome, both, offsets, hits, np.array([1, -1, 0, 1]), PARAMETERS)
    assert mapped.positions.tolist() == [100, -1, 20, 100]
    assert mapped.scores.tolist() == [72, 0, 60, 72]
    assert np.diff(mapped.cigar_offsets).tolist() == [3, 0, 1, 3]
    nothing = align_hits(genome, both, offsets, hits, np.empty(0, np.int64), PARAMETERS)
    assert (nothing.positions.size, nothing.cigar_offsets.tolist()) == (0, [0])


def test_two_mismatches_near_an_end_may_be_a_gap():
    rng = np.random.default_rng(4)
    _, genome = index_and_genome([random_bases(rng, 200)])
    codes = codes_in(genome)
    codes[60:68] = [2, 2, 2, 2, 2, 1, 3, 0]
    genome = genome_with(codes, genome.contig_starts)
    # One T more than in the genome: without a gap, two bases before it differ.
    read = np.concatenate([codes[61:67], [3], codes[67:140]]).astype(np.uint8)
    codes, offsets = flat([read])
    both = both_strands(codes, offsets)
    hits = extend(genome, both, offsets, candidates_at([0], [0], [60], 1), PARAMETERS)
    assert hits.gapless.all()
    mapped = align_hits(genome, both, offsets, hits, np.array([0]), PARAMETERS)
    assert sum(length for kind, length in cigar_of(mapped, 0, 80) if kind == 1) == 1
    assert (mapped.read_starts[0], mapped.scores[0]) == (0, 79 - 7)

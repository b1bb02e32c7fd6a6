"""Reads whose best hit covers only a part: hits of the rest."""

from dataclasses import replace

import numpy as np
import pytest

import bwarp
from bwarp.mapping.extension_cpu import both_strands, extend
from bwarp.mapping.parameters import END_TO_END, MappingParameters
from bwarp.mapping.primary_hits_cpu import read_span, whole_reads
from bwarp.mapping.seeding_rounds_cpu import score_reads
from bwarp.mapping.seeds_cpu import find_candidates
from bwarp.mapping.split_reads import (
    across_gaps,
    with_aligned_parts,
    with_clipped_ends,
    with_split_reads,
)
from bwarp.sequence import decode
from tests.helpers.oracles.mapping_oracle import (
    candidates_at,
    codes_in,
    flat,
    index_and_genome,
    opposite,
    random_bases,
)

PARAMETERS = MappingParameters()


@pytest.fixture(scope="module")
def mapper():
    rng = np.random.default_rng(1)
    return bwarp.Mapper(
        index_and_genome([random_bases(rng, 30_000), random_bases(rng, 20_000)])[0], threads=2
    )


def hits_at(genome, read, rows):
    codes, offsets = flat([read])
    both = both_strands(codes, offsets)
    found = candidates_at(*np.array([(0, *row) for row in rows]).T, 1)
    return codes, offsets, both, extend(genome, both, offsets, found, PARAMETERS)


def rows_of(hits):
    """Return (score, strand, start, end, read start, read end) of each hit."""
    columns = (hits.scores, hits.strands, hits.starts, hits.ends, hits.read_starts, hits.read_ends)
    return [tuple(map(int, row)) for row in zip(*columns, strict=True)]


def parts(lines):
    """Return (flag, contig, position, CIGAR) of a read's records, by position in the read."""
    return sorted(
        zip(
            lines.flags.tolist(), lines.contigs, lines.positions.tolist(), lines.cigars,
            strict=True,
        ),
        key=lambda row: row[1:3],
    )  # fmt: skip


@pytest.mark.parametrize("strand", [0, 1])
@pytest.mark.parametrize("gap", [40, -40])
def test_two_parts_with_a_gap_between_them_are_one_hit(strand, gap):
    rng = np.random.default_rng(2)
    _, genome = index_and_genome([random_bases(rng, 300), random_bases(rng, 1000)])
    bases = codes_in(genome)
    foreign = rng.integers(0, 4, max(0, -gap))
    rest = 1000 + max(0, gap)
    read = np.concatenate([bases[930:1000], foreign, bases[rest : rest + 40]]).astype(np.uint8)
    read = opposite(read) if strand else read
    n = len(read)
    alone = hits_at(genome, read, [(strand, 930)])[-1]
    *_, both, hits = hits_at(genome, read, [(strand, 930), (strand, 930 + gap)])
    assert [row[0] for row in rows_of(hits)] == pytest.approx([70, 40], abs=3)
    offsets = np.array([0, n])
    found = across_gaps(genome, both, offsets, hits, PARAMETERS)
    # The former hit is now a part of it.
    assert rows_of(found) == [(110 - 26, strand, 930, rest + 40, 0, n)]
    assert not found.gapless[0]
    assert found.window_starts[0] <= 930
    assert found.window_ends[0] >= rest + 40
    assert across_gaps(genome, both, offsets, alone, PARAMETERS) is alone
    whole = replace(PARAMETERS, mode=END_TO_END)
    assert across_gaps(genome, both, offsets, hits, whole) is hits


def test_clipped_ends_are_searched_as_separate_reads(mapper):
    genome = mapper.genome
    bases = codes_in(genome)
    read = np.concatenate([opposite(bases[900:960]), bases[5_000:5_060], bases[20_000:20_040]])
    codes, offsets, _, hits = hits_at(genome, read, [(0, 5_000 - 60)])
    found = with_clipped_ends(mapper.index, genome, codes, offsets, hits, PARAMETERS)
    rows = {row[2]: row for row in rows_of(found)}
    assert len(rows) == 3
    for score, strand, start, length, begin in (
        (60, 0, 5_000, 60, 60), (60, 1, 900, 60, 100), (40, 0, 20_000, 40, 120)
    ):  # fmt: skip
        # A base or two may fit on both sides.
        near = min(rows, key=lambda at: abs(at - start))
        expected = (score, strand, start, start + length, begin, begin + length)
        assert np.abs(np.array(rows[near]) - expected).max() <= 3
    assert found.offsets.tolist() == [0, 3]
    whole = replace(PARAMETERS, mode=END_TO_END)
    assert with_clipped_ends(mapper.index, genome, codes, offsets, hits, whole) is hits


@pytest.mark.parametrize("changes", [{}, {"least_score": 12}, {"clip": 0}, {"match": 2}])
def test_all_steps_together_equal_each_on_all_hits(changes):
    """Reads of several parts, some of them on one diagonal except for a gap."""
    rng = np.random.default_rng(5)
    repeat = random_bases(rng, 2_000)
    index, genome = index_and_genome([random_bases(rng, 8_000) + repeat, random_bases(rng, 5_000)])
    parameters = replace(PARAMETERS, **changes)
    bases, reads, rows = codes_in(genome), [], []
    for number in range(300):
        begin, first = int(rng.integers(200, 12_000)), int(rng.integers(5, 145))
        gap = int(rng.choice([0, 0, 3, 40, -40, 90, 3_000]))
        rest = np.clip(begin + first + gap, 0, bases.size - 150)
        read = np.concatenate([bases[begin : begin + first], bases[rest : rest + 150 - first]])
        is_reverse = number % 2
        reads.append(opposite(read) if is_reverse else read)
        near = [(number, is_reverse, begin), (number, is_reverse, max(0, rest - first))]
        rows += near[: 1 + number % 3]
    codes, offsets = flat(reads)
    both = both_strands(codes, offsets)
    candidates = candidates_at(*np.array(rows).T, len(reads))
    hits = extend(genome, both, offsets, candidates, parameters)
    joined = across_gaps(genome, both, offsets, hits, parameters)
    expected = with_clipped_ends(index, genome, codes, offsets, joined, parameters)
    assert expected.scores.tolist() != joined.scores.tolist()
    assert joined.scores.tolist() != hits.scores.tolist()
    none = np.zeros(len(reads), np.int32)
    found, unlocated, spans = with_split_reads(
        index, genome, both, codes, offsets, hits, none, parameters
    )
    assert not unlocated.any()
    assert spans.tolist() == [[0, 150]] * len(reads)
    for column, wanted in zip(found, expected, strict=True):
        assert column.tolist() == wanted.tolist()


def test_a_read_over_a_short_inversion_has_three_records(mapper):
    """The first and the last part are on one diagonal."""
    bases = codes_in(mapper.genome)
    read = bases[7_000:7_150].copy()
    read[50:100] = opposite(read[50:100])
    found = parts(mapper.map([decode(read).decode()]))
    assert [row[2] for row in found] == pytest.approx([7_000, 7_050, 7_100], abs=3)
    assert sorted(flag & 16 for flag, *_ in found) == [0, 0, 16]
    assert sorted(flag & 2048 for flag, *_ in found) == [0, 2048, 2048]


@pytest.mark.parametrize("size", [35, 50, 80, 140])
@pytest.mark.parametrize("before", [40, 75, 110])
def test_a_read_over_a_tandem_duplication_has_a_record_on_either_side(mapper, size, before):
    """The window of each part contains most of the other one."""
    bases = codes_in(mapper.genome)
    end = 11_000
    read = np.concatenate(
        [bases[end - before : end], bases[end - size : end - size + 150 - before]]
    )
    found = parts(mapper.map([decode(read).decode()]))
    if len(found) == 1:
        # A short one may be an insertion between two matches.
        assert f"{size}I" in found[0][3]
        assert size <= 50
        return
    assert [row[2] for row in found] == pytest.approx(sorted([end - before, end - size]), abs=3)


@pytest.mark.parametrize("shared", [0, 4, 8])
def test_bases_that_fit_on_both_sides_count_for_both_parts(mapper, shared):
    """27 bases are clipped; with the shared bases, the end scores enough."""
    bases = codes_in(mapper.genome).copy()
    read = np.concatenate([bases[3_000:3_123], bases[33_000:33_027]])
    genome_end = bases[33_000 - shared : 33_000]
    read[123 - shared : 123] = genome_end
    lines = mapper.map([decode(read).decode()])
    flags = lines.flags.tolist()
    # Without them it scores 27, plus one or two by chance.
    assert len(flags) == 1 + (shared >= 4)


def repeat_index(rng):
    """Return an index and a genome with 700 copies of a stretch of 60 bases, and where it is."""
    repeat, contig = random_bases(rng, 60), b""
    for _ in range(700):
        contig += random_bases(rng, 60) + repeat
    return *index_and_genome([random_bases(rng, 5_000) + contig]), 5_060


@pytest.mark.parametrize("strand", [0, 1])
def test_a_unique_part_beside_a_repeat_has_a_high_quality(strand):
    """Most hits of the repeat are not located; they are no rivals of the unique part."""
    rng = np.random.default_rng(11)
    index, genome, at = repeat_index(rng)
    bases = codes_in(genome)
    read = np.concatenate([bases[1_000:1_090], bases[at : at + 60]])
    read = opposite(read) if strand else read
    mate = opposite(bases[1_250:1_400])
    mapper = bwarp.Mapper(index, threads=1, insert_size=(400, 50), orientation="FR")
    single = mapper.map([decode(read).decode()])
    pair = mapper.map([decode(read).decode()], [decode(mate).decode()])
    for lines in (single, pair):
        assert lines.positions[0] == 1_000
        assert lines.mapping_qualities[0] >= 50


def test_parts_are_scored_as_reads_of_their_own():
    rng = np.random.default_rng(12)
    index, genome, at = repeat_index(rng)
    bases, reads = codes_in(genome), []
    for begin in range(1_000, 3_000, 100):
        first = int(rng.integers(50, 100))
        read = np.concatenate([bases[begin : begin + first], bases[at : at + 60]])
        reads.append(opposite(read) if begin % 200 else read)
    # A whole read, and a read of the repeat only.
    reads += [bases[1_500:1_650], bases[at : at + 60]]
    codes, offsets = flat(reads)
    both = both_strands(codes, offsets)
    found = find_candidates(
        index, codes, offsets, np.arange(len(reads)), PARAMETERS.first, PARAMETERS
    )
    hits, unlocated, _ = score_reads(index, genome, both, codes, offsets, found, PARAMETERS)
    spans = whole_reads(np.diff(offsets))
    left, before = unlocated.copy(), spans.copy()
    more = with_aligned_parts(index, genome, codes, offsets, hits, left, spans, PARAMETERS)
    changed = np.flatnonzero((spans != before).any(axis=1))
    assert changed.tolist() == list(range(20))
    for read in changed:
        begin, end = spans[read]
        i = hits.offsets[read]
        assert (begin, end) == read_span(hits, i, offsets[read + 1] - offsets[read])
        part, part_offsets = flat([reads[read][begin:end]])
        found = find_candidates(
            index, part, part_offsets, np.arange(1), PARAMETERS.first, PARAMETERS
        )
        low = replace(PARAMETERS, least_score=PARAMETERS.least_mate_score)
        own, expected, _ = score_reads(
            index, genome, both_strands(part, part_offsets), part, part_offsets, found, low
        )
        assert left[read] == expected[0]
        assert left[read] < unlocated[read]
        # The same locus, among the hits of the read.
        assert own.scores[0] == more.scores[more.offsets[read]]
    kept = np.setdiff1d(np.arange(len(reads)), changed)
    assert left[kept].tolist() == unlocated[kept].tolist()


def test_a_part_with_a_rival_that_scores_too_little_for_a_record_is_not_sure():
    rng = np.random.default_rng(9)
    unit = random_bases(rng, 34)
    worn = bytearray(unit)
    worn[2] = ord("A") if worn[2] != ord("A") else ord("C")
    contig = random_bases(rng, 5_000) + unit + random_bases(rng, 5_000)
    index, genome = index_and_genome([contig + bytes(worn) + random_bases(rng, 5_000)])
    bases = codes_in(genome)
    read = np.concatenate([bases[1_000:1_116], bases[5_000:5_034]])
    lines = bwarp.Mapper(index, threads=1).map([decode(read).decode()])
    assert lines.positions.tolist()[0] == 1_000
    assert lines.mapping_qualities[0] == 60
    assert lines.mapping_qualities[1] < 30

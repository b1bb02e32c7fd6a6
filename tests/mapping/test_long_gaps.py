"""Clipped ends across long gaps, against trying every place of a gap."""

from dataclasses import replace

import numpy as np
import pytest

import bwarp
from bwarp.evaluation.agreement import score_of
from bwarp.mapping.extension_cpu import both_strands
from bwarp.mapping.final_alignments import MappedReads, across_long_gaps
from bwarp.mapping.parameters import END_TO_END, MappingParameters
from bwarp.sequence import decode
from tests.helpers.oracles.mapping_oracle import (
    base_score,
    codes_in,
    flat,
    genome_with,
    index_and_genome,
    opposite,
    random_bases,
)

PARAMETERS = MappingParameters()


def mapped_at(rows) -> MappedReads:
    """Return alignments of one match each: (position, strand, read start, read end, score)."""
    columns = np.array(rows, np.int64).reshape(-1, 5).T
    positions, strands, starts, ends, scores = columns
    return MappedReads(
        positions,
        strands.astype(np.uint8),
        starts.astype(np.int32),
        ends.astype(np.int32),
        scores.astype(np.int32),
        np.arange(len(positions) + 1),
        ((ends - starts) << 4).astype(np.uint32),
    )


def cigar_of(mapped, row, length):
    aligned = mapped.cigar[mapped.cigar_offsets[row] : mapped.cigar_offsets[row + 1]]
    ends = ((4, int(mapped.read_starts[row])), (4, length - int(mapped.read_ends[row])))
    cigar = [ends[0], *((int(part & 15), int(part >> 4)) for part in aligned), ends[1]]
    return tuple(part for part in cigar if part[1])


def text_of(cigar) -> str:
    return "".join(f"{length}{'MIDNS'[operation]}" for operation, length in cigar)


def best_with_gap(read, contig, diagonal, begin, p) -> int:
    """Return the best clip-penalised score of bases from `begin` on, with a gap or a clipped end.

    This tries all pairs of diagonals, all places of the gap, and all ends.
    """

    def scores(on):
        inside = [0 <= on + i < len(contig) for i in range(len(read))]
        return [
            base_score(read[i], contig[on + i]) if inside[i] else -(10**6) for i in range(len(read))
        ]

    near = np.cumsum([0, *scores(diagonal)[begin:]])
    best = max(near[1:-1]) - p.clip
    for size in range(1, p.longest_gap + 1):
        cost = p.gap_open + p.gap_extend * min(size, p.long_gap)
        for shift in (size, -size):
            far = scores(diagonal + shift)
            # tail[i]: from base i on, to the end or clipped before it.
            tail = [-(10**6)] * (len(read) + 1)
            going = 0
            for i in range(len(read) - 1, begin, -1):
                going = far[i] + (0 if i == len(read) - 1 else max(going, -p.clip))
                tail[i] = going
            inserted = max(0, -shift)
            for split in range(begin + 1, len(read) - inserted):
                best = max(best, near[split - begin] + tail[split + inserted] - cost)
    return int(best)


def gapped_read(rng, bases, contig_end):
    """Return a read of 80 to 150 bases across a gap near its end, and the end of the near part."""
    length, size = int(rng.integers(80, 151)), int(rng.integers(21, 111))
    far = int(rng.integers(15, 40))
    near = length - far
    start = int(rng.integers(0, contig_end - length - size))
    if rng.random() < 0.5:
        rest = bases[start + near + size :][:far]
        read = np.concatenate([bases[start : start + near], rest])
    else:
        near -= size
        foreign = rng.integers(0, 4, size)
        read = np.concatenate([bases[start:][:near], foreign, bases[start + near :][:far]])
    flips = rng.random(len(read)) < 0.01
    read[flips] = rng.integers(0, 5, flips.sum())
    return read.astype(np.uint8), start, near


def test_the_best_gap_is_found_at_either_end():
    rng = np.random.default_rng(3)
    _, genome = index_and_genome([random_bases(rng, 700), random_bases(rng, 300)])
    bases = codes_in(genome)
    turned = np.concatenate([bases[:700][::-1], bases[700:][::-1]])
    reads, rows, expected, kept = [], [], [], []
    while len(reads) < 80:
        read, start, near = gapped_read(rng, bases, 700)
        if near < 30:
            continue
        # The aligned part ends at its maximum score.
        sums = np.cumsum([base_score(*pair) for pair in zip(read, bases[start:], strict=False)])
        end = int(sums[: near + 15].argmax()) + 1
        expected.append(best_with_gap(read, bases[:700], start, 0, PARAMETERS))
        kept.append(int(sums[end - 1]) - PARAMETERS.clip)
        reads.append((read, (start, 0, 0, end, sums[end - 1])))
    for mirrored in (False, True):
        here = genome_with(turned, genome.contig_starts) if mirrored else genome
        rows, flat_reads = [], []
        for number, (read, (start, _, _, end, score)) in enumerate(reads):
            n, strand = len(read), number % 2
            row = (start, strand, 0, end, score)
            if mirrored:
                read, row = read[::-1], (700 - start - end, strand, n - end, n, score)
            flat_reads.append(opposite(read) if strand else read)
            rows.append(row)
        codes, offsets = flat(flat_reads)
        both = both_strands(codes, offsets)
        found = across_long_gaps(here, both, offsets, mapped_at(rows), PARAMETERS)
        n_gaps = 0
        for row, (read, _) in enumerate(reads):
            letters = read[::-1] if mirrored else read
            cigar = cigar_of(found, row, len(read))
            assert sum(length for kind, length in cigar if kind != 2) == len(read)
            position = int(found.positions[row])
            penalised = score_of(cigar, letters, codes_in(here), position, PARAMETERS)
            assert penalised == expected[row]
            clips = sum(kind == 4 for kind, _ in cigar)
            assert found.scores[row] == penalised + PARAMETERS.clip * clips
            n_gaps += penalised > kept[row]
        assert 40 < n_gaps < 80


def test_both_ends_of_one_match_may_have_a_gap():
    rng = np.random.default_rng(5)
    _, genome = index_and_genome([random_bases(rng, 800)])
    bases = codes_in(genome)
    read = np.concatenate([bases[200:240], bases[300:350], rng.integers(0, 4, 40), bases[350:400]])
    codes, offsets = flat([read])
    both = both_strands(codes, offsets)
    arguments = (genome, both, offsets, mapped_at([(300, 0, 40, 90, 50)]))
    found = across_long_gaps(*arguments, PARAMETERS)
    assert (found.positions[0], found.scores[0]) == (200, 140 - 2 * 26)
    cigar = cigar_of(found, 0, len(read))
    assert [part for part in cigar if part[0]] == [(2, 60), (1, 40)]
    assert sum(length for kind, length in cigar if kind == 0) == 140
    # Not in end-to-end mode, nor across more bases than allowed.
    for other in (replace(PARAMETERS, mode=END_TO_END), replace(PARAMETERS, longest_gap=39)):
        assert across_long_gaps(*arguments, other).positions.tolist() == [300]


def test_where_clipping_costs_more_than_a_gap_whole_reads_stay_as_they_are():
    rng = np.random.default_rng(8)
    _, genome = index_and_genome([random_bases(rng, 300) + 3 * random_bases(rng, 40)])
    bases = codes_in(genome)
    dear = replace(PARAMETERS, clip=60)
    whole, clipped = bases[240:340], np.concatenate([bases[200:288], bases[320:332]])
    codes, offsets = flat([whole, clipped])
    both = both_strands(codes, offsets)
    start = mapped_at([(240, 0, 0, 100, 100), (200, 0, 0, 88, 88)])
    found = across_long_gaps(genome, both, offsets, start, dear)
    assert [text_of(cigar_of(found, row, 100)) for row in range(2)] == ["100M", "88M32D12M"]
    assert found.scores.tolist() == [100, 100 - 26]


def test_ties_go_to_the_shortest_and_leftmost_gap():
    rng = np.random.default_rng(6)
    unit = random_bases(rng, 40)
    tail = random_bases(rng, 300)
    head = random_bases(rng, 200)
    # The read has one copy of three: it may skip any two, or one and begin later.
    _, genome = index_and_genome([head + unit * 3 + tail])
    bases = codes_in(genome)
    for taken, gap in (("M", 80), ("MM", 40)):
        read = np.concatenate([bases[140:200], *[bases[200:240]] * len(taken), bases[320:380]])
        codes, offsets = flat([read])
        both = both_strands(codes, offsets)
        left = mapped_at([(140, 0, 0, 60 + 40 * len(taken), 60 + 40 * len(taken))])
        right = (320 - 40 * len(taken), 0, 60, len(read), len(read) - 60)
        for mapped in (left, mapped_at([right])):
            found = across_long_gaps(genome, both, offsets, mapped, PARAMETERS)
            cigar = text_of(cigar_of(found, 0, len(read)))
            assert cigar == f"60M{gap}D{len(read) - 60}M"
            assert found.positions[0] == 140


def test_no_gap_across_a_contigs_border_or_over_ambiguous_bases():
    rng = np.random.default_rng(7)
    _, genome = index_and_genome([random_bases(rng, 200), random_bases(rng, 200)])
    bases = codes_in(genome)
    read = np.concatenate([bases[100:180], bases[220:260]])
    codes, offsets = flat([read])
    both = both_strands(codes, offsets)
    start = mapped_at([(100, 0, 0, 80, 80)])
    joined = genome_with(bases, [0, 400])
    assert across_long_gaps(joined, both, offsets, start, PARAMETERS).cigar.size == 3
    assert across_long_gaps(genome, both, offsets, start, PARAMETERS).cigar.size == 1
    hidden = bases.copy()
    hidden[220:260] = 4
    joined = genome_with(hidden, [0, 400])
    assert across_long_gaps(joined, both, offsets, start, PARAMETERS).cigar.size == 1


@pytest.fixture(scope="module")
def mapper():
    rng = np.random.default_rng(1)
    repeat = random_bases(rng, 300)
    contigs = [
        random_bases(rng, 20_000) + repeat,
        repeat + random_bases(rng, 20_000) + repeat + random_bases(rng, 5_000),
    ]
    return bwarp.Mapper(index_and_genome(contigs)[0], threads=2)


@pytest.mark.parametrize("size", [31, 45, 60, 75, 100])
@pytest.mark.parametrize("is_insertion", [False, True])
def test_a_read_over_an_indel_has_one_record(mapper, size, is_insertion):
    rng = np.random.default_rng(size)
    bases = codes_in(mapper.genome)
    reads, starts, gaps = [], [], []
    for _ in range(40):
        size_here = min(size, 85) if is_insertion else size
        start = int(rng.integers(0, 19_000))
        rest = 150 - size_here if is_insertion else 150
        before = int(rng.integers(30, rest - 30))
        foreign = rng.integers(0, 4, size_here if is_insertion else 0)
        after = start + before + (0 if is_insertion else size_here)
        read = np.concatenate(
            [bases[start : start + before], foreign, bases[after : after + rest - before]]
        ).astype(np.uint8)
        reads.append(read if rng.random() < 0.5 else opposite(read))
        starts.append(start)
        gaps.append(f"{size_here}{'I' if is_insertion else 'D'}")
    lines = mapper.map([decode(read).decode() for read in reads])
    assert lines.reads.tolist() == list(range(40))
    assert lines.positions.tolist() == starts
    for cigar, gap in zip(lines.cigars, gaps, strict=True):
        assert gap in cigar
        assert "S" not in cigar
    assert (lines.mapping_qualities >= 30).all()


def test_beyond_the_longest_gap_reads_are_split(mapper):
    bases = codes_in(mapper.genome)
    read = np.concatenate([bases[5_000:5_080], bases[5_181:5_251]])
    lines = mapper.map([decode(read).decode()])
    assert (lines.flags & 2048 != 0).tolist() == [False, True]
    assert lines.positions.tolist() == [5_000, 5_181]


def test_a_part_in_a_repeat_is_placed_near_the_other(mapper):
    """The part in the repeat is the longer one, and has three copies."""
    bases = codes_in(mapper.genome)
    start = 20_300 + 300 + 20_000
    # The last 90 bases of the repeat; then, 50 bases further, 60 unique bases.
    read = np.concatenate([bases[start + 210 : start + 300], bases[start + 350 : start + 410]])
    lines = mapper.map([decode(read).decode()])
    assert lines.cigars == ["90M50D60M"]
    assert lines.positions[0] == 300 + 20_000 + 210
    assert lines.mapping_qualities[0] >= 30

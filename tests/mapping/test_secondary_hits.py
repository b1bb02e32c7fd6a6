"""Which hits get supplementary records, and which are secondary."""

from dataclasses import replace

import numpy as np

from bwarp.mapping.extension_cpu import both_strands, extend
from bwarp.mapping.final_alignments import align_hits
from bwarp.mapping.parameters import ALL, MappingParameters
from bwarp.mapping.primary_hits_cpu import select_single
from bwarp.mapping.secondary_hits import (
    recorded_of,
    secondary_of,
    supplementary_of,
)
from tests.helpers.oracles.mapping_oracle import (
    candidates_at,
    codes_in,
    flat,
    genome_with,
    index_and_genome,
    opposite,
    random_bases,
)

PARAMETERS = MappingParameters()


def lines_of(genome, reads, rows, parameters=PARAMETERS):
    """Return primary, supplementary and secondary alignments of (strand, diagonal) hits."""
    codes, offsets = flat(reads)
    both = both_strands(codes, offsets)
    flat_rows = np.array(
        [(read, *row) for read, part in enumerate(rows) for row in part], np.int64
    ).reshape(-1, 3)
    candidates = candidates_at(*flat_rows.T, len(reads))
    hits = extend(genome, both, offsets, candidates, parameters)
    primary = select_single(
        hits, np.diff(offsets), candidates.unlocated, parameters, np.zeros(len(reads), np.uint64)
    )
    mapped = align_hits(genome, both, offsets, hits, primary.hits, parameters)
    return (
        mapped,
        primary,
        supplementary_of(genome, both, offsets, hits, mapped, primary, parameters),
        secondary_of(genome, both, offsets, hits, primary, parameters),
    )


def recorded_in(genome, reads, rows, parameters):
    """Return the hits with records: (position, score) per read."""
    codes, offsets = flat(reads)
    both = both_strands(codes, offsets)
    flat_rows = np.array([(read, *row) for read, part in enumerate(rows) for row in part], np.int64)
    candidates = candidates_at(*flat_rows.T, len(reads))
    hits = extend(genome, both, offsets, candidates, parameters)
    primary = select_single(
        hits, np.diff(offsets), candidates.unlocated, parameters, np.zeros(len(reads), np.uint64)
    )
    mapped = align_hits(genome, both, offsets, hits, primary.hits, parameters)
    more = supplementary_of(genome, both, offsets, hits, mapped, primary, parameters)
    found = recorded_of(genome, both, offsets, hits, primary, more, parameters)
    lines = [[] for _ in reads]
    for read, position, score in zip(
        found.reads, found.alignments.positions, found.alignments.scores, strict=True
    ):
        lines[read].append((int(position), int(score)))
    return mapped, more, lines


def spans(alignments):
    return [
        tuple(map(int, row))
        for row in zip(
            alignments.positions, alignments.strands, alignments.read_starts, alignments.read_ends,
            strict=True,
        )
    ]  # fmt: skip


def test_a_read_of_three_parts_has_three_records():
    rng = np.random.default_rng(5)
    _, genome = index_and_genome([random_bases(rng, 2000)])
    bases = codes_in(genome)
    parts = bases[100:180], opposite(bases[900:950]), bases[1500:1540]
    whole = bases[300:450]
    read = np.concatenate(parts)
    # On the other strand the middle part begins after the last one.
    rows = [[(0, 100), (1, 900 - 40), (0, 1500 - 130)], [(0, 300)]]
    mapped, primary, found, secondary = lines_of(genome, [read, whole], rows)
    assert spans(mapped) == [(100, 0, 0, 80), (300, 0, 0, 150)]
    assert found.reads.tolist() == [0, 0]
    assert spans(found.alignments) == [(900, 1, 40, 90), (1500, 0, 130, 170)]
    assert found.suboptimal.tolist() == [0, 0]
    assert secondary.reads.size == 0
    assert primary.suboptimal.tolist() == [0, 0]
    assert primary.qualities[0] == 60
    assert (found.qualities <= 60).all()
    assert (found.qualities > 0).all()
    # A part that scores less than the minimum is not reported.
    strict = replace(PARAMETERS, least_score=45)
    assert spans(lines_of(genome, [read, whole], rows, strict)[2].alignments) == [(900, 1, 40, 90)]


def test_supplementary_mapq_depends_on_rivals_and_is_at_most_the_primarys():
    rng = np.random.default_rng(2)
    unit = random_bases(rng, 60)
    contig = random_bases(rng, 300) + unit + random_bases(rng, 300) + unit
    _, genome = index_and_genome([contig])
    bases = codes_in(genome)
    read = np.concatenate([bases[100:190], bases[300:360]])
    copies = [(0, 300 - 90), (0, 660 - 90)]
    _, primary, found, _ = lines_of(genome, [read], [[(0, 100), *copies]])
    assert found.reads.tolist() == [0]
    assert (found.qualities[0], found.suboptimal[0]) == (0, 60)
    assert (primary.qualities[0], primary.suboptimal[0]) == (60, 0)
    # In the other order, the first line is uncertain, and the others are not more certain.
    read = np.concatenate([bases[300:360], bases[100:140]])
    _, primary, found, secondary = lines_of(genome, [read], [[(0, 300), (0, 660), (0, 100 - 60)]])
    assert primary.suboptimal[0] == 60
    assert found.qualities[0] <= primary.qualities[0] < 10
    assert secondary.reads.tolist() == [0]


def test_few_and_nearly_as_good_hits_are_secondary():
    rng = np.random.default_rng(3)
    unit = random_bases(rng, 100)
    copies = b"".join(random_bases(rng, 100) + unit for _ in range(7))
    _, genome = index_and_genome([copies])
    codes = codes_in(genome)
    codes[320:340] = (codes[320:340] + 1) % 4
    codes[550:570:5] = (codes[550:570:5] + 1) % 4
    genome = genome_with(codes, genome.contig_starts)
    read = codes[100:200].copy()
    starts = [100 + 200 * copy for copy in range(7)]
    reads, rows = [], []
    for count in range(1, 8):
        reads.append(read)
        rows.append([(0, start) for start in starts[:count]])
    _, primary, found, secondary = lines_of(genome, reads, rows)
    assert found.reads.size == 0
    # The copy at 300 scores too little; the one at 500 (80 of 100) just enough.
    named = {count: [] for count in range(1, 8)}
    for read_number, row in zip(secondary.reads, spans(secondary.alignments), strict=True):
        named[read_number + 1].append(row[0])
    assert primary.suboptimal.tolist()[:3] == [0, 60, 80]
    assert [len(named[count]) for count in range(1, 8)] == [0, 0, 1, 2, 3, 4, 5]
    assert named[3] == [500]
    few = replace(PARAMETERS, most_secondary=3)
    secondary = lines_of(genome, reads, rows, few)[3]
    assert np.bincount(secondary.reads, minlength=7).tolist() == [0, 0, 1, 2, 3, 0, 0]


def test_secondary_records_have_half_the_score_or_more():
    rng = np.random.default_rng(4)
    unit = random_bases(rng, 100)
    _, genome = index_and_genome([b"".join(random_bases(rng, 100) + unit for _ in range(6))])
    codes = codes_in(genome)
    # A mismatch costs 5: copies that score 95, 50, 45 and, near its end, 60 of its first 60 bases.
    for copy, changed in (
        (1, [50]),
        (2, range(9, 100, 9)),
        (3, range(5, 96, 9)),
        (4, range(60, 99)),
    ):
        for at in list(changed)[:40]:
            codes[100 + 200 * copy + at] = (codes[100 + 200 * copy + at] + 1) % 4
    genome = genome_with(codes, genome.contig_starts)
    read = codes[100:200].copy()
    starts = [100 + 200 * copy for copy in range(6)]
    rows = [[(0, start) for start in starts], [(0, starts[0])]]
    parameters = replace(PARAMETERS, secondary_records=ALL)
    mapped, _, found = recorded_in(genome, [read, read], rows, parameters)
    assert mapped.scores.tolist() == [100, 100]
    first = {100: 1100, 1100: 100}[int(mapped.positions[0])]
    assert found[0][:3] == [(first, 100), (300, 95), (900, 60)]
    assert all(score >= 50 for _, score in found[0])
    assert found[1] == []
    limited = recorded_in(genome, [read, read], rows, replace(parameters, secondary_records=2))[2]
    assert limited == [found[0][:2], []]
    strict = replace(parameters, least_score=61)
    assert recorded_in(genome, [read, read], rows, strict)[2] == [found[0][:2], []]


def test_hits_of_a_supplementary_record_are_secondary_to_it():
    rng = np.random.default_rng(9)
    unit = random_bases(rng, 40)
    contig = random_bases(rng, 600) + unit + random_bases(rng, 360) + unit
    _, genome = index_and_genome([contig])
    bases = codes_in(genome)
    # No base before the copies continues the first part of the read.
    bases[[599, 999]] = (bases[209] + 1) % 4
    genome = genome_with(bases, genome.contig_starts)
    read = np.concatenate([bases[100:210], bases[600:640]])
    # 40 is less than half of the primary record's 110, and equals the supplementary one's score.
    rows = [[(0, 100), (0, 600 - 110), (0, 1000 - 110)]]
    parameters = replace(PARAMETERS, secondary_records=ALL)
    mapped, more, found = recorded_in(genome, [read], rows, parameters)
    assert mapped.positions.tolist() == [100]
    assert more.alignments.positions.tolist() == [600]
    assert found == [[(1000, 40)]]


def test_a_part_does_not_grow_over_the_primary_one():
    """The window of the second part contains most of the first, but not vice versa."""
    rng = np.random.default_rng(11)
    _, genome = index_and_genome([random_bases(rng, 3000)])
    bases = codes_in(genome)
    assert bases[1050] != bases[1250]
    assert bases[1049] != bases[1249]
    read = np.concatenate([bases[500:1050], bases[1250:1500]])
    mapped, _, found, _ = lines_of(genome, [read], [[(0, 500), (0, 700)]])
    assert spans(mapped) == [(500, 0, 0, 550)]
    assert spans(found.alignments) == [(1250, 0, 550, 800)]
    assert found.alignments.cigar.tolist() == [250 << 4]
    assert found.alignments.scores.tolist() == [250]

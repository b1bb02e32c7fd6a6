"""Proper pairs of loci, against trying all pairs."""

import math
import random

import numpy as np
import pytest

from bwarp.allmap.locus_ranks import rank_loci
from bwarp.allmap.options import FoundLoci
from bwarp.allmap.pairs_cpu import pair_loci, single_insert_sizes
from bwarp.mapping.insert_size import InsertSize, insert_size_of_parts
from bwarp.options.common import ORIENTATIONS
from bwarp.options.mapping import ALL

CASES = range(60)
EDITS = 4


def case(number: int):
    """Return loci of ten pairs on three contigs in order of search, lengths, and pair geometry."""
    rng = random.Random(number)
    contig_starts = np.array([0, 150, 260, 500])
    lengths = [rng.randrange(8, 25) for _ in range(20)]
    rows = set()
    for read in range(20):
        for _ in range(rng.choice([0, 0, 1, 2, 12])):
            contig, distance = rng.randrange(3), rng.randrange(EDITS + 1)
            size = lengths[read] + rng.randrange(-distance, distance + 1)
            start = rng.randrange(contig_starts[contig], contig_starts[contig + 1] - size)
            rows.add((read, rng.randrange(2), start, start + size, distance))
    # There is one locus per start, read and strand.
    rows = sorted({row[:3]: row for row in sorted(rows)}.values())
    columns = np.array(rows, np.int64).reshape(-1, 5).T
    loci = FoundLoci(
        columns[0], columns[1].astype(np.uint8), columns[2], columns[3],
        columns[4].astype(np.int32), np.full(20, EDITS, np.int32),
    )  # fmt: skip
    lowest = rng.randrange(1, 60)
    highest = lowest + rng.randrange(90)
    insert = InsertSize((lowest + highest) / 2, 7.5, lowest, highest, rng.randrange(4))
    return loci, np.array(lengths), contig_starts, insert


def size_of(loci, contig_starts, orientation, i, j) -> int | None:
    """Return the insert size of two loci in this orientation on one contig."""
    contigs = np.searchsorted(contig_starts, loci.starts[[i, j]], side="right")
    first, second = (loci.ends[k] if loci.strands[k] else loci.starts[k] for k in (i, j))
    ahead = int(second - first) * (-1 if loci.strands[i] else 1)
    same, behind = {"FR": (0, 0), "RF": (0, 1), "FF": (1, 0), "RR": (1, 1)}[orientation]
    if contigs[0] != contigs[1] or (loci.strands[i] == loci.strands[j]) != same:
        return None
    return abs(ahead) if (ahead < 0) == behind else None


def pairs_of(loci, contig_starts, insert, strata):
    """Return the pairs of each template: (edits, size, locus of end 1, locus of end 2)."""
    found = {template: [] for template in range(10)}
    for i in range(len(loci.reads)):
        for j in range(len(loci.reads)):
            if loci.reads[i] % 2 or loci.reads[j] != loci.reads[i] + 1:
                continue
            size = size_of(loci, contig_starts, ORIENTATIONS[insert.orientation], i, j)
            if size is not None and insert.lowest <= size <= insert.highest:
                edits = int(loci.distances[i] + loci.distances[j])
                found[loci.reads[i] // 2].append((edits, size, i, j))
    if strata != ALL:
        for template, pairs in found.items():
            least = min(pairs, default=(0,))[0]
            found[template] = [pair for pair in pairs if pair[0] <= least + strata]
    return found


def locus(loci, i):
    return tuple(int(column[i]) for column in (loci.reads, loci.strands, loci.starts, loci.ends))


@pytest.mark.parametrize("strata", [ALL, 0, 1])
@pytest.mark.parametrize("most", [0, 1, 3])
def test_every_proper_pair_is_listed(strata, most):
    n_pairs = 0
    for number in CASES:
        loci, lengths, contig_starts, insert = case(number)
        listed, pairs, n_loci = pair_loci(loci, lengths, contig_starts, insert, strata, most)
        wanted = pairs_of(loci, contig_starts, insert, strata)
        assert listed.reads.tolist() == sorted(listed.reads)
        for template, those in wanted.items():
            rows = np.flatnonzero(listed.reads == 2 * template)
            mates = np.flatnonzero(listed.reads == 2 * template + 1)
            if not those:
                for read in (2 * template, 2 * template + 1):
                    kept = np.flatnonzero(loci.reads == read)
                    if strata != ALL and kept.size:
                        least = loci.distances[kept].min()
                        kept = kept[loci.distances[kept] <= least + strata]
                    assert n_loci[read] == kept.size
                    if most and kept.size > most:
                        kept = kept[:0]
                    here = np.flatnonzero(listed.reads == read)
                    assert [locus(listed, i) for i in here] == [locus(loci, i) for i in kept]
                    assert set(pairs.numbers[here]) <= {0}
                    assert set(pairs.mates[here]) <= {-1}
                continue
            n_pairs += len(those)
            assert n_loci[2 * template] == n_loci[2 * template + 1] == len(those)
            if most and len(those) > most:
                assert not rows.size
                assert not mates.size
                continue
            assert pairs.mates[rows].tolist() == mates.tolist()
            assert pairs.mates[mates].tolist() == rows.tolist()
            assert pairs.numbers[rows].tolist() == list(range(1, len(those) + 1))
            assert pairs.numbers[mates].tolist() == pairs.numbers[rows].tolist()
            found = [(locus(listed, i), locus(listed, j)) for i, j in zip(rows, mates, strict=True)]
            far = [
                (edits, abs(size - insert.mean) / insert.standard_deviation, loci.starts[i],
                 loci.starts[j], loci.strands[i], (locus(loci, i), locus(loci, j)))
                for edits, size, i, j in those
            ]  # fmt: skip
            assert found == [one[-1] for one in sorted(far)]
            assert pairs.far[rows].tolist() == [one[1] for one in sorted(far)]
    assert n_pairs > 50


def test_mapping_qualities_weigh_all_pairs():
    checked = 0
    for number in CASES:
        loci, lengths, contig_starts, insert = case(number)
        listed, pairs, _ = pair_loci(loci, lengths, contig_starts, insert, ALL, 0)
        ranks = rank_loci(listed, 40, pairs)
        for template, those in pairs_of(loci, contig_starts, insert, ALL).items():
            reads = 2 * template, 2 * template + 1
            if not those:
                continue
            primary = [ranks.order[ranks.primary[read]] for read in reads]
            assert pairs.mates[primary[0]] == primary[1]
            least = min(those)[0]
            assert sum(int(listed.distances[i]) for i in primary) == least
            nearest = min(abs(size - insert.mean) for edits, size, *_ in those if edits == least)
            sd = insert.standard_deviation
            assert math.isclose(pairs.far[primary[0]] * sd, nearest)
            weight = {
                pair: 10.0 ** (-3 * (pair[0] - least))
                * math.exp((nearest**2 - (pair[1] - insert.mean) ** 2) / (2 * sd**2))
                for pair in those
            }
            total = sum(weight.values())
            total += sum(10.0 ** (-3 * (EDITS + 1 - listed.distances[i])) for i in primary)
            apart = sum(int(loci.distances[loci.reads == read].min()) for read in reads) + 2
            total += 10.0 ** (-3 * (apart - least))
            for end, read in enumerate(reads):
                here = locus(listed, primary[end])
                right = sum(w for pair, w in weight.items() if locus(loci, pair[2 + end]) == here)
                wrong = 1 - right / total
                wanted = 60 if wrong <= 1e-6 else min(60, round(-10 * math.log10(wrong)))
                assert abs(int(ranks.mapping_qualities[read]) - wanted) <= 1
                assert ranks.best[read] == sum(pair[0] == least for pair in those)
                assert ranks.others[read] == len(those) - ranks.best[read]
                checked += 1
    assert checked > 100


@pytest.mark.parametrize("orientation", ORIENTATIONS)
def test_the_insert_size_of_pairs_with_one_locus_each(orientation):
    rng = random.Random(3)
    rows, wanted = [], []
    for template in range(200):
        size, at, flipped = rng.randrange(200, 240), 1000 * template + 400, rng.randrange(2)
        same, behind = {"FR": (0, 0), "RF": (0, 1), "FF": (1, 0), "RR": (1, 1)}[orientation]
        # The first base of end 1 is at `at`, read to the right; or everything is reversed.
        other = at - size if behind else at + size
        strands = [0, 1 - same]
        bases = [at, other]
        if flipped:
            strands, bases = [1 - s for s in strands], [2 * at - b for b in bases]
        for end in (0, 1):
            start = bases[end] - 50 if strands[end] else bases[end]
            rows.append((2 * template + end, strands[end], start, start + 50, 0))
        if template % 10 == 0:
            rows.append((2 * template + 1, 1, at + 300, at + 350, 1))
        else:
            wanted.append(size)
    columns = np.array(sorted(rows), np.int64).T
    loci = FoundLoci(*columns, np.full(400, 3, np.int32))
    sizes, orientations = single_insert_sizes(loci, np.array([0, 10**6]), 10**6)
    assert sizes.tolist() == wanted
    assert set(orientations) == {ORIENTATIONS.index(orientation)}
    few, _ = single_insert_sizes(loci, np.array([0, 10**6]), 50)
    assert few.tolist() == wanted[:45]
    insert = insert_size_of_parts([(sizes, orientations)], None)
    assert insert.lowest <= min(wanted)
    assert max(wanted) <= insert.highest
    assert insert.orientation == ORIENTATIONS.index(orientation)
    assert insert_size_of_parts([(sizes[:20], orientations[:20])], None).highest == 0

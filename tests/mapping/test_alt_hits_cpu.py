"""Hits on ALT contigs, against bwa's rules written with lists."""

import numpy as np

from bwarp.mapping.parameters import MappingParameters
from bwarp.mapping.primary_hits_cpu import (
    alt_hits,
    assembly_rows,
    on_alt_contigs,
    single_end_mapq,
    unlocated_on_assembly,
)
from bwarp.mapping.scored_hits_cpu import hits_at
from tests.helpers.cases.random_scored_hits import LENGTH, overlap, random_hits

STARTS = np.array([0, 1000, 2000, 3000])
PARAMETERS = MappingParameters(most_secondary=2, most_secondary_alt=4, alt=(1,))


def expected(hits, on_alt, primary):
    """Return lines, qualities, suboptimal scores, secondary hits and their lines, better scores."""
    lines, qualities, suboptimal, secondary, named_by = [], [], [], [], []
    better = [0] * len(primary)
    for read, chosen in enumerate(primary):
        rows = range(hits.offsets[read], hits.offsets[read + 1])
        if chosen < 0 or not any(on_alt[i] for i in rows):
            continue
        ranked = sorted(rows, key=lambda i: (-hits.scores[i], on_alt[i], i))
        leaders, leader_of = [], {}
        for i in ranked:
            leader_of[i] = next((j for j in leaders if overlap(hits, i, j)), i)
            if leader_of[i] == i:
                leaders.append(i)
        first = leader_of[chosen]
        if on_alt[first] and not on_alt[chosen]:
            better[read] = hits.scores[first]
        else:
            leader_of = {i: chosen if j == first else j for i, j in leader_of.items()}
        owners = {chosen: -1}
        for i in ranked:
            if on_alt[i] and not on_alt[chosen] and leader_of[i] == i and hits.scores[i] >= 30:
                owners[i] = len(lines)
                lines.append(i)
                others = [hits.scores[j] for j in rows if j != i and overlap(hits, i, j)]
                suboptimal.append(max(others, default=0))
                qualities.append(
                    single_end_mapq(
                        hits.scores[i],
                        suboptimal[-1],
                        sum(o >= hits.scores[i] - 7 for o in others),
                        hits.ends[i] - hits.starts[i],
                        0,
                        1,
                        -4,
                    )  # fmt: skip
                )
        for owner, by in owners.items():
            own = [
                i
                for i in sorted(ranked, key=lambda i: on_alt[i])
                if leader_of[i] == owner != i and hits.scores[i] >= 0.8 * hits.scores[owner]
            ]
            if len(own) <= (4 if any(on_alt[i] for i in own) else 2):
                secondary += own
                named_by += [by] * len(own)
    return lines, qualities, suboptimal, secondary, named_by, better


def test_random_hits():
    rng = np.random.default_rng(1)
    hits = random_hits(rng, 3000)
    on_alt = on_alt_contigs(hits, STARTS, (1,))
    assert on_alt.tolist() == [1000 < end <= 2000 for end in hits.ends.tolist()]
    kept = assembly_rows(hits, on_alt, 30)
    primary = np.full(3000, -1)
    for read in range(3000):
        rows = np.arange(hits.offsets[read], hits.offsets[read + 1])
        others = rows[~on_alt[rows]]
        has_others = (hits.scores[others] >= 30).any()
        competing = others if has_others else rows
        assert np.array_equal(kept[np.isin(kept, rows)], competing)
        if competing.size:
            primary[read] = rng.choice(competing)
    some = hits_at(hits, kept)
    assert np.array_equal(some.scores, hits.scores[kept])
    assert np.array_equal(np.repeat(np.arange(3000), np.diff(some.offsets)), hits.reads[kept])
    found = alt_hits(hits, on_alt, np.full(3000, LENGTH), primary, PARAMETERS)
    wanted = expected(hits, on_alt, primary.tolist())
    for part, want in zip(found._asdict().values(), wanted, strict=True):
        assert part.tolist() == want
    assert min(map(np.count_nonzero, found._asdict().values())) > 100
    assert np.count_nonzero(found.named_by >= 0) > 100


def test_unlocated_hits_are_where_most_hits_are():
    rng = np.random.default_rng(3)
    hits = random_hits(rng, 500)
    on_alt = on_alt_contigs(hits, STARTS, (1,))
    unlocated = rng.integers(0, 90, 500).astype(np.int32)
    found = unlocated_on_assembly(hits, on_alt, unlocated)
    assert found.dtype == np.int32
    for read in range(500):
        rows = on_alt[hits.offsets[read] : hits.offsets[read + 1]].tolist()
        assert found[read] == (0 if rows.count(True) > rows.count(False) else unlocated[read])

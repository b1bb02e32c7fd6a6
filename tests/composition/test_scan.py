"""Scans on the CPU with every algorithm, against counting bases in each window."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bwarp.composition import classes_cpu, tiles_cpu
from bwarp.composition import scan as tile_scan
from bwarp.composition.classes_cpu import number_of_classes
from bwarp.composition.histogram import largest_distance
from bwarp.composition.references import gather_references
from bwarp.composition.scan import (
    ALGORITHMS,
    CountedClassScan,
    Scan,
    TileScan,
    count_hits,
    scan_best,
    scan_hits,
)
from bwarp.io.fastx import read_sequences
from tests.helpers.oracles.composition_oracle import (
    hits_by_counting,
    hits_of_blocks,
    hostile_inputs,
    queries_of,
    random_texts,
    references_of,
)

HOSTILE = hostile_inputs()


def check(scan, texts, best=(1, 4), block_rows=(1, 1 << 20)):
    """Compare counts, all hits and best hits of a scan with the oracle."""
    codes, offsets, groups = queries_of(texts)
    expected = hits_by_counting(scan.references, codes, offsets, scan.similarity)
    hits = count_hits(scan, groups)
    for group, group_hits in zip(groups, hits, strict=True):
        for query, member in zip(group.queries.tolist(), group.group_of_query, strict=True):
            assert group_hits[member] == len(expected.get(query, []))
    for rows in block_rows:
        assert hits_of_blocks(scan_hits(scan, groups, hits, rows)) == expected
        for wanted in best:
            nearest = {
                query: sorted(found, key=lambda hit: (hit[1], hit[0]))[:wanted]
                for query, found in expected.items()
            }
            assert hits_of_blocks(scan_best(scan, groups, wanted, rows)) == nearest
    return expected


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("similarity", ["1", "0.9", "1/2", "0.05"])
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_inputs(name, similarity, algorithm):
    references, texts = HOSTILE[name]
    check(Scan(references, Fraction(similarity), algorithm, "cpu", 2), texts)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize(("shortest", "longest"), [(1, 9), (60, 64), (253, 258)])
def test_all_lengths(shortest, longest, algorithm):
    rng = np.random.default_rng(longest)
    references = references_of(random_texts(rng, 6, 0, 420, 0.01))
    texts = random_texts(rng, 15, shortest, longest, 0.005)
    # Substrings of the references, so that there are hits at every threshold.
    texts += [references.codes[i : i + longest].tolist() for i in range(0, 900, 90)]
    scan = Scan(references, Fraction("0.93"), algorithm, "cpu", 1)
    assert check(scan, texts, best=(2,), block_rows=(1 << 20,))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_exact_boundary_is_a_hit_and_one_more_is_none(algorithm):
    window = [0] * 10 + [1] * 10
    references = references_of([window])
    for changed, similarity in ((3, "0.7"), (1, "0.9"), (9, "0.1"), (2, "4/5")):
        query = [2] * changed + window[changed:]
        for threshold, n_hits in ((similarity, 1), (f"{similarity}0000000001", 0)):
            if "/" in threshold and not n_hits:
                threshold = "8000000001/10000000000"
            scan = Scan(references, Fraction(threshold), algorithm, "cpu", 1)
            assert len(check(scan, [query])) == n_hits


@settings(max_examples=60, deadline=None)
@given(
    references=st.lists(st.lists(st.integers(0, 4), max_size=30), min_size=1, max_size=5),
    texts=st.lists(st.lists(st.integers(0, 4), max_size=9), min_size=1, max_size=6),
    similarity=st.fractions(Fraction(1, 50), 1, max_denominator=60),
)
def test_any_input(references, texts, similarity):
    references = references_of(references)
    for algorithm in ("classes", "tiles", "gather"):
        check(Scan(references, similarity, algorithm, "cpu", 1), texts, best=(2,))


def test_threads_do_not_change_the_answer(monkeypatch):
    rng = np.random.default_rng(9)
    references = references_of(random_texts(rng, 40, 0, 5000, 0.002))
    texts = random_texts(rng, 30, 18, 22, 0.01)
    _, _, groups = queries_of(texts)
    monkeypatch.setattr(classes_cpu, "_SMALLEST_RANGE", 5000)
    answers = []
    for algorithm in ("classes", "tiles"):
        for threads in (1, 2, 5):
            scan = Scan(references, Fraction("0.8"), algorithm, "cpu", threads)
            hits = count_hits(scan, groups)
            answers.append(
                (
                    [h.tolist() for h in hits],
                    hits_of_blocks(scan_hits(scan, groups, hits)),
                    hits_of_blocks(scan_best(scan, groups, 3)),
                )
            )
    assert sum(map(len, answers[0][1].values())) > 10000
    assert all(answer == answers[0] for answer in answers)


def test_windows_of_a_length_are_all_in_some_class():
    rng = np.random.default_rng(10)
    references = references_of(random_texts(rng, 20, 0, 3000))
    for length in (1, 7, 40):
        classes = classes_cpu.count_windows(references.codes, references.starts, length, 0, 2)
        n_windows = int(np.maximum(np.diff(references.starts) - length + 1, 0).sum())
        assert classes.tables.shape[1] == number_of_classes(length)
        assert classes.tables.sum() == n_windows
        planes = classes_cpu.class_planes(classes)
        width = planes.planes.size // 6
        counts = planes.planes.reshape(6, width)[:4, : planes.numbers.size]
        assert (counts.sum(axis=0) == length).all()
        assert len(np.unique(counts, axis=1).T) == planes.numbers.size


@pytest.mark.parametrize("similarity", ["1", "0.8", "0.3"])
def test_counted_classes_and_listed_tiles_agree(similarity, monkeypatch):
    """The GPU's strategy for many queries, with the CPU's tiles."""
    rng = np.random.default_rng(11)
    # 9 tiles in 4 parts; the rare query has few hits, so it must be searched everywhere.
    monkeypatch.setattr(tile_scan, "_FIRST_COMPARISONS", 1)
    monkeypatch.setattr(tile_scan, "_GROWTH", 2)
    references = references_of(random_texts(rng, 8, 4000, 5000, 0.001))
    texts = [*random_texts(rng, 12, 21, 21), [0] * 19 + [1, 2], references.codes[-21:].tolist()]
    codes, offsets, (group,) = queries_of(texts)
    expected = hits_by_counting(references, codes, offsets, Fraction(similarity))
    classes = classes_cpu.count_windows(references.codes, references.starts, 21, 21, 1)
    planes = classes_cpu.class_planes(classes)
    prepared = tiles_cpu.prepare_references(references, np.uint8)
    tiles = TileScan(tiles_cpu, prepared, references.codes.size, 21, 1)
    scan = CountedClassScan(planes, tiles, 1)
    largest = np.full(len(group.counts), largest_distance(Fraction(similarity), 21), np.int32)
    n_hits = scan.count(group.counts, largest)
    assert n_hits.tolist() == scan.find(group.counts, largest)[0].tolist()
    for wanted in (1, 5, 400):
        hits, positions, distances = scan.find_nearest(group.counts, largest, wanted)
        assert hits.tolist() == np.minimum(n_hits, wanted).tolist()
        rows = np.split(np.arange(positions.size), np.cumsum(hits)[:-1])
        for query, member in enumerate(group.group_of_query):
            found = [(int(positions[i]), int(distances[i])) for i in rows[member]]
            nearest = sorted(expected.get(query, []), key=lambda hit: (hit[1], hit[0]))
            assert found == nearest[:wanted]


def test_mature_micro_rnas_are_found_in_their_hairpins(shared_data):
    hairpins = gather_references(read_sequences(shared_data("smallrna_mirbase", "hairpin.fa.gz")))
    matures = gather_references(read_sequences(shared_data("smallrna_mirbase", "mature.fa.gz")))
    starts = hairpins.starts
    texts = [matures.codes[a:b] for a, b in zip(matures.starts, matures.starts[1:], strict=False)]
    texts = texts[::397]
    _, _, groups = queries_of(texts)
    scan = Scan(hairpins, Fraction(1), "classes", "cpu", 2)
    hits = hits_of_blocks(scan_hits(scan, groups, count_hits(scan, groups)))
    whole = hairpins.codes.tobytes()
    n_found = 0
    for query, text in enumerate(texts):
        at = whole.find(text.tobytes())
        first, last = np.searchsorted(starts, [at, at + len(text) - 1], side="right")
        if at >= 0 and first == last:
            assert (at, 0) in hits[query]
            n_found += 1
    assert n_found > 60

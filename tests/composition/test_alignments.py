"""Alignments of flagged windows, against plain loops over windows and whole matrices."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from bwarp.alignment.scoring import FITTING
from bwarp.composition import alignments
from bwarp.composition.alignments import (
    alignment_rules,
    both_strands,
    strand_sequences,
    window_aligner,
)
from bwarp.composition.histogram import count_bases, group_queries, largest_distance
from bwarp.composition.scan import Scan, count_hits, scan_best, scan_hits
from bwarp.sequence import reverse_complement
from tests.helpers.oracles.alignment_oracle import align
from tests.helpers.oracles.composition_oracle import (
    hits_by_counting,
    hostile_inputs,
    queries_of,
    random_texts,
    references_of,
)

RULES = {
    "default": {},
    "edits": {"match": 0, "mismatch": -1, "gap_open": 0, "gap_extend": 1, "min_score": -6},
    "cheap gaps": {"match": 2, "mismatch": -3, "gap_open": 0, "gap_extend": 1, "top": 2},
    "all": {"match": 3, "mismatch": -2, "gap_open": 1, "min_score": -(2**30), "top": 1},
}


def found_alignments(scan, texts, rules, best=None, block_rows=1 << 20, engine=None):
    """Return rows (query, strand, reference, start, end, score, edits, matches, columns, CIGAR)."""
    codes, offsets, _ = queries_of(texts)
    groups = group_queries(*both_strands(count_bases(codes, offsets), np.diff(offsets)))
    if best:
        blocks = scan_best(scan, groups, best, block_rows)
    else:
        blocks = scan_hits(scan, groups, count_hits(scan, groups), block_rows)
    aligner = window_aligner(scan, strand_sequences(codes, offsets), rules)
    if engine:
        aligner = replace(aligner, engine=engine)
    rows = []
    for table in aligner.align(blocks):
        assert table.queries.size
        columns = (column.tolist() for column in table)
        rows += zip(*columns, strict=True)
    return rows


def expected_alignments(references, texts, similarity, rules, best=None):
    """Return the rows of `found_alignments`, window by window."""
    rows = []
    for query in sorted(range(len(texts)), key=lambda i: len(texts[i])):
        if not texts[query]:
            continue
        of_query = []
        for reverse in (False, True):
            bases = np.array(texts[query], np.uint8)
            bases = reverse_complement(bases) if reverse else bases
            of_query += of_strand(references, bases, similarity, rules, best, reverse)
        of_query.sort(key=lambda row: (-row["score"], row["start"], row["reverse"]))
        for row in of_query[: rules.top]:
            reference = int(np.searchsorted(references.starts, row["window"], side="right")) - 1
            first = int(references.starts[reference])
            cigar = row["cigar"]
            rows.append((
                query, row["reverse"], reference, row["start"] - first, row["end"] - first,
                row["score"], row["edits"], sum(n for n, operation in cigar if operation == "="),
                sum(n for n, _ in cigar), "".join(f"{n}{operation}" for n, operation in cigar),
            ))  # fmt: skip
    return rows


def of_strand(references, bases, similarity, rules, best, reverse):
    hits = hits_by_counting(references, bases, [0, bases.size], similarity).get(0, [])
    if best:
        hits = sorted(hits, key=lambda hit: (hit[1], hit[0]))[:best]
    margin = largest_distance(similarity, bases.size)
    of_end, of_start = {}, {}
    for position, _ in sorted(hits):
        reference = np.searchsorted(references.starts, position, side="right") - 1
        first, last = references.starts[reference : reference + 2].tolist()
        low, high = max(first, position - margin), min(last, position + bases.size + margin)
        window = references.codes[low:high].tolist()
        done = align(bases.tolist(), window, rules.scoring, FITTING)
        row = {
            "score": done.score, "start": low + done.reference_start, "window": low,
            "end": low + done.reference_end, "edits": done.edit_distance, "cigar": done.cigar,
            "reverse": reverse,
        }  # fmt: skip
        if done.score >= rules.min_score:
            of_end.setdefault(row["end"], []).append(row)
    for rows in of_end.values():
        row = min(rows, key=lambda row: (-row["score"], row["window"]))
        of_start.setdefault(row["start"], []).append(row)
    return [min(rows, key=lambda row: (-row["score"], row["end"])) for rows in of_start.values()]


def mixed_texts(rng, references, n, shortest, longest):
    """Return random queries, and parts of references with a few edits, half of them reversed."""
    texts = random_texts(rng, n, shortest, longest, 0.02)
    for i in range(n):
        length = int(rng.integers(shortest, longest + 1))
        at = int(rng.integers(max(1, references.codes.size - length)))
        text = references.codes[at : at + length].tolist()
        for _ in range(int(rng.integers(4))):
            at = int(rng.integers(len(text) + 1))
            text[at : at + int(rng.integers(2))] = rng.integers(0, 4, int(rng.integers(2))).tolist()
        codes = np.array(text, np.uint8)
        texts.append((reverse_complement(codes) if i % 2 else codes).tolist())
    return texts


def random_case(seed):
    rng = np.random.default_rng(seed)
    # A genome of three letters has many similar windows; a tandem repeat has many loci.
    texts = [
        *random_texts(rng, 2, 20, 70, 0.01, (0.4, 0.3, 0.3, 0)),
        rng.integers(0, 4, 7).tolist() * 5,
        [],
        *random_texts(rng, 1, 60, 70),
    ]
    references = references_of(texts)
    return references, mixed_texts(rng, references, 6, 1, 20)


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("similarity", ["1", "0.85", "1/2"])
def test_random_queries(name, similarity):
    rules = alignment_rules(True, **RULES[name])
    references, texts = random_case(1)
    scan = Scan(references, Fraction(similarity), "auto", "cpu", 1)
    expected = expected_alignments(references, texts, scan.similarity, rules)
    assert len(expected) > 3
    assert found_alignments(scan, texts, rules) == expected


@pytest.mark.parametrize("name", RULES)
def test_random_queries_on_the_emulated_gpu(name, monkeypatch):
    pair_ends_cuda = pytest.importorskip("bwarp.alignment.pair_ends_cuda")
    from tests.helpers.gpu.emulated_alignment import pretend

    pretend(monkeypatch, capability=(9, 0))
    rules = alignment_rules(True, **RULES[name])
    references, texts = random_case(2)
    scan = Scan(references, Fraction("0.85"), "auto", "cpu", 1)
    texts = texts[-3:]
    expected = found_alignments(scan, texts, rules)
    assert expected
    assert found_alignments(scan, texts, rules, engine=pair_ends_cuda) == expected


def hostile_cases():
    """Return the hostile inputs of scans; homopolymers shorter, for the oracle."""
    shorter = (references_of([[0] * 30, [3] * 25]), [[0] * 20, [3] * 7, [2] * 7])
    return hostile_inputs() | {"homopolymers": shorter}


@pytest.mark.parametrize("name", hostile_cases())
def test_hostile_inputs(name):
    references, texts = hostile_cases()[name]
    rules = alignment_rules(True, min_score=-20)
    scan = Scan(references, Fraction("0.9"), "auto", "cpu", 2)
    expected = expected_alignments(references, texts, scan.similarity, rules)
    assert found_alignments(scan, texts, rules) == expected


def test_threads_blocks_and_batches_change_nothing(monkeypatch):
    references, texts = random_case(7)
    rules = alignment_rules(True, min_score=-30)
    scan = Scan(references, Fraction("0.8"), "auto", "cpu", 1)
    expected = found_alignments(scan, texts, rules)
    assert len(expected) > 20
    # Blocks of one row separate the strands of a query.
    assert found_alignments(scan, texts, rules, block_rows=1) == expected
    assert found_alignments(replace(scan, threads=3), texts, rules) == expected
    for algorithm in ("tiles", "gather"):
        assert found_alignments(replace(scan, algorithm=algorithm), texts, rules) == expected
    for at_once in (1, 100, 1500):
        monkeypatch.setattr(alignments, "_BASES_AT_ONCE", at_once)
        assert found_alignments(scan, texts, rules) == expected


def test_only_the_best_windows_are_aligned():
    references, texts = random_case(3)
    rules = alignment_rules(True, min_score=-30)
    scan = Scan(references, Fraction("0.8"), "auto", "cpu", 1)
    for best in (1, 5):
        expected = expected_alignments(references, texts, scan.similarity, rules, best)
        assert expected
        for rows in (1, 1 << 20):
            assert found_alignments(scan, texts, rules, best, rows) == expected


def test_no_locus_with_half_the_distance_in_edits_is_missed():
    rng = np.random.default_rng(11)
    genome = rng.integers(0, 4, 300)
    references = references_of([genome.tolist()])
    rules = alignment_rules(True, **RULES["edits"])
    similarity = Fraction("0.8")
    texts = mixed_texts(rng, references, 25, 20, 40)[25:]
    rows = found_alignments(Scan(references, similarity, "auto", "cpu", 1), texts, rules)
    n_found = 0
    for query, text in enumerate(texts):
        best = []
        for bases in (np.array(text), reverse_complement(np.array(text))):
            done = align(bases.tolist(), genome.tolist(), rules.scoring, FITTING)
            if done.reference_start + len(text) <= genome.size:
                best.append(done.score)
        if best and -2 * max(best) <= largest_distance(similarity, len(text)):
            n_found += 1
            assert next(row for row in rows if row[0] == query)[5] == max(best)
    assert n_found > 10


def test_a_window_is_aligned_on_the_strand_that_flags_it():
    # ACCG has the composition of its reverse complement CGGT only in reverse order.
    references = references_of([[0, 1, 1, 2], [1, 2, 2, 3]])
    scan = Scan(references, Fraction(1), "auto", "cpu", 1)
    rows = found_alignments(scan, [[0, 1, 1, 2]], alignment_rules(True))
    assert rows == [
        (0, False, 0, 0, 4, 4, 0, 4, 4, "4="),
        (0, True, 1, 0, 4, 4, 0, 4, 4, "4="),
    ]


@pytest.mark.gpu
@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("similarity", ["1", "0.85", "1/2"])
def test_random_queries_on_the_gpu(name, similarity, monkeypatch):
    rules = alignment_rules(True, **RULES[name])
    references, texts = random_case(4)
    on_gpu = Scan(references, Fraction(similarity), "auto", "cuda", 1)
    expected = found_alignments(replace(on_gpu, backend="cpu"), texts, rules)
    assert found_alignments(on_gpu, texts, rules) == expected
    monkeypatch.setattr(alignments, "_BASES_AT_ONCE", 300)
    assert found_alignments(on_gpu, texts, rules, block_rows=1) == expected


@pytest.mark.gpu
@pytest.mark.parametrize("name", hostile_inputs())
def test_hostile_inputs_on_the_gpu(name):
    references, texts = hostile_inputs()[name]
    rules = alignment_rules(True, min_score=-20)
    on_gpu = Scan(references, Fraction("0.9"), "auto", "cuda", 1)
    expected = found_alignments(replace(on_gpu, backend="cpu"), texts, rules)
    assert found_alignments(on_gpu, texts, rules) == expected

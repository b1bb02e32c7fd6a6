"""Lines of hits and k-mers, against Python's own formatting."""

import numpy as np
import pytest

from bwarp.io.names import Names
from bwarp.reference import make_reference
from bwarp.seeding.hits import SeedHits
from bwarp.seeding.kmers import KmerBatch
from bwarp.seeding.seed_tables import (
    BED,
    TSV,
    hit_lines,
    number_lines,
    reason_lines,
)

NAMES = ["q1", "a_longer_name|with=everything/1", "x" * 300, "ü-Ω", "last"]
NUMBERS = sorted(
    {0, 1, 9, 2**31 - 1, 2**31, 2**32 - 1}
    | {10**i + d for i in range(1, 10) for d in (-1, 0, 1)}
    | {int("123456789"[:i]) for i in range(1, 10)}
)


def text_of(lines) -> str:
    return b"".join(line.tobytes() for line in lines).decode()


def reference_of_lengths(lengths: dict[str, int]):
    starts = np.cumsum([0, *lengths.values()])
    return make_reference(tuple(lengths), starts, np.zeros(starts[-1], np.uint8))


def random_hits(reference, n: int, n_kmers: int, seed: int):
    """Return hits in the order of a search, and their k-mers."""
    rng = np.random.default_rng(seed)
    kmers = KmerBatch(
        words=np.zeros((n_kmers, 1), np.uint64),
        lengths=rng.integers(8, 65, n_kmers).astype(np.uint8),
        queries=np.sort(rng.integers(0, len(NAMES), n_kmers)),
        starts=rng.choice([0, 7, 99, 100, 12_345, 2**40], n_kmers),
        skipped=np.zeros((0, 3), np.int64),
    )
    columns = np.column_stack(
        [
            rng.integers(0, n_kmers, n),
            rng.integers(0, 2, n),
            rng.integers(0, reference.n_bases, n),
            rng.integers(0, 5, n),
        ]
    )
    columns = columns[np.lexsort(columns.T[::-1])]
    hits = SeedHits(*(columns[:, i].astype(t) for i, t in enumerate(("u4", "u1", "u4", "u1"))))
    return hits, kmers


def python_lines(layout, hits, kmers, names, reference) -> str:
    lines = []
    for kmer, strand, position, mismatches in zip(
        *(a.tolist() for a in (hits.kmers, hits.strands, hits.positions, hits.mismatches)),
        strict=True,
    ):
        contig = max(
            c
            for c, start in enumerate(reference.contig_starts[:-1])
            if start <= position < reference.contig_starts[c + 1]
        )
        at = position - int(reference.contig_starts[contig])
        name, start = names[kmers.queries[kmer]], int(kmers.starts[kmer])
        if layout == TSV:
            columns = [name, start, "+-"[strand], reference.names[contig], at, mismatches]
        else:
            label = f"{name}:{start}" if start else name
            end = at + int(kmers.lengths[kmer])
            columns = [reference.names[contig], at, end, label, mismatches, "+-"[strand]]
        lines.append("\t".join(map(str, columns)) + "\n")
    return "".join(lines)


@pytest.mark.parametrize("layout", [TSV, BED])
@pytest.mark.parametrize(
    "lengths",
    [
        {"chr1": 5000},
        {f"contig_{i}_{'y' * (i % 90)}": (i * 37) % 50 for i in range(200)},
        {"a": 3, "empty": 0, "b": 1, "empty_too": 0, "c": 40},
    ],
)
def test_hits(layout, lengths):
    reference = reference_of_lengths(lengths)
    for n, n_kmers in ((0, 3), (1, 1), (500, 40), (3000, 5)):
        hits, kmers = random_hits(reference, n, n_kmers, n)
        expected = python_lines(layout, hits, kmers, NAMES, reference)
        arguments = (layout, hits, kmers, Names.of(NAMES), reference, Names.of(reference.names))
        lines_of = hit_lines(*arguments)
        assert text_of([lines_of(0, n)]) == expected


@pytest.mark.parametrize("layout", [TSV, BED])
def test_ranges_of_hits(layout):
    reference = reference_of_lengths({"chr1": 5000, "chr2": 90})
    hits, kmers = random_hits(reference, 200, 3, 1)
    expected = python_lines(layout, hits, kmers, NAMES, reference)
    lines_of = hit_lines(layout, hits, kmers, Names.of(NAMES), reference, Names.of(reference.names))
    for size in (1, 7, 199):
        parts = [lines_of(first, min(first + size, 200)) for first in range(0, 200, size)]
        assert text_of(parts) == expected


def test_numbers_of_any_size():
    numbers = [*NUMBERS, 10**18 - 1, 10**18, 2**63 - 1]
    which = np.arange(len(numbers)) % len(NAMES)
    values = np.array(numbers)
    written = text_of([number_lines(Names.of(NAMES), which, values, values[::-1].copy())])
    assert written == "".join(
        f"{NAMES[i]}\t{a}\t{b}\n" for i, a, b in zip(which, numbers, reversed(numbers), strict=True)
    )


def test_positions_of_any_size():
    reference = reference_of_lengths({"chr1": 1})
    # Only the arrays that are read here have the full length of the genome.
    object.__setattr__(reference, "contig_starts", np.array([0, 2**32]))
    numbers = np.array(NUMBERS, np.uint32)
    n = numbers.size
    zeros = np.zeros(n, np.uint8)
    hits = SeedHits(np.zeros(n, np.uint32), zeros, numbers, zeros)
    _, kmers = random_hits(reference, 0, 1, 1)
    lines_of = hit_lines(TSV, hits, kmers, Names.of(NAMES), reference, Names.of(["chr1"]))
    found = [int(line.split("\t")[4]) for line in text_of([lines_of(0, n)]).splitlines()]
    assert found == NUMBERS


def test_reasons():
    reasons = Names.of(["", "short", "a reason that is much longer than any other " * 3])
    which, starts = np.array([4, 0, 2]), np.array([0, 12, 5])
    written = text_of([reason_lines(Names.of(NAMES), which, starts, np.array([1, 2, 1]), reasons)])
    long = "a reason that is much longer than any other " * 3
    assert written == f"last\t0\tshort\nq1\t12\t{long}\n{'x' * 300}\t5\tshort\n"
    nothing = np.zeros(0, np.int64)
    assert text_of([reason_lines(Names.of(NAMES), nothing, nothing, nothing, reasons)]) == ""

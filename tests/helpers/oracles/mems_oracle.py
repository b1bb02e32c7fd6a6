"""Maximal exact matches by comparing all positions of a query with all those of a reference."""

import functools

import numpy as np

from bwarp.sequence import AMBIGUOUS, decode, reverse_complement


@functools.cache
def all_matches(contigs: tuple[bytes, ...], query: bytes, min_length: int) -> list[tuple]:
    """Return (query start, genome start, length) of all maximal matches of codes, in order.

    Cached, because each case is used for all kinds of matches and all algorithms.
    """
    found = []
    start = 0
    for contig in contigs:
        for i in range(len(query)):
            for j in range(len(contig)):
                if not same(query, i, contig, j) or (i and j and same(query, i - 1, contig, j - 1)):
                    continue
                length = 0
                while (
                    i + length < len(query)
                    and j + length < len(contig)
                    and same(query, i + length, contig, j + length)
                ):
                    length += 1
                if length >= min_length:
                    found.append((i, start + j, length))
        start += len(contig)
    return sorted(found)


def same(a, i, b, j):
    return a[i] == b[j] and a[i] != AMBIGUOUS


@functools.cache
def unique_matches(contigs: tuple[bytes, ...], query: bytes, min_length: int) -> list[tuple]:
    """Return those of `all_matches` that occur once in all contigs."""
    texts = [_text(contig) for contig in contigs]
    strand = _text(query)
    return [
        (i, j, length)
        for i, j, length in all_matches(contigs, query, min_length)
        if sum(occurrences(text, strand[i : i + length]) for text in texts) == 1
    ]


def _text(codes: bytes) -> bytes:
    return decode(np.frombuffer(codes, np.uint8))


def matches_of_kind(contigs, query, min_length, kind):
    """Return the matches of a kind, in MUMmer's order."""
    case = tuple(contig.tobytes() for contig in contigs), query.tobytes(), min_length
    if kind == "maxmatch":
        return all_matches(*case)
    if kind == "mumreference":
        return unique_matches(*case)
    strand = _text(case[1])
    alone = [
        m for m in unique_matches(*case) if occurrences(strand, strand[m[0] : m[0] + m[2]]) == 1
    ]
    return sorted(alone, key=lambda match: match[1])


def occurrences(text, pattern):
    """Count the occurrences of a pattern in a text, including overlaps."""
    found, at = 0, text.find(pattern)
    while at >= 0:
        found, at = found + 1, text.find(pattern, at + 1)
    return found


def expected_matches(contigs, queries, strands, min_length, kind):
    """Return all (query strand, query start, genome start, length) of several queries, in order."""
    assert all(codes.dtype == np.uint8 for codes in (*contigs, *queries))
    rows = []
    for record, query in enumerate(queries):
        for i, strand in enumerate(strands):
            turned = reverse_complement(query) if strand else query
            number = record * len(strands) + i
            rows += [(number, *m) for m in matches_of_kind(contigs, turned, min_length, kind)]
    return rows


def rows_of(blocks):
    """Return blocks of `Matches` as such a list."""
    rows = []
    for matches in blocks:
        columns = (
            matches.queries, matches.query_starts, matches.reference_starts, matches.lengths
        )  # fmt: skip
        rows += zip(*(column.tolist() for column in columns), strict=True)
    return rows


def random_case(rng):
    """Return contigs and queries with repeats, ambiguous bases and much in common."""
    motifs = [rng.integers(0, rng.integers(1, 5), rng.integers(1, 30)) for _ in range(3)]

    def sequence(pieces):
        parts = [np.empty(0, np.int64)]
        for _ in range(pieces):
            what = rng.integers(0, 6)
            if what < 3:
                parts.append(np.tile(motifs[what], rng.integers(1, 4)))
            elif what == 3:
                parts.append(rng.integers(0, 4, rng.integers(0, 20)))
            elif what == 4:
                parts.append(np.full(rng.integers(1, 3), AMBIGUOUS))
            else:
                parts.append(reverse_complement(motifs[0].astype(np.uint8)))
        return np.concatenate(parts).astype(np.uint8)

    contigs = [sequence(rng.integers(1, 6)) for _ in range(rng.integers(1, 4))]
    contigs.append(rng.integers(0, 4, 5).astype(np.uint8))  # at least one base to index
    queries = [sequence(rng.integers(0, 6)) for _ in range(rng.integers(1, 5))]
    if rng.integers(0, 2):
        longest = max(contigs, key=len)
        queries.append(np.concatenate([longest, sequence(1), longest[len(longest) // 3 :]]))
    return contigs, queries

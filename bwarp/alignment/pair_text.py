"""Format alignments of pairs as TSV, PAF or SAM.

CIGARs and MD strings are written for a whole batch at once into one array of bytes; only the lines
are assembled pair by pair.
"""

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from bwarp.alignment.gatk_cpu import GatkAlignments
from bwarp.alignment.pair_aligner import NamedPairs
from bwarp.alignment.pairs import DELETION, EQUAL, INSERTION, MISMATCH, Alignments, sums_of_cigars
from bwarp.alignment.scoring import Scoring
from bwarp.io.names import put_number
from bwarp.runtime.compiled_code import compiled

TSV_HEADER = "pair\treference\tquery\tscore\tposition\tcigar\n"

_LETTERS = np.frombuffer(b"MIDNSHP=X", np.uint8)


def cigar_texts(offsets: np.ndarray, cigar: np.ndarray) -> list[str]:
    """Return the CIGARs of a batch as text; an empty one is an empty string."""
    text = np.empty(11 * cigar.size, np.uint8)
    edges = np.zeros(offsets.size, np.int64)
    _spell_cigars(offsets, cigar, _LETTERS, text, edges)
    return _cut(text, edges)


def _cut(text: np.ndarray, edges: np.ndarray) -> list[str]:
    whole, edges = text[: edges[-1]].tobytes().decode("ascii"), edges.tolist()
    return [whole[a:b] for a, b in itertools.pairwise(edges)]


@compiled
def _spell_cigars(offsets, cigar, letters, text, edges):
    at = 0
    for pair in range(offsets.size - 1):
        for k in range(offsets[pair], offsets[pair + 1]):
            at = put_number(text, at, cigar[k] >> 4)
            text[at] = letters[cigar[k] & 15]
            at += 1
        edges[pair + 1] = at


def md_texts(named: NamedPairs, alignments: Alignments, letters: bytes) -> list[str]:
    """Return MD of SAM: counts of matches, and the reference bases of mismatches and deletions."""
    references = named.pairs.references
    edits = int(alignments.edit_distances.sum())
    text = np.empty(12 * (edits + references.count) + 12, np.uint8)
    edges = np.zeros(references.count + 1, np.int64)
    _spell_md(
        alignments.cigar_offsets, alignments.cigar, references.codes,
        references.starts + alignments.reference_starts, np.frombuffer(letters, np.uint8),
        text, edges,
    )  # fmt: skip
    return _cut(text, edges)


@compiled
def _spell_md(offsets, cigar, codes, starts, letters, text, edges):
    at = 0
    for pair in range(offsets.size - 1):
        position, matched = starts[pair], 0
        for k in range(offsets[pair], offsets[pair + 1]):
            operation, length = cigar[k] & 15, np.int64(cigar[k] >> 4)
            if operation == EQUAL:
                matched += length
                position += length
            elif operation != INSERTION:
                for base in range(length):
                    if base == 0 or operation == MISMATCH:
                        at = put_number(text, at, matched)
                        matched = 0
                    if base == 0 and operation == DELETION:
                        text[at] = 94  # ^
                        at += 1
                    text[at] = letters[codes[position]]
                    at += 1
                    position += 1
        at = put_number(text, at, matched)
        edges[pair + 1] = at


def _clipped(cigars: list[str], named: NamedPairs, alignments: Alignments) -> Iterator[str]:
    """Yield CIGARs that cover the whole query: its unaligned ends become S."""
    before = alignments.query_starts.tolist()
    after = (named.pairs.queries.lengths - alignments.query_ends).tolist()
    for cigar, head, tail in zip(cigars, before, after, strict=True):
        if not cigar:
            yield "*"
        elif head or tail:
            yield (f"{head}S" if head else "") + cigar + (f"{tail}S" if tail else "")
        else:
            yield cigar


def tsv_columns(named: NamedPairs, alignments: Alignments | GatkAlignments) -> list[Sequence]:
    """Return the columns of `TSV_HEADER`: pair, reference, query, score, position (0-based), cigar.

    In GATK mode the position is the alignment offset.
    """
    cigars = cigar_texts(alignments.cigar_offsets, alignments.cigar)
    if isinstance(alignments, GatkAlignments):
        positions = alignments.offsets
    else:
        positions = alignments.reference_starts
        cigars = list(_clipped(cigars, named, alignments))
    return [
        range(named.first, named.first + named.pairs.count),
        named.reference_names,
        named.query_names,
        alignments.scores.tolist(),
        positions.tolist(),
        cigars,
    ]


def tsv_lines(named: NamedPairs, alignments: Alignments | GatkAlignments) -> str:
    """Format one line of `tsv_columns` per pair."""
    rows = zip(*tsv_columns(named, alignments), strict=True)
    return "".join([f"{i}\t{r}\t{q}\t{s}\t{p}\t{c}\n" for i, r, q, s, p, c in rows])


def paf_lines(named: NamedPairs, alignments: Alignments) -> str:
    """Format PAF with AS, NM and cg; a pair without an alignment has no line."""
    cigars = cigar_texts(alignments.cigar_offsets, alignments.cigar)
    lengths = (alignments.cigar >> 4).astype(np.int64)
    equal = np.where(alignments.cigar & 15 == EQUAL, lengths, 0)
    matches, columns = (
        sums_of_cigars(values, alignments.cigar_offsets) for values in (equal, lengths)
    )
    rows = zip(
        named.query_names, named.pairs.queries.lengths.tolist(), alignments.query_starts.tolist(),
        alignments.query_ends.tolist(), named.reference_names,
        named.pairs.references.lengths.tolist(), alignments.reference_starts.tolist(),
        alignments.reference_ends.tolist(), matches.tolist(), columns.tolist(),
        alignments.scores.tolist(), alignments.edit_distances.tolist(), cigars, strict=True,
    )  # fmt: skip
    return "".join(
        [
            f"{q}\t{ql}\t{qs}\t{qe}\t+\t{r}\t{rl}\t{rs}\t{re}\t{match}\t{column}\t255\t"
            f"AS:i:{score}\tNM:i:{distance}\tcg:Z:{cigar}\n"
            for q, ql, qs, qe, r, rl, rs, re, match, column, score, distance, cigar in rows
            if cigar
        ]
    )


def sam_records(named: NamedPairs, alignments: Alignments, scoring: Scoring) -> str:
    """Format SAM records with AS, NM and MD; a pair without an alignment is an unmapped record."""
    cigars = cigar_texts(alignments.cigar_offsets, alignments.cigar)
    letters = np.frombuffer(scoring.letters, np.uint8)
    queries = named.pairs.queries
    lines = []
    rows = zip(
        named.query_names, named.reference_names, (alignments.reference_starts + 1).tolist(),
        _clipped(cigars, named, alignments), alignments.scores.tolist(),
        alignments.edit_distances.tolist(), md_texts(named, alignments, scoring.letters),
        strict=True,
    )  # fmt: skip
    for i, (query, reference, position, cigar, score, distance, md) in enumerate(rows):
        sequence = letters[queries.sequence(i)].tobytes().decode()
        quality = named.qualities[i].decode() if named.qualities else "*"
        if cigar == "*":
            lines.append(f"{query}\t4\t*\t0\t0\t*\t*\t0\t0\t{sequence}\t{quality}\n")
        else:
            lines.append(
                f"{query}\t0\t{reference}\t{position}\t255\t{cigar}\t*\t0\t0\t{sequence}\t{quality}"
                f"\tAS:i:{score}\tNM:i:{distance}\tMD:Z:{md}\n"
            )
    return "".join(lines)

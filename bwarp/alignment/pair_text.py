"""Format alignments of pairs as TSV, PAF or SAM, a batch at a time, with compiled code."""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bwarp.alignment.gatk_cpu import GatkAlignments
from bwarp.alignment.pair_files import NamedPairs
from bwarp.alignment.pairs import DELETION, EQUAL, INSERTION, MISMATCH, Alignments
from bwarp.alignment.scoring import Scoring
from bwarp.io.names import MOST_DIGITS, Names, put_bytes, put_field, put_name, put_number
from bwarp.runtime.compiled_code import compiled, read_only

TSV_HEADER = "pair\treference\tquery\tscore\tposition\tcigar\n"

_LETTERS = np.frombuffer(b"MIDNSHP=X", np.uint8)
_TAB, _NEWLINE, _STAR, _CLIP, _CARET = np.frombuffer(b"\t\n*S^", np.uint8)

# Parts of lines that never change.
_FORWARD = np.frombuffer(b"+\t", np.uint8)
_NO_QUALITY_AS = np.frombuffer(b"255\tAS:i:", np.uint8)
_NM, _CG, _MD, _AS = (
    np.frombuffer(tag, np.uint8) for tag in (b"\tNM:i:", b"\tcg:Z:", b"\tMD:Z:", b"\tAS:i:")
)
_FLAG_0 = np.frombuffer(b"\t0\t", np.uint8)
_NO_QUALITY = np.frombuffer(b"\t255\t", np.uint8)
_NO_MATE = np.frombuffer(b"\t*\t0\t0\t", np.uint8)
_UNMAPPED = np.frombuffer(b"\t4\t*\t0\t0\t*\t*\t0\t0\t", np.uint8)

#: Maximum bytes of a run of a CIGAR, of an edit in MD, and of the fixed parts of any line.
_RUN, _EDIT, _FIXED = 11, 12, 64
#: Maximum count of numbers in a line, outside its CIGAR and MD.
_NUMBERS = 12


class _Pairs(NamedTuple):
    """Names and sequences of a batch for compiled code; `qualities` may be empty."""

    first: int
    query_names: Names
    reference_names: Names
    queries: np.ndarray
    query_starts: np.ndarray
    query_lengths: np.ndarray
    references: np.ndarray
    reference_starts: np.ndarray
    reference_lengths: np.ndarray
    qualities: np.ndarray


def _pairs_of(named: NamedPairs) -> _Pairs:
    queries, references = named.pairs.queries, named.pairs.references
    qualities = np.empty(0, np.uint8) if named.qualities is None else named.qualities
    return _Pairs(
        named.first, named.query_names, named.reference_names,
        read_only(queries.codes), queries.starts, queries.lengths,
        read_only(references.codes), references.starts, references.lengths,
        read_only(qualities),
    )  # fmt: skip


def _room(named: NamedPairs, cigar: np.ndarray) -> int:
    """Return the maximum bytes of the lines, without sequences, qualities and MD."""
    names = sum(int(np.diff(n.bounds).sum()) for n in (named.query_names, named.reference_names))
    # The CIGAR does not include the clips of both ends.
    line = _FIXED + _NUMBERS * MOST_DIGITS + 2 * _RUN
    return names + named.pairs.count * line + cigar.size * _RUN


def _whole(alignments: Alignments | GatkAlignments, named: NamedPairs) -> Alignments:
    """Return alignments in one form; only those of GATK, whose CIGARs cover queries, change."""
    if isinstance(alignments, Alignments):
        return alignments
    zeros = np.zeros(named.pairs.count, np.int32)
    return Alignments(
        alignments.scores, zeros, named.pairs.queries.lengths, alignments.offsets, zeros, zeros,
        alignments.cigar_offsets, alignments.cigar,
    )  # fmt: skip


# --------------------------------------------------------------------------------------------------
# CIGARs and MD.


@compiled(counted=False)
def _put_cigar(out, at, cigar, start, stop):
    for k in range(start, stop):
        at = put_field(out, at, cigar[k] >> 4, _LETTERS[cigar[k] & 15])
    return at


@compiled(counted=False)
def _put_clipped(out, at, alignments, pair, length):
    """Write a CIGAR that covers the whole query, with S for unaligned ends; * if it is empty."""
    start, stop = alignments.cigar_offsets[pair], alignments.cigar_offsets[pair + 1]
    if start == stop:
        out[at] = _STAR
        return at + 1
    before, after = alignments.query_starts[pair], length - alignments.query_ends[pair]
    if before:
        at = put_field(out, at, before, _CLIP)
    at = _put_cigar(out, at, alignments.cigar, start, stop)
    if after:
        at = put_field(out, at, after, _CLIP)
    return at


@compiled(counted=False)
def _put_md(out, at, pairs, alignments, pair, letters):
    """Write MD of SAM: counts of matches, and the reference bases of mismatches and deletions."""
    cigar, codes = alignments.cigar, pairs.references
    position = pairs.reference_starts[pair] + alignments.reference_starts[pair]
    matched = np.int64(0)
    for k in range(alignments.cigar_offsets[pair], alignments.cigar_offsets[pair + 1]):
        operation, length = cigar[k] & 15, np.int64(cigar[k] >> 4)
        if operation == EQUAL:
            matched += length
            position += length
        elif operation != INSERTION:
            for base in range(length):
                if base == 0 or operation == MISMATCH:
                    at = put_number(out, at, matched)
                    matched = np.int64(0)
                if base == 0 and operation == DELETION:
                    out[at] = _CARET
                    at += 1
                out[at] = letters[codes[position]]
                at += 1
                position += 1
    return put_number(out, at, matched)


def cigar_texts(offsets: np.ndarray, cigar: np.ndarray) -> list[str]:
    """Return the CIGARs of a batch as text; an empty one is an empty string."""
    text = np.empty(_RUN * cigar.size, np.uint8)
    edges = np.zeros(offsets.size, np.int64)
    _spell_cigars(offsets, cigar, text, edges)
    return _cut(text, edges)


@compiled(counted=False)
def _spell_cigars(offsets, cigar, text, edges):
    at = np.int64(0)
    for pair in range(offsets.size - 1):
        at = _put_cigar(text, at, cigar, offsets[pair], offsets[pair + 1])
        edges[pair + 1] = at


def _clipped_texts(named: NamedPairs, alignments: Alignments) -> list[str]:
    """Return the CIGARs of a batch as text, as `_put_clipped` writes them."""
    text = np.empty(_RUN * (alignments.cigar.size + 2 * named.pairs.count), np.uint8)
    edges = np.zeros(named.pairs.count + 1, np.int64)
    _spell_clipped(alignments, named.pairs.queries.lengths, text, edges)
    return _cut(text, edges)


@compiled(counted=False)
def _spell_clipped(alignments, lengths, text, edges):
    at = np.int64(0)
    for pair in range(lengths.size):
        at = _put_clipped(text, at, alignments, pair, lengths[pair])
        edges[pair + 1] = at


def _cut(text: np.ndarray, edges: np.ndarray) -> list[str]:
    whole, edges = text[: edges[-1]].tobytes().decode("ascii"), edges.tolist()
    return [whole[a:b] for a, b in itertools.pairwise(edges)]


# --------------------------------------------------------------------------------------------------
# Lines. Each function writes those of a batch into one array of bytes, and returns its used part.


def tsv_columns(named: NamedPairs, alignments: Alignments | GatkAlignments) -> list[Sequence]:
    """Return the columns of `TSV_HEADER`: pair, reference, query, score, position (0-based), cigar.

    In GATK mode the position is the alignment offset.
    """
    whole = _whole(alignments, named)
    return [
        range(named.first, named.first + named.pairs.count),
        named.reference_names.strings(),
        named.query_names.strings(),
        whole.scores.tolist(),
        whole.reference_starts.tolist(),
        _clipped_texts(named, whole),
    ]


def tsv_lines(named: NamedPairs, alignments: Alignments | GatkAlignments) -> np.ndarray:
    """Format one line of `tsv_columns` per pair."""
    text = np.empty(_room(named, alignments.cigar), np.uint8)
    return text[: _write_tsv(_pairs_of(named), _whole(alignments, named), text)]


@compiled(counted=False)
def _write_tsv(pairs, alignments, out):
    at = np.int64(0)
    for i in range(pairs.query_lengths.size):
        at = put_field(out, at, pairs.first + i, _TAB)
        at = put_name(out, at, pairs.reference_names, i)
        out[at] = _TAB
        at = put_name(out, at + 1, pairs.query_names, i)
        out[at] = _TAB
        at = put_field(out, at + 1, alignments.scores[i], _TAB)
        at = put_field(out, at, alignments.reference_starts[i], _TAB)
        at = _put_clipped(out, at, alignments, i, pairs.query_lengths[i])
        out[at] = _NEWLINE
        at += 1
    return at


def paf_lines(named: NamedPairs, alignments: Alignments) -> np.ndarray:
    """Format PAF with AS, NM and cg; a pair without an alignment has no line."""
    text = np.empty(_room(named, alignments.cigar), np.uint8)
    return text[: _write_paf(_pairs_of(named), alignments, text)]


@compiled(counted=False)
def _write_paf(pairs, alignments, out):
    cigar, at = alignments.cigar, np.int64(0)
    for i in range(pairs.query_lengths.size):
        start, stop = alignments.cigar_offsets[i], alignments.cigar_offsets[i + 1]
        if start == stop:
            continue
        matches = columns = np.int64(0)
        for k in range(start, stop):
            length = np.int64(cigar[k] >> 4)
            columns += length
            matches += length if cigar[k] & 15 == EQUAL else 0
        at = put_name(out, at, pairs.query_names, i)
        out[at] = _TAB
        at = put_field(out, at + 1, pairs.query_lengths[i], _TAB)
        at = put_field(out, at, alignments.query_starts[i], _TAB)
        at = put_field(out, at, alignments.query_ends[i], _TAB)
        at = put_bytes(out, at, _FORWARD, 0, _FORWARD.size)
        at = put_name(out, at, pairs.reference_names, i)
        out[at] = _TAB
        at = put_field(out, at + 1, pairs.reference_lengths[i], _TAB)
        at = put_field(out, at, alignments.reference_starts[i], _TAB)
        at = put_field(out, at, alignments.reference_ends[i], _TAB)
        at = put_field(out, at, matches, _TAB)
        at = put_field(out, at, columns, _TAB)
        at = put_bytes(out, at, _NO_QUALITY_AS, 0, _NO_QUALITY_AS.size)
        at = put_number(out, at, alignments.scores[i])
        at = put_bytes(out, at, _NM, 0, _NM.size)
        at = put_number(out, at, alignments.edit_distances[i])
        at = put_bytes(out, at, _CG, 0, _CG.size)
        at = _put_cigar(out, at, cigar, start, stop)
        out[at] = _NEWLINE
        at += 1
    return at


def sam_records(named: NamedPairs, alignments: Alignments, scoring: Scoring) -> np.ndarray:
    """Format SAM records with AS, NM and MD; a pair without an alignment is an unmapped record."""
    count, n_bases = named.pairs.count, int(named.pairs.queries.lengths.sum())
    room = _room(named, alignments.cigar) + 2 * n_bases
    room += _EDIT * (int(alignments.edit_distances.sum()) + count)
    text, letters = np.empty(room, np.uint8), np.frombuffer(scoring.letters, np.uint8)
    return text[: _write_sam(_pairs_of(named), alignments, letters, text)]


@compiled(counted=False)
def _write_sam(pairs, alignments, letters, out):
    at = np.int64(0)
    for i in range(pairs.query_lengths.size):
        is_mapped = alignments.cigar_offsets[i] < alignments.cigar_offsets[i + 1]
        at = put_name(out, at, pairs.query_names, i)
        if is_mapped:
            at = put_bytes(out, at, _FLAG_0, 0, _FLAG_0.size)
            at = put_name(out, at, pairs.reference_names, i)
            out[at] = _TAB
            at = put_number(out, at + 1, alignments.reference_starts[i] + 1)
            at = put_bytes(out, at, _NO_QUALITY, 0, _NO_QUALITY.size)
            at = _put_clipped(out, at, alignments, i, pairs.query_lengths[i])
            at = put_bytes(out, at, _NO_MATE, 0, _NO_MATE.size)
        else:
            at = put_bytes(out, at, _UNMAPPED, 0, _UNMAPPED.size)
        start, stop = pairs.query_starts[i], pairs.query_starts[i] + pairs.query_lengths[i]
        for base in range(start, stop):
            out[at + base - start] = letters[pairs.queries[base]]
        at += stop - start
        out[at] = _TAB
        at += 1
        if pairs.qualities.size:
            at = put_bytes(out, at, pairs.qualities, start, stop)
        else:
            out[at] = _STAR
            at += 1
        if is_mapped:
            at = put_bytes(out, at, _AS, 0, _AS.size)
            at = put_number(out, at, alignments.scores[i])
            at = put_bytes(out, at, _NM, 0, _NM.size)
            at = put_number(out, at, alignments.edit_distances[i])
            at = put_bytes(out, at, _MD, 0, _MD.size)
            at = _put_md(out, at, pairs, alignments, i, letters)
        out[at] = _NEWLINE
        at += 1
    return at

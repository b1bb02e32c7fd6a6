"""Lines of pairs, against lines that are put together in Python."""

import numpy as np
import pytest

from bwarp.alignment.gatk_cpu import GATK_PARAMETERS, LETTER_OF_BYTE, OVERHANGS, gatk_alignments
from bwarp.alignment.pair_ends_cpu import pair_alignments
from bwarp.alignment.pair_files import NamedPairs
from bwarp.alignment.pair_text import (
    TSV_HEADER,
    cigar_texts,
    paf_lines,
    sam_records,
    tsv_columns,
    tsv_lines,
)
from bwarp.alignment.pairs import PairBatch, cigar_text, sequences_of
from bwarp.alignment.scoring import MODES, matrix_scoring, nucleotide_scoring
from bwarp.io.names import Names
from bwarp.sequence import CODE_OF_BYTE

LETTERS = np.frombuffer(b"ACGTN", np.uint8)


def random_pairs(rng, codes_of=CODE_OF_BYTE, first=0, with_qualities=False):
    """Return related and unrelated pairs with names, and the pairs' letters."""
    queries, references = [], []
    for number in range(int(rng.integers(1, 60))):
        reference = LETTERS[rng.choice(5, int(rng.integers(1, 120)), p=[0.24] * 4 + [0.04])]
        begin = int(rng.integers(reference.size))
        query = np.concatenate([LETTERS[rng.integers(0, 4, rng.integers(3))], reference[begin:]])
        for _ in range(int(rng.integers(4))):
            at = int(rng.integers(query.size + 1))
            insert = LETTERS[rng.integers(0, 4, rng.integers(4))]
            query = np.concatenate([query[:at], insert, query[at + int(rng.integers(3)) :]])
        if number % 7 == 0 or query.size == 0:
            query = LETTERS[rng.integers(0, 4, 1 + int(rng.integers(4)))]
        queries.append(query)
        references.append(reference)
    sides = [sequences_of([codes_of[one] for one in side]) for side in (queries, references)]
    names = [
        Names.of([f"{kind}{i}" * (1 + i % 3) for i in range(len(queries))]) for kind in ("q", "ré")
    ]
    qualities = rng.integers(33, 127, sides[0].codes.size).astype(np.uint8)
    named = NamedPairs(PairBatch(*sides), *names, qualities if with_qualities else None, first)
    return named, queries, references


def clipped(alignments, i, length):
    runs = alignments.cigar[alignments.cigar_offsets[i] : alignments.cigar_offsets[i + 1]]
    if not runs.size:
        return "*"
    before, after = alignments.query_starts[i], length - alignments.query_ends[i]
    return (f"{before}S" if before else "") + cigar_text(runs) + (f"{after}S" if after else "")


def plain_tsv(named, rows):
    return "".join(
        f"{named.first + i}\t{named.reference_names.name(i)}\t{named.query_names.name(i)}\t"
        + "\t".join(map(str, row))
        + "\n"
        for i, row in enumerate(rows)
    )


def md_and_counts(alignments, i, reference):
    """Return MD, the bases that match, and the columns."""
    text, matched, same, columns = "", 0, 0, 0
    position = int(alignments.reference_starts[i])
    for run in alignments.cigar[alignments.cigar_offsets[i] : alignments.cigar_offsets[i + 1]]:
        length, operation = int(run) >> 4, "MIDNSHP=X"[int(run) & 15]
        columns += length
        bases = reference[position : position + length].tobytes().decode()
        if operation == "=":
            matched, same = matched + length, same + length
        elif operation == "X":
            for base in bases:
                text, matched = text + f"{matched}{base}", 0
        elif operation == "D":
            text, matched = text + f"{matched}^{bases}", 0
        position += 0 if operation == "I" else length
    return text + str(matched), same, columns


def plain_paf(named, alignments, references):
    lines = ""
    for i, reference in enumerate(references):
        runs = alignments.cigar[alignments.cigar_offsets[i] : alignments.cigar_offsets[i + 1]]
        if runs.size:
            _, same, columns = md_and_counts(alignments, i, reference)
            lines += (
                f"{named.query_names.name(i)}\t{named.pairs.queries.lengths[i]}\t"
                f"{alignments.query_starts[i]}\t{alignments.query_ends[i]}\t+\t"
                f"{named.reference_names.name(i)}\t{reference.size}\t"
                f"{alignments.reference_starts[i]}\t{alignments.reference_ends[i]}\t{same}\t"
                f"{columns}\t255\tAS:i:{alignments.scores[i]}\tNM:i:{alignments.edit_distances[i]}"
                f"\tcg:Z:{cigar_text(runs)}\n"
            )
    return lines


def plain_sam(named, alignments, queries, references):
    lines = ""
    for i, (query, reference) in enumerate(zip(queries, references, strict=True)):
        start = named.pairs.queries.starts[i]
        quality = "*"
        if named.qualities is not None:
            quality = named.qualities[start : start + query.size].tobytes().decode()
        bases = query.tobytes().decode()
        cigar, name = clipped(alignments, i, query.size), named.query_names.name(i)
        if cigar == "*":
            lines += f"{name}\t4\t*\t0\t0\t*\t*\t0\t0\t{bases}\t{quality}\n"
            continue
        md, _, _ = md_and_counts(alignments, i, reference)
        lines += (
            f"{name}\t0\t{named.reference_names.name(i)}\t{alignments.reference_starts[i] + 1}\t"
            f"255\t{cigar}\t*\t0\t0\t{bases}\t{quality}\tAS:i:{alignments.scores[i]}\t"
            f"NM:i:{alignments.edit_distances[i]}\tMD:Z:{md}\n"
        )
    return lines


@pytest.mark.parametrize("mode", MODES)
def test_lines_of_every_format(mode):
    rng = np.random.default_rng(sorted(MODES).index(mode))
    scoring = (
        nucleotide_scoring(1, -4, 6, 1) if mode == "local" else nucleotide_scoring(1, -2, 1, 1)
    )
    for first in (0, 7, 10**9, 3 * 10**12):
        named, queries, references = random_pairs(rng, first=first, with_qualities=first > 7)
        alignments = pair_alignments(named.pairs, scoring, MODES[mode])
        rows = [
            (alignments.scores[i], alignments.reference_starts[i], clipped(alignments, i, q.size))
            for i, q in enumerate(queries)
        ]
        assert tsv_lines(named, alignments).tobytes().decode() == plain_tsv(named, rows)
        columns = zip(*tsv_columns(named, alignments), strict=True)
        lines = "".join("\t".join(map(str, row)) + "\n" for row in columns)
        assert lines == plain_tsv(named, rows)
        assert len(tsv_columns(named, alignments)) == len(TSV_HEADER.split())
        assert paf_lines(named, alignments).tobytes().decode() == plain_paf(
            named, alignments, references
        )
        assert sam_records(named, alignments, scoring).tobytes().decode() == plain_sam(
            named, alignments, queries, references
        )
        cigars = [
            cigar_text(alignments.cigar[begin:end]).replace("*", "")
            for begin, end in zip(
                alignments.cigar_offsets, alignments.cigar_offsets[1:], strict=False
            )
        ]
        assert cigar_texts(alignments.cigar_offsets, alignments.cigar) == cigars


@pytest.mark.parametrize("overhang", OVERHANGS)
def test_gatks_cigars_are_complete(overhang):
    rng = np.random.default_rng(9)
    named, queries, _ = random_pairs(rng, LETTER_OF_BYTE)
    rules = GATK_PARAMETERS["new-sw-parameters"]
    found = gatk_alignments(named.pairs, rules, overhang)
    rows = [
        (
            found.scores[i],
            found.offsets[i],
            cigar_text(found.cigar[found.cigar_offsets[i] : found.cigar_offsets[i + 1]]),
        )
        for i in range(len(queries))
    ]
    assert tsv_lines(named, found).tobytes().decode() == plain_tsv(named, rows)


def test_without_any_alignment():
    """Nothing matches, and the lines are the longest that they can be."""
    scoring = matrix_scoring("BLOSUM62", 11, 1)
    codes = [scoring.code_of_byte[np.frombuffer(text, np.uint8)] for text in (b"W", b"P")]
    names = Names.of(["q" * 300])
    pairs = PairBatch(*(sequences_of([one]) for one in codes))
    named = NamedPairs(pairs, names, names, None, 2**62)
    alignments = pair_alignments(pairs, scoring, MODES["local"])
    expected = f"{2**62}\t{'q' * 300}\t{'q' * 300}\t0\t0\t*\n"
    assert tsv_lines(named, alignments).tobytes().decode() == expected
    assert paf_lines(named, alignments).size == 0

"""Alignments of loci by scores, against whole matrices in plain Python."""

import itertools
import random

import numpy as np
import pytest

from bwarp.alignment.scoring import FITTING, GLOBAL, LOCAL
from bwarp.allmap import alignments_cpu as scored_alignments
from bwarp.allmap.alignments_cpu import align_by_score
from bwarp.allmap.candidates_cpu import blocks_of
from bwarp.allmap.find_cpu import LociFinder, load
from bwarp.allmap.options import LocusOptions, extension_of
from bwarp.errors import UsageError
from bwarp.mapping.extension_cpu import both_strands
from tests.helpers.oracles.alignment_oracle import align
from tests.helpers.oracles.loci_oracle import flat, hard_genome, hard_reads, index_of_codes

#: Match, mismatch, and the costs of a gap: bwa's, gaps without an opening cost, and scores with
#: which a mismatch, or a gap, is never worthwhile.
SCORES = [(1, -4, 6, 1), (2, -3, 5, 2), (1, -1, 0, 1), (1, -100, 0, 1), (1, -1, 100, 100)]


def aligned(contigs, reads, edits, extension):
    index = index_of_codes(contigs)
    codes, offsets = flat(reads)
    both = both_strands(codes, offsets)
    genome, blocks = load(index.reference), blocks_of(both)
    loci, _ = LociFinder(index, genome, LocusOptions(edits)).find_batch(both, blocks, offsets)
    return loci, align_by_score(genome.blocks, both, blocks, offsets, loci, extension)


def cigar_of(found, i):
    cigar = found.cigar[found.offsets[i] : found.offsets[i + 1]].tolist()
    return [(run >> 4, "MIDNSHP=X"[run & 15]) for run in cigar]


def expected(read, stretch, extension):
    """Return the oracle's alignment, and its CIGAR with M and S."""
    mode = LOCAL if extension.local else FITTING
    found = align(read, stretch, extension.scoring, mode)
    if found.reference_start == found.reference_end:
        found = align(read, stretch, extension.scoring, GLOBAL)
    runs = [(found.query_start, "S")]
    runs += [(size, "M" if operation in "=X" else operation) for size, operation in found.cigar]
    runs += [(len(read) - found.query_end, "S")]
    joined = itertools.groupby((run for run in runs if run[0]), lambda run: run[1])
    return found, [(sum(size for size, _ in group), name) for name, group in joined]


@pytest.mark.parametrize("name", ["semiglobal", "local"])
@pytest.mark.parametrize("scores", SCORES)
def test_equals_whole_matrices(monkeypatch, name, scores):
    monkeypatch.setattr(scored_alignments, "_BASES_AT_ONCE", 300)
    extension = extension_of(name, *scores)
    seen = {"gaps": 0, "clipped": 0, "other edits": 0, "loci": 0}
    for number in range(12):
        rng = random.Random(number)
        contigs = hard_genome(rng)
        edits = rng.randrange(1, 6)
        reads = hard_reads(rng, contigs, 3, edits)
        text = [base for contig in contigs for base in contig]
        loci, found = aligned(contigs, reads, edits, extension)
        for i in range(min(len(loci.reads), 60)):
            read = reads[loci.reads[i]]
            if loci.strands[i]:
                read = [3 - base if base < 4 else 4 for base in read[::-1]]
            wanted, cigar = expected(read, text[loci.starts[i] : loci.ends[i]], extension)
            assert cigar_of(found, i) == cigar
            assert found.scores[i] == wanted.score
            assert found.distances[i] == wanted.edit_distance
            assert found.starts[i] == loci.starts[i] + wanted.reference_start
            assert found.ends[i] == loci.starts[i] + wanted.reference_end
            assert found.ends[i] > found.starts[i]
            seen["gaps"] += any(operation in "ID" for _, operation in cigar)
            seen["clipped"] += any(operation == "S" for _, operation in cigar)
            seen["other edits"] += bool(found.distances[i] != loci.distances[i])
            seen["loci"] += 1
    assert seen["loci"] > 200
    assert (seen["clipped"] > 20) == (name == "local")
    assert seen["gaps"] > 5 or scores[2] == 100
    # Scores with equal costs of all edits give the alignment by edits.
    assert seen["other edits"] > 5 or (name, scores) == ("semiglobal", (1, -1, 0, 1))


def test_one_long_gap_is_better_than_two():
    rng = random.Random(1)
    genome = [rng.randrange(4) for _ in range(400)]
    # Three bases are missing; by edits, one of them would be elsewhere.
    genome[150:158] = [0, 1, 2, 3, 0, 2, 1, 3]
    read = genome[100:152] + genome[155:200]
    loci, found = aligned([genome], [read], 3, extension_of("semiglobal"))
    row = int(np.flatnonzero(loci.strands == 0)[0])
    gaps = [run for run in cigar_of(found, row) if run[1] == "D"]
    assert gaps == [(3, "D")]
    assert found.scores[row] == len(read) - 6 - 3
    assert loci.distances[row] == 3


def test_a_whole_insertion_is_no_alignment():
    """If a single insertion of the read scores most, the alignment still spans the locus."""
    genome = [0] * 10 + [1] + [0] * 10
    loci, found = aligned(
        [genome], [[2, 2, 1, 3, 3]], 4, extension_of("semiglobal", 1, -100, 100, 1)
    )
    row = int(np.flatnonzero((loci.strands == 0) & (loci.distances == 4))[0])
    assert sorted(operation for _, operation in cigar_of(found, row)) == ["D", "I"]
    assert (found.ends > found.starts).all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("global",), "extension 'global' is not one of edits, semiglobal, local"),
        (("edits", 1), "match requires the extension semiglobal or local"),
        (("edits", None, None, 6), "gap-open requires the extension semiglobal"),
        (("local", 0), "match is 0: use a whole number from 1 to 100"),
        (("local", 101), "match is 101: use a whole number from 1 to 100"),
        (("semiglobal", 1, 0), "mismatch is 0: the score of a mismatch must be from -100 to -1"),
        (("semiglobal", 1, -1, -1), "gap-open is -1: use a whole number from 0 to 100"),
        (("local", 1, -1, 0, 0), "gap-extend is 0: use a whole number from 1 to 100"),
        (("local", 50), "gap-open is 300: use a whole number from 0 to 100"),
    ],
)
def test_scores_that_cannot_be_used(given, message):
    with pytest.raises(UsageError, match=message):
        extension_of(*given)

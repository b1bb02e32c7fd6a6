"""CIGARs of loci have the edits of the locus, and no more gap letters than allowed."""

import functools
import itertools
import math
import random

import numpy as np

from bwarp.allmap.alignments_cpu import align_loci
from bwarp.allmap.candidates_cpu import blocks_of
from bwarp.allmap.find_cpu import LociFinder, load
from bwarp.allmap.options import LocusOptions
from bwarp.mapping.extension_cpu import both_strands
from tests.helpers.oracles.loci_oracle import flat, hard_genome, hard_reads, index_of_codes


def aligned(contigs, reads, edits, gaps):
    index = index_of_codes(contigs)
    codes, offsets = flat(reads)
    both = both_strands(codes, offsets)
    genome = load(index.reference)
    finder = LociFinder(index, genome, LocusOptions(edits, gaps=gaps))
    loci, _ = finder.find_batch(both, blocks_of(both), offsets)
    found = align_loci(genome.blocks, blocks_of(both), offsets, loci, np.full(len(reads), gaps))
    for i in range(len(loci.reads)):
        cigar = found.cigar[found.offsets[i] : found.offsets[i + 1]].tolist()
        yield i, loci, [(size >> 4, "MID"[size & 15]) for size in cigar]


def test_edits_and_gap_letters():
    n_gapped = 0
    for number in range(40):
        rng = random.Random(number)
        contigs = hard_genome(rng)
        edits = rng.randrange(5)
        gaps = rng.choice([0, edits, rng.randrange(edits + 1)])
        reads = hard_reads(rng, contigs, 4, edits)
        text = [b for contig in contigs for b in contig]
        for i, loci, cigar in aligned(contigs, reads, edits, gaps):
            read = reads[loci.reads[i]]
            if loci.strands[i]:
                read = [3 - b if b < 4 else 4 for b in read[::-1]]
            at, row, cost, letters = int(loci.starts[i]), 0, 0, 0
            for size, operation in cigar:
                if operation == "M":
                    pairs = zip(read[row : row + size], text[at : at + size], strict=True)
                    cost += sum(a != b or a > 3 for a, b in pairs)
                else:
                    cost, letters = cost + size, letters + size
                row += size if operation != "D" else 0
                at += size if operation != "I" else 0
            assert (row, at, cost) == (len(read), loci.ends[i], loci.distances[i])
            assert letters <= gaps
            n_gapped += letters > 0
    assert n_gapped > 50


def leftmost_alignment(read, stretch, most):
    """Return the alignment by the rule: fewest edits, then fewest gap letters.

    Ties are broken from the last base back: a match or mismatch if possible, otherwise a deleted
    base, otherwise an inserted one.
    """

    @functools.cache
    def cost(row, column, letters):
        if row < 0 or column < 0 or letters < 0:
            return math.inf
        if row == column == letters == 0:
            return 0
        return min(
            cost(row - 1, column - 1, letters) + differ(row, column),
            cost(row, column - 1, letters - 1) + 1,
            cost(row - 1, column, letters - 1) + 1,
        )

    def differ(row, column):
        return read[row - 1] != stretch[column - 1] or read[row - 1] > 3

    row, column = len(read), len(stretch)
    _, letters = min((cost(row, column, n), n) for n in range(most + 1))
    back = ""
    while row or column:
        here = cost(row, column, letters)
        if cost(row - 1, column - 1, letters) + differ(row, column) == here:
            back, row, column = back + "M", row - 1, column - 1
        elif cost(row, column - 1, letters - 1) + 1 == here:
            back, column, letters = back + "D", column - 1, letters - 1
        else:
            back, row, letters = back + "I", row - 1, letters - 1
    return [(len(list(run)), operation) for operation, run in itertools.groupby(back[::-1])]


def test_equals_the_rule():
    n_gapped = 0
    for number in range(30):
        rng = random.Random(100 + number)
        contigs = hard_genome(rng)
        edits = rng.randrange(1, 6)
        gaps = rng.randrange(1, edits + 1)
        reads = hard_reads(rng, contigs, 3, edits)
        text = [b for contig in contigs for b in contig]
        for i, loci, cigar in aligned(contigs, reads, edits, gaps):
            read = reads[loci.reads[i]]
            if loci.strands[i]:
                read = [3 - b if b < 4 else 4 for b in read[::-1]]
            stretch = text[loci.starts[i] : loci.ends[i]]
            assert cigar == leftmost_alignment(tuple(read), tuple(stretch), gaps)
            n_gapped += len(cigar) > 1
    assert n_gapped > 50


def test_gaps_stand_as_far_left_as_they_can():
    contigs = [[0, 1, 2, 3, 0, 0, 0, 0, 3, 2, 1, 0, 2, 2, 1, 3, 1, 0, 3, 3, 2, 0, 1, 1]]
    shorter = contigs[0][:5] + contigs[0][6:]
    ((_, _, cigar),) = [
        one for one in aligned(contigs, [shorter], 1, 1) if not one[1].strands[one[0]]
    ]
    assert cigar == [(4, "M"), (1, "D"), (19, "M")]

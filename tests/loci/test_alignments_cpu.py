"""CIGARs of loci: as many edits as the locus has, no more gap letters than allowed."""

import random

import numpy as np

from bwarp.loci.alignments_cpu import align_loci
from bwarp.loci.find_cpu import find_batch, load
from bwarp.loci.options import LocusOptions
from bwarp.loci.read_blocks import blocks_of
from bwarp.mapping.extension.extension_cpu import both_strands
from tests.helpers.oracles.loci_oracle import flat, hard_genome, hard_reads, index_of_codes


def aligned(contigs, reads, edits, gaps):
    index = index_of_codes(contigs)
    codes, offsets = flat(reads)
    both = both_strands(codes, offsets)
    genome = load(index.reference)
    loci, _ = find_batch(
        index, genome, both, blocks_of(both), offsets, LocusOptions(edits, gaps=gaps)
    )
    found = align_loci(
        genome.blocks, both, blocks_of(both), offsets, loci, np.full(len(reads), gaps)
    )
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


def test_gaps_stand_as_far_left_as_they_can():
    contigs = [[0, 1, 2, 3, 0, 0, 0, 0, 3, 2, 1, 0, 2, 2, 1, 3, 1, 0, 3, 3, 2, 0, 1, 1]]
    shorter = contigs[0][:5] + contigs[0][6:]
    ((_, _, cigar),) = [
        one for one in aligned(contigs, [shorter], 1, 1) if not one[1].strands[one[0]]
    ]
    assert cigar == [(4, "M"), (1, "D"), (19, "M")]

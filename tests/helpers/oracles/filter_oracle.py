"""Reads mutated out of windows of a genome with a known number of edits, and edit distances."""

import numpy as np

from bwarp.filtering.candidates import Candidates
from bwarp.sequence import pack, reverse_complement


def mutate(rng, bases, n_edits):
    """A copy of a list of codes with so many random edits, ambiguous bases among them."""
    bases = list(bases)
    for _ in range(n_edits):
        at = int(rng.integers(0, len(bases) + 1))
        kind = rng.integers(0, 3)
        if kind == 0 and at < len(bases):
            bases[at] = int(rng.choice([x for x in range(5) if x != bases[at]]))
        elif kind == 1 and at < len(bases) and len(bases) > 1:
            del bases[at]
        else:
            bases.insert(at, int(rng.integers(0, 5)))
    return bases


def mutated_candidates(rng, genome, n, longest=200, most_edits=25):
    """Packed reads, their starts, and candidates that must be kept.

    Each read is a stretch of the genome with at most `max_edits` edits, its window that stretch
    with up to 40 bases of slack on either side.
    """
    reads, strands, starts, stops, max_edits = [], [], [], [], []
    for _ in range(n):
        length = int(rng.integers(1, longest + 1))
        start = int(rng.integers(0, genome.size - length + 1))
        n_edits = int(rng.integers(0, most_edits + 1))
        read = np.array(mutate(rng, genome[start : start + length].tolist(), n_edits), np.uint8)
        strands.append(int(rng.integers(0, 2)))
        reads.append(reverse_complement(read) if strands[-1] else read)
        slack = rng.integers(0, 41, 2)
        starts.append(max(0, start - int(slack[0])))
        stops.append(min(genome.size, start + length + int(slack[1])))
        # The genome's own ambiguous bases match nothing, not even themselves.
        n_ambiguous = int(np.count_nonzero(genome[start : start + length] == 4))
        max_edits.append(n_edits + n_ambiguous)
    read_starts = np.concatenate([[0], np.cumsum([len(read) for read in reads])]).astype(np.int64)
    candidates = Candidates(
        np.arange(n),
        np.array(strands, np.uint8),
        np.array(starts, np.int64),
        np.array(stops, np.int64),
        np.array(max_edits, np.int32),
    )
    return pack(np.concatenate(reads)), read_starts, candidates


def edits_within(read, window):
    """The fewest edits of an alignment of the whole read within the window; 4 matches nothing."""
    row = np.zeros(len(window) + 1, np.int64)
    for base in read:
        above = row
        matches = np.array([base == x and base < 4 for x in window], bool)
        row = np.empty_like(above)
        row[0] = above[0] + 1
        best = np.minimum(above[:-1] + ~matches, above[1:] + 1)
        for j in range(len(window)):
            row[j + 1] = min(best[j], row[j] + 1)
    return int(row.min())

"""Loci by their definition: each substring of a text by plain dynamic programming.

Also genomes and reads with difficult loci: tandem repeats, runs of one base, ambiguous bases and
borders.
"""

import random

import numpy as np

from tests.helpers.oracles.index_oracle import index_of

FAR = 10**6


def stretch_distances(read: list[int], text: list[int], gaps: int) -> dict[tuple[int, int], int]:
    """Return the minimum edits to text[i:j], with a limit on gap letters, by (i, j)."""
    text = np.where(np.array(text) < 4, text, -1)
    # By gap letters, start and prefix of the read: all starts at once, one base longer each time.
    column = np.full((gaps + 1, len(text) + 1, len(read) + 1), FAR)
    for letters in range(gaps + 1):
        column[letters, :, : letters + 1] = np.arange(len(read) + 1)[: letters + 1]
    found = {(i, i): d for i, d in enumerate(column[:, :, -1].min(axis=0).tolist())}
    for length in range(1, min(len(text), len(read) + gaps) + 1):
        bases = text[length - 1 :]
        before = column[:, : bases.size]
        column = np.full_like(before, FAR)
        for letters in range(gaps + 1):
            column[letters, :, 1:] = before[letters, :, :-1] + (bases[:, None] != read)
            if letters:
                # A base of the text deleted, and then one of the read inserted.
                fewer, here = before[letters - 1] + 1, column[letters - 1] + 1
                column[letters] = np.minimum(column[letters], fewer)
                column[letters, :, 1:] = np.minimum(column[letters, :, 1:], here[:, :-1])
        found |= {(i, i + length): d for i, d in enumerate(column[:, :, -1].min(axis=0).tolist())}
    return found


def loci_in(read: list[int], text: list[int], edits: int, gaps: int) -> set:
    """Return the loci in a text without ambiguous bases: (start, end, distance)."""
    distances = stretch_distances(read, text, gaps)
    near = {stretch: d for stretch, d in distances.items() if d <= edits}

    def order(stretch):
        i, j = stretch
        return near[stretch], abs(j - i - len(read)), j - i

    best_of_start, best_of_end = {}, {}
    for stretch in near:
        for best, key in ((best_of_start, stretch[0]), (best_of_end, stretch[1])):
            if key not in best or order(stretch) < order(best[key]):
                best[key] = stretch
    return {
        (i, j, int(d)) for (i, j), d in near.items()
        if best_of_start[i] == best_of_end[j] == (i, j)
    }  # fmt: skip


def loci_of(reads: list[list[int]], contigs: list[list[int]], edits: int, gaps: int) -> set:
    """Return the loci of reads in a genome: (read, strand, start, end, distance)."""
    found, contig_start = set(), 0
    for contig in contigs:
        for start, stop in _clean_stretches(contig):
            for number, read in enumerate(reads):
                for strand in (0, 1):
                    seen = [3 - b if b < 4 else 4 for b in read[::-1]] if strand else read
                    for i, j, d in loci_in(seen, contig[start:stop], edits, gaps):
                        at = contig_start + start
                        found.add((number, strand, at + i, at + j, d))
        contig_start += len(contig)
    return found


def _clean_stretches(contig: list[int]):
    start = 0
    for at, base in enumerate([*contig, 4]):
        if base == 4:
            if at > start:
                yield start, at
            start = at + 1


def hard_genome(rng: random.Random) -> list[list[int]]:
    """Return a few contigs of up to 120 bases: random, tandem repeats, or mostly one base."""
    contigs = [_contig(rng, rng.randrange(30, 120)) for _ in range(rng.randrange(1, 4))]
    for contig in contigs:
        if rng.random() < 0.5:
            at = rng.randrange(len(contig))
            for i in range(at, min(len(contig), at + rng.randrange(1, 5))):
                contig[i] = 4
    return contigs


def _contig(rng: random.Random, n: int) -> list[int]:
    kind = rng.randrange(3)
    if kind == 0:
        return [rng.randrange(4) for _ in range(n)]
    if kind == 1:
        unit = [rng.randrange(4) for _ in range(rng.randrange(2, 8))]
        bases = (unit * n)[:n]
        for _ in range(n // 20):
            bases[rng.randrange(n)] = rng.randrange(4)
        return bases
    return [rng.randrange(4) if rng.random() < 0.15 else 0 for _ in range(n)]


def hard_reads(rng: random.Random, contigs: list[list[int]], n: int, edits: int) -> list[list[int]]:
    """Return reads of the genome with edits, some across borders, some with ambiguous bases."""
    reads = []
    for _ in range(n):
        contig = rng.choice(contigs)
        length = rng.randrange(max(8, edits + 2), 40)
        at = rng.randrange(-2, max(1, len(contig) - length))
        read = [b if b < 4 else rng.randrange(4) for b in contig[max(at, 0) : at + length]]
        for _ in range(rng.randrange(edits + 1)):
            at = rng.randrange(len(read) + 1)
            edit = rng.randrange(3)
            if edit == 0:
                read[at : at + 1] = [rng.choice([0, 1, 2, 3, 0, 1, 2, 3, 4])]
            elif edit == 1:
                read.insert(at, rng.randrange(4))
            elif len(read) > 1:
                del read[at : at + 1]
        read += [rng.randrange(4) for _ in range(max(8, edits + 2) - len(read))]
        reads.append([3 - b if b < 4 else 4 for b in read[::-1]] if rng.random() < 0.5 else read)
    return reads


def index_of_codes(contigs: list[list[int]], **parameters):
    return index_of([bytes(b"ACGTN"[b] for b in contig) for contig in contigs], **parameters)


def flat(reads: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Return concatenated codes, and offsets."""
    lengths = [len(read) for read in reads]
    codes = np.array([b for read in reads for b in read], np.uint8)
    return codes, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)

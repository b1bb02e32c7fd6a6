"""Simulated pairs of sequences to align."""

import numpy as np

from bwarp.alignment.pairs import PairBatch, Sequences, sequences_of

__all__ = ["BASES", "mixed_pairs", "mutated_reads", "random_pairs", "rows_of", "write_pairs"]

BASES = np.frombuffer(b"ACGT", np.uint8)


def random_pairs(count, query_length, reference_length, seed, gapped=0.3, substituted=0.01):
    """Return reads cut from reference windows, with substitutions and, in some, an indel."""
    rng = np.random.default_rng(seed)
    references = rng.integers(0, 4, (count, reference_length), dtype=np.uint8)
    slack = reference_length - query_length
    starts = rng.integers(0, max(slack - 8, 1), count)
    columns = starts[:, None] + np.arange(query_length)
    has_gap = rng.random(count) < gapped
    shift = rng.integers(-4, 5, count) * has_gap
    columns[:, query_length // 2 :] += shift[:, None]
    np.clip(columns, 0, reference_length - 1, out=columns)
    queries = np.take_along_axis(references, columns, 1)
    changed = rng.random(queries.shape, dtype=np.float32) < substituted
    queries[changed] = (queries[changed] + rng.integers(1, 4, int(changed.sum()))) % 4
    return PairBatch(rows_of(queries), rows_of(references))


def rows_of(matrix):
    count, length = matrix.shape
    return Sequences(
        matrix.ravel(), np.arange(count, dtype=np.int64) * length, np.full(count, length, np.int32)
    )


def mixed_pairs(count, query_range, reference_range, seed, bases=None):
    """Return pairs of random lengths with related sequences and some ambiguous bases."""
    rng = np.random.default_rng(seed)
    queries, references = [], []
    for _ in range(count):
        reference = rng.integers(0, 4, rng.integers(*reference_range)).astype(np.uint8)
        start = rng.integers(0, reference.size)
        length = rng.integers(*query_range)
        query = np.resize(reference[start:], length).copy()
        changed = rng.random(length) < rng.choice([0, 0.02, 0.1])
        query[changed] = rng.integers(0, 4, int(changed.sum()))
        if rng.random() < 0.5 and length > 10:
            at = rng.integers(1, length - 5)
            query = np.delete(query, slice(at, at + rng.integers(1, 5)))
        if bases is None and rng.random() < 0.05:
            reference[rng.integers(0, reference.size)] = 4
            query[rng.integers(0, query.size)] = 4
        queries.append(query if bases is None else bases[query])
        references.append(reference if bases is None else bases[reference])
    return PairBatch(sequences_of(queries), sequences_of(references))


def mutated_reads(rng, count, query_length, reference_length, errors):
    """Return queries cut from their references, with substitutions, and an indel in every tenth."""
    references = rng.integers(0, 4, (count, reference_length), dtype=np.uint8)
    begin = (reference_length - query_length) // 2
    queries = references[:, begin : begin + query_length].copy()
    changed = rng.random(queries.shape) < errors
    queries[changed] = rng.integers(0, 4, int(changed.sum()))
    half = query_length // 2
    queries[::10, half:-3] = queries[::10, half + 3 :]
    return queries, references


def write_pairs(folder, count):
    """Write reads of 150 bases, and references of 152 to 277 that contain them with 3 % of errors,
    as FASTA, FASTQ and a table. middle.fa has the 150 bases of each reference that match the read.
    """
    rng = np.random.default_rng(106)
    with (
        open(folder / "q.fa", "wb") as fasta,
        open(folder / "q.fq", "wb") as fastq,
        open(folder / "r.fa", "wb") as references,
        open(folder / "middle.fa", "wb") as middles,
        open(folder / "pairs.tsv", "wb") as table,
    ):
        for first in range(0, count, 10_000):
            size = min(10_000, count - first)
            queries, whole = mutated_reads(rng, size, 150, 277, 0.03)
            lengths = rng.integers(152, 278, size)
            # Cut around the read, which is in the middle.
            begins = (277 - lengths) // 2
            for i, (query, reference) in enumerate(zip(BASES[queries], BASES[whole], strict=True)):
                number, query = first + i, query.tobytes()
                middle = reference[63:213].tobytes()
                reference = reference[begins[i] : begins[i] + lengths[i]].tobytes()
                fasta.write(b">query_%d\n%s\n" % (number, query))
                fastq.write(b"@query_%d\n%s\n+\n%s\n" % (number, query, b"I" * 150))
                references.write(b">target_%d\n%s\n" % (number, reference))
                middles.write(b">target_%d\n%s\n" % (number, middle))
                table.write(b"query_%d\t%s\ttarget_%d\t%s\n" % (number, query, number, reference))

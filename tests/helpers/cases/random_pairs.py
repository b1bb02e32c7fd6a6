"""Random pairs like real ones: unrelated, mutated, repetitive, and one base long."""

import numpy as np

from bwarp.alignment.pairs import PairBatch, sequences_of


def random_sequence(rng, n_codes, longest):
    length = int(rng.integers(1, longest + 1))
    if rng.random() < 0.2:
        unit = rng.integers(0, n_codes, rng.integers(1, 4), dtype=np.uint8)
        return np.tile(unit, length)[:length]
    return rng.integers(0, n_codes, length, dtype=np.uint8)


def mutated(rng, sequence, n_codes, errors):
    """Return a copy with substitutions, insertions and deletions."""
    out = []
    for code in sequence.tolist():
        event = rng.random()
        if event < errors / 2:
            out.append(int(rng.integers(n_codes)))
        elif event < errors * 3 / 4:
            out += [code, *rng.integers(0, n_codes, rng.integers(1, 4)).tolist()]
        elif event >= errors:
            out.append(code)
    return np.array(out or [0], np.uint8)


def random_pairs(rng, count, n_codes, longest):
    """Return random pairs; half of the references contain a mutated copy of their query."""
    queries, references = [], []
    for _ in range(count):
        query = random_sequence(rng, n_codes, longest)
        reference = random_sequence(rng, n_codes, longest)
        if rng.random() < 0.5:
            copy = mutated(rng, query, n_codes, rng.choice([0.0, 0.05, 0.3]))
            cut = int(rng.integers(0, reference.size))
            reference = np.concatenate([reference[:cut], copy, reference[cut:]])
        queries.append(query)
        references.append(reference)
    return PairBatch(sequences_of(queries), sequences_of(references))

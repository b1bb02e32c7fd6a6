"""A random genome for short runs."""

from pathlib import Path

import numpy as np


def write_genome(path: Path, n_bases: int, seed: int = 1) -> Path:
    """Write a random genome of two contigs."""
    bases = np.random.default_rng(seed).choice(list(b"ACGT"), n_bases).astype(np.uint8)
    half = n_bases // 2
    path.write_bytes(b">one\n%b\n>two\n%b\n" % (bases[:half].tobytes(), bases[half:].tobytes()))
    return path

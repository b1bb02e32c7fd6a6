"""Default data for benchmarks: the project's demo genomes, and reads of them."""

import sys
from pathlib import Path

import numpy as np

from frame.options import CHECKOUT
from frame.timing import Used, run_program

__all__ = [
    "make_genome",
    "make_index",
    "make_proteins",
    "make_reads",
    "run_script",
    "script",
]


def script(name: str, *arguments) -> list:
    """Return the command that runs a program in scripts/."""
    return [sys.executable, CHECKOUT / "scripts" / f"{name}.py", *arguments]


def run_script(name: str, *arguments) -> Used:
    return run_program(script(name, *arguments))


def make_genome(folder: Path, bases: int) -> Path:
    """Write a genome with repeats, as FASTA."""
    genome = folder / f"simulated_{bases}.fa"
    run_script("simulate_genome", "-o", genome, "--length", bases, "--contigs", 4)
    return genome


def make_index(folder: Path, genome: Path, *options) -> Path:
    index = folder / f"{genome.stem}.index"
    run_script("index_reference", genome, "-o", index, "--backend", "cpu", *options)
    return index


def make_reads(folder: Path, genome: Path, pairs: int) -> tuple[Path, Path]:
    """Write two files of reads of 150 bases."""
    reads = folder / "reads_1.fq", folder / "reads_2.fq"
    ends = "-1", reads[0], "-2", reads[1]
    run_script("simulate_reads", "--reference", genome, *ends, "--pairs", pairs)
    return reads


def make_proteins(residues: int, seed: int) -> list[np.ndarray]:
    """Return the codes of random proteins with lengths like those in Swiss-Prot."""
    rng = np.random.default_rng(seed)
    lengths = np.clip(rng.lognormal(5.7, 0.65, max(8, residues // 360)), 30, 9000).astype(int)
    return [rng.integers(0, 20, n).astype(np.uint8) for n in lengths]

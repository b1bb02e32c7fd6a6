"""Data for benchmarks that are given none: the project's own demo genomes, and reads of them."""

import subprocess
import sys
from pathlib import Path

import numpy as np

__all__ = [
    "add_index_and_reads",
    "index_and_reads",
    "make_genome",
    "make_index",
    "make_proteins",
    "make_reads",
    "run_script",
]

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"


def run_script(script: str, *arguments) -> None:
    command = [sys.executable, SCRIPTS / script, *arguments]
    subprocess.run([str(word) for word in command], check=True, capture_output=True)


def make_genome(folder: Path, bases: int) -> Path:
    """A genome with repeats, as FASTA."""
    genome = folder / f"simulated_{bases}.fa"
    run_script("simulate_genome.py", "-o", genome, "--length", bases, "--contigs", 4)
    return genome


def make_index(folder: Path, genome: Path) -> Path:
    index = folder / f"{genome.stem}.index"
    run_script("index_reference.py", genome, "-o", index, "--backend", "cpu")
    return index


def make_reads(folder: Path, genome: Path, pairs: int) -> tuple[Path, Path]:
    """Two files of reads of 150 bases."""
    reads = folder / "reads_1.fq", folder / "reads_2.fq"
    ends = "-1", reads[0], "-2", reads[1]
    run_script("simulate_reads.py", "--reference", genome, *ends, "--pairs", pairs)
    return reads


def add_index_and_reads(parser) -> None:
    parser.add_argument("--index", help="of a genome (default: of one made up)")
    parser.add_argument("-1", dest="first", help="FASTQ")
    parser.add_argument("-2", dest="second", help="FASTQ")
    parser.add_argument("--bases", type=int, default=20_000_000, help="of the genome made up")
    parser.add_argument("--pairs", type=int, default=50_000, help="of its reads")


def index_and_reads(options, folder: Path) -> tuple[str, str, str]:
    """What --index, -1 and -2 name, or --pairs of a genome of --bases that are made here."""
    given = (options.index, options.first, options.second)
    if all(given):
        return given
    if any(given):
        sys.exit("give --index, -1 and -2, or none of them")
    genome = make_genome(folder, options.bases)
    return str(make_index(folder, genome)), *map(str, make_reads(folder, genome, options.pairs))


def make_proteins(residues: int, seed: int) -> list[np.ndarray]:
    """Codes of sequences as long as Swiss-Prot's, of random letters."""
    rng = np.random.default_rng(seed)
    lengths = np.clip(rng.lognormal(5.7, 0.65, max(8, residues // 360)), 30, 9000).astype(int)
    return [rng.integers(0, 20, n).astype(np.uint8) for n in lengths]

"""The mappers in benchmarks, and counts of their correct reads."""

import sys
from pathlib import Path

from frame.peers import found, version_of
from frame.simulated import script
from frame.timing import run_program

import bwarp
from bwarp.evaluation.agreement import TruthCounts

__all__ = ["built_mark", "commands", "counts_of", "make_indexes", "mapper_version"]


def commands(
    fasta: Path, reads: list[Path], threads: int, read_length: int = 150
) -> dict[str, tuple[list, list]]:
    """Return, for each mapper on PATH, the commands that build its index and that write SAM."""
    genome, n = str(fasta), str(threads)
    names = [str(read) for read in reads]
    ends = [word for pair in zip(("-1", "-2"), names, strict=False) for word in pair]
    index = f"{genome}.bwarp"
    mappers = {
        "bwa mem": (["bwa", "index", genome], ["bwa", "mem", "-t", n, genome, *names]),
        "minimap2": (
            ["minimap2", "-x", "sr", "-d", f"{genome}.mmi", genome],
            ["minimap2", "-ax", "sr", "-t", n, f"{genome}.mmi", *names],
        ),
        "bowtie2": (
            ["bowtie2-build", "-q", "--threads", n, genome, genome],
            ["bowtie2", "-p", n, "-x", genome, *(ends if len(reads) == 2 else ["-U", names[0]])],
        ),
        "minibwa": (
            ["minibwa", "index", genome, f"{genome}.minibwa"],
            ["minibwa", "map", "-t", n, f"{genome}.minibwa", *names],
        ),
        "strobealign": (
            ["strobealign", "--create-index", "-t", n, "-r", str(read_length), genome],
            ["strobealign", "--use-index", "-t", n, genome, *names],
        ),
        "bwarp": (
            script("index_reference", genome, "-o", index),
            script("map_reads", "--index", index, *ends, "-o", "-", "--threads", n)
            + ["--backend", "cpu"],
        ),
    }
    ours = sys.executable
    return {name: pair for name, pair in mappers.items() if pair[1][0] == ours or found(pair[1][0])}


def mapper_version(mapper: str) -> str | None:
    return bwarp.__version__ if mapper == "bwarp" else version_of(mapper.split()[0])


def make_indexes(fasta: Path, mappers: dict[str, tuple[list, list]]) -> None:
    """Build the missing indexes of all mappers next to the genome.

    The index of strobealign depends on the read length; it is always built, which takes seconds.
    """
    for mapper, (build, _) in mappers.items():
        built = built_mark(fasta, mapper)
        if mapper == "strobealign" or not built.exists():
            run_program(build)
            built.touch()


def built_mark(fasta: Path, mapper: str) -> Path:
    """Return the file that marks a mapper's index as finished."""
    return fasta.with_name(f"{fasta.name}.{mapper.replace(' ', '-')}.built")


def counts_of(found: TruthCounts) -> dict:
    """Return the percentage of correct reads, and incorrect ones per million, by minimum MAPQ."""
    result = {"right": round(100 * sum(found.correct) / found.total, 3)}
    for least in (10, 30):
        correct, incorrect = sum(found.correct[least:]), sum(found.incorrect[least:])
        result[f"right_q{least}"] = round(100 * correct / found.total, 3)
        result[f"wrong_ppm_q{least}"] = round(1e6 * incorrect / found.total)
    result["random_q10"] = sum(found.random[10:])
    result["unmapped"] = found.unmapped
    return result

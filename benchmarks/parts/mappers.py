"""The mappers that benchmarks run, and how their correct reads are counted."""

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
    """For every mapper on PATH, what builds its index and what writes SAM to standard output."""
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
    """Build the index of every mapper that is not yet beside the genome.

    That of strobealign is of a read length, and is always built: it takes seconds.
    """
    for mapper, (build, _) in mappers.items():
        built = built_mark(fasta, mapper)
        if mapper == "strobealign" or not built.exists():
            run_program(build)
            built.touch()


def built_mark(fasta: Path, mapper: str) -> Path:
    """The file that says that a mapper's index is finished."""
    return fasta.with_name(f"{fasta.name}.{mapper.replace(' ', '-')}.built")


def counts_of(found: TruthCounts) -> dict:
    """Correct reads in percent, and incorrect ones in a million, by the least mapping quality."""
    result = {"right": round(100 * sum(found.correct) / found.total, 3)}
    for least in (10, 30):
        correct, incorrect = sum(found.correct[least:]), sum(found.incorrect[least:])
        result[f"right_q{least}"] = round(100 * correct / found.total, 3)
        result[f"wrong_ppm_q{least}"] = round(1e6 * incorrect / found.total)
    result["random_q10"] = sum(found.random[10:])
    result["unmapped"] = found.unmapped
    return result

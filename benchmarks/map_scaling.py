#!/usr/bin/env python3
"""Time mapping, and its memory, by number of reads, threads, and size of the genome.

    python benchmarks/map_scaling.py --reference genome.fa
    python benchmarks/map_scaling.py --reads 1000000 --threads-list 1 2 4 8 16

bwarp, minimap2 and strobealign, if they are on PATH, map simulated pairs of 2 x 150 from FASTQ to
SAM in turn, with existing indexes. (Indexes for bwa mem and bowtie2 take minutes to build; map.py
times these programs.) Genomes are the first bases of --reference, or of a simulated genome; smaller
sets of reads are the first reads of the same files. A small run of each program comes first and is
not counted.

One JSON object per run is appended to --output: `part` says what is varied.
"""

import itertools
import tempfile
from pathlib import Path

from frame.options import add_threads, new_parser, read_options
from frame.results import Results
from frame.simulated import make_genome, make_reads
from frame.timing import run_program
from parts.mappers import commands, make_indexes, mapper_version

MAPPERS = ("bwarp", "minimap2", "strobealign")
#: Number of reads in runs that vary threads or genomes.
SOME = 200_000
WARM_UP = 2_000


def parse_options():
    parser = new_parser(__doc__)
    parser.add_argument("--reference", type=Path, help="FASTA file, plain (default: simulated)")
    parser.add_argument("--bases", type=int, default=20_000_000, help="of the simulated genome")
    parser.add_argument("--reads", type=int, nargs="+", default=[20_000, 100_000, 1_000_000])
    parser.add_argument("--genomes", type=int, nargs="*", default=[5, 20, 60], help="Mb of parts")
    parser.add_argument("--threads-list", type=int, nargs="+", help="default: 1, 2, 4 to all")
    add_threads(parser)
    return read_options(
        parser, "map_scaling.jsonl", bases=200_000, reads=[1000], genomes=[], threads_list=[1]
    )


def first_reads(path: Path, reads: int) -> Path:
    """Write a file of the first reads of another."""
    part = path.with_name(f"{path.stem}_{reads}.fq")
    with open(path) as lines, open(part, "w") as file:
        file.writelines(itertools.islice(lines, 4 * reads))
    return part


def first_bases(path: Path, megabases: int) -> Path:
    """Write a file of the first unambiguous bases of a genome, as one contig."""
    part, wanted = path.with_name(f"first_{megabases}.fa"), megabases * 1_000_000
    with open(path) as lines, open(part, "w") as file:
        file.write(f">first_{megabases}\n")
        for line in lines:
            if wanted and line[0] != ">" and "N" not in line:
                file.write(line[: min(wanted, len(line) - 1)] + "\n")
                wanted -= min(wanted, len(line) - 1)
    return part


def bases_of(path: Path) -> int:
    with open(path) as lines:
        return sum(len(line) - 1 for line in lines if line[0] != ">")


class Runs:
    """Runs of all mappers on one genome and its reads; each gives a line of results."""

    def __init__(self, results: Results, genome: Path, folder: Path, pairs: int, threads: int):
        self._results, self._genome, self._bases = results, genome, bases_of(genome)
        self._reads = make_reads(folder, genome, pairs)
        make_indexes(genome, self._commands(self._reads, threads))
        for command in self._commands(self._few(WARM_UP), threads).values():
            run_program(command[1])

    def _commands(self, reads, threads: int) -> dict[str, tuple[list, list]]:
        every = commands(self._genome, list(reads), threads)
        return {mapper: every[mapper] for mapper in MAPPERS if mapper in every}

    def _few(self, reads: int) -> list[Path]:
        return [first_reads(path, reads // 2) for path in self._reads]

    def add(self, part: str, reads: int, threads: int) -> None:
        few = self._few(reads)
        for mapper, (_, command) in self._commands(few, threads).items():
            used = run_program(command)
            self._results.add(
                part=part,
                mapper=mapper,
                version=mapper_version(mapper),
                reads=reads,
                threads=threads,
                bases=self._bases,
                wall_seconds=round(used.wall, 2),
                cpu_seconds=round(used.processor, 2),
                memory_mb=round(used.peak / 2**20),
            )


def main():
    options = parse_options()
    threads, results = options.threads, Results(options.output)
    every = options.threads_list or [n for n in (1, 2, 4, 8, 16, 32) if n < threads] + [threads]
    some = min(SOME, max(options.reads))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        genome = folder / "genome.fa"
        source = options.reference or make_genome(folder, options.bases)
        genome.symlink_to(source.resolve())
        whole = Runs(results, genome, folder, max(options.reads) // 2, threads)
        for reads in options.reads:
            whole.add("reads", reads, threads)
        for n in every:
            whole.add("threads", some, n)
        # Before the reads of other runs replace these.
        whole.add("genome", some, threads)
        for megabases in options.genomes:
            part = first_bases(genome, megabases)
            Runs(results, part, folder, some // 2, threads).add("genome", some, threads)


if __name__ == "__main__":
    main()

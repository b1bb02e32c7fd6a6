"""Map simulated reads with bwarp and with other mappers, in turn, and count the correct ones.

    python benchmarks/map.py                       reads of a simulated genome
    python benchmarks/map.py --reference genome.fa --pairs 50000
    python benchmarks/map.py --reference genome.fa --simulator dwgsim --variant-rate 0.03 \
        --mappers 'bwa mem' bwarp --folder kept --output benchmarks/results/map_accuracy.json

Reads come from dwgsim or from bwarp's simulator, with the truth in their names. bwa mem, minimap2,
bowtie2, minibwa and strobealign run if they are on PATH, each with its own index, which is built
before and not timed; --folder keeps the indexes for the next run. Wall and CPU seconds (user and
system) and peak memory are those of the whole program, from FASTQ to SAM, in the fastest of
--repeats runs.

One JSON object per mapper is printed and appended to --output. map_accuracy.py calls this program
for many sets of reads.
"""

import gzip
import shutil
import tempfile
from functools import partial
from pathlib import Path

from frame.options import add_threads, new_parser, read_options
from frame.peers import found
from frame.results import Results
from frame.simulated import make_genome, run_script
from frame.timing import Used, in_turn, run_program
from parts.mappers import commands, counts_of, make_indexes, mapper_version

from bwarp.evaluation.agreement import count_correct


def parse_options():
    parser = new_parser(__doc__)
    parser.add_argument("--reference", type=Path, help="FASTA file, plain (default: simulated)")
    parser.add_argument("--bases", type=int, default=20_000_000, help="of the simulated genome")
    parser.add_argument(
        "--simulator", choices=("own", "dwgsim"), help="default: dwgsim where it is installed"
    )
    parser.add_argument("--pairs", type=int, default=50_000)
    parser.add_argument("--read-length", type=int, default=150)
    parser.add_argument("--variant-rate", type=float, default=0.001)
    parser.add_argument("--indel-fraction", type=float, default=0.15)
    parser.add_argument("--indel-length", type=int, default=1, help="the least (dwgsim only)")
    parser.add_argument("--single", action="store_true", help="map read 1 of every pair alone")
    parser.add_argument("--mappers", nargs="+", help="only these (default: all there are)")
    add_threads(parser)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="where to keep indexes, one folder a genome")
    return read_options(parser, "map_cpu.json", bases=200_000, pairs=500, repeats=1)


def simulate(options, fasta: Path, folder: Path) -> list[Path]:
    """Simulate pairs; return the two files of reads."""
    reads = [folder / "1.fq", folder / "2.fq"]
    # Fragments are long enough for both reads.
    insert = max(400, 12 * options.read_length // 5)
    if options.simulator == "own":
        run_script(
            "simulate_reads", "--reference", fasta, "-1", reads[0], "-2", reads[1],
            "--pairs", options.pairs, "--seed", options.seed,
            "--read-length", options.read_length, "--insert-mean", insert,
            "--variant-rate", options.variant_rate, "--indel-fraction", options.indel_fraction,
        )  # fmt: skip
        return reads
    length = options.read_length
    run_program([
        *("dwgsim", "-N", options.pairs, "-1", length, "-2", length, "-z", options.seed),
        *("-e", "0.002-0.012", "-E", "0.004-0.02", "-r", options.variant_rate, "-y", 0.02),
        *("-R", options.indel_fraction, "-I", options.indel_length, "-d", insert, "-s", 60),
        *("-o", 1, fasta, folder / "dwgsim"),
    ])  # fmt: skip
    for number, path in enumerate(reads, 1):
        with gzip.open(f"{folder}/dwgsim.bwa.read{number}.fastq.gz") as packed:
            path.write_bytes(packed.read())
    return reads


def main():
    options = parse_options()
    options.simulator = options.simulator or ("dwgsim" if found("dwgsim") else "own")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kept = options.folder or folder
        kept.mkdir(exist_ok=True)
        reference = options.reference or make_genome(folder, options.bases)
        fasta = kept / reference.name
        if not fasta.exists():
            shutil.copy(reference, fasta)
        reads = simulate(options, fasta, folder)
        reads = reads[:1] if options.single else reads
        mappers = commands(fasta, reads, options.threads, options.read_length)
        if options.mappers:
            mappers = {mapper: mappers[mapper] for mapper in options.mappers}
        make_indexes(fasta, mappers)

        def run(mapper: str) -> Used:
            with open(folder / f"{mapper}.sam", "wb") as sam:
                return run_program(mappers[mapper][1], stdout=sam)

        runs = in_turn({mapper: partial(run, mapper) for mapper in mappers}, options.repeats)
        counts = {mapper: count_correct(str(folder / f"{mapper}.sam")) for mapper in mappers}
    results = Results(
        options.output,
        reference=reference.name,
        simulator=options.simulator,
        reads=options.pairs * len(reads),
        read_length=options.read_length,
        paired=not options.single,
        variant_rate=options.variant_rate,
        indel_fraction=options.indel_fraction,
        indel_length=options.indel_length,
        seed=options.seed,
        threads=options.threads,
    )
    for mapper, count in counts.items():
        best = min(runs[mapper], key=lambda used: used.processor)
        results.add(
            mapper=mapper,
            version=mapper_version(mapper),
            wall_seconds=round(best.wall, 2),
            cpu_seconds=round(best.processor, 2),
            memory_mb=round(best.peak / 2**20),
            **counts_of(count),
            right_by_quality=count.correct,
            wrong_by_quality=count.incorrect,
        )


if __name__ == "__main__":
    main()

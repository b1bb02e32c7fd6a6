"""Compare mapping qualities with the truth on many genomes, read lengths and difference rates.

    python benchmarks/map_sets.py                  all genomes, reads and rates: two hours
    python benchmarks/map_sets.py --genomes at20 repetitive --reads 2x36 1x50 --rates 1
    python benchmarks/map_sets.py --reference genome.fa --reads 2x75 \
        -o benchmarks/results/map_sets.jsonl

A set is a genome, a kind of reads (2x36: pairs of 36 bases, 1x50: single reads) and a rate of
differences in percent, half of them variants and half errors. Genomes are simulated (see GENOMES
and REPEAT_GENOMES), or FASTA files. bwa mem, minimap2 and bwarp map the reads if they are on PATH.

--seed makes other genomes and other reads. The rules and parameters of bwarp were chosen with seed
1, so report results of other seeds.

One JSON object per mapper and set is appended to --output: the percentage of correct reads; the
percentage of correct reads with a quality of at least 10 and at least 30, with the incorrect ones
per million; and, by bins of quality, the number of reads, and their predicted and actual incorrect
reads. For gap-pairs, it also has the percentage of reads aligned with an insertion and a deletion.
benchmarks/draw_docs.py draws the tables of docs/accuracy.md.
"""

import itertools
import shutil
import tempfile
from pathlib import Path

from frame.options import add_threads, new_parser, read_options
from frame.results import Results
from frame.simulated import run_script
from frame.timing import run_program
from parts.gap_pairs import share_with_both_gaps, write_haplotype
from parts.mappers import commands, counts_of, make_indexes, mapper_version
from parts.repeat_genomes import RepeatGenome, write_genome

from bwarp.evaluation.agreement import TruthCounts, count_correct

MAPPERS = ("bwa mem", "minimap2", "bwarp")
GAP_PAIRS = "gap-pairs"

#: Options of simulate_genome: GC content, transposons (copies 1 to 25 % diverged), tandem repeats,
#: duplicated segments (0 to 2 %). Most repeats of "copies" have two copies. Reads of
#: "gap-pairs" are from a haplotype with insertions and deletions of one length near each other.
GENOMES = {
    "at20": (12_000_000, 0.20, 0.20, 0.10, 0.04),
    "human41": (30_000_000, 0.41, 0.45, 0.04, 0.04),
    "gc65": (8_000_000, 0.65, 0.05, 0.01, 0.02),
    "repetitive": (3_000_000, 0.35, 0.60, 0.10, 0.25),
    "copies": (6_000_000, 0.41, 0.20, 0.01, 0.30),
    GAP_PAIRS: (4_000_000, 0.41, 0.20, 0.01, 0.04),
}

#: Genomes with other repeats: like that of an AT-rich parasite, and with one kind of repeat each.
REPEAT_GENOMES = {
    "parasite": RepeatGenome(12_000_000, gc=0.2, families=0.05, low_complexity=0.05, tandem=0.04),
    "tandem": RepeatGenome(2_000_000, gc=0.35, families=0, low_complexity=0, tandem=0.6),
    "low-complexity": RepeatGenome(2_000_000, gc=0.2, families=0, low_complexity=0.4, tandem=0),
    "families": RepeatGenome(4_000_000, gc=0.25, families=0.5, low_complexity=0, tandem=0),
    "short-periods": RepeatGenome(
        2_000_000, gc=0.41, families=0, low_complexity=0, tandem=0, short_periods=0.5
    ),
}
READS = ("2x30", "2x36", "2x75", "2x100", "2x150", "2x250", "1x50", "1x100")
RATES = (0.2, 1.0, 3.0)

#: Qualities are pooled in bins that begin at these values.
STEPS = (0, 5, 10, 20, 30, 40, 50, 61)


def parse_options():
    parser = new_parser(__doc__)
    simulated = [*GENOMES, *REPEAT_GENOMES]
    parser.add_argument("--genomes", nargs="+", choices=simulated, default=simulated)
    parser.add_argument("--reference", type=Path, help="FASTA file, plain, in place of --genomes")
    parser.add_argument("--reads", nargs="+", default=READS, metavar="ENDSxLENGTH")
    parser.add_argument("--rates", nargs="+", type=float, default=RATES, metavar="PERCENT")
    parser.add_argument("--mappers", nargs="+", choices=MAPPERS, default=MAPPERS)
    parser.add_argument("--total", type=int, default=100_000, help="reads a set")
    parser.add_argument("--bases", type=int, help="of every simulated genome")
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="where to keep genomes, indexes and alignments")
    add_threads(parser)
    return read_options(
        parser, "map_sets.jsonl", genomes=["repetitive"], reads=("2x36", "1x50"), rates=(1.0,),
        total=1000, bases=200_000,
    )  # fmt: skip


def make_genome(name: str, bases: int | None, seed: int, folder: Path) -> Path:
    """Simulate a genome unless it exists."""
    fasta = folder / f"{name}_{seed}.fa"
    if fasta.exists():
        return fasta
    if name in REPEAT_GENOMES:
        genome = REPEAT_GENOMES[name]
        write_genome(fasta, genome._replace(length=bases or genome.length), seed)
    else:
        length, *shares = GENOMES[name]
        fractions = ("gc", "repeat-fraction", "tandem-fraction", "duplication-fraction")
        options = [
            word
            for pair in zip((f"--{part}" for part in fractions), shares, strict=True)
            for word in pair
        ]
        run_script(
            "simulate_genome", "-o", fasta, "--length", bases or length, "--contigs", 3,
            "--seed", seed, *options,
        )  # fmt: skip
    return fasta


def make_reads(
    fasta: Path, kind: str, rate: float, total: int, seed: int, folder: Path
) -> list[Path]:
    """Simulate reads of a kind such as 2x36, with `rate` percent of differences."""
    ends, length = map(int, kind.split("x"))
    paths = [folder / f"{end}.fq" for end in range(1, ends + 1)]
    half = rate / 200
    outputs = ["-1", paths[0], "--reads", total]
    if ends == 2:
        insert = max(300, 12 * length // 5)
        outputs = ["-1", paths[0], "-2", paths[1], "--pairs", total // 2, "--insert-mean", insert]
    run_script(
        "simulate_reads", "--reference", fasta, *outputs, "--read-length", length, "--seed", seed,
        "--variant-rate", half, "--error-rate-start", half, "--error-rate-end", half,
    )  # fmt: skip
    return paths


def calibration_of(found: TruthCounts) -> list[dict]:
    """Return, by bins of quality, the number of reads, and predicted and actual incorrect reads.

    Random reads, which have no origin, are left out.
    """
    steps = []
    for low, high in itertools.pairwise(STEPS):
        reads = [found.correct[q] + found.incorrect[q] for q in range(low, high)]
        claimed = sum(n * 10 ** (-q / 10) for q, n in enumerate(reads, low))
        incorrect = sum(found.incorrect[low:high])
        steps.append(
            {"least": low, "reads": sum(reads), "claimed": round(claimed, 3), "wrong": incorrect}
        )
    return steps


def main():
    options = parse_options()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kept = options.folder or folder
        kept.mkdir(exist_ok=True)
        genomes = options.genomes
        if options.reference:
            genomes = [options.reference.stem]
            shutil.copy(options.reference, kept / options.reference.name)
        for genome in genomes:
            if options.reference:
                fasta = kept / options.reference.name
            else:
                fasta = make_genome(genome, options.bases, options.seed, kept)
            for kind in options.reads:
                for rate in options.rates:
                    run_set(options, genome, fasta, kind, rate, folder, kept)


def run_set(options, genome: str, fasta: Path, kind: str, rate: float, folder: Path, kept: Path):
    source = fasta
    if genome == GAP_PAIRS:
        source = fasta.with_suffix(".haplotype.fa")
        write_haplotype(fasta, source, options.seed)
    reads = make_reads(source, kind, rate, options.total, options.seed, folder)
    mappers = commands(fasta, reads, options.threads)
    mappers = {mapper: mappers[mapper] for mapper in options.mappers if mapper in mappers}
    make_indexes(fasta, mappers)
    results = Results(
        options.output,
        genome=genome,
        reads=kind,
        rate=rate,
        total=options.total,
        seed=options.seed,
    )
    for mapper, (_, command) in mappers.items():
        sam = kept / f"{fasta.stem}.{kind}.{rate:g}.{mapper.replace(' ', '-')}.sam"
        with open(sam, "wb") as file:
            used = run_program(command, stdout=file)
        found = count_correct(str(sam))
        both_gaps = {"both_gaps": share_with_both_gaps(sam)} if genome == GAP_PAIRS else {}
        if not options.folder:
            sam.unlink()
        results.add(
            mapper=mapper,
            version=mapper_version(mapper),
            cpu_seconds=round(used.processor, 2),
            **counts_of(found),
            **both_gaps,
            calibration=calibration_of(found),
        )


if __name__ == "__main__":
    main()

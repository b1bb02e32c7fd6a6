"""Map real reads and report how each alignment differs from that of other programs.

    python benchmarks/map_real.py --data ../shared/data --chromosome chr20.fa
    python benchmarks/map_real.py                  the data in ../shared/data

The alignments published with the reads, and those of bwa mem if it is installed, are compared with
bwarp's (bwarp.evaluation.agreement lists the kinds of difference). Differences are counted for all
reads, and for reads with a mapping quality of at least 30 in one of both. One JSON object per line
is printed and appended to --output. --list shows the names of differing reads.
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from frame.options import SHARED, large_file, new_parser, read_options, skip
from frame.peers import found
from frame.references import contigs_of
from frame.results import Results
from frame.simulated import run_script
from frame.timing import run_program
from parts.mappers import built_mark

from bwarp.evaluation.agreement import count_kinds, kind_of, primary_alignments
from bwarp.mapping.parameters import MappingParameters

SURE = 30


@dataclass(frozen=True)
class RealReads:
    """A set of reads: files in a folder of the data, and the alignments published with them."""

    name: str
    folder: str
    reference: str
    reads: tuple[str, ...]
    alignments: str


SETS = (
    RealReads(
        "mitochondrion", "reads_human_mito_na12878", "Homo_sapiens_assembly38.mt_only.fasta",
        ("NA12878_chrM_1.fq.gz", "NA12878_chrM_2.fq.gz"), "NA12878.bam",
    ),
    RealReads(
        "Ebola", "reads_ebola_srr5019250", "eboVir3.fa",
        ("Ebola_forward.fastqsanger.gz", "Ebola_reverse.fastqsanger.gz"),
        "paired_refgen_isoform_abundances.bt2.bam",
    ),
    RealReads(
        "rotavirus", "reads_rotavirus_bwa", "ref.fa", ("R_1.fq.gz", "R_2.fq.gz"), "bwa.sam"
    ),
    RealReads(
        "samtools ex1", "reads_samtools_ex1", "ex1.fa", ("ex1_1.fq.gz", "ex1_2.fq.gz"), "ex1.bam"
    ),
    RealReads(
        "chr20, 1 Mb", "reads_human_chr20_na12878", "",
        ("NA12878_20_1m-1m1k_1.fq.gz", "NA12878_20_1m-1m1k_2.fq.gz"),
        "CEUTrio.HiSeq.WGS.b37.ch20.1m-1m1k.NA12878.bam",
    ),
    RealReads(
        "chr20, exome", "reads_human_chr20_na12878", "",
        ("hapmap20plex_1.fq.gz", "hapmap20plex_2.fq.gz"),
        "hapmap-20-plex-chr-20-21-read-orientation.bam",
    ),
)  # fmt: skip


def parse_options():
    parser = new_parser(__doc__)
    parser.add_argument("--data", default=SHARED, type=Path)
    parser.add_argument(
        "--chromosome", type=Path, default=large_file("chr20.fa"),
        help="FASTA of human chr20, for its reads (default: of $BWARP_LARGE)",
    )  # fmt: skip
    parser.add_argument("--indexes", type=Path, help="folder where map.py keeps indexes of it")
    names = [reads.name for reads in SETS]
    parser.add_argument("--sets", nargs="+", choices=names, default=names, metavar="NAME")
    parser.add_argument("--list", action="store_true", help="name the reads that differ")
    return read_options(parser, "map_real.json", sets=["samtools ex1"])


def map_here(fasta: Path, index: Path | None, reads: list[Path], folder: Path) -> Path:
    """Map a set of reads with bwarp; return its SAM."""
    sam = folder / "bwarp.sam"
    if index is None:
        index = folder / "index"
        run_script("index_reference", fasta, "-o", index)
    ends = "-1", reads[0], "-2", reads[1]
    run_script("map_reads", "--index", index, *ends, "-o", sam, "--backend", "cpu")
    return sam


def map_with_bwa(fasta: Path, index: Path | None, reads: list[Path], folder: Path) -> Path:
    sam = folder / "bwa.sam"
    if index is None:
        index = folder / "bwa"
        run_program(["bwa", "index", "-p", index, fasta])
    with open(sam, "wb") as file:
        run_program(["bwa", "mem", index, *reads], stdout=file)
    return sam


def show_differences(here: Path, there: Path, contigs: dict) -> None:
    """Print the names of differing reads with a high mapping quality in one of both."""
    parameters = MappingParameters()
    ours = dict(primary_alignments(str(here), contigs, parameters))
    for key, theirs in primary_alignments(str(there), contigs, parameters):
        kind = kind_of(ours[key], theirs, contigs) if key in ours else "same"
        sure = kind != "same" and max(ours[key].quality, theirs.quality) >= SURE
        if sure and kind != "unmapped":
            print(*key, kind, ours[key], theirs, sep="\n    ")


def compare(reads: RealReads, options, results) -> None:
    """Map one set, and count its differences from the other alignments."""
    fasta = options.data / reads.folder / reads.reference
    if not reads.reference:
        fasta = options.chromosome
    if fasta is None or not fasta.is_file():
        print(f"{reads.name}: left out, for its reference is not there")
        return
    index = bwa_index = None
    if options.indexes and not reads.reference:
        kept = options.indexes / fasta.name
        bwa_index = kept if built_mark(kept, "bwa mem").exists() else None
        index = Path(f"{kept}.bwarp") if built_mark(kept, "bwarp").exists() else None
    files = [options.data / reads.folder / file for file in reads.reads]
    contigs = contigs_of(fasta)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        here = map_here(fasta, index, files, folder)
        others = {"as they came": options.data / reads.folder / reads.alignments}
        if found("bwa"):
            others["bwa mem"] = map_with_bwa(fasta, bwa_index, files, folder)
        for other, there in others.items():
            both = (str(here), str(there), contigs, MappingParameters())
            counts = {"all": count_kinds(*both), "sure": count_kinds(*both, SURE)}
            results.add(reads=reads.name, beside=other, **counts)
            if options.list:
                show_differences(here, there, contigs)


def main():
    options = parse_options()
    if not options.data.is_dir():
        skip(f"there are no reads in {options.data}")
    for reads in SETS:
        if reads.name in options.sets:
            compare(reads, options, Results(options.output))


if __name__ == "__main__":
    main()

"""Map FASTQ to sorted and indexed BAM or CRAM with marked duplicates. The options are those of
fq2bam of NVIDIA Parabricks. It runs bwarp map, whose other options are not available here.
"""

import re
import shlex

from bwarp.cli.commands import map_reads
from bwarp.cli.options import say_without_effect
from bwarp.cli.program import program_parser
from bwarp.errors import UsageError
from bwarp.options.mapping import FQ2BAM, FQ2BAM_WITHOUT_EFFECT

EXAMPLES = """
bwarp fq2bam --ref genome.fa --in-fq R1.fq.gz R2.fq.gz --out-bam sample.bam
bwarp fq2bam --ref genome.fa \\
    --in-fq L1_R1.fq.gz L1_R2.fq.gz '@RG\\tID:L1\\tLB:lib1\\tSM:sample\\tPL:ILLUMINA' \\
    --in-fq L2_R1.fq.gz L2_R2.fq.gz '@RG\\tID:L2\\tLB:lib1\\tSM:sample\\tPL:ILLUMINA' \\
    --out-bam sample.bam --out-duplicate-metrics sample.txt
"""

#: Read group of the reads if none is given.
READ_GROUP = r"@RG\tID:1\tLB:lib1\tSM:sample\tPL:ILLUMINA"

#: Options of bwa mem that have the same meaning in `map`, and those of them without a value.
OF_BWA, FLAGS_OF_BWA = "ABCEIKLMOTYav", "CMYa"

#: Endings of the reference, which the name of its index lacks.
_ENDING = re.compile(r"(\.(fa|fasta|fna))?(\.gz)?\Z")


def parse_options():
    parser = program_parser(__doc__, EXAMPLES, FQ2BAM)
    parser.add_argument(
        "--in-fq", action="append", nargs="+", default=[], metavar=("R1.fq", "R2.fq @RG"),
        help="pairs in two FASTQ files, and optionally their read group; repeat it for each lane "
        f"(default: {READ_GROUP} for all)",
    )  # fmt: skip
    parser.add_argument(
        "--in-se-fq", action="append", nargs="+", default=[], metavar=("R.fq", "@RG"),
        help="single reads, and optionally their read group; may be repeated",
    )  # fmt: skip
    return parser


def main(options):
    say_without_effect(options, FQ2BAM_WITHOUT_EFFECT)
    map_reads.main(map_reads.parse_options().parse_args(words_of_map(options)))


def words_of_map(options) -> list[str]:
    """Return the options of `bwarp map` for a run.

    Raises
    ------
    UsageError
        If files or read groups are missing, or an option of bwa is not supported.
    """
    pairs = [files_and_group(words, 2) for words in options.in_fq]
    singles = [files_and_group(words, 1) for words in options.in_se_fq]
    given = pairs + singles
    if not given:
        raise UsageError("no reads are given: use --in-fq or --in-se-fq")
    groups = [group for _, group in given if group is not None]
    if groups and len(groups) < len(given):
        raise UsageError("some files have no read group: give one with each --in-fq, or none")
    words = ["--index", index_beside(options.ref), "--output", options.out_bam, "--sort"]
    if pairs:
        first, second = zip(*(files for files, _ in pairs), strict=True)
        words += ["-1", *first, "-2", *second]
    if singles:
        words += ["--single" if pairs else "-1", *(file for (file,), _ in singles)]
    words += ["--read-group", *(groups or [READ_GROUP])]
    words += [] if options.no_markdups else ["--mark-duplicates"]
    for option, given in (
        ("--out-duplicate-metrics", options.out_duplicate_metrics),
        ("--duplicate-tags", options.duplicate_tags),
    ):  # fmt: skip
        if given and options.no_markdups:
            raise UsageError(f"{option} cannot be combined with --no-markdups")
    if options.out_duplicate_metrics:
        words += ["--duplicate-metrics", options.out_duplicate_metrics]
    words += ["--duplicate-tags"] if options.duplicate_tags else []
    distance = options.optical_duplicate_pixel_distance
    if distance is not None and (options.out_duplicate_metrics or options.duplicate_tags):
        words += ["--optical-distance", str(distance)]
    if options.out_bam.endswith(".cram"):
        words += ["--reference", options.ref]
    words += bwa_words(options.bwa_options or "")
    for name, value in (
        ("gpus", options.num_gpus), ("threads", options.threads), ("backend", options.backend),
    ):  # fmt: skip
        words += [f"--{name}", str(value)]
    return words


def files_and_group(words: list[str], count: int) -> tuple[list[str], str | None]:
    """Return the files of an option, of which there must be `count`, and the read group or None."""
    files, group = words, None
    if words[-1].startswith("@RG"):
        *files, group = words
    if len(files) != count:
        option, files_text = ("--in-fq", "R1.fq R2.fq") if count == 2 else ("--in-se-fq", "R.fq")
        raise UsageError(
            f"{option} {' '.join(words)}: give {files_text}, and optionally a read group in quotes "
            "such as '@RG\\tID:1\\tSM:sample'"
        )
    return files, group


def index_beside(reference: str) -> str:
    """Return the folder of the index of a reference: genome.index for genome.fa.gz."""
    return _ENDING.sub("", reference, count=1) + ".index"


def bwa_words(text: str) -> list[str]:
    """Return the words of the options of bwa mem.

    Raises
    ------
    UsageError
        If an option is not in `OF_BWA`: it may mean something else in `map`.
    """
    try:
        words = shlex.split(text)
    except ValueError:
        raise UsageError(f"--bwa-options {text!r}: a quotation mark is missing") from None
    left = iter(words)
    for word in left:
        option, letter = word[:2], word[1:2]
        is_known = option.startswith("-") and letter and letter in OF_BWA
        if not is_known or (letter in FLAGS_OF_BWA and word != option):
            known = ", ".join(f"-{letter}" for letter in OF_BWA)
            raise UsageError(f"--bwa-options: {word} is not supported: use any of {known}")
        if letter not in FLAGS_OF_BWA and word == option and next(left, None) is None:
            raise UsageError(f"--bwa-options: {word} has no value")
    return words

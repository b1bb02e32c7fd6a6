"""Options that several programs have.

Short names are those of bwa mem, samtools, minimap2 and bowtie where these agree.
"""

from bwarp.errors import UsageError
from bwarp.options.option import (
    CONFIGURATION,
    PROGRAM,
    File,
    OneOf,
    Option,
    Penalty,
    Text,
    Whole,
    yes_no,
)

THREADS = Option(
    "threads", Whole(1, 1024), "CPU threads, by default all that this process may use",
    short="-t -@", only=PROGRAM,
)  # fmt: skip

BACKEND = Option(
    "backend", OneOf(("auto", "cpu", "cuda")),
    "engine: `cuda` needs an NVIDIA GPU, `auto` uses one if there is one, `cpu` uses none. The "
    "results are the same", "auto", in_workflow=", so a change reruns nothing",
)  # fmt: skip

#: What every program has, besides `THREADS`.
OVERALL = (
    BACKEND,
    Option(
        "timeline", Text("T.json"),
        "write what ran when, and in which thread, for chrome://tracing or ui.perfetto.dev",
        only=PROGRAM,
    ),
    yes_no("quiet", "write no progress, only warnings and errors", only=PROGRAM),
    yes_no("debug", "show tracebacks of errors", only=PROGRAM),
)  # fmt: skip

GPUS = Option(
    "gpus", Whole(1, 1024),
    "maximum number of GPUs to share the work among, of those that are free", 1, only=PROGRAM,
)  # fmt: skip

INDEX_FOLDER = Option(
    "index", File("INDEX"), "folder that `bwarp index` wrote", short="-x", required=True,
    only=PROGRAM,
)  # fmt: skip

#: Files of sequences.
SEQUENCES = "FASTA or FASTQ, plain or compressed"


def sequence_file(name: str, metavar: str, what: str = SEQUENCES, **more) -> Option:
    """A file of sequences that a task reads."""
    return Option(name, File(metavar, "a FASTA or FASTQ file, plain or gz"), what, **more)


def output(metavar: str, what: str) -> Option:
    """The file or folder that a program writes."""
    return Option("output", Text(metavar), what, short="-o", required=True, only=PROGRAM)


#: What `--help` says of an input that may come through a pipe.
ON_STDIN = "; - is standard input"


def chunk_file(name: str, program: str, more: str = "") -> Option:
    """A file that an earlier step of a chain wrote."""
    what = f"file that {program} wrote{more}"
    return Option(name, File(name.upper()), what, required=True, only=PROGRAM)


PARTS = Option(
    "parts", Whole(1, 10_000, note="one job searches all queries"),
    "number of parts that the queries are cut into, each searched by a job of its own, on another "
    "machine if there is one. The result is the same", 1, only=CONFIGURATION,
)  # fmt: skip

#: The reads of a program; of pairs either both files, or interleaved.
READ_FILES = (
    Option(
        "1", File("R1.fq[.gz]"),
        "reads, or first reads of pairs: FASTQ; or BAM or CRAM without alignments", only=PROGRAM,
        many=True, dest="first",
    ),
    Option(
        "2", File("R2.fq[.gz]"), "second reads of pairs: as many files as with -1", only=PROGRAM,
        many=True, dest="second",
    ),
    Option(
        "single", File("S.fq[.gz]"), "single reads in addition to the pairs", short="-U",
        only=PROGRAM, many=True,
    ),
    yes_no(
        "interleaved", "both reads of each pair are in R1, one after the other", short="-p",
        only=PROGRAM,
    ),
)  # fmt: skip

#: How the ends of pairs lie (drawn in mapping/insert_size.py), in the order of their
#: numbers: bit 1 stands for the same strand, bit 0 for read 2 behind read 1.
ORIENTATIONS = ("FR", "RF", "FF", "RR")


def parse_insert_size(text: str) -> tuple[float, float]:
    """Mean and standard deviation, typed as 400,60."""
    try:
        mean, standard_deviation = map(float, text.split(","))
    except ValueError:
        raise UsageError(
            f"{text!r}: write mean and standard deviation with a comma between, such as 400,60"
        ) from None
    return mean, standard_deviation


ORIENTATION = Option(
    "orientation", OneOf(ORIENTATIONS), "orientation of the ends of pairs",
    unset="that of most of the first pairs",
)  # fmt: skip

#: How the ends of pairs lie to each other.
PAIRS_OF_READS = (
    Option(
        "insert_size",
        Text(
            "MEAN,SD", 'mean and standard deviation in quotes, such as "400,60"',
            r"^[0-9]+(\.[0-9]+)?,[0-9]+(\.[0-9]+)?$", parse_insert_size,
        ),
        "mean and standard deviation of the insert size, both reads included",
        unset="estimated from the first pairs", short="-I",
    ),
    ORIENTATION,
)  # fmt: skip

#: Scores and costs of reads go up to this, so that int8 tables and int32 sums hold them.
MOST_SCORE = 100


def score_options(
    most: int, most_gap: int, least: int = 0, *, match: str = "1", mismatch: str = "-4",
    gap_open: str | int = "6", gap_extend: str | int = "1",
) -> tuple[Option, ...]:  # fmt: skip
    """Scores of matches, mismatches and gaps, and what they are if they are not given."""

    def option(name: str, short: str, value: Whole, text: str, default: str | int) -> Option:
        given = {"unset": default} if isinstance(default, str) else {"default": default}
        return Option(name, value, text, short=short, **given)

    return (
        option("match", "-A", Whole(least, most), "score of a match", match),
        option("mismatch", "", Whole(-most, -least), "score of a mismatch", mismatch),
        Option(
            "B", Penalty(least, most), "the score of a mismatch as a positive number",
            only=PROGRAM, dest="mismatch",
        ),
        option(
            "gap_open", "-O", Whole(0, most_gap),
            "cost of a gap, besides that of its bases: n bases cost `--gap-open` + n * "
            "`--gap-extend`",
            gap_open,
        ),
        option(
            "gap_extend", "-E", Whole(least, most_gap), "cost of each base of a gap", gap_extend
        ),
    )  # fmt: skip


def scores_of_reads() -> tuple[Option, ...]:
    """Scores of reads; those that are not given grow with that of a match."""
    grow = {"mismatch": "-4", "gap_open": "6", "gap_extend": "1"}
    return score_options(
        MOST_SCORE, MOST_SCORE, 1, **{name: f"{score} times match" for name, score in grow.items()}
    )


COMPRESS = Option(
    "compress", OneOf(("auto", "gpu", "host")),
    "where BAM is compressed: `auto` is the GPU if one maps and nvCOMP is installed. The records "
    "are the same, the bytes of the file are not", "auto", only=PROGRAM,
)  # fmt: skip

"""Options shared by several programs.

Short names follow bwa mem, samtools, minimap2 and bowtie where these agree.
"""

from bwarp.errors import UsageError
from bwarp.options.option import CONFIGURATION, PROGRAM, File, OneOf, Option, Text, Whole, yes_no

THREADS = Option(
    "threads", Whole(1, 1024), "number of CPU threads, by default all available ones",
    short="-t -@", only=PROGRAM,
)  # fmt: skip

BACKEND = Option(
    "backend", OneOf(("auto", "cpu", "cuda")),
    "engine: `cuda` requires an NVIDIA GPU, `auto` uses a GPU if there is one, `cpu` uses none. "
    "The results are the same", "auto", in_workflow=", so a change reruns nothing",
)  # fmt: skip

#: Options of every program, in addition to `THREADS`.
OVERALL = (
    BACKEND,
    Option(
        "timeline", Text("T.json"),
        "write a timeline of the steps per thread, for chrome://tracing or ui.perfetto.dev",
        only=PROGRAM,
    ),
    yes_no("quiet", "print only warnings and errors, no progress", only=PROGRAM),
    yes_no("debug", "show tracebacks of errors", only=PROGRAM),
)  # fmt: skip

GPUS = Option(
    "gpus", Whole(1, 1024),
    "maximum number of GPUs to use", 1, only=PROGRAM,
)  # fmt: skip

SPREAD = yes_no(
    "spread",
    "distribute the chunks of an index in chunks over the GPUs of `--gpus`, so that each holds a "
    "part of the reference. The results are the same; without a GPU, the option has no effect",
    only=PROGRAM,
)

#: Bases of a chunk of a reference.
CHUNK = Whole(10**3, 2**32)

INDEX_FOLDER = Option(
    "index", File("INDEX"), "folder written by `bwarp index`", short="-x", required=True,
    only=PROGRAM,
)  # fmt: skip

#: Files of sequences.
SEQUENCES = "FASTA or FASTQ, plain or compressed"


def sequence_file(name: str, metavar: str, what: str = SEQUENCES, **more) -> Option:
    """Return an option for an input file of sequences."""
    return Option(name, File(metavar, "a FASTA or FASTQ file, plain or gz"), what, **more)


def output(metavar: str, what: str) -> Option:
    """Return the option for the output file or folder of a program."""
    return Option("output", Text(metavar), what, short="-o", required=True, only=PROGRAM)


#: Note in `--help` for an input that may come through a pipe.
ON_STDIN = "; - is standard input"


def chunk_file(name: str, program: str, more: str = "") -> Option:
    """Return an option for a file that an earlier step of a chain wrote."""
    what = f"file written by {program}{more}"
    return Option(name, File(name.upper()), what, required=True, only=PROGRAM)


PARTS = Option(
    "parts", Whole(1, 10_000, note="one job searches all queries"),
    "number of parts to cut the queries into; each part is searched by its own job, possibly on "
    "another machine. The result is the same", 1, only=CONFIGURATION,
)  # fmt: skip


def parse_part(text: str) -> tuple[int, int]:
    """Parse a part and a number of parts such as 3/20."""
    part, slash, parts = text.partition("/")
    if not (slash and part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts)):
        raise UsageError(f"{text!r} is not a part and a number of parts such as 3/20")
    return int(part), int(parts)


#: The reads of a program: single reads, pairs in two files, or interleaved pairs.
READ_FILES = (
    Option(
        "1", File("R1.fq[.gz]"),
        "reads, or first reads of pairs: FASTQ, or unaligned BAM or CRAM", only=PROGRAM,
        many=True, dest="first",
    ),
    Option(
        "2", File("R2.fq[.gz]"), "second reads of pairs, in as many files as -1", only=PROGRAM,
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

#: Orientations of pairs (drawn in mapping/insert_size.py), in the order of their numbers: bit 1 is
#: set if both reads are on the same strand, bit 0 if read 2 is behind read 1.
ORIENTATIONS = ("FR", "RF", "FF", "RR")


def parse_insert_size(text: str) -> tuple[float, float]:
    """Parse a mean and a standard deviation such as 400,60."""
    try:
        mean, standard_deviation = map(float, text.split(","))
    except ValueError:
        raise UsageError(
            f"{text!r} is not a mean and a standard deviation such as 400,60"
        ) from None
    return mean, standard_deviation


ORIENTATION = Option(
    "orientation", OneOf(ORIENTATIONS), "orientation of the ends of pairs",
    unset="that of the majority of the first pairs",
)  # fmt: skip

#: Insert size and orientation of pairs.
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

COMPRESS = Option(
    "compress", OneOf(("auto", "gpu", "host")),
    "where to compress BAM: `auto` uses the GPU if the run uses one and nvCOMP is installed. The "
    "records are the same, but not the bytes of the file", "auto", only=PROGRAM,
)  # fmt: skip

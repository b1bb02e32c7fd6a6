"""Options of what indexes a genome and maps reads to it: index, map, merge, allmap."""

import re

from bwarp.errors import UsageError
from bwarp.options.common import (
    COMPRESS,
    GPUS,
    INDEX_FOLDER,
    PAIRS_OF_READS,
    READ_FILES,
    output,
    scores_of_reads,
)
from bwarp.options.option import (
    CONFIGURATION,
    PROGRAM,
    File,
    OneOf,
    Option,
    Task,
    Text,
    Whole,
    yes_no,
)

INDEX = Task({"": (
    output("INDEX", "folder to write the index to"),
    Option(
        "occ_rate", Whole(32, 1024, multiple=32, metavar="Q"),
        "rows of the BWT between two stored counts of its bases (the q of ROcc sampling). Larger "
        "values make the index smaller and slower; values below 64 make it larger, not faster", 64,
    ),
    Option(
        "sa_rate", Whole(1, 1024, note="the whole suffix array", metavar="P"),
        "rows between two stored entries of the suffix array (the p of SA sampling). 1 stores all, "
        "which is fastest and largest", 4,
    ),
    Option(
        "prefix_length", Whole(0, 14, note="no table", word="auto", metavar="K"),
        "length of the k-mers whose SA intervals are stored in a table, which saves a search its "
        "first k steps; `auto` chooses by the size of the genome",
    ),
    yes_no(
        "with_reverse",
        "also make the BWT of the reversed text, which searches with mismatches and for unique "
        "matches need; without REF.fa, add it to an existing index", only=PROGRAM,
    ),
    yes_no(
        "verify",
        "prove the index against its text: after building it or, without REF.fa, an existing one",
        only=PROGRAM,
    ),
)})  # fmt: skip

#: The ends of reads may be clipped, or not.
MODES = ("local", "end-to-end")


_TAG = "[A-Za-z][A-Za-z0-9]"


def _parse_tag(text: str) -> str:
    if not re.fullmatch(_TAG, text):
        raise UsageError(f"{text!r} is not the name of a tag, such as RX")
    return text


def _parse_part(text: str) -> tuple[int, int]:
    part, slash, parts = text.partition("/")
    if not (slash and part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts)):
        raise UsageError(f"{text!r}: write which part, and of how many, such as 3/20")
    return int(part), int(parts)


MARK_DUPLICATES = yes_no(
    "mark_duplicates",
    "flag all but the best of the duplicate pairs and reads of a sample, as samtools markdup does",
)  # fmt: skip

BARCODE_TAG = Option(
    "barcode_tag",
    Text("TAG", "the name of a tag, such as RX", f"^{_TAG}$", _parse_tag),
    "with `--mark-duplicates`: duplicates have the same value of this tag, too, such as `RX`, the "
    "UMI", in_workflow="; reads have it from BAM or CRAM, or by `comments`",
)  # fmt: skip

REFERENCE_OF_CRAM = Option(
    "reference", File("REF.fa[.gz]"),
    "for CRAM: FASTA of the reference, plain or bgzip, which the header names (UR), so that "
    "samtools finds it; needed if it has IUPAC letters other than N", only=PROGRAM,
)  # fmt: skip

#: Versions of CRAM that are written, the default first.
CRAM_VERSIONS = ("3.0", "3.1")

CRAM_VERSION = Option(
    "cram_version", OneOf(CRAM_VERSIONS), "version of CRAM",
    unset=f"{CRAM_VERSIONS[0]}, which older programs can read, too", only=PROGRAM,
)  # fmt: skip

_SORT_MEMORY = Option(
    "sort_memory", Whole(1, 1 << 20, metavar="MB"),
    "memory for sorting in MB; more records are sorted in parts, on disk beside the output",
    unset="512 per thread, at most a quarter of the machine's memory", only=PROGRAM,
)  # fmt: skip

BATCHES = Option(
    "batches",
    File("FOLDER"),
    "folder of reads that `bwarp batch-reads` wrote",
    only=PROGRAM,
)

_READ_GROUP = Option(
    "read_group", Text("LINE"), "read group of the reads, such as '@RG\\tID:1\\tSM:sample'",
    short="-R", only=PROGRAM,
)  # fmt: skip


def estimated_insert_size(program: str) -> Option:
    """What a program has estimated of the pairs of a unit."""
    return Option(
        "estimated_insert_size", File("INSERT_SIZE.json"), f"file that `{program}` wrote",
        only=PROGRAM,
    )  # fmt: skip


MAP = Task({
    "": (
        INDEX_FOLDER,
        *READ_FILES,
        BATCHES,
        Option(
            "part", Text("K/N", parse=_parse_part),
            "with `--batches`: map the K-th of N equal parts; `bwarp merge` joins them",
            only=PROGRAM,
        ),
        estimated_insert_size("bwarp map-insert-size"),
        GPUS,
    ),
    "alignment": (
        Option(
            "mode", OneOf(MODES),
            "`local`: ends of reads may be clipped; `end-to-end`: they may not", MODES[0],
        ),
        *scores_of_reads(),
        Option("clip", Whole(0, 100), "cost of a clipped end", unset="5 times match", short="-L"),
        Option(
            "min_score", Whole(1, 10**6), "minimum score of an alignment that is reported",
            unset="30 times match", short="-T",
        ),
        *PAIRS_OF_READS,
        yes_no(
            "hic",
            "Hi-C pairs: map the ends one by one, with the 5' part of a split read as its primary "
            "record, as `bwa mem -5SP` does",
        ),
        Option(
            "alt", Text("FILE|NAMES", "a file of names, names with commas between them, or none"),
            "ALT contigs: a file with a name per line, names with commas between them, or `none`",
            unset="those that the index knows",
        ),
    ),
    "output": (
        output("OUT.bam|OUT.cram|OUT.sam|OUT.paf", "file to write; - is SAM on standard output"),
        Option(
            "output", OneOf(("bam", "cram")),
            "format of the alignments; CRAM is about half as large, and read with the reference, "
            "whose path is in the header, at hand", "bam", only=CONFIGURATION,
        ),
        CRAM_VERSION,
        # A number, as YAML reads it without quotes.
        Option(
            "cram_version", OneOf((3.0, 3.1)),
            "with `output: cram`: version of CRAM. 3.1 is smaller, and older programs, Picard of "
            "Debian 12 among them, cannot read it", 3.0, only=CONFIGURATION,
        ),
        yes_no("sort", "sort by position; BAM and CRAM get an index", only=PROGRAM),
        MARK_DUPLICATES,
        BARCODE_TAG,
        REFERENCE_OF_CRAM,
        _SORT_MEMORY,
        _READ_GROUP,
        yes_no(
            "comments",
            "copy the comments of the FASTQ headers, which must be SAM tags such as BC:Z:ACGT",
            short="-C",
        ),
        yes_no(
            "all", "write a secondary record (flag 256) for every other hit, in place of `XA`",
            short="-a",
        ),
        Option(
            "max_secondary", Whole(1, 10**6),
            "with `--all`: maximum number of secondary records of a read, best first",
            unset="no limit",
        ),
        yes_no("soft_clip", "also soft-clip supplementary records (S in place of H)", short="-Y"),
        yes_no("eqx", "write `=` and `X` in CIGARs in place of `M`"),
        Option(
            "regions", File("REGIONS.bed", "a BED file, plain or gz"),
            "write only reads that overlap one of these regions (BED), with their mates",
        ),
        yes_no(
            "timeline",
            "draw for the report when each step was at work, in which thread, by unit; units that "
            "have no timeline are mapped again", only=CONFIGURATION,
        ),
        Option("stats", Text("OUT.json"), "statistics of the reads to write", only=PROGRAM),
        COMPRESS,
        Option(
            "batch_reads", Whole(0, 10**12, note="a unit is mapped by one job", word="auto"),
            "reads of a job: a larger unit is mapped in parts, each by a job of its own, on "
            "another machine if there is one; `auto`: 50,000,000. The results are the same", 0,
            only=CONFIGURATION,
        ),
    ),
})  # fmt: skip

#: The scores of an alignment, and all that says how `map` aligns a read.
SCORES = ("match", "mismatch", "gap_open", "gap_extend")
ALIGNMENT = ("mode", *SCORES, "clip", "min_score", "orientation")

#: More parts than these and one do not go into the key of a hit.
MOST_EDITS = 31

#: Every locus within the edits allowed, not only those near the best.
ALL = -1


def parse_edits(text: str) -> tuple[int, float | None]:
    """4 or 3%: edits, and the share of a read's length in per cent."""
    try:
        if text.endswith("%"):
            return 0, float(text[:-1])
        return int(text), None
    except ValueError:
        raise UsageError(f"{text!r} is neither a whole number nor a share such as 3%") from None


def parse_report(text: str) -> int:
    """How far from the best locus others are reported; `ALL`."""
    if text in ("all", "best"):
        return ALL if text == "all" else 0
    kind, _, number = text.partition(":")
    if kind != "strata" or not number.isdecimal():
        raise UsageError(f"{text!r} is not all, best, or strata:1 and the like")
    return int(number)


ALLMAP = Task({
    "": (
        INDEX_FOLDER,
        READ_FILES[0]._replace(required=True),
        *READ_FILES[1:],
        output(
            "OUT",
            "loci to write: .bam (sorted, with its index), .tsv or .paf (both also .gz); - is TSV "
            "on standard output",
        ),
        Option(
            "edits",
            Text(
                "E",
                'a whole number from 0 to 31, or a share of the length in quotes, such as "3%"',
                r"^([0-9]|[1-4][0-9])(\.[0-9]+)?%$|^50%$", parse_edits,
                {"type": "integer", "minimum": 0, "maximum": MOST_EDITS},
            ),
            "maximum number of edits of a locus: mismatches, inserted and deleted bases; or 3% for "
            "a share of a read's length, rounded down", short="-e", required=True,
        ),
        Option(
            "gaps", Whole(0, MOST_EDITS, word="auto"),
            "maximum number of inserted and deleted bases among the edits; `auto`: as many as "
            "edits; 0: mismatches alone",
        ),
        Option(
            "report",
            Text(
                "WHAT", "all, best, or strata:1 and the like", "^(all|best|strata:[0-9]+)$",
                parse_report,
            ),
            "loci to report, of pairs the proper pairs: `all`; `best`: those with the fewest "
            "edits; `strata:X`: those with at most X edits more than the best", "all",
        ),
        Option(
            "seed_mismatches", Whole(0, 4, word="auto", metavar="M"),
            "mismatches with which parts of a read are searched; `auto`: what is fastest with the "
            "index. The results are the same",
            in_workflow=". From 1 on the reverse BWT is added to the index first",
        ),
        Option(
            "filter", OneOf(("auto", "on", "off")),
            "drop candidates by a bound before they are verified. The results are the same", "auto",
            in_workflow='; `"off"` leaves out the job that does it',
        ),
        *PAIRS_OF_READS,
        yes_no("unpaired", "report the loci of both ends of pairs one by one"),
        Option(
            "max_places", Whole(0, 2**40, note="no limit"),
            "list a read with more loci in .over.tsv instead, with their number; 0: no limit", 0,
        ),
        Option(
            "extension", OneOf(("edits", "semiglobal", "local")),
            "how reads are aligned at their loci: with the fewest `edits`; or by scores, "
            "`semiglobal`: whole, `local`: the part that scores most, with clipped ends. The loci "
            "are the same", "edits",
        ),
        *(
            option._replace(help=f"with `--extension` semiglobal or local: {option.help}")
            for option in scores_of_reads()
        ),
        yes_no(
            "xa", "write one BAM record per read, with its other loci in the tag XA, as bwa does",
            only=PROGRAM,
        ),
        _READ_GROUP,
        _SORT_MEMORY,
        Option("stats", Text("OUT.json"), "write what was searched and found", only=PROGRAM),
        Option(
            "format", OneOf(("bam", "tsv", "tsv.gz", "paf", "paf.gz")), "format of the loci", "bam",
            only=CONFIGURATION,
        ),
        Option(
            "batch_size", Whole(1, 10**9),
            "reads of a batch, rounded up to whole chunks of up to 8192 reads. The results are the "
            "same", 1_000_000, only=CONFIGURATION,
        ),
        COMPRESS,
        GPUS,
    ),
})  # fmt: skip

#: What says which loci `allmap` searches, and what it writes of them.
LOCI_SEARCHED = ("edits", "gaps", "report", "seed_mismatches")
LOCI_WRITTEN = ("max_places", "extension", *SCORES)

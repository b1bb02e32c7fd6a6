"""Options for indexing a genome and mapping reads to it: index, map, merge and allmap."""

import re

from bwarp.errors import UsageError
from bwarp.options.common import (
    CHUNK,
    COMPRESS,
    GPUS,
    INDEX_FOLDER,
    PAIRS_OF_READS,
    READ_FILES,
    output,
    parse_part,
)
from bwarp.options.option import (
    CONFIGURATION,
    PROGRAM,
    QUOTED_OPTIONS,
    File,
    OneOf,
    Option,
    Task,
    Text,
    Whole,
    yes_no,
)
from bwarp.options.scores import scores_of_reads
from bwarp.runtime.host_memory import parse_size

INDEX = Task({"": (
    output("INDEX", "folder to write the index to"),
    Option(
        "occ_rate", Whole(32, 1024, multiple=32, metavar="Q"),
        "rows of the BWT between two stored counts of its bases (the q of ROcc sampling). Larger "
        "values make the index smaller and slower; values below 64 make it larger, not faster", 64,
    ),
    Option(
        "sa_rate", Whole(1, 1024, note="the complete suffix array", metavar="P"),
        "rows between two stored entries of the suffix array (the p of SA sampling). 1 stores all, "
        "which is fastest and largest", 4,
    ),
    Option(
        "prefix_length", Whole(0, 14, note="no table", word="auto", metavar="K"),
        "length of the k-mers whose SA intervals are stored in a table, so that searches skip "
        "their first k steps; `auto` chooses by the size of the genome",
    ),
    yes_no(
        "with_reverse",
        "also build the BWT of the reversed text, which searches with mismatches and for unique "
        "matches need; without REF.fa, add it to an existing index", only=PROGRAM,
    ),
    Option(
        "chunk_bases", CHUNK,
        "write an index in chunks of N bases, for `bwarp mems` and `bwarp seeds` only: for "
        "references whose index exceeds the memory of a GPU. The results are the same",
        only=PROGRAM,
    ),
    yes_no(
        "verify",
        "verify the index against its text after building it; without REF.fa, verify an existing "
        "index",
        only=PROGRAM,
    ),
    Option(
        "memory", Text("SIZE", parse=parse_size),
        "memory limit for indexing on the CPU, such as 16G; a lower limit takes longer",
        unset="the free memory", only=PROGRAM,
    ),
)})  # fmt: skip

#: Alignment modes: ends of reads may be clipped, or not.
MODES = ("local", "end-to-end")


_TAG = "[A-Za-z][A-Za-z0-9]"


def _parse_tag(text: str) -> str:
    if not re.fullmatch(_TAG, text):
        raise UsageError(f"{text!r} is not the name of a tag such as RX")
    return text


MARK_DUPLICATES = yes_no(
    "mark_duplicates",
    "flag duplicate pairs and reads of a sample, except the best ones, as Picard MarkDuplicates "
    "does",
)  # fmt: skip

BARCODE_TAG = Option(
    "barcode_tag",
    Text("TAG", "the name of a tag, such as RX", f"^{_TAG}$", _parse_tag),
    "with `--mark-duplicates`: duplicates must also have the same value of this tag, such as the "
    "UMI in `RX`",
    in_workflow="; it is read from BAM or CRAM, or with `comments` from the headers of FASTQ",
)  # fmt: skip

DUPLICATE_METRICS = Option(
    "duplicate_metrics", Text("OUT.txt"),
    "with `--mark-duplicates`: write the counts of duplicates per library to this file, in the "
    "format of Picard",
    only=PROGRAM,
)  # fmt: skip

#: Default distance of optical duplicates, as in Picard.
DEFAULT_OPTICAL_DISTANCE = 100

OPTICAL_DISTANCE = Option(
    "optical_distance", Whole(0, (1 << 16) - 1, note="none"),
    "with `--mark-duplicates`, for metrics and tags: count duplicate pairs of the same "
    "tile as optical duplicates if x and y in their names differ by at most N. Use 2500 for "
    "patterned flow cells such as those of HiSeq X and NovaSeq",
    unset=f"{DEFAULT_OPTICAL_DISTANCE}",
)  # fmt: skip

DUPLICATE_TAGS = yes_no(
    "duplicate_tags",
    "with `--mark-duplicates`: write the tag `DT` of duplicates, as Picard does: `SQ` for optical "
    "duplicates, `LB` for others",
)  # fmt: skip

_OF_DUPLICATES = BARCODE_TAG, OPTICAL_DISTANCE, DUPLICATE_METRICS, DUPLICATE_TAGS


def check_duplicate_options(options) -> None:
    """Reject options that have no effect without others.

    Raises
    ------
    UsageError
    """
    for option in _OF_DUPLICATES:
        value = getattr(options, option.name)
        if value is not None and value is not False and not options.mark_duplicates:
            raise UsageError(f"{option.flags[-1]} requires --mark-duplicates")
    is_counted = options.duplicate_metrics or options.duplicate_tags
    if options.optical_distance is not None and not is_counted:
        raise UsageError("--optical-distance requires --duplicate-metrics or --duplicate-tags")


def counted_distance(options) -> int | None:
    """Return the distance of optical duplicates: 0 if neither metrics nor tags need them."""
    return options.optical_distance if options.duplicate_metrics or options.duplicate_tags else 0


QC = Option(
    "qc", Text("FOLDER"),
    "with `--sort`: write to this folder the files that samtools flagstat, idxstats and stats and "
    "mosdepth would write about the output",
    only=PROGRAM,
)  # fmt: skip

QC_REGIONS = Option(
    "qc_regions",
    File("REGIONS.bed", "a BED file, plain or gz"),
    "with `--qc`: also write the depths of these regions (BED), as mosdepth does",
)

REFERENCE_OF_CRAM = Option(
    "reference", File("REF.fa[.gz]"),
    "for CRAM: FASTA of the reference, plain or bgzip, whose path is written to the header (UR) so "
    "that samtools finds it; required if the reference has IUPAC letters other than N",
    only=PROGRAM,
)  # fmt: skip

#: Supported versions of CRAM, the default first.
CRAM_VERSIONS = ("3.0", "3.1")

CRAM_VERSION = Option(
    "cram_version", OneOf(CRAM_VERSIONS), "version of CRAM",
    unset=f"{CRAM_VERSIONS[0]}, which older programs also read", only=PROGRAM,
)  # fmt: skip

_SORT_MEMORY = Option(
    "sort_memory", Whole(1, 1 << 20, metavar="MB"),
    "memory for sorting in MB; larger sets are sorted in parts, on disk next to the output",
    unset="512 per thread, at most a quarter of the machine's memory", only=PROGRAM,
)  # fmt: skip

BATCHES = Option(
    "batches", File("FOLDER"), "folder of reads written by `bwarp batch-reads`", only=PROGRAM
)

_READ_GROUP = Option(
    "read_group", Text("LINE"), "read group of the reads, such as '@RG\\tID:1\\tSM:sample'",
    short="-R", only=PROGRAM,
)  # fmt: skip


def estimated_insert_size(program: str) -> Option:
    """Return the option for the insert size that a program has estimated for a unit."""
    return Option(
        "estimated_insert_size", File("INSERT_SIZE.json"), f"file written by `{program}`",
        only=PROGRAM,
    )  # fmt: skip


#: Options of bwa mem that are only accepted; their help says why.
WITHOUT_EFFECT = (
    Option("K", Whole(1, 10**18), "no effect: the output never depends on chunks", only=PROGRAM),
    yes_no(
        "M",
        "no effect: parts of split reads are supplementary records (flag 2048), which Picard reads "
        "too", only=PROGRAM,
    ),
    Option(
        "v", Whole(0, 100), "no effect: use --quiet for less, --timeline for more", only=PROGRAM
    ),
)  # fmt: skip

MAP = Task({
    "": (
        INDEX_FOLDER,
        *READ_FILES,
        BATCHES,
        Option(
            "part", Text("K/N", parse=parse_part),
            "with `--batches`: map the K-th of N equal parts; `bwarp merge` joins them",
            only=PROGRAM,
        ),
        estimated_insert_size("bwarp map-insert-size"),
        GPUS,
    ),
    "alignment": (
        Option(
            "mode", OneOf(MODES),
            "`local`: ends of reads may be clipped; `end-to-end`: reads align over their whole "
            "length", MODES[0],
        ),
        *scores_of_reads(),
        Option("clip", Whole(0, 100), "cost of a clipped end", unset="5 times match", short="-L"),
        Option(
            "min_score", Whole(1, 10**6), "minimum score of a reported alignment",
            unset="30 times match", short="-T",
        ),
        *PAIRS_OF_READS,
        yes_no(
            "hic",
            "Hi-C pairs: map both ends independently, with the 5' part of a split read as its "
            "primary record, as `bwa mem -5SP` does",
        ),
        Option(
            "alt", Text("FILE|NAMES", "a file of names, names separated by commas, or none"),
            "ALT contigs: a file with one name per line, names separated by commas, or `none`",
            unset="those listed in the index",
        ),
    ),
    "output": (
        output("OUT.bam|OUT.cram|OUT.sam|OUT.paf", "file to write; - is SAM on standard output"),
        Option(
            "output", OneOf(("bam", "cram")),
            "format of the alignments; CRAM is about half as large, but reading it needs the "
            "reference, whose path is in the header", "bam", only=CONFIGURATION,
        ),
        CRAM_VERSION,
        # A number, because YAML reads it as one without quotes.
        Option(
            "cram_version", OneOf((3.0, 3.1)),
            "with `output: cram`: version of CRAM. 3.1 is smaller, but older programs, such as "
            "Picard of Debian 12, cannot read it", 3.0, only=CONFIGURATION,
        ),
        yes_no("sort", "sort by position and index BAM and CRAM", only=PROGRAM),
        MARK_DUPLICATES,
        BARCODE_TAG,
        OPTICAL_DISTANCE,
        DUPLICATE_METRICS,
        DUPLICATE_TAGS,
        QC,
        yes_no(
            "qc",
            "write the files that samtools flagstat, idxstats and stats and mosdepth would write "
            "about each sample; the report shows them",
            only=CONFIGURATION,
        ),
        QC_REGIONS,
        REFERENCE_OF_CRAM,
        _SORT_MEMORY,
        _READ_GROUP._replace(
            help=f"{_READ_GROUP.help}; or one for each file of -1 and --single", many=True
        ),
        yes_no(
            "comments",
            "copy FASTQ comments to the records; they must be SAM tags such as BC:Z:ACGT",
            short="-C",
        ),
        yes_no(
            "all", "write a secondary record (flag 256) for every other hit instead of `XA`",
            short="-a",
        ),
        Option(
            "max_secondary", Whole(1, 10**6),
            "with `--all`: maximum number of secondary records per read, best first",
            unset="no limit",
        ),
        yes_no("soft_clip", "soft-clip supplementary records (S instead of H)", short="-Y"),
        yes_no("eqx", "write `=` and `X` in CIGARs instead of `M`"),
        Option(
            "regions", File("REGIONS.bed", "a BED file, plain or gz"),
            "write only reads that overlap these regions (BED), with their mates",
        ),
        yes_no(
            "timeline",
            "draw a timeline of the steps per thread and unit in the report; units without a "
            "timeline are mapped again", only=CONFIGURATION,
        ),
        Option(
            "stats", Text("OUT.json"), "write statistics of the reads to this file", only=PROGRAM
        ),
        COMPRESS,
        Option(
            "batch_reads", Whole(0, 10**12, note="a unit is mapped by one job", word="auto"),
            "reads per job: a larger unit is mapped in parts, each by its own job, possibly on "
            "another machine; `auto`: 50,000,000. The results are the same", 0,
            only=CONFIGURATION,
        ),
        yes_no(
            "keep_units",
            "keep the BAM files of units (`results/map/units/`) and parts, so that a new unit of a "
            "sample maps only that unit",
            only=CONFIGURATION,
        ),
    ),
    "options of bwa mem": WITHOUT_EFFECT,
})  # fmt: skip

#: Options of Parabricks fq2bam that are accepted without effect; their help gives the reason.
FQ2BAM_WITHOUT_EFFECT = (
    Option(
        "tmp_dir", Text("FOLDER"), "no effect: temporary files are next to the output",
        only=PROGRAM,
    ),
    yes_no("low_memory", "no effect: a run adapts to the free memory of the GPU", only=PROGRAM),
    yes_no("gpusort", "no effect: a GPU sorts if its memory allows", only=PROGRAM),
    yes_no("gpuwrite", "no effect: a GPU compresses BAM if nvCOMP is installed", only=PROGRAM),
)  # fmt: skip

FQ2BAM = Task({
    "": (
        Option(
            "ref", File("REF.fa[.gz]"),
            "FASTA of the reference. Its index is a folder next to it, such as genome.index for "
            "genome.fa", required=True, only=PROGRAM,
        ),
        Option(
            "out_bam", Text("OUT.bam|OUT.cram"), "output file; its index is written next to it",
            required=True, only=PROGRAM,
        ),
        Option(
            "out_duplicate_metrics", Text("OUT.txt"),
            "write the counts of duplicates per library to this file, in the format of Picard",
            only=PROGRAM,
        ),
        Option(
            "optical_duplicate_pixel_distance", OPTICAL_DISTANCE.value,
            "for `--out-duplicate-metrics` and `--duplicate-tags`: maximum distance of optical "
            "duplicates in x and y",
            unset=OPTICAL_DISTANCE.unset, only=PROGRAM,
        ),
        DUPLICATE_TAGS._replace(
            help="write the tag `DT` of duplicates: `SQ` for optical duplicates, `LB` for others",
            only=PROGRAM,
        ),
        yes_no("no_markdups", "do not flag duplicates", only=PROGRAM),
        GPUS._replace(name="num_gpus"),
        Option(
            "bwa_options", Text(QUOTED_OPTIONS),
            "options of bwa mem in quotes, such as '-Y -K 10000000'", only=PROGRAM,
        ),
    ),
    "options without effect": FQ2BAM_WITHOUT_EFFECT,
})  # fmt: skip

#: The scores of an alignment, and all options that affect how `map` aligns a read.
SCORES = ("match", "mismatch", "gap_open", "gap_extend")
ALIGNMENT = ("mode", *SCORES, "clip", "min_score", "orientation")

#: Maximum number of edits: the key of a hit holds at most one more part than this.
MOST_EDITS = 31

#: Report every locus within the allowed edits, not only those near the best.
ALL = -1


def parse_edits(text: str) -> tuple[int, float | None]:
    """Parse 4 or 3%: the number of edits, and the percentage of the read's length."""
    try:
        if text.endswith("%"):
            return 0, float(text[:-1])
        return int(text), None
    except ValueError:
        raise UsageError(
            f"{text!r} is neither a whole number nor a percentage such as 3%"
        ) from None


def parse_report(text: str) -> int:
    """Parse the maximum distance of reported loci from the best one; `ALL` for all."""
    if text in ("all", "best"):
        return ALL if text == "all" else 0
    kind, _, number = text.partition(":")
    if kind != "strata" or not number.isdecimal():
        raise UsageError(f"{text!r} is not all, best, or strata:N such as strata:1")
    return int(number)


ALLMAP = Task({
    "": (
        INDEX_FOLDER,
        READ_FILES[0]._replace(required=True),
        *READ_FILES[1:],
        output(
            "OUT",
            "file of loci to write: .bam (sorted, with its index), .tsv or .paf (both also .gz); "
            "- writes TSV to standard output",
        ),
        Option(
            "edits",
            Text(
                "E",
                'a whole number from 0 to 31, or a percentage in quotes, such as "3%"',
                r"^([0-9]|[1-4][0-9])(\.[0-9]+)?%$|^50%$", parse_edits,
                {"type": "integer", "minimum": 0, "maximum": MOST_EDITS},
            ),
            "maximum number of edits per locus: mismatches, inserted and deleted bases; or a "
            "percentage of the length of the read, such as 3%, rounded down",
            short="-e", required=True,
        ),
        Option(
            "gaps", Whole(0, MOST_EDITS, word="auto"),
            "maximum number of inserted and deleted bases among the edits; `auto`: limited only "
            "by `--edits`; 0: mismatches only",
        ),
        Option(
            "report",
            Text(
                "WHAT", "all, best, or strata:1 and the like", "^(all|best|strata:[0-9]+)$",
                parse_report,
            ),
            "loci to report, or proper pairs for pairs: `all`; `best`: those with the fewest "
            "edits; `strata:X`: those with at most X edits more than the best", "all",
        ),
        Option(
            "seed_mismatches", Whole(0, 4, word="auto", metavar="M"),
            "number of mismatches allowed in the parts of a read that are searched; `auto`: the "
            "fastest for the index. The results are the same",
            in_workflow=". From 1 on the reverse BWT is added to the index first",
        ),
        Option(
            "filter", OneOf(("auto", "histogram", "kmers", "both", "off")),
            "lower bounds of the edits by which candidates are dropped before verification: "
            "`histogram`: from the counts of A, C, G and T; `kmers`: from 4-mers; `both`: from "
            "both; `auto`: `kmers`. The results are the same",
            "auto",
            in_workflow='; `"off"` omits the job that does it',
        ),
        *PAIRS_OF_READS,
        yes_no("unpaired", "report the loci of both ends of a pair independently"),
        Option(
            "max_places", Whole(0, 2**40, note="no limit"),
            "reads with more loci are listed in .over.tsv instead, with their number of loci; 0: "
            "no limit", 0,
        ),
        Option(
            "extension", OneOf(("edits", "semiglobal", "local")),
            "alignment at each locus: with the fewest `edits`; or by scores, `semiglobal`: the "
            "whole read, `local`: the best-scoring part, with clipped ends. The loci are the same",
            "edits",
        ),
        *(
            option._replace(help=f"with `--extension` semiglobal or local: {option.help}")
            for option in scores_of_reads()
        ),
        yes_no(
            "xa", "write one BAM record per read with its other loci in the tag XA, as bwa does",
            only=PROGRAM,
        ),
        _READ_GROUP,
        _SORT_MEMORY,
        Option(
            "stats", Text("OUT.json"), "write statistics of the search to this file", only=PROGRAM
        ),
        Option(
            "format", OneOf(("bam", "tsv", "tsv.gz", "paf", "paf.gz")), "format of the loci", "bam",
            only=CONFIGURATION,
        ),
        Option(
            "batch_size", Whole(1, 10**9, word="auto"),
            "reads per batch, rounded up to complete chunks of up to 8192 reads; `auto`: 1 million "
            "for CPUs and 5 million for a GPU. The results are the same", only=CONFIGURATION,
        ),
        COMPRESS,
        GPUS,
    ),
})  # fmt: skip

#: Options that decide which loci `allmap` searches and reports.
LOCI_SEARCHED = ("edits", "gaps", "report", "seed_mismatches")
#: Options that decide how reads are aligned at their loci.
LOCI_ALIGNED = ("extension", *SCORES)
